# SPDX-License-Identifier: BSD-3-Clause
"""Performance report of a run with any solver: stage table, efficiencies, trace, status page."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import seiche
from seiche.case.live import LiveView
from seiche.domain.clocks import CommonClock
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.observe.movement import Movement, bytes_per_occurrence, gather_movement, stage_frequency
from seiche.observe.timers import StageTimers, mean_over_ranks
from seiche.observe.trace import MAX_STORED_SAMPLES, check_replaceable, gather_trace, write_trace
from seiche.report.table import StageRow, as_text, stage_rows, stage_table
from seiche.set_up import OTHER, STAGES
from seiche.solver import SolverBase


@dataclass
class PerformanceReport:
    """Measured performance of the steps of a solver; every method is collective.

    Attributes:
        solver: the solver.
        seconds: wall time of the steps including output, s.
        bandwidth: total copy bandwidth of all ranks, bytes/s (`copy_bandwidth`), None if the memory is insufficient.
        host_overhead: host time between steps by activity, s.
        set_up: time of the stages of the set-up of this rank, s.
        writing: time in which this rank wrote to files, by output, s.
        counters: counts of the processor in the steps of this rank, or why there are none.
    """

    solver: SolverBase
    seconds: float
    bandwidth: float | None
    host_overhead: Mapping[str, float]
    set_up: Mapping[str, float] = field(default_factory=dict)
    writing: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)

    def set_up_seconds(self) -> dict[str, float]:
        """Return the greatest times of the ranks for each stage of the set-up, s."""
        names = (*STAGES, OTHER)
        greatest = self.solver.world.allreduce_max(np.array([self.set_up.get(name, 0.0) for name in names]))
        return {name: value for name, value in zip(names, greatest.tolist(), strict=True) if value > 0.0}

    def rows(self) -> list[StageRow]:
        """Return the rows of the table: times are means over the ranks, bytes are sums."""
        solver, world = self.solver, self.solver.world
        local = stage_frequency(solver.phases, solver.weights), bytes_per_occurrence(solver.phases, solver.weights)
        stages = world.allgather((solver.timers.times(), *local))
        names = list(dict.fromkeys(name for _, frequency, _ in stages for name in frequency))
        max_overheads = world.allreduce_max(np.array([*self.host_overhead.values(), 0.0]))[:-1]
        return stage_rows(
            names,
            mean_over_ranks([times for times, _, _ in stages]),
            steps=solver.timers.steps,
            seconds=self.seconds,
            copy_bandwidth=self.bandwidth,
            bytes_per_step={name: sum(moved.get(name, 0.0) for _, _, moved in stages) for name in names},
            frequency={name: max(frequency.get(name, 0.0) for _, frequency, _ in stages) for name in names},
            host_overhead=dict(zip(self.host_overhead, max_overheads.tolist(), strict=True)),
            step_seconds=float(np.mean(world.allgather(solver.timers.step_seconds()))),
        )

    def movement(self) -> Movement | None:
        """Return the data movement and efficiencies of all ranks on rank 0, None on other ranks."""
        solver = self.solver
        return gather_movement(
            solver.timers,
            solver.phases,
            solver.world,
            weights=solver.weights,
            elapsed=self.seconds,
            on_device=solver.backend.is_gpu,
            host_overhead=self.host_overhead,
            transport=solver.transport,
            sites=solver.items,
            set_up=self.set_up,
            writing=self.writing,
            counters=self.counters,
        )

    def as_text(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth as text."""
        note = "copy bandwidth not measured: the free memory is insufficient"
        if self.bandwidth is not None:
            note = f"copy bandwidth {self.bandwidth * 1e-9:.1f} GB/s, measured at the end of the run"
        return as_text(stage_table(self.rows(), seconds=self.seconds, note=note, set_up=self.set_up_seconds()))

    def save_trace(self, path: Path, case: str, clock: CommonClock) -> None:
        """Write the timeline of the run to `path` from rank 0; `case` is its title, `clock` its time line."""
        clock.measure_rate()
        self.solver.timers.align(clock.begin)
        ranks = gather_trace(self.solver.timers, self.solver.world, self.seconds, clock)
        errors = self.solver.world.gather(clock.error * 1e-9)
        if ranks is not None and errors is not None:
            device = self.solver.backend.describe()
            clocks = {"clock_error_s": max(errors), "clock_drift": [trace.rate - 1.0 for trace in ranks]}
            write_trace(path, ranks, case=case, seiche=seiche.__version__, device=device, **clocks)


def enable_trace(path: Path, timers: StageTimers, world: World) -> None:
    """Record samples for a trace in `path`; CaseError if the file exists and is not a trace (collective)."""
    on_root(world, lambda: check_replaceable(path))
    timers.set_sample_limit(MAX_STORED_SAMPLES)


def imbalance(timers: StageTimers, world: World) -> float | None:
    """Return the ratio of largest and mean useful time of the ranks.

    None on one rank or without samples (collective).
    """
    if world.size == 1:
        return None
    useful = world.allgather(timers.mean_useful_seconds())
    return max(useful) * len(useful) / sum(useful) if min(useful) > 0 else None


@contextmanager
def status_server(
    state: Callable[[], Mapping[str, Any]], title: str, port: int | None, view: LiveView | None
) -> Iterator[None]:
    """Serve `state()` and `view` as a web page from rank 0 if `port` is given (collective).

    Raises:
        CaseError: the port is in use.
    """
    if port is None or view is None:
        yield
        return
    from seiche.observe.status import StatusServer

    servers: list[StatusServer] = []

    def start() -> None:
        try:
            servers.append(StatusServer(state, title, port, view.figures))
            view.unwatched_seconds = lambda: servers[0].unwatched_seconds
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CaseError(f"--port {port}: cannot serve the status page: {reason}; choose another port") from None
        print(f"seiche: status at {servers[0].url}", file=sys.stderr)

    on_root(view.world, start)
    try:
        yield
    finally:
        view.unwatched_seconds = lambda: math.inf
        for server in servers:
            server.close()
