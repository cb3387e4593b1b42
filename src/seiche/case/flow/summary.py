# SPDX-License-Identifier: BSD-3-Clause
"""The end of a run: table of stages, summary file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seiche.case.account import Account
from seiche.report.summary import Summary, write_summary

if TYPE_CHECKING:
    from seiche.case.flow.simulation import Simulation


def account_of(simulation: Simulation, bandwidth: float) -> Account:
    """Return the account of a run of flow or blood; `bandwidth` is that of plain copies."""
    solver, outputs = simulation.solver, simulation.outputs
    return Account(
        solver.timers,
        solver.backend,
        simulation.world,
        solver.phases,
        items=len(solver.owned),
        transport=solver.transport,
        seconds=simulation.seconds,
        bandwidth=bandwidth,
        beside={**outputs.seconds, "wait for output": outputs.writer.waited},
    )


def save_summary(simulation: Simulation, stopped: str | None) -> None:
    """Write the summary of the case from rank 0 (collective)."""
    solver, world, setup = simulation.solver, simulation.world, simulation.setup
    account = simulation.account()
    rows, movement = account.rows(), account.movement()
    flow_rates = simulation.flow_rates()
    if movement is None:
        return
    summary = Summary(
        case=simulation.title,
        device=solver.backend.describe(),
        sites=len(setup.vessel.sites),
        solver=setup.case.solver,
        steps=solver.step - simulation.outputs.first_step,
        seconds=simulation.seconds,
        ranks=world.size,
        threads=world.threads(setup.case.run.threads),
        layout=solver.layout,
        precision=f"{setup.precision.compute}/{setup.precision.storage}",
        copy_bandwidth=account.bandwidth,
        stages=rows,
        invariants=_invariants(simulation),
        flow_rates=flow_rates,
        efficiency=movement.efficiencies(),
        movement=movement.as_dict(),
        details=_details(simulation),
        stopped=stopped,
    )
    write_summary(simulation.folder / setup.case.output.summary, summary)


def _invariants(simulation: Simulation) -> dict[str, float]:
    numbers, record = simulation.setup.invariants, simulation.outputs.record
    known = {
        "reynolds": numbers.reynolds,
        "womersley": numbers.womersley,
        "mach": numbers.mach,
        "tau_smallest": numbers.tau[0],
        "tau_largest": numbers.tau[1],
        "density_smallest": numbers.density[0],
        "density_largest": numbers.density[1],
        "mach_seen": record.largest_mach,
    }
    if record.masses:
        known["mass_kg"] = record.masses[-1]
        known["mass_change_relative"] = record.masses[-1] / record.masses[0] - 1.0
    return {name: value for name, value in known.items() if value is not None}


def _details(simulation: Simulation) -> dict[str, Any]:
    setup, record = simulation.setup, simulation.outputs.record
    names = [plane.name for plane in setup.vessel.sites.iolets]
    flows = np.stack(record.flows) if record.flows else np.zeros((0, len(names)))
    return {
        "time_step_s": setup.units.step,
        "spacing_m": setup.units.spacing,
        "time_s": simulation.time,
        "period_s": setup.period,
        "files": [path.name for path in simulation.outputs.files()],
        "notes": list(setup.vessel.notes),
        **({"cells": simulation.blood.summary()} if simulation.blood is not None else {}),
        "history": {"time_s": record.times, "flow_m3_s": {name: flows[:, k] for k, name in enumerate(names)}},
    }
