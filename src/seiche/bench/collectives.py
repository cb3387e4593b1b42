# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench collectives`: Alltoall and Alltoallv by every strategy, timed against each other and the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from seiche.backend import Array, Backend, open_backend
from seiche.bench import results
from seiche.bench.machine import available
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.io.parallel import all_or_none
from seiche.machine.collectives import Exchange, ExchangeName
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.locality import places
from seiche.machine.laws.predict import exchange_times, layout_of
from seiche.observe.repeat import Timing, Work, queued, sleep_until_all_are_here, timed_together
from seiche.report.movement_figures import draw_machine, strategies_figure
from seiche.report.stored import refuse_output

Kind: TypeAlias = Literal["alltoall", "alltoallv"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Bytes from each array to each other; in an Alltoallv a third less and more than that, in turn.
SIZES = tuple(4**k for k in range(2, 12))
_HELPED = ("extra-message", "duplicate-pointer")


@dataclass(frozen=True)
class CollectiveRow:
    """One exchange of `arrays` arrays with `size` bytes from each to each; `predicted` may be unknown."""

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
    """Time every strategy that these ranks can use; print, store and draw on rank 0; return the rows.

    Args:
        device: of the arrays; "auto": GPUs if every rank finds one.
        processes: ranks an array in the strategies that share its messages; the others use one of these.
        seconds: about how long.
        machine: file to predict from, or the name of a known machine.
        output: file to store the rows in.
        plots: folder to draw in.
        sizes: bytes from each array to each other.
        world: the ranks.

    Raises:
        TransportError: the ranks cannot be shared among arrays.
        CaseError: another file is where rows are to be stored.
        FormatError: the machine file is wrong.
        BackendUnavailable: no such device.
    """
    world = World.from_mpi() if world is None else world
    if world.size % processes:
        raise TransportError(f"{world.size} ranks cannot serve arrays by {processes} processes each")
    with all_or_none(world):
        if world.rank == 0:
            refuse_output(output)
            if plots is not None:
                plots.mkdir(parents=True, exist_ok=True)
    known = read_machine(machine) if machine is not None else None
    kind = available(world) if device == "auto" else device
    # The ranks that serve an array share its GPU.
    backend = open_backend(kind, world.threads(), world.local_rank // processes)
    layout = layout_of(places(backend, world), processes)
    # Strategies without helping processes run on the ranks that hold arrays; the others look on.
    holders = world if processes == 1 else World.of(world.comm.Split(world.rank % processes, world.rank))
    rows: list[CollectiveRow] = []
    absent: dict[str, str] = {}
    names: tuple[ExchangeName, ...] = get_args(ExchangeName)[1:]
    for what in KINDS:
        for name in names:
            if name in _HELPED and processes == 1:
                absent[name] = "needs --processes 2 or more"
                continue
            for size in sizes:
                share = seconds / (len(sizes) * len(KINDS) * len(names))
                try:
                    timing = _time(_Ranks(world, holders, processes), backend, what, name, size, seconds=share)
                except TransportError as error:
                    absent[name] = str(error)
                    break
                times = (
                    {}
                    if known is None
                    else exchange_times(known, layout, size, whole=what == "alltoallv", gpus=backend.is_gpu)
                )
                rows.append(
                    CollectiveRow(
                        what, name, layout.size, processes, size, timing.minimum, timing.spread, times.get(name)
                    )
                )
    if world.rank == 0:
        _report(rows, absent, backend, known=known, output=output, plots=plots)
    sleep_until_all_are_here(world)
    if holders is not world:
        holders.comm.Free()
    return rows


class _Ranks(NamedTuple):
    """All ranks, those that hold arrays, and how many serve an array."""

    world: World
    holders: World
    processes: int


def _time(ranks: _Ranks, backend: Backend, what: Kind, name: ExchangeName, size: int, *, seconds: float) -> Timing:
    """Return the timing of one strategy; all ranks raise the same TransportError if it cannot be used."""
    world, holders, processes = ranks
    me, helper = divmod(world.rank, processes)
    arrays = world.size // processes
    counts = [[_uneven(size, a, b) if what == "alltoallv" else size for b in range(arrays)] for a in range(arrays)]
    send: Array = None
    receive: Array = None
    mine: list[int] | None = None
    theirs: list[int] | None = None
    if helper == 0:
        mine, theirs = counts[me], [row[me] for row in counts]
        send, receive = (backend.zeros(sum(part), np.uint8) for part in (mine, theirs))
        backend.synchronize()
    helped = name in _HELPED
    exchange, problem = None, None
    if helped or helper == 0:
        try:
            exchange = Exchange(
                world if helped else holders,
                send,
                receive,
                mine,
                theirs,
                strategy=name,
                processes=processes if helped else 1,
                whole=what == "alltoallv",
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
    absent: dict[str, str],
    backend: Backend,
    *,
    known: Machine | None,
    output: Path | None,
    plots: Path | None,
) -> None:
    cells = []
    for row in rows:
        predicted = "-" if row.predicted is None else f"{row.predicted * 1e6:.3g}"
        times = f"{row.seconds * 1e6:.4g}", f"{row.spread:.0%}", predicted
        cells.append((row.kind, row.strategy, f"{row.processes}", f"{row.size}", *times))
    names = ("exchange", "strategy", "processes", "bytes each", "us", "spread", "predicted us")
    results.show_lines(f"arrays on {backend.describe()}", names, cells, words=(0, 1))
    for name, why in absent.items():
        print(f"absent: {name}: {why}")
    results.store(output, {**results.document("collectives", backend.describe(), rows), "absent": absent})
    if plots is not None:
        for kind in KINDS:
            some = [row for row in rows if row.kind == kind]
            if some:
                lines: dict[str, list[tuple[int, float, float | None]]] = {
                    name: [(row.size, row.seconds, row.predicted) for row in some if row.strategy == name]
                    for name in dict.fromkeys(row.strategy for row in some)
                }
                strategies_figure(plots / f"{kind}.png", lines)
        if known is not None:
            draw_machine(plots, known)
