# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of a flow case and its sites to a model in lattice units, a number of steps and dimensionless numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from seiche.case.flow.geometry import FlowVessel
from seiche.case.flow.iolet_files import IoletInput, iolet_inputs, notes_of
from seiche.case.flow.openings import Inflow, conditions, inflow_of, initial_pressure, steps_of
from seiche.case.flow.pressure_rules import with_pressure_rules
from seiche.case.flow.rheology import rheology_of
from seiche.case.flow.schema import FlowCase, Lattice
from seiche.case.flow.schema_iolet import PressureOpening, VelocityOpening, WindkesselOpening
from seiche.case.flow.schema_shapes import Channel, Duct, PeriodicBox, TubeShape
from seiche.case.flow.units import CS2, LatticeUnits, step_of_mach, step_of_relaxation_time
from seiche.case.flow.walls import wall_speeds, walls_of
from seiche.case.flow.waveforms import WOMERSLEY_RANGE, womersley_number
from seiche.case.images import folder_files
from seiche.case.kind import Setup
from seiche.errors import CaseError
from seiche.flow.model import Bgk, Collision, FlowModel, Mrt, Precision, Regularised, Trt


@dataclass(frozen=True)
class Invariants:
    """Numbers that characterise the flow and its resolution; None if not defined.

    `driven_velocity` is the estimate from iolets, walls and forces, for a case that defines `velocity_scale`.
    """

    length_scale: float
    velocity_scale: float | None
    driven_velocity: float | None
    reynolds: float | None
    womersley: float | None
    mach: float | None
    tau: tuple[float, float]
    density: tuple[float, float]


@dataclass(frozen=True)
class FlowSetup(Setup):
    """A flow case before a solver is created. `source` is the name of the case file, for messages.

    `wall_speeds` are the maximum speeds (m/s) of moving walls by name, `rule_notes` are notes on pressure rules, and
    `iolet_inputs` are the data of each iolet from files.
    """

    case: FlowCase
    source: str
    vessel: FlowVessel
    units: LatticeUnits
    model: FlowModel
    precision: Precision
    steps: int
    period: float | None
    invariants: Invariants
    wall_speeds: dict[str, float] = field(default_factory=dict)
    rule_notes: tuple[str, ...] = ()
    iolet_inputs: dict[str, IoletInput] = field(default_factory=dict)

    #: Whether bodies are immersed in the fluid.
    immersed: ClassVar[bool] = False

    @property
    def dt(self) -> float:
        """Return the duration of a step in s."""
        return self.units.step

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes on the case file, the geometry and the pressure rules."""
        return (*self.vessel.notes, *self.rule_notes)

    @property
    def inputs(self) -> list[Path]:
        """Return the input files: the case file, every string in its tables that names a file, and image folders."""
        source = Path(self.source)
        tables = self.case.model_dump(exclude={"output"})
        files = [path for path in (source.parent / string for string in _strings(tables)) if _is_file(path)]
        return [source, *files, *(file for file in folder_files(tables, source.parent) if file not in files)]


def build_setup(case: FlowCase, vessel: FlowVessel, source: str) -> FlowSetup:
    """Return the set-up of `case` on `vessel`; CaseError for invalid iolets or time steps."""
    try:
        return _build_setup(case, vessel, source)
    except (OverflowError, ZeroDivisionError):
        raise CaseError(f"{source}: the combination of its values overflows; check their units") from None


def _build_setup(case: FlowCase, vessel: FlowVessel, source: str) -> FlowSetup:
    law = rheology_of(case)
    viscosity = law.eta_inf / case.fluid.density
    planes = {plane.name: plane for plane in vessel.sites.iolets}
    inputs = iolet_inputs(case, vessel.sites, source)
    openings = [opening for opening in case.iolet if isinstance(opening, VelocityOpening)]
    inflows = [inflow_of(o, planes[o.name], source, inputs[o.name]) for o in openings]
    for inflow in inflows:
        _check_womersley_number(inflow, viscosity, source)
    pressures = pressure_range(case, inputs)
    speeds = wall_speeds(case, vessel.sites, source)
    scale, estimate = case.lattice.velocity_scale, partial(expected_velocity, case, vessel, inflows, pressures)
    walls = tuple(speeds.values())
    velocity = estimate(walls=walls) if scale is None else scale
    step = _time_step(case, velocity, viscosity, source)
    units = LatticeUnits(case.geometry.spacing, step, case.fluid.density, case.fluid.reference_pressure)
    period = _period(case, inputs)
    force = case.body_force.force if case.body_force else (0.0, 0.0, 0.0)
    x, y, z = (units.to_lattice("force_density", component) for component in force)
    u, v, w = (units.to_lattice("velocity", component) for component in case.fluid.initial_velocity)
    model = FlowModel(
        rheology=law.to_lattice(units),
        collision=_collision(case.lattice),
        iolets=conditions(case, vessel.sites.iolets, units, source, inputs),
        body_force=(x, y, z),
        velocity_set=case.lattice.velocity_set,
        initial_density=units.density_of_pressure(initial_pressure(case)),
        initial_velocity=(u, v, w),
        walls=walls_of(case, units),
    )
    table = case.run.precision
    precision = Precision(table.compute, table.storage or table.compute)
    driving_pressures = pressures
    if inflows and velocity:
        # The pressure at a velocity iolet is estimated from the pressure drop in developed flow.
        drop = 4.0 * law.eta_inf * velocity * _distance(vessel) / (0.5 * length_scale(case, vessel)) ** 2
        driving_pressures = pressures[0], max(pressures[1], initial_pressure(case)) + drop
    steps = _steps(case, units, period, source)
    driven = None if scale is None else estimate(walls=walls, seconds=steps * step)
    invariants = _invariants(
        case, vessel, units, velocity=velocity, driven=driven, period=period, pressures=driving_pressures
    )
    iolets, rule_notes = with_pressure_rules(case, vessel.sites, model.iolets, invariants.tau)
    model = replace(model, iolets=iolets)
    vessel = replace(vessel, notes=vessel.notes + notes_of(inputs, steps * step))
    return FlowSetup(
        case, source, vessel, units, model, precision, steps, period, invariants, speeds, rule_notes, inputs
    )


def _collision(table: Lattice) -> Collision:
    if table.collision == "bgk":
        return Bgk()
    if table.collision == "regularised":
        return Regularised()
    magic = table.magic or 3.0 / 16.0
    return Trt(magic) if table.collision == "trt" else Mrt(table.bulk_rate or 1.0, table.even_rate or 1.0, magic)


def _check_womersley_number(inflow: Inflow, viscosity: float, source: str) -> None:
    alpha = womersley_number(inflow.radius, inflow.period, viscosity) if inflow.period else 1.0
    low, high = WOMERSLEY_RANGE
    if not low <= alpha <= high:
        raise CaseError(
            f"{source}: iolet: Womersley number {alpha:.3g} of the period {inflow.period:.3g} s is out of range "
            f'({low:g} to {high:g}); check the period, or use profile = "parabolic"'
        )


def expected_velocity(
    case: FlowCase,
    vessel: FlowVessel,
    inflows: list[Inflow],
    pressures: tuple[float, float],
    *,
    walls: tuple[float, ...] = (),
    seconds: float = math.inf,
) -> float | None:
    """Return the largest expected velocity (m/s), or None if it is unknown.

    It is the maximum of the initial velocity, the peaks at velocity iolets, the speeds of moving `walls`, and the peak
    of developed flow. The velocity that a body force drives is limited by its acceleration during a run of `seconds`,
    and the velocity that the pressures of iolets drive by that of a free jet, sqrt(2 dp/rho).
    """
    density, eta = case.fluid.density, rheology_of(case).eta_inf
    peaks = [*walls, *(inflow.peak(eta / density) for inflow in inflows)]
    peaks.append(math.dist(case.fluid.initial_velocity, (0.0, 0.0, 0.0)))
    force = math.dist(case.body_force.force, (0.0, 0.0, 0.0)) if case.body_force else 0.0
    if force:
        peaks.append(min(_developed_peak(case, vessel, force, eta), force / density * seconds))
    low, high = pressures
    if high > low and not inflows:
        gradient = (high - low) / max(_distance(vessel), case.geometry.spacing)
        peaks.append(min(_developed_peak(case, vessel, gradient, eta), math.sqrt(2.0 * (high - low) / density)))
    return max(peaks) or None


def _distance(vessel: FlowVessel) -> float:
    """Return the maximum distance (m) between two openings."""
    centers = [plane.center for plane in vessel.sites.iolets]
    return max(math.dist(a, b) for a in centers for b in centers)


def _developed_peak(case: FlowCase, vessel: FlowVessel, gradient: float, eta: float) -> float:
    """Return the peak of developed flow for `gradient` (Pa/m): G h^2/(8 eta) between plates, G a^2/(4 eta) in a tube.

    The flow between plates is an upper bound for a duct. In a box without walls, the velocity is unbounded; the result
    is 0.
    """
    shape = case.geometry.shape
    if isinstance(shape, PeriodicBox):
        return 0.0
    if isinstance(shape, Channel | Duct):
        gap = shape.height
        if isinstance(shape, Duct):
            gap = shape.width if shape.plates else min(shape.height, shape.width)
        return gradient * gap**2 / (8.0 * eta)
    return gradient * (0.5 * length_scale(case, vessel)) ** 2 / (4.0 * eta)


def length_scale(case: FlowCase, vessel: FlowVessel) -> float:
    """Return the length scale (m) of the Reynolds number: the diameter of a tube or the largest opening, or a gap."""
    shape = case.geometry.shape
    if isinstance(shape, TubeShape):
        return 2.0 * shape.radius
    if isinstance(shape, Duct) and shape.plates:
        return shape.width
    if isinstance(shape, Duct):
        return 2.0 * shape.width * shape.height / (shape.width + shape.height)
    if isinstance(shape, Channel):
        return shape.height
    if isinstance(shape, PeriodicBox):
        return max(shape.size)
    radii = [plane.radius for plane in vessel.sites.iolets if plane.radius is not None]
    return 2.0 * max(radii) if radii else case.geometry.spacing * min(vessel.sites.shape)


def pressure_range(case: FlowCase, inputs: dict[str, IoletInput]) -> tuple[float, float]:
    """Return the lowest and highest pressure (Pa) of the iolets, or the initial pressure if none imposes one.

    A Windkessel outlet contributes its initial pressure.
    """
    values: list[float] = []
    for opening in case.iolet:
        if isinstance(opening, PressureOpening):
            series = inputs[opening.name].series
            if series is not None:
                values += [float(series.values.min()), float(series.values.max())]
            elif opening.pressure is not None:
                values += [opening.pressure - abs(opening.amplitude), opening.pressure + abs(opening.amplitude)]
        elif isinstance(opening, WindkesselOpening):
            values.append(initial_pressure(case) if opening.initial_pressure is None else opening.initial_pressure)
    values = values or [initial_pressure(case)]
    return min(values), max(values)


def _time_step(case: FlowCase, velocity: float | None, viscosity: float, source: str) -> float:
    table, spacing = case.lattice, case.geometry.spacing
    if table.step is not None:
        return table.step
    if table.tau is not None:
        if not table.tau > 0.5:
            raise CaseError(
                f"{source}: lattice.tau: {table.tau:g} is out of range; the viscosity (tau - 1/2)/3 is "
                "positive only for tau > 0.5"
            )
        if table.tau > 1e3:
            raise CaseError(f"{source}: lattice.tau: {table.tau:g} is out of range; expected at most a few units")
        return step_of_relaxation_time(table.tau, spacing, viscosity)
    if velocity is None:
        raise CaseError(
            f"{source}: lattice.velocity_scale: is missing; a time step from mach needs the largest expected velocity, "
            "which does not follow from the iolets or forces of the case"
        )
    return step_of_mach(table.mach or 0.0, spacing, velocity)


def _period(case: FlowCase, inputs: dict[str, IoletInput]) -> float | None:
    """Return the common period (s) of all pulsating iolets, or None."""
    periods = {getattr(opening, "period", None) for opening in case.iolet}
    periods |= {entry.series.period for entry in inputs.values() if entry.series is not None}
    periods -= {None}
    return periods.pop() if len(periods) == 1 else None


def _steps(case: FlowCase, units: LatticeUnits, period: float | None, source: str) -> int:
    table = case.time
    if table.steps is not None:
        return table.steps
    if table.cycles is not None:
        if period is None:
            raise CaseError(f"{source}: time.cycles: needs iolets with one common period; give duration or steps")
        seconds = table.cycles * period
    else:
        seconds = table.duration or 0.0
    steps = units.to_lattice("time", seconds)
    if not 0.5 <= steps < 2**53:
        raise CaseError(
            f"{source}: time: {seconds:g} s is {steps:.3g} steps of {units.step:.3g} s; "
            "expected between one step and 2^53"
        )
    return round(steps)


def _invariants(
    case: FlowCase,
    vessel: FlowVessel,
    units: LatticeUnits,
    *,
    velocity: float | None,
    driven: float | None,
    period: float | None,
    pressures: tuple[float, float],
) -> Invariants:
    law = rheology_of(case)
    length, viscosity = length_scale(case, vessel), law.eta_inf / case.fluid.density
    low, high = pressures
    low, high = min(low, initial_pressure(case)), max(high, initial_pressure(case))
    return Invariants(
        length_scale=length,
        velocity_scale=velocity,
        driven_velocity=driven,
        reynolds=velocity * length / viscosity if velocity else None,
        womersley=womersley_number(0.5 * length, period, viscosity) if period else None,
        mach=units.to_lattice("velocity", velocity) / CS2**0.5 if velocity else None,
        tau=(units.relaxation_time(viscosity), units.relaxation_time(law.eta_0 / case.fluid.density)),
        density=(units.density_of_pressure(low), units.density_of_pressure(high)),
    )


def ramps_of(setup: FlowSetup) -> dict[str, float]:
    """Return the ramp of each iolet in steps, by name."""
    return {opening.name: steps_of(opening.ramp, setup.units) for opening in setup.case.iolet}


def _strings(value: Any) -> Iterator[str]:
    """Yield every string in nested tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
