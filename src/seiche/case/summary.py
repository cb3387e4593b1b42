# SPDX-License-Identifier: BSD-3-Clause
"""The end of a run: table of stages, summary file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import seiche
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.movement import Movement, gather_movement
from seiche.observe.timers import mean_over_ranks
from seiche.observe.trace import gather_trace, write_trace
from seiche.report.summary import Summary, write_summary
from seiche.report.table import StageRow, as_text, stage_rows, stage_table

if TYPE_CHECKING:
    from seiche.case.simulation import Simulation


def measured_bandwidth(simulation: Simulation) -> float:
    """Return the bytes a second that plain copies reach on all ranks at once (collective)."""
    return copy_bandwidth(simulation.solver.backend, simulation.world)


def rows_of(simulation: Simulation) -> list[StageRow]:
    """Return the rows of the table, means over the ranks and bytes of all of them (collective)."""
    solver, world = simulation.solver, simulation.world
    stages = {stage.name: stage for stage in solver.stages}
    shares = world.allgather((solver.timers.times(), {name: stage.bytes for name, stage in stages.items()}))
    names = dict.fromkeys(name for _, moved in shares for name in moved)
    total = {name: sum(moved.get(name, 0) for _, moved in shares) for name in names}
    return stage_rows(
        list(stages.values()),
        mean_over_ranks([times for times, _ in shares]),
        steps=solver.timers.steps,
        seconds=simulation.seconds,
        copy_bandwidth=simulation.bandwidth(),
        bytes_a_step=total,
        beside=_beside(simulation),
    )


def _beside(simulation: Simulation) -> dict[str, float]:
    """Return the longest seconds of any rank between steps, by what the host did (collective)."""
    outputs = simulation.outputs
    seconds = {**outputs.seconds, "wait for output": outputs.writer.waited}
    longest = simulation.world.allreduce_max(np.array(list(seconds.values())))
    return dict(zip(seconds, longest.tolist(), strict=True))


def table_text(simulation: Simulation) -> str:
    """Return the table stage | time | share | GB/s | share of the copy bandwidth as text (collective)."""
    bandwidth = simulation.bandwidth()
    note = f"copy bandwidth {bandwidth * 1e-9:.1f} GB/s, measured at the end of the run"
    return as_text(stage_table(rows_of(simulation), seconds=simulation.seconds, note=note))


def save_summary(simulation: Simulation, stopped: str | None) -> None:
    """Write the summary of the case from rank 0 (collective)."""
    solver, world, setup = simulation.solver, simulation.world, simulation.setup
    rows = rows_of(simulation)
    movement = _movement(simulation)
    flow_rates = simulation.flow_rates()
    if movement is None:
        return
    summary = Summary(
        case=setup.case.title or setup.source,
        device=solver.backend.describe(),
        sites=len(setup.vessel.sites),
        steps=solver.time_step - simulation.outputs.first_step,
        seconds=simulation.seconds,
        ranks=world.size,
        threads=setup.case.run.threads or world.threads(),
        layout=solver.layout_name,
        precision=f"{setup.precision.compute}/{setup.precision.storage}",
        copy_bandwidth=simulation.bandwidth(),
        stages=rows,
        invariants=_invariants(simulation),
        flow_rates=flow_rates,
        efficiency=movement.efficiencies(),
        movement=movement.as_dict(),
        details=_details(simulation),
        stopped=stopped,
    )
    write_summary(simulation.folder / setup.case.output.summary, summary)


def save_trace(simulation: Simulation) -> None:
    """Write the time line that the case asks for, from rank 0 (collective)."""
    name = simulation.setup.case.output.trace
    if name is None:
        return
    ranks = gather_trace(simulation.solver.timers, simulation.world)
    if ranks is not None:
        about = {"case": simulation.setup.case.title or simulation.setup.source, "seiche": seiche.__version__}
        write_trace(simulation.folder / name, ranks, **about, device=simulation.solver.backend.describe())


def _movement(simulation: Simulation) -> Movement | None:
    """Return what all ranks did with their time, on rank 0 (collective)."""
    solver, outputs = simulation.solver, simulation.outputs
    return gather_movement(
        solver.timers,
        solver.phases,
        simulation.world,
        elapsed=simulation.seconds,
        on_device=solver.backend.asynchronous,
        beside={**outputs.seconds, "wait for output": outputs.writer.waited},
        transport=solver.halo.transport_name,
        sites=len(solver.owned),
    )


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
