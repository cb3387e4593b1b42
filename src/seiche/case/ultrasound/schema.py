# SPDX-License-Identifier: BSD-3-Clause
"""The checked tables of an ultrasound case in SI units, from which docs/reference/ultrasound-case.md is generated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.quantities import (
    Conductivity,
    Delay,
    Density,
    Perfusion,
    Position,
    PositiveFrequency,
    PositiveHeatCapacity,
    PositiveLength,
    PositiveTime,
    PositiveVelocity,
    StepsOrTime,
    Velocity,
)
from seiche.case.run_tables import CaseTable, RunTable
from seiche.case.solids import BoxSolid, Part, ShellSolid, SphereSolid
from seiche.case.tables import FileName, FromList, OneOrMore, Table
from seiche.case.ultrasound.ct_schema import CtTable
from seiche.case.ultrasound.output_schema import UltrasoundOutput
from seiche.case.ultrasound.points import Ball
from seiche.case.ultrasound.sources import Element, InitialPressure, Source
from seiche.case.ultrasound.target_schema import TargetTable, placed
from seiche.ultrasound.grid import Grid

MaterialName = Literal["water", "skin", "brain", "cortical bone", "trabecular bone"]
Series = Literal["p", "p_max", "p_min", "p_rms", "u_non_staggered", "g", "I", "I_avg", "s", "s_max", "s_min", "s_rms"]
Map = Literal["p_max_all", "p_min_all", "p_final", "u_final", "s_max_all", "s_min_all", "s_final"]
#: Maps that the figure of the field shows.
DRAWN_MAPS = frozenset({"p_max_all", "p_final"})


class GridTable(Table):
    """The spatial grid and the time steps.

    Positions are relative to the point n // 2 of each axis, or to the axis of symmetry.
    """

    at_most_one = (("cfl", "time_step"), ("duration", "steps"))

    shape: Annotated[tuple[int, ...], FromList] = Field(
        min_length=1,
        max_length=3,
        description="number of points along each of one to three axes; products of small primes are fast",
    )
    spacing: PositiveLength = Field(description="distance between points")
    cfl: float | None = Field(
        default=None, gt=0, le=2, description="time step times largest sound speed over spacing; 0.3 by default"
    )
    time_step: PositiveTime | None = Field(default=None, description="time step, instead of cfl")
    duration: PositiveTime | None = Field(
        default=None, description="duration of the run; by default the time in which sound crosses the diagonal"
    )
    steps: int | None = Field(default=None, gt=0, le=2**31, description="number of steps, instead of duration")
    symmetry: Literal["axisymmetric"] | None = Field(
        default=None,
        description="x runs along the axis of symmetry, and y is the distance from it; the first y is 0",
    )
    outer_end: Literal["rigid", "pressure-release"] = Field(
        default="rigid",
        description="axisymmetric grid: condition at the largest radius, behind the absorbing layer; the default needs "
        "half the work",
    )

    @model_validator(mode="after")
    def _symmetry_is_consistent(self) -> GridTable:
        if self.symmetry is not None and len(self.shape) != 2:
            raise ValueError(f"symmetry: an axisymmetric grid has 2 axes, not {len(self.shape)}")
        if self.symmetry is None and "outer_end" in self.model_fields_set:
            raise ValueError('outer_end: is only allowed with symmetry = "axisymmetric"')
        return self

    @property
    def spatial_grid(self) -> Grid:
        """Return the grid without time steps."""
        return Grid(self.shape, self.spacing, symmetry=self.symmetry, outer_end=self.outer_end)


class LayerTable(Table):
    """The absorbing layer at all boundaries except an axis of symmetry."""

    points: int | None = Field(default=None, ge=0, le=1000, description="thickness in points; 20 by default, 10 in 3D")
    strength: float = Field(default=2.0, ge=0, description="absorption in nepers per point")
    inside: bool = Field(default=True, description="layer inside the grid; otherwise the grid is extended by it")


class Properties(Table):
    """Properties of a medium: those of a material, unless other keys replace them."""

    material: MaterialName | None = Field(
        default=None, description="sound speed, density, absorption (500 kHz) of the transcranial benchmarks"
    )
    sound_speed: PositiveVelocity | None = Field(default=None, description="sound speed")
    density: Density | None = Field(default=None, description="mass density")
    BonA: float | None = Field(default=None, ge=0, description="nonlinearity parameter B/A")
    alpha_coeff: float | None = Field(default=None, ge=0, description="absorption in dB/(MHz^y cm)")
    shear_speed: Annotated[Velocity, Field(ge=0)] | None = Field(
        default=None, description="speed of shear waves, 0 in fluids; selects the elastic solver"
    )
    shear_alpha_coeff: float | None = Field(
        default=None, ge=0, description="absorption of shear waves in dB/(MHz^2 cm); needs shear_speed"
    )

    @property
    def is_fluid(self) -> bool:
        """Return whether the material is a fluid, or is sheared without resistance to speak of, as soft tissue is."""
        return self.material in ("water", "skin", "brain")

    def check_shear(self, name: str, *, may_be_fluid: bool) -> None:
        """Raise ValueError for a solid of an elastic case whose shear speed is not known."""
        replaces = self.material is not None or (self.sound_speed is not None and not may_be_fluid)
        if self.shear_speed is None and replaces and not self.is_fluid:
            raise ValueError(f"{name}shear_speed is missing; other parts of the medium have one; use 0 for a fluid")


class BoxRegion(BoxSolid, Properties):
    """Points in a box."""


class BallRegion(SphereSolid, Properties):
    """Points in a disc (2D) or ball."""


class ShellRegion(ShellSolid, Properties):
    """Points between two circles (2D) or spheres."""


class SolidRegion(Properties):
    """Points in a solid body of any kind."""

    kind: Literal["solid"]
    where: Part = Field(description="the body")


RegionTable = BoxRegion | BallRegion | ShellRegion | SolidRegion


class MediumTable(Properties):
    """The medium: uniform properties, replaced by those of the regions in the order listed."""

    alpha_power: float | None = Field(
        default=None,
        gt=0,
        lt=3,
        description="exponent y of the absorption; by default 2 for stokes and, if an absorption is given, for elastic "
        "media; otherwise there is no absorption",
    )
    alpha_mode: Literal["no_absorption", "no_dispersion", "stokes", "relaxation"] | None = Field(
        default=None, description="absorption model; relaxation also permits the exponent 1"
    )
    relaxation_band: Annotated[tuple[PositiveFrequency, ...], FromList] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="frequencies between which relaxation follows the power law; 0.5 to 5 MHz by default",
    )
    reference_speed: PositiveVelocity | None = Field(
        default=None, description="speed of the k-space correction; the largest sound speed by default"
    )
    file: FileName | None = Field(
        default=None,
        description="a .npz with arrays sound_speed, density, alpha_coeff, BonA, shear_speed, "
        "shear_alpha_coeff of the grid's shape",
    )
    region: Annotated[tuple[Annotated[RegionTable, Field(discriminator="kind")], ...], OneOrMore] = Field(
        default=(), description="regions with other properties"
    )
    average: bool = Field(
        default=True,
        description="at boundaries of regions, average properties over the grid cell of each point; not with file, ct, "
        "relaxation or shear_speed",
    )
    ct: CtTable | None = Field(default=None, description="a skull from a CT image")

    @property
    def exponent(self) -> float | None:
        """Return the exponent of the absorption, None without absorption."""
        parts = (self, *self.region)
        absorbs = any(part.alpha_coeff or part.shear_alpha_coeff for part in parts)
        absorbs |= self.ct is not None and self.ct.bone_shear_absorption is not None
        is_square = self.alpha_mode == "stokes" or (self.is_elastic and absorbs)
        return 2.0 if self.alpha_power is None and is_square else self.alpha_power

    @property
    def is_elastic(self) -> bool:
        """Return whether a part of the medium has a shear speed."""
        has_elastic_bone = self.ct is not None and self.ct.bone_shear_speed is not None
        return has_elastic_bone or any(part.shear_speed is not None for part in (self, *self.region))

    @model_validator(mode="after")
    def _shear_is_complete(self) -> MediumTable:
        if not self.is_elastic:
            if any(part.shear_alpha_coeff is not None for part in (self, *self.region)):
                raise ValueError("shear_speed is missing; shear_alpha_coeff needs it")
            return self
        if self.ct is not None and self.ct.bone_shear_speed is None:
            raise ValueError("ct.bone_shear_speed is missing; other parts of the medium have a shear speed")
        self.check_shear("", may_be_fluid=True)
        for number, region in enumerate(self.region):
            region.check_shear(f"region[{number}].", may_be_fluid=False)
        return self

    @model_validator(mode="after")
    def _absorption_is_complete(self) -> MediumTable:
        if self.exponent is None:
            if any(part.alpha_coeff for part in (self, *self.region)):
                raise ValueError("alpha_power is missing; alpha_coeff needs it")
            if self.alpha_mode is not None:
                raise ValueError("alpha_power is missing; alpha_mode needs it")
        return self


class RingTable(Ball):
    """The points of the grid nearest to a circle (2D) or sphere."""


class ResponseTable(Table):
    """Frequency response of the sensors, a Gaussian filter."""

    center: PositiveFrequency = Field(description="frequency of the largest response")
    width: float = Field(gt=0, description="full width at half maximum, relative to the centre")


class RecordTable(Table):
    """Records of the run."""

    at_most_one = (("points", "ring", "element"),)

    points: Annotated[tuple[Position, ...], FromList] = Field(
        default=(), description="positions of sensors, interpolated"
    )
    ring: RingTable | None = Field(default=None, description="sensors on a circle or sphere, instead of points")
    element: Annotated[tuple[Element, ...], OneOrMore] = Field(
        default=(), description="sensors of finite size, instead of points: each records the mean over a shape"
    )
    direction: Literal["radial"] | Annotated[tuple[float, ...], FromList] | None = Field(
        default=None,
        description="sensors record a plane wave at the angle a to this vector with the factor |cos a| in p; radial: "
        "from the middle of the ring; by default sensors have no direction",
    )
    frequency_response: ResponseTable | None = Field(
        default=None, description="filter applied to the time series p; by default none (flat response)"
    )
    quantities: Annotated[tuple[Series, ...], FromList] = Field(
        default=("p",), description="time series at the sensors, or their extrema and means"
    )
    maps: Annotated[tuple[Map, ...], FromList] = Field(default=(), description="maps of the whole grid")
    frequencies: Annotated[tuple[PositiveFrequency, ...], FromList] = Field(
        default=(),
        description="frequencies f at which maps of amplitude A and phase of the pressure, "
        "A cos(2 pi f t + phase), are recorded",
    )
    periods: int = Field(default=4, ge=1, description="number of periods at the end of the run used for these maps")
    start: StepsOrTime = Field(default=0, description="time or steps before the first record")

    @model_validator(mode="after")
    def _response_has_sensors(self) -> RecordTable:
        has_sensors = bool(self.present(self.at_most_one[0]))
        if self.frequency_response is not None and not (has_sensors and "p" in self.quantities):
            raise ValueError('frequency_response: needs sensors that record the series "p"')
        if self.direction == "radial" and self.ring is None:
            raise ValueError('direction: "radial" needs a ring; use a vector')
        if self.direction is not None and not (self.points or self.ring):
            raise ValueError("direction: needs points or a ring")
        return self


class HeatTable(Table):
    """Heating of tissue by sound at the first of record.frequencies, and the thermal dose."""

    duration: PositiveTime = Field(description="duration of the sonication")
    cooling: Delay = Field(default=0.0, description="duration of the cooling afterwards")
    heat_capacity: PositiveHeatCapacity = Field(default=3600.0, description="heat capacity of the tissue")
    conductivity: Conductivity = Field(default=0.5, description="thermal conductivity of the tissue")
    perfusion: Perfusion = Field(default=0.0, description="volume of blood per volume of tissue and time")
    temperature: float = Field(default=37.0, ge=-50, le=100, description="initial temperature, degrees Celsius")


class ImageTable(Table):
    """Image of the initial pressure by time reversal of the records of the ring."""

    iterations: int = Field(
        default=1, ge=1, le=1000, description="number of iterations; more improve images from limited views"
    )
    compensate: PositiveFrequency | None = Field(
        default=None, description="frequency up to which the absorption of the medium is compensated"
    )


SubdomainCount = Annotated[int, Field(ge=1, le=4096)]


class UltrasoundRun(RunTable):
    """Hardware and numerics of the run."""

    at_most_one = (("overlap", "error"),)

    precision: Literal["float32", "float64"] = Field(default="float32", description="precision of all fields")
    scheme: Literal["exact", "separable", "local4"] = Field(
        default="exact",
        description="exact: k-Wave's k-space scheme; separable: its approximation axis by axis; local4: fourth "
        "order in time, with the local sound speed",
    )
    basis: Literal["auto", "local", "global"] = Field(
        default="auto",
        description=(
            'several ranks: "local" for overlapping subdomains, "global" for transforms of the whole grid, or the '
            "one that is faster according to the machine file"
        ),
    )
    overlap: int | None = Field(
        default=None,
        ge=4,
        le=32,
        description="several ranks: overlap in points, 12 by default; error 1e-3 for 8, 1e-5 for 16",
    )
    error: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="relative error, instead of overlap; the smallest sufficient overlap is used",
    )
    split: Annotated[tuple[SubdomainCount, ...], FromList] | None = Field(
        default=None,
        description="several ranks: number of subdomains along each axis, by default from the machine file or the work",
    )


class UltrasoundCase(CaseTable):
    """The case file of ultrasound."""

    solver: Literal["ultrasound"] = Field(description="solver, which determines the kind of case")
    grid: GridTable = Field(description="the spatial grid and the time steps")
    layer: LayerTable = Field(default=LayerTable(), description="the absorbing layer")
    medium: MediumTable = Field(description="the medium")
    source: Annotated[tuple[Source, ...], OneOrMore] = Field(min_length=1, description="the sources")
    record: RecordTable = Field(default=RecordTable(), description="the records")
    target: TargetTable | None = Field(default=None, description="target of a sonication")
    heat: HeatTable | None = Field(default=None, description="heating of tissue")
    image: ImageTable | None = Field(default=None, description="photoacoustic image")
    run: UltrasoundRun = Field(default=UltrasoundRun(), description="hardware and numerics")
    output: UltrasoundOutput = Field(default=UltrasoundOutput(), description="output files")

    @model_validator(mode="after")
    def _tables_are_consistent(self) -> UltrasoundCase:
        record = self.record
        if not (record.points or record.ring or record.element or record.maps or record.frequencies):
            raise ValueError("record: nothing is recorded; give points, a ring, elements, maps or frequencies")
        has_traces = (record.points or record.ring or record.element) and "p" in record.quantities
        fields = record.frequencies or self.image or DRAWN_MAPS.intersection(record.maps) or has_traces
        if self.output.picture and not (fields or any(isinstance(source, InitialPressure) for source in self.source)):
            raise ValueError("output.picture: no field to draw; add record.frequencies, or p_max_all to record.maps")
        if self.medium.is_elastic and self.image is not None and self.image.compensate is not None:
            raise ValueError("image.compensate: is not available in elastic media; omit it")
        if self.target is not None and not record.frequencies:
            raise ValueError("target: needs the amplitude at record.frequencies, which are missing")
        placed("source", self.source, self.target)
        placed("record.element", record.element, self.target)
        if self.heat is not None and not record.frequencies:
            raise ValueError("heat: needs the amplitude at record.frequencies, which are missing")
        if self.heat is not None and self.medium.exponent is None:
            raise ValueError("heat: needs an absorbing medium; medium.alpha_power is missing")
        if self.image is not None and record.ring is None:
            raise ValueError("image: needs record.ring, which is missing")
        if self.image is not None and "p" not in record.quantities:
            raise ValueError('image: needs the series "p" among record.quantities')
        if self.image is not None and record.start != 0:
            raise ValueError("image: needs records from the first step; omit record.start")
        if self.image is not None and self.image.compensate is not None:
            if self.medium.exponent is None or self.medium.alpha_mode in ("relaxation", "no_absorption"):
                raise ValueError("image.compensate: needs a medium that absorbs by a power law")
        return self

    @property
    def located(self) -> UltrasoundCase:
        """Return the case with positions instead of directions towards the target."""
        record = self.record.model_copy(update={"element": placed("record.element", self.record.element, self.target)})
        return self.model_copy(update={"source": placed("source", self.source, self.target), "record": record})
