# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench choice`: times of halo exchanges and transposes with every transport, and of the automatic choice."""

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
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import CaseError, TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.io.parallel import raise_on_all_ranks
from seiche.machine.collective_choice import candidates
from seiche.machine.collectives import Exchange
from seiche.machine.in_use import VARIABLE, predicted_transport_times
from seiche.observe.repeat import Work, queued, timed_together
from seiche.report.stored import check_output_path

#: Message sizes in bytes. The patterns are a ring of neighbours, all ranks with all others, and a transpose (an
#: Alltoall of arrays).
SIZES = tuple(4**k for k in range(2, 13))
_TRANSPORTS = ("host", "device_mpi", "nccl", "peer")
#: Those that differ from the others on several hosts only.
_BETWEEN_HOSTS = ("two_step", "three_step", *(f"peer+{name}" for name in ("host", "nccl", "two_step", "three_step")))
_TRANSPOSE = "transpose"
#: Number of rounds in which all candidates are timed in turn (the minimum is used), and seconds per candidate and
#: round.
_ROUNDS, _SECONDS = 3, 0.05
#: Maximum acceptable ratio of the time of the choice to the shortest time.
ACCEPTABLE_RATIO = 1.05


@dataclass(frozen=True)
class ChoiceRow:
    """An exchange: measured and predicted seconds by transport or strategy, the choice, its ratio to the fastest."""

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
    """Time rings, all-to-all patterns and transposes, compare the choice with the fastest, and return the rows.

    Args:
        machine: machine file for the predictions.
        device: "cpu", "cuda", or "auto": GPUs if every rank has access to one.
        output: file to which rank 0 writes the rows after each measurement.
        sizes: message sizes in bytes; SIZES by default.
        world: the ranks.

    Raises:
        FormatError: the machine file is invalid.
        BackendUnavailable: the device does not exist.
    """
    world = World.from_mpi() if world is None else world
    if world.size == 1:
        raise CaseError("`seiche bench choice` needs at least two ranks: start it with mpiexec -n 2")
    with raise_on_all_ranks(world):
        check_output_path(output if world.rank == 0 else None)
    backend = open_backend(available(world) if device == "auto" else device, world.threads(), world.local_rank)
    previous = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(machine)
    try:
        rows = []
        for row in _rows(world, backend, sizes or SIZES):
            rows.append(row)
            if world.rank == 0:
                print(f"{row.pattern}, {row.size} B: {row.chosen}, {row.cost:.2f} times the shortest time", flush=True)
                results.store(output, results.document("choice", backend.describe(), rows))
    finally:
        if previous is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = previous
    if world.rank == 0:
        _show(rows, backend)
    return rows


def _rows(world: World, backend: Backend, sizes: Sequence[int]) -> Iterator[ChoiceRow]:
    """Yield a row for each pattern and size (collective)."""
    for name, peers in _patterns(world):
        for size in sizes:
            yield _exchange_row(world, backend, name, peers, size)
    for size in sizes:
        yield _transpose_row(world, backend, size)


def _patterns(world: World) -> list[tuple[str, tuple[int, ...]]]:
    ring = {(world.rank + step) % world.size for step in (-1, 1)}
    other_ranks = set(range(world.size)) - {world.rank}
    patterns = [("ring", tuple(sorted(ring)))]
    return patterns if world.size < 4 else [*patterns, ("all", tuple(sorted(other_ranks)))]


def _exchange_row(world: World, backend: Backend, name: str, peers: tuple[int, ...], size: int) -> ChoiceRow:
    count = max(1, size // 4)
    owned = tuple(np.arange(count, dtype=np.uint32) for _ in peers)
    copies = tuple(np.arange(count, dtype=np.uint32) + (1 + k) * count for k in range(len(peers)))
    plan = HaloPlan(peers, owned, copies)
    trials: dict[str, Callable[[], float]] = {}
    exchanges = []
    for transport in _TRANSPORTS + (_BETWEEN_HOSTS if len(set(hosts_of(world))) > 1 else ()):
        exchange = HaloExchange(backend, world, plan, "float32", transport)  # type: ignore[arg-type]
        try:
            exchange.trial(seconds=0.0)
        except TransportError:  # raised on all ranks if the transport is not available
            continue
        trials[transport] = partial(exchange.trial, seconds=_SECONDS)
        exchanges.append(exchange)
    seconds = _minimum_times(trials)
    for exchange in exchanges:
        exchange.close()
    exchange = HaloExchange(backend, world, plan, "float32", predict=predicted_transport_times)
    exchange.trial()
    predicted = dict(exchange.decisions[0].predicted) if exchange.decisions else {}
    chosen = exchange.transport_name
    exchange.close()
    return ChoiceRow(name, size, seconds, predicted, chosen, seconds[chosen] / min(seconds.values()))


def _transpose_row(world: World, backend: Backend, size: int) -> ChoiceRow:
    """Return the row of a transpose with `size` bytes between each pair of ranks."""
    send, receive = (backend.zeros(size * world.size, np.uint8) for _ in range(2))
    trials: dict[str, Callable[[], float]] = {}
    exchanges = []
    for strategy in candidates(backend.is_gpu, 1):
        try:
            exchange = Exchange(world, send, receive, strategy=strategy)  # type: ignore[arg-type]
        except TransportError:  # raised on all ranks if the strategy is not available
            continue
        trials[strategy] = partial(_timed_seconds, world, queued(backend, exchange))
        exchanges.append(exchange)
    seconds = _minimum_times(trials)
    for exchange in exchanges:
        exchange.close()
    with Exchange(world, send, receive, strategy="auto") as automatic:
        decision = automatic.decision
    cost = seconds[decision.transport] / min(seconds.values())
    return ChoiceRow(_TRANSPOSE, size, seconds, dict(decision.predicted), decision.transport, cost)


def _timed_seconds(world: World, work: Work) -> float:
    return timed_together(world, work, _SECONDS).minimum


def _minimum_times(trials: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the minimum time of each trial over several rounds, because the speed of a machine varies."""
    rounds = [{name: trial() for name, trial in trials.items()} for _ in range(_ROUNDS)]
    return {name: min(times[name] for times in rounds) for name in trials}


def _show(rows: Sequence[ChoiceRow], backend: Backend) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row.seconds))
    lines = []
    for row in rows:
        cells = []
        for name in names:
            predicted = f" ({row.predicted[name] * 1e6:.3g})" if name in row.predicted else ""
            cells.append(f"{row.seconds[name] * 1e6:.4g}{predicted}" if name in row.seconds else "-")
        lines.append((row.pattern, f"{row.size}", *cells, row.chosen, f"{row.cost:.2f}"))
    title = f"exchanges on {backend.describe()}, us (predicted)"
    columns = ("pattern", "bytes", *names, "chosen", "cost")
    results.show_lines(title, columns, lines, text_columns=(0, len(columns) - 2))
    near_best = sum(row.cost <= ACCEPTABLE_RATIO for row in rows)
    print(
        f"seiche: the chosen transport takes at most {ACCEPTABLE_RATIO:g} times the shortest time"
        f" in {near_best} of {len(rows)} exchanges"
    )
    predicted_rows = [row for row in rows if row.chosen in row.predicted]
    if predicted_rows:
        errors = [abs(row.predicted[row.chosen] / row.seconds[row.chosen] - 1) for row in predicted_rows]
        print(f"seiche: median error of the predicted time: {np.median(errors):.0%}")
