# SPDX-License-Identifier: BSD-3-Clause
"""The summary of a run of any kind."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.case.kind import CaseRun, Results, Setup
from seiche.case.performance import PerformanceReport
from seiche.report.summary import Summary
from seiche.solver import Estimate


def summary_of(
    setup: Setup,
    run: CaseRun,
    performance: PerformanceReport,
    results: Results,
    *,
    estimates: Sequence[Estimate],
    first: int,
    stopped: str | None,
) -> Summary:
    """Return the summary of the steps since step `first`; data movement only on rank 0 (collective)."""
    solver, case, movement = run.solver, setup.case, performance.movement()
    return Summary(
        case=setup.title,
        device=solver.backend.describe(),
        sites=solver.total_items,
        solver=case.solver,
        item=solver.item,
        steps=solver.step - first,
        seconds=performance.seconds,
        ranks=solver.world.size,
        threads=solver.world.threads(case.run.threads),
        layout=solver.layout,
        precision=str(solver.precision),
        copy_bandwidth=performance.bandwidth,
        set_up=performance.set_up_seconds(),
        stages=performance.rows(),
        invariants=results.invariants,
        flow_rates=results.flow_rates,
        efficiency=movement.efficiencies() if movement is not None else {},
        movement=movement.as_dict() if movement is not None else {},
        details={**results.details, **({"steering": run.steering.changed} if run.steering.changed else {})},
        estimates=[estimate.as_dict() for estimate in estimates],
        finished=stopped is None,
        stopped=stopped,
    )
