# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench choice`: time halo exchanges and transposes in every way, and what a choice by a machine file costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from seiche.backend import Backend, open_backend
from seiche.bench import results
from seiche.bench.machine import available
from seiche.domain.world import World
from seiche.errors import CaseError, TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.io.parallel import all_or_none
from seiche.machine.collective_choice import candidates
from seiche.machine.collectives import Exchange
from seiche.machine.in_use import VARIABLE, predict_transports
from seiche.observe.repeat import Work, queued, timed_together
from seiche.report.stored import refuse_output

#: Bytes of each message; every rank exchanges with its two neighbours in a ring, with all other ranks, and in a
#: transpose (an Alltoall of arrays).
SIZES = tuple(4**k for k in range(2, 13))
_TRANSPORTS = ("host", "device_mpi", "nccl", "peer")
_TRANSPOSE = "transpose"
#: Rounds in which all are timed by turns, the least counting, and seconds of each in a round.
_ROUNDS, _SECONDS = 3, 0.05
#: The choice is good enough up to this ratio to the best.
GOOD = 1.05


@dataclass(frozen=True)
class ChoiceRow:
    """One exchange: seconds by transport or strategy, what was chosen and predicted, the cost over the fastest."""

    pattern: str
    size: int
    seconds: dict[str, float]
    predicted: dict[str, float]
    chosen: str
    cost: float


def main(
    *,
    machine: Path,
    device: str = "auto",
    output: Path | None = None,
    sizes: Sequence[int] = (),
    world: World | None = None,
) -> list[ChoiceRow]:
    """Time and choose for rings, all-to-all patterns and transposes; print on rank 0; return the rows.

    Args:
        machine: file to choose by.
        device: "cpu", "cuda", or "auto": GPUs if every rank finds one.
        output: file that rank 0 stores the rows in, after each of them.
        sizes: bytes of each message; SIZES by default.
        world: the ranks.

    Raises:
        CaseError: one rank has nobody to exchange with, or another file is where rows are to be stored.
        FormatError: the machine file is wrong.
        BackendUnavailable: no such device.
    """
    world = World.from_mpi() if world is None else world
    if world.size == 1:
        raise CaseError("one rank has nobody to exchange with: start `seiche bench choice` by mpiexec on two or more")
    with all_or_none(world):
        refuse_output(output if world.rank == 0 else None)
    backend = open_backend(available(world) if device == "auto" else device, world.threads(), world.local_rank)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(machine)
    try:
        rows = []
        for row in _rows(world, backend, sizes or SIZES):
            rows.append(row)
            if world.rank == 0:
                print(f"{row.pattern}, {row.size} B: {row.chosen}, {row.cost:.2f} times the best", flush=True)
                results.store(output, results.document("choice", backend.describe(), rows))
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
    if world.rank == 0:
        _show(rows, backend)
    return rows


def _rows(world: World, backend: Backend, sizes: Sequence[int]) -> Iterator[ChoiceRow]:
    """Yield a row for each pattern and size (collective)."""
    for name, peers in _patterns(world):
        for size in sizes:
            yield _row(world, backend, name, peers, size)
    for size in sizes:
        yield _transpose(world, backend, size)


def _patterns(world: World) -> list[tuple[str, tuple[int, ...]]]:
    ring = {(world.rank + step) % world.size for step in (-1, 1)}
    everyone = set(range(world.size)) - {world.rank}
    patterns = [("ring", tuple(sorted(ring)))]
    return patterns if world.size < 4 else [*patterns, ("all", tuple(sorted(everyone)))]


def _row(world: World, backend: Backend, name: str, peers: tuple[int, ...], size: int) -> ChoiceRow:
    count = max(1, size // 4)
    mine = tuple(np.arange(count, dtype=np.uint32) for _ in peers)
    theirs = tuple(np.arange(count, dtype=np.uint32) + (1 + k) * count for k in range(len(peers)))
    plan = HaloPlan(peers, mine, theirs)
    trials: dict[str, Callable[[], float]] = {}
    opened = []
    for transport in _TRANSPORTS:
        exchange = HaloExchange(backend, world, plan, "float32", transport)  # type: ignore[arg-type]
        try:
            exchange.trial(seconds=0.0)
        except TransportError:  # on all ranks: these cannot travel like this
            continue
        trials[transport] = partial(exchange.trial, seconds=_SECONDS)
        opened.append(exchange)
    seconds = _least(trials)
    for exchange in opened:
        exchange.close()
    chosen = HaloExchange(backend, world, plan, "float32", predict=predict_transports)
    chosen.trial()
    decision = chosen.decisions[0] if chosen.decisions else None
    taken = chosen.transport_name
    chosen.close()
    predicted = dict(decision.predicted) if decision else {}
    return ChoiceRow(name, size, seconds, predicted, taken, seconds[taken] / min(seconds.values()))


def _transpose(world: World, backend: Backend, size: int) -> ChoiceRow:
    """Return the row of a transpose with `size` bytes from each to each."""
    send, receive = (backend.zeros(size * world.size, np.uint8) for _ in range(2))
    trials: dict[str, Callable[[], float]] = {}
    opened = []
    for strategy in candidates(backend.is_gpu, 1):
        try:
            exchange = Exchange(world, send, receive, strategy=strategy)  # type: ignore[arg-type]
        except TransportError:  # on all ranks: these cannot travel like this
            continue
        trials[strategy] = partial(_seconds, world, queued(backend, exchange))
        opened.append(exchange)
    seconds = _least(trials)
    for exchange in opened:
        exchange.close()
    with Exchange(world, send, receive, strategy="auto") as chosen:
        decision = chosen.decision
    taken = decision.transport
    return ChoiceRow(_TRANSPOSE, size, seconds, dict(decision.predicted), taken, seconds[taken] / min(seconds.values()))


def _seconds(world: World, work: Work) -> float:
    return timed_together(world, work, _SECONDS).minimum


def _least(trials: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the least of the times of each, taken by turns: a machine is not as fast at all times."""
    rounds = [{name: trial() for name, trial in trials.items()} for _ in range(_ROUNDS)]
    return {name: min(times[name] for times in rounds) for name in trials}


def _show(rows: Sequence[ChoiceRow], backend: Backend) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row.seconds))
    lines = []
    for row in rows:
        cells = []
        for name in names:
            said = f" ({row.predicted[name] * 1e6:.3g})" if name in row.predicted else ""
            cells.append(f"{row.seconds[name] * 1e6:.4g}{said}" if name in row.seconds else "-")
        lines.append((row.pattern, f"{row.size}", *cells, row.chosen, f"{row.cost:.2f}"))
    title = f"exchanges on {backend.describe()}, us (predicted)"
    columns = ("pattern", "bytes", *names, "chosen", "cost")
    results.show_lines(title, columns, lines, words=(0, len(columns) - 2))
    good = sum(row.cost <= GOOD for row in rows)
    print(f"seiche: the choice costs at most {GOOD:g} times the best in {good} of {len(rows)} exchanges")
    errors = [
        abs(row.predicted[row.chosen] / row.seconds[row.chosen] - 1) for row in rows if row.chosen in row.predicted
    ]
    if errors:
        print(f"seiche: median error of the predicted time: {np.median(errors):.0%}")
