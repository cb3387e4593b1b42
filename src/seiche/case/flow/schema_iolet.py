# SPDX-License-Identifier: BSD-3-Clause
"""The [[iolet]] tables: boundary conditions at inlets and outlets."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.flow.waveforms import WAVEFORMS
from seiche.case.quantities import (
    Angle,
    Direction,
    FlowRate,
    Period,
    Point,
    PositiveCompliance,
    PositiveLength,
    PositiveResistance,
    Pressure,
    Resistance,
    StepsOrTime,
    Velocity,
    VelocityOrFlowRate,
)
from seiche.case.tables import FileName, FromList, Table, one_of
from seiche.flow.pressure_rules import PRESSURE_RULES


class Opening(Table):
    """Name and position of an iolet; by default those of the geometry's opening of that name, or of an STL rim."""

    name: str = Field(
        min_length=1,
        max_length=100,
        description="name; for gmy and built-in shapes that of the geometry, for rims of an STL rim0, rim1 ... or any; "
        '"outlet*" for all openings of a built-in shape that begin with outlet and have no iolet of their own',
    )
    center: Point | None = Field(default=None, description="centre of the opening")
    normal: Direction | None = Field(default=None, description="direction into the fluid (any length)")
    radius: PositiveLength | None = Field(default=None, description="radius of the opening")
    role: Literal["inlet", "outlet"] | None = Field(
        default=None,
        description="by default that of the geometry; for an STL, velocity iolets are inlets, others outlets",
    )
    ramp: StepsOrTime = Field(default=0, description="time or steps over which the condition is ramped up from rest")

    @model_validator(mode="after")
    def _normal_has_length(self) -> Opening:
        if self.normal is not None and sum(c * c for c in self.normal) < 1e-24:
            raise ValueError("normal: its length is zero; expected a direction that points into the fluid")
        return self


Scheme = Annotated[str, one_of(PRESSURE_RULES)]
_SCHEME = (
    'rule that imposes the pressure: "nash" as in HemeLB; "anti-bounce-back" with the stress, at the sites next to '
    'the opening; "plane" in the plane of the opening, of second order with walls of kind bouzidi. By default '
    '"plane", or another rule with a note if "plane" is unstable or lacks sites'
)
_REPEAT = "with table: repeat it periodically; otherwise its last value applies after its end"


class PressureOpening(Opening):
    """Pressure `pressure` + amplitude cos(2 pi t/period + phase), or the values of `table`; set one of the two."""

    exactly_one = (("pressure", "table"),)

    kind: Literal["pressure"]
    pressure: Pressure | None = Field(default=None, description="mean pressure, on the scale of reference_pressure")
    amplitude: Pressure = Field(default=0.0, description="amplitude of the cosine")
    period: Period | None = Field(default=None, description='period as a time ("0.8 s") or a rate ("72 bpm")')
    phase: Angle = Field(default=0.0, description="phase of the cosine")
    ramp_from: Pressure | None = Field(
        default=None, description="pressure at the start of the ramp; by default the initial pressure"
    )
    table: FileName | None = Field(
        default=None, description="file of two columns, seconds and mmHg, linearly interpolated"
    )
    repeat: bool | None = Field(default=None, description=_REPEAT)
    scheme: Scheme | None = Field(default=None, description=_SCHEME)

    @model_validator(mode="after")
    def _consistent(self) -> PressureOpening:
        _check_table_keys(self, ("amplitude", "period", "phase"))
        if self.amplitude != 0.0 and self.period is None:
            raise ValueError("period is missing; amplitude needs it")
        return self


class WindkesselOpening(Opening):
    """Pressure of a Windkessel circuit driven by the outflow Q: P = Pc + Rc Q, C dPc/dt + (Pc - Pd)/Rp = Q."""

    kind: Literal["windkessel"]
    resistance: PositiveResistance = Field(description="Rp, resistance of the downstream vessels")
    compliance: PositiveCompliance = Field(description="C, compliance of the downstream vessels")
    proximal_resistance: Resistance = Field(default=0.0, description="Rc, resistance before the compliance")
    distal_pressure: Pressure | None = Field(default=None, description="Pd; fluid.reference_pressure by default")
    initial_pressure: Pressure | None = Field(default=None, description="initial Pc; by default that of the fluid")
    scheme: Scheme | None = Field(default=None, description=_SCHEME)


def _check_table_keys(opening: PressureOpening | VelocityOpening, names: tuple[str, ...]) -> None:
    """Reject keys that `table` replaces, and `repeat` without it."""
    if opening.table is None and opening.repeat is not None:
        raise ValueError("repeat is only allowed with table")
    for name in names:
        if opening.table is not None and name in opening.model_fields_set:
            raise ValueError(f"{name} is not allowed with table, which defines the values in time")


class Harmonic(Table):
    """One harmonic of the mean velocity or of the flow rate: amplitude cos(2 pi k t/period + phase)."""

    amplitude: VelocityOrFlowRate = Field(description="amplitude; the same dimension as the mean")
    phase: Angle = Field(default=0.0, description="phase at time 0")


class Waveform(Table):
    """The shape of one period, scaled to a mean of one: exactly one of `preset` and `samples`."""

    exactly_one = (("preset", "samples"),)

    preset: Literal["internal-carotid"] | None = Field(default=None, description="built-in, illustrative shape")
    samples: Annotated[tuple[float, ...], FromList] | None = Field(
        default=None, min_length=3, max_length=10_000, description="values at equal times over one period"
    )
    harmonics: int = Field(default=8, ge=1, le=100, description="number of Fourier harmonics used")

    @model_validator(mode="after")
    def _valid(self) -> Waveform:
        values = self.values()
        if self.harmonics > (max_harmonics := (len(values) - 1) // 2):
            raise ValueError(f"{len(values)} samples give at most {max_harmonics} harmonics, not {self.harmonics}")
        if not abs(sum(values)) > 1e-6 * sum(map(abs, values)):
            raise ValueError("samples: their mean is zero, so they cannot be scaled to the mean velocity")
        return self

    def values(self) -> tuple[float, ...]:
        """Return the samples, or those of the preset."""
        return WAVEFORMS[self.preset] if self.preset is not None else self.samples or ()


class VelocityOpening(Opening):
    """Velocity along the inward normal by Ladd's rule: a parabola for the mean, Womersley profiles for harmonics.

    Give exactly one of three: `velocity`, the mean over the opening and time; `flow_rate`, the same times the area of
    the opening; `table`, the mean over the opening as a function of time. For an opening that is not round,
    `profile = "computed"` is the developed flow through the section, or `weights` define the profile site by site.
    """

    exactly_one = (("velocity", "flow_rate", "table"),)
    at_most_one = (("harmonics", "waveform"),)

    kind: Literal["velocity"]
    velocity: Velocity | None = Field(default=None, description="mean over opening and time; positive into the fluid")
    flow_rate: FlowRate | None = Field(default=None, description="mean flow rate, instead of the mean velocity")
    table: FileName | None = Field(
        default=None, description="file of two columns, seconds and m/s, linearly interpolated"
    )
    table_scale: float | None = Field(
        default=None, gt=0, le=1e6, description="factor applied to the velocities of table; 1 by default"
    )
    equal_times: Literal["refuse", "last"] | None = Field(
        default=None, description="rows of table with equal times: refuse (default), or use the last, as HemePure does"
    )
    repeat: bool | None = Field(default=None, description=_REPEAT)
    profile: Literal["parabolic", "womersley", "computed"] = Field(
        default="parabolic", description="womersley needs a period; computed: developed flow of a section of any shape"
    )
    weights: FileName | None = Field(
        default=None, description="file of lines x y z weight: factor of the imposed velocity at each site"
    )
    period: Period | None = Field(default=None, description='period as a time ("0.8 s") or a rate ("72 bpm")')
    harmonics: Annotated[tuple[Harmonic, ...], FromList] | None = Field(
        default=None, min_length=1, max_length=100, description="harmonics k = 1, 2 ... in this order"
    )
    waveform: Waveform | None = Field(default=None, description="shape of one period, scaled to the mean")

    @model_validator(mode="after")
    def _consistent(self) -> VelocityOpening:
        mean = self.only_key_of(self.exactly_one[0])
        _check_table_keys(self, ("period", "harmonics", "waveform"))
        for name in ("table_scale", "equal_times"):
            if self.table is None and getattr(self, name) is not None:
                raise ValueError(f"{name} is only allowed with table")
        if self.weights is not None and "profile" in self.model_fields_set:
            raise ValueError(f'weights are not allowed with profile = "{self.profile}"; give one of the two')
        sources = ("harmonics", "waveform")
        present = [name for name in sources if getattr(self, name) is not None]
        if self.profile == "womersley":
            if self.table is not None:
                raise ValueError('table is not allowed with profile = "womersley"; give harmonics or a waveform')
            self.only_key_of(sources)
            if self.period is None:
                raise ValueError('profile = "womersley" needs a period, such as "72 bpm"')
        elif present:
            raise ValueError(f'{present[0]} is only allowed with profile = "womersley"')
        if any(harmonic.amplitude[0] != mean for harmonic in self.harmonics or ()):
            raise ValueError(f"harmonics: each amplitude must be a {mean}, like the mean")
        return self


IoletTable = Annotated[PressureOpening | VelocityOpening | WindkesselOpening, Field(discriminator="kind")]


def without_patterns(
    iolets: Sequence[PressureOpening | VelocityOpening | WindkesselOpening], names: Sequence[str]
) -> tuple[PressureOpening | VelocityOpening | WindkesselOpening, ...]:
    """Return the iolets, each one with a pattern as its name replaced by one for each opening that it matches.

    `names` are those of the openings of the geometry, if they are known before it is made. An iolet with exactly the
    name of an opening takes precedence over patterns.

    Raises:
        ValueError: a pattern matches no opening, or has a position.
    """
    explicit = {iolet.name for iolet in iolets}
    expanded: list[PressureOpening | VelocityOpening | WindkesselOpening] = []
    for iolet in iolets:
        if "*" not in iolet.name:
            expanded.append(iolet)
            continue
        for key in ("center", "normal", "radius"):
            if getattr(iolet, key) is not None:
                raise ValueError(f'iolet "{iolet.name}": {key} is not allowed for several openings; remove it')
        matches = [name for name in names if name not in explicit and fnmatchcase(name, iolet.name)]
        if not matches:
            known = f"; the openings are {', '.join(names[:4])}" + (" ..." if len(names) > 4 else "") if names else ""
            needed = "" if names else "; patterns require a built-in shape with openings"
            raise ValueError(f'iolet "{iolet.name}": no other opening has such a name{known}{needed}')
        expanded += [iolet.model_copy(update={"name": name}) for name in matches]
    return tuple(expanded)
