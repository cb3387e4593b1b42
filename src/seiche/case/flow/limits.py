# SPDX-License-Identifier: BSD-3-Clause
"""Limits of a flow case: errors and warnings, one line each, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator

from seiche.case.flow.averages import window_of
from seiche.case.flow.extraction import selected_sites
from seiche.case.flow.openings import steps_of
from seiche.case.flow.setup import FlowSetup, ramps_of
from seiche.case.flow.units import CS2
from seiche.case.flow.where import select
from seiche.case.schedule import Schedule
from seiche.domain.occupancy import SizedSites
from seiche.errors import CaseError
from seiche.flow.choice import choose_layout
from seiche.flow.velocity_set import VELOCITY_SETS

#: Minimum tau; below it, the collision hardly damps short waves, and rounding errors grow faster than they decay.
MIN_TAU = 0.501
#: Maximum tau with one relaxation time: the error of the effective position of a bounce-back wall grows with tau.
MAX_TAU_BGK = 2.0
#: Maximum tau with the regularised collision: the error of the wall position at tau = 5 equals that of BGK at tau = 2.
MAX_TAU_REGULARISED = 5.0
#: Maximum tau with two relaxation times: the wall position is exact, but non-equilibrium moments decay over tau steps.
MAX_TAU_TRT = 20.0
#: Maximum Mach number; the equilibrium is a low-Mach expansion with an error proportional to Mach^2.
MAX_MACH = 0.3
_UNKNOWN_VELOCITY = "the velocity is not known before the run: Mach and Reynolds numbers are not checked"


def check_limits(setup: FlowSetup, ranks: int = 1) -> None:
    """Raise a CaseError for the first reason why `setup` cannot run on `ranks` ranks."""
    for message in _violations(setup, ranks):
        raise CaseError(f"{setup.source}: {message}")


def _violations(setup: FlowSetup, ranks: int) -> Iterator[str]:
    case, invariants, sites = setup.case, setup.invariants, len(setup.vessel.sites)
    if ranks > sites:
        yield f"run: there are more ranks ({ranks}) than fluid sites ({sites}); use at most one rank per site"
    min_tau, max_tau = invariants.tau
    if min_tau < MIN_TAU:
        yield (
            f"lattice: tau = {min_tau:.4f} is out of range (> {MIN_TAU}); "
            "use a larger time step or a smaller spacing (tau = 1/2 + 3 nu dt/dx^2)"
        )
    inexact_walls = {"bgk": MAX_TAU_BGK, "regularised": MAX_TAU_REGULARISED}
    tau_limit = inexact_walls.get(case.lattice.collision, MAX_TAU_TRT)
    if max_tau > tau_limit:
        name = "tau" if max_tau == min_tau else "tau of the fluid at rest"
        alternative = ' or collision = "trt"' if case.lattice.collision in inexact_walls else ""
        yield (
            f"lattice: {name} = {max_tau:.4g} is out of range (<= {tau_limit:g} for {case.lattice.collision}); "
            f"use a smaller time step{alternative} (tau = 1/2 + 3 nu dt/dx^2)"
        )
    for name, speed in setup.wall_speeds.items():
        mach = setup.units.to_lattice("velocity", speed) / CS2**0.5
        if mach > MAX_MACH:
            yield (
                f'walls.moving["{name}"]: its speed of {speed:.3g} m/s is Mach {mach:.3g}, out of range '
                f"(<= {MAX_MACH}); use a time step below {setup.units.step * MAX_MACH / mach:.3g} s"
            )
    if invariants.mach is not None and invariants.mach > MAX_MACH:
        yield (
            f"lattice: Mach number {invariants.mach:.3g} of the peak velocity {invariants.velocity_scale:.3g} m/s is "
            f"out of range (<= {MAX_MACH}); use a time step below "
            f"{setup.units.step * MAX_MACH / invariants.mach:.3g} s"
        )
    if not 0.5 < invariants.density[0] <= invariants.density[1] < 2.0:
        yield (
            f"iolet: pressures give lattice densities {invariants.density[0]:.3g} to {invariants.density[1]:.3g}, "
            "out of range (0.5 to 2); set fluid.reference_pressure near the pressures, or use a smaller time step"
        )
    yield from _layout_violations(setup)
    for name, ramp in ramps_of(setup).items():
        if ramp > setup.steps:
            yield (
                f'iolet["{name}"].ramp: {ramp:.0f} steps are longer than the run of {setup.steps} steps; extend '
                f"the run, or set iolet.{name}.ramp = {max(1, setup.steps // 2)}"
            )
    yield from _output_violations(setup)


def _layout_violations(setup: FlowSetup) -> Iterator[str]:
    case, lattice = setup.case, VELOCITY_SETS[setup.model.velocity_set]
    try:
        storage = setup.precision.storage
        choose_layout(setup.vessel.sites, case.lattice.layout, storage, case.run.device, lattice, model=setup.model)
    except CaseError as error:
        yield f"lattice.layout: {error}"


def _output_violations(setup: FlowSetup) -> Iterator[str]:
    output = setup.case.output
    yield from _average_violations(setup)
    for table in output.fields:
        if table.where is not None and not isinstance(setup.vessel.sites, SizedSites):
            try:
                select(table.where, setup.vessel.sites, f'output.fields["{table.file}"].where')
            except CaseError as error:
                yield str(error)
    yield from _error_violations(setup)
    yield from setup.short_intervals()
    if setup.case.time.steady and steps_of(setup.case.time.steady_interval, setup.units) < 0.5:
        yield f"time.steady_interval: is shorter than half a time step of {setup.units.step:.3g} s"


def _error_violations(setup: FlowSetup) -> Iterator[str]:
    """Yield a message for each absolute error of velocities above the peak velocity, if that is known."""
    peak = setup.invariants.velocity_scale
    for table in setup.case.output.fields:
        error = table.absolute_errors.get("velocity", 0.0)
        if peak and error > peak:
            yield (
                f'output.fields["{table.file}"].absolute_error.velocity: {error:.3g} m/s is above the peak velocity '
                f"of {peak:.3g} m/s; choose a smaller error"
            )


def _average_violations(setup: FlowSetup) -> Iterator[str]:
    from seiche.io.vtkhdf import CAPACITY_LIMIT

    table = setup.case.output.averages
    if table is None:
        return
    start, window, every = window_of(table, setup)
    if start >= setup.steps:
        yield f"output.averages.start: step {start} is not before the end of the run of {setup.steps} steps"
        return
    if start + window > setup.steps + 0.5:
        end = start + window
        yield f"output.averages: the first window ends at step {end:.0f}, after the run ({setup.steps} steps)"
    if window >= 0.5 and Schedule(window).count(start, setup.steps) > CAPACITY_LIMIT:
        yield f"output.averages.window: gives more than {CAPACITY_LIMIT} states, the limit of a file; increase it"
    if not 0.5 <= every <= window:
        yield f"output.averages.every: {every:.3g} steps; expected from half a step to the window of {window:.0f} steps"


def check_state_counts(setup: FlowSetup, first_step: int = 0) -> None:
    """Raise a CaseError if a run after step `first_step` would write more states to a file than its limit."""
    from seiche.io.vtkhdf import CAPACITY_LIMIT

    output = setup.case.output
    for kind, tables in (("fields", output.fields), ("surface", output.surface)):
        for table in tables:
            count = Schedule(steps_of(table.every, setup.units)).count(first_step, setup.steps)
            if count > CAPACITY_LIMIT:
                raise CaseError(
                    f'{setup.source}: output.{kind}["{table.file}"].every: gives {count} states, the limit of a file '
                    f"is {CAPACITY_LIMIT}; write less often"
                )


def run_notes(setup: FlowSetup) -> list[str]:
    """Return notes for the user other than estimates, one line each."""
    unknown = [] if setup.invariants.mach is not None else [_UNKNOWN_VELOCITY]
    return [*setup.notes, *unknown, *empty_outputs(setup)]


def empty_outputs(setup: FlowSetup) -> list[str]:
    """Return one line for each extraction that contains no site."""
    return [
        f'output.extraction["{table.file}"]: the selection contains no site, so its records are empty'
        for table in setup.case.output.extraction
        if not isinstance(setup.vessel.sites, SizedSites) and not len(selected_sites(table, setup.vessel.sites))
    ]
