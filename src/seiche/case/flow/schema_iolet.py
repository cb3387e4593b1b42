# SPDX-License-Identifier: BSD-3-Clause
"""The [[iolet]] tables: what is imposed where fluid enters or leaves."""

from __future__ import annotations

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
    """Name and place of an iolet; without a place it is the geometry's opening of that name, or an STL's open rim."""

    name: str = Field(
        min_length=1,
        max_length=100,
        description="name; for gmy and built-in shapes the geometry's own, for rims of an STL rim0, rim1 ... or any",
    )
    center: Point | None = Field(default=None, description="centre of the opening")
    normal: Direction | None = Field(default=None, description="direction into the fluid (any length)")
    radius: PositiveLength | None = Field(default=None, description="radius of the opening")
    role: Literal["inlet", "outlet"] | None = Field(
        default=None,
        description="as what it counts; by default as the geometry has it, of an STL a velocity iolet as an inlet, "
        "others as outlets",
    )
    ramp: StepsOrTime = Field(default=0, description="time or steps over which the condition grows from rest")

    @model_validator(mode="after")
    def _normal_has_length(self) -> Opening:
        if self.normal is not None and sum(c * c for c in self.normal) < 1e-24:
            raise ValueError("normal: its length is zero; expected the direction into the fluid")
        return self


Scheme = Annotated[str, one_of(PRESSURE_RULES)]
_SCHEME = (
    "rule by which pressure is imposed: of HemeLB; with the stress, at the sites beside the opening; the same in its "
    'plane, of second order together with walls of kind bouzidi. By default "plane"; where '
    "that is not stable or the opening has no sites behind it another one, with a note"
)
_REPEAT = "with table: its span of time is a period; otherwise its last value holds after its end"


class PressureOpening(Opening):
    """Pressure mean + amplitude cos(2 pi t/period + phase), or that of a table: give `pressure` or `table`."""

    kind: Literal["pressure"]
    pressure: Pressure | None = Field(
        default=None, description="mean pressure, on the scale of fluid.reference_pressure"
    )
    amplitude: Pressure = Field(default=0.0, description="amplitude of the cosine")
    period: Period | None = Field(default=None, description='period as a time ("0.8 s") or a rate ("72 bpm")')
    phase: Angle = Field(default=0.0, description="phase of the cosine")
    ramp_from: Pressure | None = Field(
        default=None, description="pressure at which the ramp begins; that of the start by default"
    )
    table: FileName | None = Field(default=None, description="file of two columns, seconds and mmHg; linear in between")
    repeat: bool | None = Field(default=None, description=_REPEAT)
    scheme: Scheme | None = Field(default=None, description=_SCHEME)

    @model_validator(mode="after")
    def _consistent(self) -> PressureOpening:
        self.exactly_one_of(("pressure", "table"))
        _refuse_beside_table(self, ("amplitude", "period", "phase"))
        if self.amplitude != 0.0 and self.period is None:
            raise ValueError("amplitude is given without period")
        return self


class WindkesselOpening(Opening):
    """Pressure of a circuit that the outflow Q drives: P = Pc + Rc Q, C dPc/dt + (Pc - Pd)/Rp = Q."""

    kind: Literal["windkessel"]
    resistance: PositiveResistance = Field(description="Rp, resistance of the vessels beyond")
    compliance: PositiveCompliance = Field(description="C, compliance of the vessels beyond")
    proximal_resistance: Resistance = Field(default=0.0, description="Rc, resistance before the compliance")
    distal_pressure: Pressure | None = Field(
        default=None, description="Pd, pressure beyond Rp; fluid.reference_pressure by default"
    )
    initial_pressure: Pressure | None = Field(
        default=None, description="Pc at the start; the pressure at the start of the run by default"
    )
    scheme: Scheme | None = Field(default=None, description=_SCHEME)


def _refuse_beside_table(opening: PressureOpening | VelocityOpening, others: tuple[str, ...]) -> None:
    """Refuse keys that say nothing beside `table`, and `repeat` without it."""
    if opening.table is None:
        if opening.repeat is not None:
            raise ValueError("repeat goes only with table")
        return
    for name in others:
        if name in opening.model_fields_set:
            raise ValueError(f"{name} is given beside table, which already says the course in time")


class Harmonic(Table):
    """One harmonic of the mean velocity or of the flow rate: amplitude cos(2 pi k t/period + phase)."""

    amplitude: VelocityOrFlowRate = Field(description="amplitude; the same dimension as the mean")
    phase: Angle = Field(default=0.0, description="phase")


class Waveform(Table):
    """The shape of one period, scaled to a mean of one: exactly one of `preset` and `samples`."""

    preset: Literal["internal-carotid"] | None = Field(default=None, description="a built-in, illustrative shape")
    samples: Annotated[tuple[float, ...], FromList] | None = Field(
        default=None, min_length=3, max_length=10_000, description="values at equal times over one period"
    )
    harmonics: int = Field(default=8, ge=1, le=100, description="number of Fourier harmonics kept")

    @model_validator(mode="after")
    def _usable(self) -> Waveform:
        self.exactly_one_of(("preset", "samples"))
        values = self.values()
        if 2 * self.harmonics >= len(values):
            most = (len(values) - 1) // 2
            raise ValueError(f"{len(values)} samples give at most {most} harmonics, not {self.harmonics}")
        if not abs(sum(values)) > 1e-6 * sum(map(abs, values)):
            raise ValueError("samples: their mean is zero, so they cannot be scaled to the mean velocity")
        return self

    def values(self) -> tuple[float, ...]:
        """Return the samples, those of the preset if it is one."""
        return WAVEFORMS[self.preset] if self.preset is not None else self.samples or ()


class VelocityOpening(Opening):
    """Velocity along the inward normal by Ladd's rule: a parabola for the mean, Womersley profiles for harmonics.

    `velocity` is the mean over the opening and over time, `flow_rate` the same times the area of the opening, `table`
    the mean over the opening in time: give exactly one of the three. For an opening that is not round,
    `profile = "computed"` is the developed flow through the section, or `weights` says the profile site by site.
    """

    kind: Literal["velocity"]
    velocity: Velocity | None = Field(default=None, description="mean over opening and time; positive into the fluid")
    flow_rate: FlowRate | None = Field(default=None, description="the same as a flow rate; give one of the two")
    table: FileName | None = Field(default=None, description="file of two columns, seconds and m/s; linear in between")
    table_scale: float | None = Field(
        default=None, gt=0, le=1e6, description="with table: what its velocities are multiplied by; 1 by default"
    )
    repeat: bool | None = Field(default=None, description=_REPEAT)
    profile: Literal["parabolic", "womersley", "computed"] = Field(
        default="parabolic",
        description="womersley asks for a period; computed is the developed flow of the section, of any shape",
    )
    weights: FileName | None = Field(
        default=None, description="file of lines x y z weight: the velocity at a site is this times the imposed one"
    )
    period: Period | None = Field(default=None, description='period as a time ("0.8 s") or a rate ("72 bpm")')
    harmonics: Annotated[tuple[Harmonic, ...], FromList] | None = Field(
        default=None, min_length=1, max_length=100, description="harmonics k = 1, 2 ... in this order"
    )
    waveform: Waveform | None = Field(default=None, description="shape of one period, scaled to the mean")

    @model_validator(mode="after")
    def _consistent(self) -> VelocityOpening:
        mean = self.exactly_one_of(("velocity", "flow_rate", "table"))
        _refuse_beside_table(self, ("period", "harmonics", "waveform"))
        if self.table is None and self.table_scale is not None:
            raise ValueError("table_scale goes only with table")
        if self.weights is not None and "profile" in self.model_fields_set:
            raise ValueError(f'weights are given beside profile = "{self.profile}"; give one of the two')
        sources = ("harmonics", "waveform")
        given = [name for name in sources if getattr(self, name) is not None]
        if self.profile == "womersley" and self.table is not None:
            raise ValueError('table is given beside profile = "womersley"; give harmonics or a waveform')
        if self.profile == "womersley":
            self.exactly_one_of(sources)
            if self.period is None:
                raise ValueError('profile = "womersley" needs a period, such as "72 bpm"')
        elif given:
            raise ValueError(f'{given[0]} goes only with profile = "womersley"')
        if any(harmonic.amplitude[0] != mean for harmonic in self.harmonics or ()):
            raise ValueError(f"harmonics: each amplitude must be a {mean}, as the mean is")
        return self


IoletTable = Annotated[PressureOpening | VelocityOpening | WindkesselOpening, Field(discriminator="kind")]
