# SPDX-License-Identifier: BSD-3-Clause
"""The summary of a run of any kind."""

from __future__ import annotations

from seiche.case.account import Account
from seiche.case.kind import CaseRun, Results, Setup
from seiche.report.summary import Summary


def summary_of(
    setup: Setup, run: CaseRun, account: Account, results: Results, *, first: int, stopped: str | None
) -> Summary:
    """Return the summary of the steps since step `first`; of movement it tells on rank 0 only (collective)."""
    solver, case, movement = run.solver, setup.case, account.movement()
    return Summary(
        case=setup.title,
        device=solver.backend.describe(),
        sites=solver.total_items,
        solver=case.solver,
        item=solver.item,
        steps=solver.step - first,
        seconds=account.seconds,
        ranks=solver.world.size,
        threads=solver.world.threads(case.run.threads),
        layout=solver.layout,
        precision=str(solver.precision),
        copy_bandwidth=account.bandwidth,
        stages=account.rows(),
        invariants=results.invariants,
        flow_rates=results.flow_rates,
        efficiency=movement.efficiencies() if movement is not None else {},
        movement=movement.as_dict() if movement is not None else {},
        details={**results.details, **({"steering": run.steering.changed} if run.steering.changed else {})},
        finished=stopped is None,
        stopped=stopped,
    )
