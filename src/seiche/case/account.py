# SPDX-License-Identifier: BSD-3-Clause
"""What every run tells of itself, whatever it solves: table of stages, efficiencies, trace, status page."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import seiche
from seiche.backend import Backend
from seiche.case.agreement import on_rank_zero
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.observe.movement import Movement, bytes_when_there, gather_movement, how_often
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers, mean_over_ranks
from seiche.observe.trace import KEPT, gather_trace, refuse_foreign, write_trace
from seiche.report.table import StageRow, as_text, stage_rows, stage_table


@dataclass
class Account:
    """The account of a run; every method is collective over the ranks.

    Attributes:
        timers: of the solver's steps.
        backend: its device.
        world: the ranks.
        phases: the stages of each kind of step.
        weights: how often each kind came; None where they alternate.
        items: sites, points or nodes of this rank.
        transport: how messages travel.
        seconds: wall seconds of the steps, output included.
        bandwidth: bytes a second that plain copies reach on all ranks at once (`copy_bandwidth`).
        beside: seconds of the host between steps, by what it did.
    """

    timers: StageTimers
    backend: Backend
    world: World
    phases: Sequence[Sequence[Stage]]
    items: int
    transport: str
    seconds: float
    bandwidth: float
    weights: Sequence[float] | None = None
    beside: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> list[StageRow]:
        """Return the rows of the table: means over the ranks, and the bytes of all of them."""
        here = how_often(self.phases, self.weights), bytes_when_there(self.phases, self.weights)
        shares = self.world.allgather((self.timers.times(), *here))
        names = list(dict.fromkeys(name for _, often, _ in shares for name in often))
        longest = self.world.allreduce_max(np.array([*self.beside.values(), 0.0]))[:-1]
        return stage_rows(
            names,
            mean_over_ranks([times for times, _, _ in shares]),
            steps=self.timers.steps,
            seconds=self.seconds,
            copy_bandwidth=self.bandwidth,
            bytes_a_step={name: sum(moved.get(name, 0.0) for _, _, moved in shares) for name in names},
            often={name: max(often.get(name, 0.0) for _, often, _ in shares) for name in names},
            beside=dict(zip(self.beside, longest.tolist(), strict=True)),
        )

    def movement(self) -> Movement | None:
        """Return what all ranks did with their time, on rank 0."""
        return gather_movement(
            self.timers,
            self.phases,
            self.world,
            weights=self.weights,
            elapsed=self.seconds,
            on_device=self.backend.is_gpu,
            beside=self.beside,
            transport=self.transport,
            sites=self.items,
        )

    def report(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth as text."""
        note = f"copy bandwidth {self.bandwidth * 1e-9:.1f} GB/s, measured at the end of the run"
        return as_text(stage_table(self.rows(), seconds=self.seconds, note=note))

    def save_trace(self, path: Path | None, case: str) -> None:
        """Write the time line of a case to `path`, if there is one, from rank 0."""
        if path is None:
            return
        ranks = gather_trace(self.timers, self.world, self.seconds)
        if ranks is not None:
            write_trace(path, ranks, case=case, seiche=seiche.__version__, device=self.backend.describe())


def keep_trace(path: Path | None, timers: StageTimers, world: World) -> None:
    """See to it that the timers keep what a trace in `path` needs; None wants none (collective).

    Raises:
        CaseError: another file is there.
    """
    if path is not None:
        on_rank_zero(world, lambda: refuse_foreign(path))
        timers.keep(KEPT)


def imbalance(timers: StageTimers, world: World) -> float | None:
    """Return what the busiest rank computes over the mean of all ranks, None if that is not known (collective)."""
    if world.size == 1:
        return None
    useful = world.allgather(timers.useful_so_far())
    return max(useful) * len(useful) / sum(useful) if min(useful) > 0 else None


def print_shares(world: World, count: int, item: str) -> None:
    """Print how many items each rank has, and where it is (collective)."""
    for rank, mine, host in world.gather((world.rank, count, platform.node())) or ():
        print(f"rank {rank} on {host}: {mine:,} {item}")


@contextmanager
def serving(state: Callable[[], Mapping[str, Any]], title: str, port: int | None, world: World) -> Iterator[None]:
    """Serve what `state` tells from rank 0 inside the block, if a port is given (collective).

    Raises:
        CaseError: the port is taken.
    """
    if port is None:
        yield
        return
    from seiche.observe.status import StatusServer

    servers: list[StatusServer] = []

    def start() -> None:
        try:
            servers.append(StatusServer(state, title, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CaseError(f"--port {port}: the status page cannot be served there: {reason}") from None
        print(f"seiche: status at {servers[0].url}", file=sys.stderr)

    on_rank_zero(world, start)
    try:
        yield
    finally:
        for server in servers:
            server.close()
