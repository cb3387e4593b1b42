# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench collectives`: comparison of all strategies for Alltoall and Alltoallv with each other and the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from seiche.backend import Array, Backend, open_backend
from seiche.bench import results
from seiche.bench.machine import available
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.io.parallel import raise_on_all_ranks
from seiche.machine.collectives import Exchange, ExchangeName
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.locality import rank_placements
from seiche.machine.laws.predict import exchange_times, layout_of
from seiche.observe.repeat import Timing, Work, queued, sleep_until_barrier, timed_together
from seiche.report.movement_figures import draw_machine, strategies_figure
from seiche.report.stored import check_output_path

Kind: TypeAlias = Literal["alltoall", "alltoallv"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Bytes from each array to each other array; in an Alltoallv, a third less, the same, or a third more.
SIZES = tuple(4**k for k in range(2, 12))
_WITH_HELPERS = ("extra-message", "duplicate-pointer")


@dataclass(frozen=True)
class CollectiveRow:
    """An exchange of `arrays` arrays with `size` bytes between each pair; `predicted` is None without a model."""

    kind: Kind
    strategy: ExchangeName
    arrays: int
    processes: int
    size: int
    seconds: float
    spread: float
    predicted: float | None = None


def main(
    *,
    device: str = "auto",
    processes: int = 1,
    seconds: float = 60.0,
    machine: Path | None = None,
    output: Path | None = None,
    plots: Path | None = None,
    sizes: Sequence[int] = SIZES,
    world: World | None = None,
) -> list[CollectiveRow]:
    """Time every strategy available to these ranks; print, store and draw on rank 0; return the rows.

    Args:
        device: device of the arrays; "auto": GPUs if every rank has access to one.
        processes: ranks per array for strategies in which several ranks share the messages of an array; other
            strategies use one of them.
        seconds: approximate duration.
        machine: machine file for predictions, or the name of a known machine.
        output: file to which the rows are written.
        plots: folder for figures.
        sizes: bytes from each array to each other array.
        world: the ranks.

    Raises:
        TransportError: the number of ranks is not a multiple of `processes`.
        CaseError: `output` exists and is another file.
        FormatError: the machine file is invalid.
        BackendUnavailable: the device does not exist.
    """
    world = World.from_mpi() if world is None else world
    if world.size % processes:
        raise TransportError(f"{world.size} ranks cannot be divided into groups of {processes} per array")
    with raise_on_all_ranks(world):
        if world.rank == 0:
            check_output_path(output)
            if plots is not None:
                plots.mkdir(parents=True, exist_ok=True)
    model = read_machine(machine) if machine is not None else None
    device_name = available(world) if device == "auto" else device
    # The ranks of an array share its GPU.
    backend = open_backend(device_name, world.threads(), world.local_rank // processes)
    layout = layout_of(rank_placements(backend, world), processes)
    # Strategies without helper processes use one rank per array, and the other ranks are idle.
    owners = world if processes == 1 else World.of(world.comm.Split(world.rank % processes, world.rank))
    rows: list[CollectiveRow] = []
    unavailable: dict[str, str] = {}
    names: tuple[ExchangeName, ...] = get_args(ExchangeName)[1:]
    for kind, name in product(KINDS, names):
        if name in _WITH_HELPERS and processes == 1:
            unavailable[name] = "needs --processes 2 or more"
            continue
        for size in sizes:
            strategy_seconds = seconds / (len(sizes) * len(KINDS) * len(names))
            try:
                timing = _time_strategy(
                    _Ranks(world, owners, processes), backend, kind, name, size, seconds=strategy_seconds
                )
            except TransportError as error:
                unavailable[name] = str(error)
                break
            predicted = None
            if model is not None:
                options = {"whole_messages": kind == "alltoallv", "gpus": backend.is_gpu}
                predicted = exchange_times(model, layout, size, **options).get(name)
            minimum, spread = timing.minimum, timing.spread
            rows.append(CollectiveRow(kind, name, layout.size, processes, size, minimum, spread, predicted))
    if world.rank == 0:
        _report(rows, unavailable, backend, model=model, output=output, plots=plots)
    sleep_until_barrier(world)
    if owners is not world:
        owners.comm.Free()
    return rows


class _Ranks(NamedTuple):
    """All ranks, the ranks that own arrays, and the number of ranks per array."""

    world: World
    owners: World
    processes: int


def _time_strategy(
    ranks: _Ranks, backend: Backend, kind: Kind, name: ExchangeName, size: int, *, seconds: float
) -> Timing:
    """Return the timing of a strategy; raise the same TransportError on all ranks if it is not available."""
    world, owners, processes = ranks
    array, helper = divmod(world.rank, processes)
    arrays = world.size // processes
    counts = [[_uneven(size, a, b) if kind == "alltoallv" else size for b in range(arrays)] for a in range(arrays)]
    send: Array = None
    receive: Array = None
    sent: list[int] | None = None
    received: list[int] | None = None
    if helper == 0:
        sent, received = counts[array], [row[array] for row in counts]
        send, receive = (backend.zeros(sum(sizes), np.uint8) for sizes in (sent, received))
        backend.synchronize()
    has_helpers = name in _WITH_HELPERS
    exchange, problem = None, None
    if has_helpers or helper == 0:
        try:
            exchange = Exchange(
                world if has_helpers else owners,
                *(send, receive, sent, received),
                strategy=name,
                processes=processes if has_helpers else 1,
                whole_messages=kind == "alltoallv",
            )
        except TransportError as error:
            problem = str(error)
    raise_together(world, problem)
    work: Work = queued(backend, exchange) if exchange is not None else lambda count: 0.0
    timing = timed_together(world, work, seconds, active=exchange is not None)
    if exchange is not None:
        exchange.close()
    return timing


def _uneven(size: int, source: int, target: int) -> int:
    return size + (source + target) % 3 * (size // 3) - size // 3


def _report(
    rows: Sequence[CollectiveRow],
    unavailable: dict[str, str],
    backend: Backend,
    *,
    model: Machine | None,
    output: Path | None,
    plots: Path | None,
) -> None:
    cells = []
    for row in rows:
        predicted = "-" if row.predicted is None else f"{row.predicted * 1e6:.3g}"
        times = f"{row.seconds * 1e6:.4g}", f"{row.spread:.0%}", predicted
        cells.append((row.kind, row.strategy, f"{row.processes}", f"{row.size}", *times))
    names = ("exchange", "strategy", "processes", "bytes each", "us", "spread", "predicted us")
    results.show_lines(f"arrays on {backend.describe()}", names, cells, text_columns=(0, 1))
    for name, reason in unavailable.items():
        print(f"not measured: {name}: {reason}")
    results.store(output, {**results.document("collectives", backend.describe(), rows), "absent": unavailable})
    if plots is None:
        return
    for kind in KINDS:
        points: dict[str, list[tuple[int, float, float | None]]] = {}
        for row in rows:
            if row.kind == kind:
                points.setdefault(row.strategy, []).append((row.size, row.seconds, row.predicted))
        if points:
            strategies_figure(plots / f"{kind}.png", points)
    if model is not None:
        draw_machine(plots, model)
