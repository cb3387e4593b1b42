# SPDX-License-Identifier: BSD-3-Clause
"""Checks of run measurements: published efficiencies, traces with known results, plans, timer overhead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from seiche.backend import Backend, parse_device
from seiche.backend.planned import PlannedBackend
from seiche.domain.emulation import emulate_ranks
from seiche.domain.shapes import box
from seiche.domain.world import World
from seiche.flow.model import FlowModel, Newtonian, Precision
from seiche.flow.solver import FlowSolver
from seiche.observe.efficiency import Efficiency, efficiency
from seiche.observe.plan import PlannedRank, planned_steps
from seiche.observe.replay import ideal_seconds
from seiche.observe.sample import Sample, Span, union_length
from seiche.observe.stage import Messages, Stage
from seiche.observe.timers import StageTimers
from seiche.observe.trace import MAX_STORED_SAMPLES, gather_trace, write_trace
from seiche.solver.replay import GRAPH_STEPS
from seiche.validate.check import Check, Setting

_POP = "HemeLB_GPU on JUWELS, POP2_AR_065 (2020)"
#: Runs on 1 to 32 nodes without output: GPUs, seconds, and parallel and global efficiencies as published.
_PUBLISHED = (
    (4, 137.73, 0.68, 0.68),
    (8, 82.33, 0.57, 0.57),
    (16, 44.98, 0.53, 0.52),
    (32, 21.00, 0.59, 0.56),
    (64, 10.87, 0.59, 0.54),
    (128, 6.66, 0.51, 0.44),
)
#: Edges of the simulated boxes (full and quick), and number of ranks of a plan.
_EDGE, _QUICK_EDGE, _RANKS = 96, 48, 4
#: Maximum acceptable fraction of a step spent on timing.
_OVERHEAD = 0.01
#: Maximum acceptable fraction of a run spent on writing the trace, and number of traced steps (GPU: graphs).
_TRACE_OVERHEAD, _TRACED = 0.02, 3200


def efficiencies(setting: Setting) -> list[Check]:
    """Return the errors for published global efficiencies and for traces with known efficiencies."""
    del setting
    count, seconds, parallel, _ = _PUBLISHED[0]
    first = Efficiency(count, seconds, parallel, 1.0)
    overall = [Efficiency(n, elapsed, pe, 1.0).against(first).overall for n, elapsed, pe, _ in _PUBLISHED]
    max_error = float(np.abs(np.array(overall) - [row[3] for row in _PUBLISHED]).max())
    kernels = [(0.0, 4.0), (3.0, 6.0), (5.5, 6.66)]
    tree = efficiency([union_length(kernels)], 6.66)
    first_rank, second_rank = _alternating_ranks()
    taken, ideal = ideal_seconds([[first_rank], [second_rank]])
    alternating = efficiency([2.0, 2.0], taken, ideal=ideal)
    assert alternating.serialisation is not None and alternating.transfer is not None
    return [
        Check("global efficiencies from times and counts", max_error, 0.015, reference=_POP),
        Check("communication efficiency of kernels that overlap", tree.communication, 1.0, reference="union"),
        Check(
            "serialisation of two alternating ranks", abs(alternating.serialisation - 0.5), 1e-12, reference="by hand"
        ),
        Check("transfer of two alternating ranks", abs(alternating.transfer - 4.0 / 4.5), 1e-12, reference="by hand"),
    ]


def _alternating_ranks() -> tuple[Sample, Sample]:
    """Return steps of two ranks: both work for two seconds, rank 1 from half a second after the end of rank 0."""
    sent, received = Messages("halo", sent=((1, 8),)), Messages("halo", received=((0, 8),))
    first = (Span("work", 0.0, 2.0, True, None), Span("send", 2.0, 2.0, False, sent))
    second = (Span("receive", 0.0, 2.5, False, received), Span("work", 2.5, 4.5, True, None))
    return Sample(0, 0.0, first), Sample(0, 0.0, second)


def plans(setting: Setting) -> list[Check]:
    """Return the differences between a run and its plan, and between plans for one and for several ranks."""
    edge, device = _QUICK_EDGE if setting.quick else _EDGE, parse_device(setting.device).planned
    real = _solver(setting.device, edge, World.serial())
    single_rank, *_ = emulate_ranks(1, lambda world: _planned(device, edge, world))
    declared = [stage.bytes for stages in real.phases for stage in stages]
    planned = [stage.bytes for _, stages in single_rank.steps for stage in stages]
    ranks = emulate_ranks(_RANKS, lambda world: _planned(device, edge, world))
    net = dict.fromkeys([(a, b) for a in range(_RANKS) for b in range(_RANKS)], 0)
    for number, rank in enumerate(ranks):
        for peer, out, received in (
            row for _, kind in rank.steps for stage in kind for x in stage.exchanges for row in x
        ):
            net[number, peer] += out
            net[peer, number] -= received
    real.close()
    return [
        Check(
            "difference of the bytes of planned and actual stages",
            float(np.abs(np.subtract(planned, declared)).sum()),
            0.0,
        ),
        Check("bytes that planned ranks send but do not receive", float(max(map(abs, net.values()))), 0.0),
        Check("sites missing on planned ranks", float(abs(sum(rank.items for rank in ranks) - edge**3)), 0.0),
    ]


def _solver(device: str, edge: int, world: World) -> FlowSolver:
    return FlowSolver(
        box((edge,) * 3),
        FlowModel(Newtonian(0.1)),
        device=device,
        precision=Precision("float32", "float32"),
        world=world,
    )


def _planned(device: str, edge: int, world: World) -> PlannedRank:
    solver = _solver(device, edge, world)
    backend = solver.backend
    assert isinstance(backend, PlannedBackend)
    steps = planned_steps([(1.0, stages) for stages in solver.phases], backend)
    return PlannedRank(steps, backend.memory, len(solver.owned))


def overhead(setting: Setting) -> list[Check]:
    """Return the costs, relative to a step, of timing the stages and of writing a trace of these steps.

    The same loop over empty stages runs with and without timing, and the minimum over several repetitions is used. On a
    GPU, steps are replayed as graphs, and only some of the graphs are timed.
    """
    edge = _QUICK_EDGE if setting.quick else _EDGE
    solver = _solver(setting.device, edge, World.serial())
    count = 4 * GRAPH_STEPS if solver.backend.has_graphs else 8
    solver.advance(count)

    def run() -> None:
        solver.start(count)
        solver.finish()

    step = min(_seconds(run) for _ in range(5)) / count
    graphs, kinds = solver.backend.has_graphs, [_idle(stages) for stages in solver.phases]
    timers = StageTimers(solver.backend.clock())
    rounds = 200 if setting.quick else 1000

    def plain() -> None:
        for number in range(rounds * GRAPH_STEPS):
            for stage in kinds[number % len(kinds)]:
                stage.action()

    def timed() -> None:
        for number in range(rounds * GRAPH_STEPS):
            timers.step(kinds[number % len(kinds)])

    def replayed() -> None:
        for _ in range(rounds):
            timers.replay(GRAPH_STEPS, _no_work)
        solver.backend.synchronize()

    baseline = 0.0 if graphs else min(_seconds(plain) for _ in range(5))
    timing = (min(_seconds(replayed if graphs else timed) for _ in range(5)) - baseline) / (rounds * GRAPH_STEPS)
    solver.close()
    return [
        Check("duration of the timed step", step * 1e6, sense="recorded", unit="us"),
        Check("overhead of timing the stages", max(0.0, timing) / step, _OVERHEAD),
        Check("overhead of writing a trace", _trace_seconds(kinds, solver.backend, step) / step, _TRACE_OVERHEAD),
    ]


def _trace_seconds(kinds: Sequence[Sequence[Stage]], backend: Backend, step: float) -> float:
    """Return the time per step (s) for writing the trace of many steps of `step` seconds.

    On a GPU, steps are graphs.
    """
    timers = StageTimers(backend.clock())
    timers.set_sample_limit(MAX_STORED_SAMPLES)
    for number in range(_TRACED):
        if backend.has_graphs:
            timers.replay(GRAPH_STEPS, _no_work)
        else:
            timers.step(kinds[number % len(kinds)])
    ranks = gather_trace(timers, World.serial(), timers.steps * step)
    assert ranks is not None
    with TemporaryDirectory() as folder:
        written = min(_seconds(lambda: write_trace(Path(folder) / "trace.json", ranks)) for _ in range(5))
    return written / timers.steps


def _idle(stages: Sequence[Stage]) -> list[Stage]:
    return [replace(stage, action=_no_work) for stage in stages]


def _no_work() -> None:
    """Do nothing, in place of the work of a stage."""


def _seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
