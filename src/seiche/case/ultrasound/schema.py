# SPDX-License-Identifier: BSD-3-Clause
"""The case file of `solver = "ultrasound"` as tables of checked values, all in SI units.

docs/reference/ultrasound-case.md is generated from here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from seiche.case.quantities import (
    Conductivity,
    Delay,
    Density,
    Perfusion,
    Place,
    PositiveFrequency,
    PositiveHeatCapacity,
    PositiveLength,
    PositivePressure,
    PositiveTime,
    PositiveVelocity,
    StepsOrTime,
)
from seiche.case.run_tables import OutputTable, RunTable
from seiche.case.tables import FileName, FromList, OneOrMore, OutputName, PictureName, Table
from seiche.ultrasound.shapes import Arc, Bowl, Disc, Line, Rectangle, Shape

Material = Literal["water", "skin", "brain", "cortical bone", "trabecular bone"]
Series = Literal["p", "p_max", "p_min", "p_rms", "u_non_staggered", "I", "I_avg"]
Map = Literal["p_max_all", "p_min_all", "p_final", "u_final"]


class GridTable(Table):
    """Points in space and time. Positions are lengths from the point n // 2 of each axis."""

    shape: Annotated[tuple[int, ...], FromList] = Field(
        min_length=1, max_length=3, description="points along one to three axes; small prime factors are fast"
    )
    spacing: PositiveLength = Field(description="distance of points")
    cfl: float | None = Field(
        default=None, gt=0, le=2, description="time step over spacing / greatest sound speed; 0.3 by default"
    )
    time_step: PositiveTime | None = Field(default=None, description="instead of cfl")
    duration: PositiveTime | None = Field(
        default=None, description="how long; by default sound crosses the diagonal once"
    )
    steps: int | None = Field(default=None, gt=0, le=2**31, description="instead of duration")

    @model_validator(mode="after")
    def _one_of_each(self) -> GridTable:
        for one, other in (("cfl", "time_step"), ("duration", "steps")):
            self.at_most_one_of(one, other)
        return self


class LayerTable(Table):
    """The absorbing layer at all borders."""

    points: int | None = Field(default=None, ge=0, le=1000, description="its thickness; 20, in 3D 10 by default")
    strength: float = Field(default=2.0, ge=0, description="nepers a point")
    inside: bool = Field(default=True, description="a part of the grid; else the grid grows")


class Properties(Table):
    """What a part of the medium is made of: a material, whose numbers others replace."""

    material: Material | None = Field(
        default=None, description="sound speed, density, absorption at 500 kHz of the transcranial benchmarks"
    )
    sound_speed: PositiveVelocity | None = Field(default=None, description="sound speed")
    density: Density | None = Field(default=None, description="mass density")
    BonA: float | None = Field(default=None, ge=0, description="parameter of nonlinearity B/A")
    alpha_coeff: float | None = Field(default=None, ge=0, description="absorption in dB/(MHz^y cm)")


class Ball(Table):
    """A disc (2D) or ball, or what bounds it."""

    center: Place = Field(description="its centre")
    radius: PositiveLength = Field(description="its radius")


class BoxRegion(Properties):
    """Points in a box."""

    kind: Literal["box"]
    lower: Place = Field(description="its lowest corner")
    upper: Place = Field(description="its highest corner")


class BallRegion(Ball, Properties):
    """Points in a disc (2D) or ball."""

    kind: Literal["ball"]


class ShellRegion(Properties):
    """Points between two circles (2D) or spheres."""

    kind: Literal["shell"]
    center: Place = Field(description="their centre")
    inner: PositiveLength = Field(description="inner radius")
    outer: PositiveLength = Field(description="outer radius")


class CtTable(Table):
    """A skull from a CT image by its porosity; it takes the place of everything else where it is bone."""

    file: FileName = Field(description="Hounsfield units, a .npy of the grid's shape")
    threshold: float = Field(default=100.0, description="values below are no bone")


class MediumTable(Properties):
    """The medium: what holds everywhere, then the regions in their order."""

    alpha_power: float | None = Field(
        default=None,
        gt=0,
        lt=3,
        description="exponent y of the absorption; without it nothing is absorbed, but for stokes, which means 2",
    )
    alpha_mode: Literal["no_absorption", "no_dispersion", "stokes", "relaxation"] | None = Field(
        default=None, description="how absorption is computed; relaxation takes the exponent 1, too"
    )
    reference_speed: PositiveVelocity | None = Field(
        default=None, description="of the correction in time; the greatest sound speed by default"
    )
    file: FileName | None = Field(
        default=None, description="a .npz with arrays sound_speed, density, alpha_coeff, BonA of the grid's shape"
    )
    region: Annotated[
        tuple[Annotated[BoxRegion | BallRegion | ShellRegion, Field(discriminator="kind")], ...], OneOrMore
    ] = Field(default=(), description="parts made of something else")
    ct: CtTable | None = Field(default=None, description="a skull from a CT image")

    @property
    def exponent(self) -> float | None:
        """Return the exponent of the absorption, None if nothing is absorbed."""
        return 2.0 if self.alpha_power is None and self.alpha_mode == "stokes" else self.alpha_power

    @model_validator(mode="after")
    def _absorption_is_complete(self) -> MediumTable:
        if self.exponent is None:
            if any(one.alpha_coeff for one in (self, *self.region)):
                raise ValueError("alpha_power is missing beside alpha_coeff")
            if self.alpha_mode is not None:
                raise ValueError("alpha_power is missing beside alpha_mode")
        return self


class Signal(Table):
    """A tone of a source."""

    #: Of the grid, None: any.
    axes: ClassVar[int | None] = 3
    frequency: PositiveFrequency = Field(description="its frequency")
    amplitude: PositivePressure = Field(description="pressure that a large flat source sends to each side")
    cycles: float | None = Field(default=None, gt=0, description="length of a burst; goes on by default")
    ramp: float = Field(default=3.0, ge=0, description="cycles in which a tone that goes on grows to its amplitude")
    delay: Delay = Field(default=0.0, description="how much later it begins")

    @abstractmethod
    def shape(self) -> Shape:
        """Return where it acts."""


class FocusedSource(Signal):
    """A source that faces a point on its axis."""

    position: Place = Field(description="its middle")
    focus: Place = Field(description="a point on its axis")
    diameter: PositiveLength = Field(description="its diameter; of an arc, the distance of its ends")


class CurvedSource(FocusedSource):
    """A source that is a part of a circle or sphere."""

    radius: PositiveLength = Field(description="radius of curvature")


class ArcSource(CurvedSource):
    """A circular arc (2D) that faces its focus."""

    axes = 2
    kind: Literal["arc"]

    def shape(self) -> Shape:
        """Return where it acts."""
        return Arc(self.position, self.focus, self.radius, self.diameter)


class BowlSource(CurvedSource):
    """A spherical cap (3D) that faces its focus."""

    kind: Literal["bowl"]

    def shape(self) -> Shape:
        """Return where it acts."""
        return Bowl(self.position, self.focus, self.radius, self.diameter)


class DiscSource(FocusedSource):
    """A flat disc (3D)."""

    kind: Literal["disc"]

    def shape(self) -> Shape:
        """Return where it acts."""
        return Disc(self.position, self.focus, self.diameter)


class RectangleSource(Signal):
    """A flat rectangle (3D)."""

    kind: Literal["rectangle"]
    position: Place = Field(description="its centre")
    first: Place = Field(description="one side as a vector")
    second: Place = Field(description="the other, at a right angle")

    def shape(self) -> Shape:
        """Return where it acts."""
        return Rectangle(self.position, self.first, self.second)


class LineSource(Signal):
    """A straight line."""

    axes = None
    kind: Literal["line"]
    start: Place = Field(description="first end")
    end: Place = Field(description="other end")

    def shape(self) -> Shape:
        """Return where it acts."""
        return Line(self.start, self.end)


class BallSource(Ball):
    """Pressure at the start in a disc (2D) or ball, smoothed."""

    kind: Literal["initial-ball"]
    pressure: PositivePressure = Field(description="pressure in it")


class FileSource(Table):
    """Pressure at the start from a file, smoothed."""

    kind: Literal["initial-file"]
    file: FileName = Field(description="pressure in Pa, a .npy of the grid's shape")


Source = Annotated[
    ArcSource | BowlSource | DiscSource | RectangleSource | LineSource | BallSource | FileSource,
    Field(discriminator="kind"),
]


class RingTable(Ball):
    """The points of the grid nearest to a circle (2D) or sphere."""


class RecordTable(Table):
    """What is recorded."""

    points: Annotated[tuple[Place, ...], FromList] = Field(default=(), description="places of sensors, interpolated")
    ring: RingTable | None = Field(default=None, description="sensors around something, in place of points")
    quantities: Annotated[tuple[Series, ...], FromList] = Field(
        default=("p",), description="of sensors: series, or what is left of them"
    )
    maps: Annotated[tuple[Map, ...], FromList] = Field(default=(), description="of the whole grid")
    frequencies: Annotated[tuple[PositiveFrequency, ...], FromList] = Field(
        default=(),
        description="at which amplitude A and phase of the pressure, A cos(2 pi f t + phase), are found everywhere",
    )
    periods: int = Field(default=4, ge=1, description="last periods from which they are found")
    start: StepsOrTime = Field(default=0, description="time or steps before the first record")

    @model_validator(mode="after")
    def _one_kind_of_sensor(self) -> RecordTable:
        if self.points and self.ring is not None:
            raise ValueError("give at most one of points and ring; both are given")
        return self


class HeatTable(Table):
    """Warming of tissue by the amplitude at the first of record.frequencies, and the thermal dose."""

    duration: PositiveTime = Field(description="how long the source is on")
    cooling: Delay = Field(default=0.0, description="how long it is watched after that")
    heat_capacity: PositiveHeatCapacity = Field(default=3600.0, description="of the tissue")
    conductivity: Conductivity = Field(default=0.5, description="of the tissue")
    perfusion: Perfusion = Field(default=0.0, description="volumes of blood through a volume of tissue and time")
    temperature: float = Field(default=37.0, ge=-50, le=100, description="at the start, degrees Celsius")


class ImageTable(Table):
    """A picture of the initial pressure by time reversal of what the ring heard."""

    iterations: int = Field(default=1, ge=1, le=1000, description="pictures; more mend limited views")


Pieces = Annotated[int, Field(ge=1, le=4096)]


class UltrasoundRun(RunTable):
    """How and where to compute."""

    precision: Literal["float32", "float64"] = Field(default="float32", description="of all fields")
    scheme: Literal["exact", "separable", "local4"] = Field(
        default="exact", description="k-Wave's scheme, its product over axes, or fourth order with the local speed"
    )
    basis: Literal["auto", "local", "global"] = Field(
        default="auto",
        description="several ranks: overlapping parts, transforms of the whole grid, or the faster by the machine file",
    )
    overlap: int | None = Field(
        default=None,
        ge=4,
        le=32,
        description="several ranks: points that their parts share, 12 by default; 8 errs by 1e-3, 16 by 1e-5",
    )
    error: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="instead: relative error that overlaps may make; they are as narrow as is predicted to keep it",
    )
    split: Annotated[tuple[Pieces, ...], FromList] | None = Field(
        default=None, description="several ranks: pieces along each axis, by default as the machine file or work has it"
    )

    @model_validator(mode="after")
    def _one_of_overlap_and_error(self) -> UltrasoundRun:
        self.at_most_one_of("overlap", "error")
        return self


class UltrasoundOutput(OutputTable):
    """What a run leaves behind."""

    file: OutputName = Field(default="result.h5", description="records and medium, HDF5 in SI units")
    picture: PictureName | None = Field(default=None, description="figure of the field, a .png, .pdf or .svg")

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        yield "output.file", self.file
        if self.picture is not None:
            yield "output.picture", self.picture
        yield from super().files()


class UltrasoundCase(Table):
    """A whole case file."""

    solver: Literal["ultrasound"] = Field(description="this solver")
    title: str = Field(default="", max_length=200, description="one line for pictures and summaries")
    grid: GridTable = Field(description="points in space and time")
    layer: LayerTable = Field(default=LayerTable(), description="the absorbing layer")
    medium: MediumTable = Field(description="what sound travels in")
    source: Annotated[tuple[Source, ...], OneOrMore] = Field(min_length=1, description="what makes it")
    record: RecordTable = Field(default=RecordTable(), description="what is recorded")
    heat: HeatTable | None = Field(default=None, description="warming of tissue")
    image: ImageTable | None = Field(default=None, description="a photoacoustic picture")
    run: UltrasoundRun = Field(default=UltrasoundRun(), description="how and where to compute")
    output: UltrasoundOutput = Field(default=UltrasoundOutput(), description="what is left behind")

    @model_validator(mode="after")
    def _belongs_together(self) -> UltrasoundCase:
        record = self.record
        if not (record.points or record.ring or record.maps or record.frequencies):
            raise ValueError("record: nothing is recorded; give points, a ring, maps or frequencies")
        if self.heat is not None and not record.frequencies:
            raise ValueError("heat: needs the amplitude at record.frequencies, which are missing")
        if self.heat is not None and self.medium.exponent is None:
            raise ValueError("heat: needs a medium that absorbs; medium.alpha_power is missing")
        if self.image is not None and record.ring is None:
            raise ValueError("image: needs record.ring, which is missing")
        if self.image is not None and "p" not in record.quantities:
            raise ValueError('image: needs the series "p" among record.quantities')
        if self.image is not None and record.start != 0:
            raise ValueError("image: needs records from the first step; record.start is given")
        return self
