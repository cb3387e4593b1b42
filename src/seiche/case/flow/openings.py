# SPDX-License-Identifier: BSD-3-Clause
"""Iolets of a case: assignment to the openings of the geometry, and conversion to lattice units."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seiche.case.flow.iolet_files import IoletInput, TimeSeries
from seiche.case.flow.rheology import rheology_of
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import Opening, PressureOpening, VelocityOpening, WindkesselOpening
from seiche.case.flow.units import LatticeUnits
from seiche.case.flow.waveforms import harmonics_of, peak_velocity, womersley_number
from seiche.case.messages import nearest
from seiche.case.quantities import shorten
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError
from seiche.flow.model import DEFAULT_PRESSURE_RULE, Iolet, PressureIolet, TimeTable, VelocityIolet, WindkesselIolet
from seiche.flow.profiles import PARABOLA

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inflow:
    """Velocity iolet in SI units: mean velocity (m/s), its harmonics, period (s), radius (m).

    Without a period, `max_mean_velocity` is the maximum over time of the mean velocity (m/s). `crest` is the ratio of
    the maximum to the mean of the profile.
    """

    mean: float
    harmonics: tuple[complex, ...]
    period: float | None
    radius: float
    max_mean_velocity: float
    crest: float = PARABOLA

    def peak(self, kinematic_viscosity: float) -> float:
        """Return the largest speed (m/s) over the opening and one period."""
        if self.period is None:
            return self.crest * self.max_mean_velocity
        return peak_velocity(self.mean, self.harmonics, womersley_number(self.radius, self.period, kinematic_viscosity))


def match(case: FlowCase, planes: Sequence[IoletPlane]) -> tuple[IoletPlane, ...]:
    """Return `planes` with the positions of the case; CaseError if planes and iolets do not have the same names."""
    names = [plane.name for plane in planes]
    openings = {opening.name: opening for opening in case.iolet}
    for name in openings:
        if name not in names:
            listed = f"its openings are {', '.join(names)}" if names else "it has no openings"
            raise CaseError(
                f'iolet["{name}"].name: the geometry has no opening {shorten(name)}; '
                f"{listed}{nearest(name, names, listing=False)}"
            )
    for name in names:
        if name not in openings:
            raise CaseError(f'iolet: is missing for the opening "{name}"; add [[iolet]] with name = "{name}"')
    return tuple(with_position(plane, openings[plane.name]) for plane in planes)


def role_of(opening: Opening) -> Literal["inlet", "outlet"]:
    """Return the role of `opening`, by default that of its kind."""
    return opening.role or ("inlet" if isinstance(opening, VelocityOpening) else "outlet")


def with_position(plane: IoletPlane, opening: Opening) -> IoletPlane:
    """Return `plane` with the role, center, normal and radius that `opening` defines."""
    keys = ("role", "center", "radius")
    changes: dict[str, Any] = {key: value for key in keys if (value := getattr(opening, key)) is not None}
    if opening.normal is not None:
        length = math.sqrt(sum(c * c for c in opening.normal))
        changes["normal"] = tuple(c / length for c in opening.normal)
    return replace(plane, **changes)


def inflow_of(opening: VelocityOpening, plane: IoletPlane, source: str, data: IoletInput) -> Inflow:
    """Return the inflow of `opening` through `plane`; CaseError if its profile requires a radius that is not known."""
    if data.profile is not None:
        radius, area, crest = plane.radius or 0.0, data.area or 1.0, float(abs(data.profile.values).max())
    elif plane.radius is None:
        raise CaseError(f'{source}: iolet["{opening.name}"].radius: is missing; a velocity profile needs it')
    else:
        radius, area, crest = plane.radius, math.pi * plane.radius**2, PARABOLA
    if data.series is not None:
        return Inflow(0.0, (), None, radius, float(abs(data.series.values).max()), crest)
    if opening.velocity is not None:
        area = 1.0
    mean = (opening.velocity if opening.velocity is not None else opening.flow_rate or 0.0) / area
    if opening.harmonics is not None:
        harmonics = tuple(cmath.rect(h.amplitude[1] / area, h.phase) for h in opening.harmonics)
    elif opening.waveform is not None:
        harmonics = tuple(mean * c for c in harmonics_of(opening.waveform.values(), opening.waveform.harmonics))
    else:
        harmonics = ()
    return Inflow(mean, harmonics, opening.period if harmonics else None, radius, abs(mean), crest)


def steps_of(value: int | float, units: LatticeUnits) -> float:
    """Return `value` in steps: an int is a number of steps, a float is a time in seconds."""
    return float(value) if isinstance(value, int) else units.to_lattice("time", value)


def conditions(
    case: FlowCase, planes: Sequence[IoletPlane], units: LatticeUnits, source: str, inputs: dict[str, IoletInput]
) -> tuple[Iolet, ...]:
    """Return the condition of each plane in lattice units, in the order of `planes`.

    Womersley profiles use the viscosity at high shear rate. `inputs` are the data of iolets from files.
    """
    openings = {opening.name: opening for opening in case.iolet}
    start = initial_pressure(case)
    viscosity = units.to_lattice("viscosity", rheology_of(case).eta_inf / case.fluid.density)
    result: list[Iolet] = []
    for plane in planes:
        opening, data = openings[plane.name], inputs[plane.name]
        ramp = steps_of(opening.ramp, units)
        if isinstance(opening, PressureOpening):
            result.append(_pressure(opening, units, ramp, start, data))
        elif isinstance(opening, WindkesselOpening):
            result.append(_windkessel(opening, units, ramp, start))
        else:
            inflow = inflow_of(opening, plane, source, data)
            result.append(
                VelocityIolet(
                    mean=units.to_lattice("velocity", inflow.mean),
                    harmonics=tuple(h / units.scale("velocity") for h in inflow.harmonics),
                    period=units.to_lattice("time", inflow.period) if inflow.period else 1.0,
                    viscosity=viscosity,
                    ramp=ramp,
                    table=_in_steps(data.series, units, lambda u: units.to_lattice("velocity", u)),
                    profile=data.profile,
                )
            )
    return tuple(result)


def initial_pressure(case: FlowCase) -> float:
    """Return the pressure (Pa) at the start of a run."""
    return case.fluid.reference_pressure if case.fluid.initial_pressure is None else case.fluid.initial_pressure


def _pressure(
    opening: PressureOpening, units: LatticeUnits, ramp: float, start: float, data: IoletInput
) -> PressureIolet:
    pressure = start if opening.pressure is None else opening.pressure
    mean = units.density_of_pressure(pressure)
    return PressureIolet(
        mean=mean,
        amplitude=units.density_of_pressure(pressure + opening.amplitude) - mean,
        period=units.to_lattice("time", opening.period) if opening.period else 1.0,
        phase=opening.phase,
        ramp=ramp,
        ramp_from=units.density_of_pressure(start if opening.ramp_from is None else opening.ramp_from),
        scheme=opening.scheme or DEFAULT_PRESSURE_RULE,
        table=_in_steps(data.series, units, units.density_of_pressure),
    )


def _windkessel(opening: WindkesselOpening, units: LatticeUnits, ramp: float, start: float) -> WindkesselIolet:
    distal = units.reference_pressure if opening.distal_pressure is None else opening.distal_pressure
    initial = start if opening.initial_pressure is None else opening.initial_pressure
    return WindkesselIolet(
        resistance=units.to_lattice("resistance", opening.resistance),
        compliance=units.to_lattice("compliance", opening.compliance),
        proximal_resistance=units.to_lattice("resistance", opening.proximal_resistance),
        distal_density=units.density_of_pressure(distal),
        initial_density=units.density_of_pressure(initial),
        ramp=ramp,
        scheme=opening.scheme or DEFAULT_PRESSURE_RULE,
    )


def _in_steps(series: TimeSeries | None, units: LatticeUnits, convert: Callable[[Floats], Floats]) -> TimeTable | None:
    if series is None:
        return None
    return TimeTable(units.to_lattice("time", series.times), convert(series.values), series.repeat)
