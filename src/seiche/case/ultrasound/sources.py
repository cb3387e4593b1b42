# SPDX-License-Identifier: BSD-3-Clause
"""Sources of an ultrasound case: tables with a shape and a tone, or an initial pressure; shapes of sensors."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from seiche.case.quantities import Delay, Position, PositiveFrequency, PositiveLength, PositivePressure
from seiche.case.tables import FileName, FromList, OneKindOf, SourceTable, Table, check_nonzero_vector
from seiche.case.ultrasound.points import Ball, check_axes, distance
from seiche.errors import CaseError
from seiche.io.arrays import read_npy
from seiche.ultrasound import Grid
from seiche.ultrasound.shapes import Arc, Bowl, Disc, Line, Rectangle, Shape

Floats = npt.NDArray[np.float64]


class GeometryTable(Table):
    """The geometry of a source or sensor."""

    #: Required number of axes of the grid; None if any number is permitted.
    axes: ClassVar[int | None] = 3
    #: Whether it may also lie on the axis of an axisymmetric grid.
    on_axis: ClassVar[bool] = False

    @abstractmethod
    def shape(self) -> Shape:
        """Return the geometry."""


class FocusedGeometry(GeometryTable):
    """A shape that faces a point on its axis.

    It has a position and a focus, or is placed by its axis in front of the target of the case.
    """

    position: Position = Field(default=(), description="its middle; or give axis")
    focus: Position = Field(default=(), description="a point on its axis; or give axis")
    axis: Annotated[tuple[float, ...], FromList] | None = Field(
        default=None,
        min_length=1,
        max_length=3,
        description="direction towards target.position, instead of position and focus",
    )
    distance: PositiveLength | None = Field(
        default=None, description="distance from its middle to target.position; by default the radius"
    )
    diameter: PositiveLength = Field(description="diameter; for an arc, the distance between its ends")

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        check_nonzero_vector("axis", self.axis, "a direction such as [1, 0, 0]")
        given = self.present(("position", "focus"))
        if self.axis is not None and given:
            raise ValueError(f"axis: replaces position and focus; omit {' and '.join(given)}")
        if self.axis is None and len(given) < 2:
            missing = "focus" if given else "position"
            raise ValueError(f"{missing} is missing; give position and focus, or axis")
        if self.axis is None and self.distance is not None:
            raise ValueError("distance: needs axis, which is missing")
        if self.axis is not None and self.distance is None and self.radius_of_curvature is None:
            raise ValueError("distance is missing; axis needs it")
        return self

    @property
    def radius_of_curvature(self) -> float | None:
        """Return the radius of curvature (m), None for flat shapes."""
        return None

    def placed(self, target: Position) -> Self:
        """Return the table with the position and focus that `axis` and `distance` mean for a target (m)."""
        if self.axis is None or len(self.axis) != len(target):
            return self
        distance = self.distance or self.radius_of_curvature or 0.0
        axis = np.asarray(self.axis, np.float64) / np.linalg.norm(self.axis)
        middle = np.asarray(target, np.float64) - distance * axis
        return self.model_copy(update={"position": tuple(middle.tolist()), "focus": tuple(target)})


class CurvedGeometry(FocusedGeometry):
    """A part of a circle or sphere."""

    radius: PositiveLength = Field(description="radius of curvature")

    @property
    def radius_of_curvature(self) -> float | None:
        """Return the radius."""
        return self.radius

    @property
    def curvature_center(self) -> tuple[float, ...]:
        """Return the geometric focus (m): on the axis, at the radius of curvature from the middle."""
        middle = np.asarray(self.position, np.float64)
        axis = np.asarray(self.focus, np.float64) - middle
        return tuple((middle + self.radius * axis / np.linalg.norm(axis)).tolist())


class ArcGeometry(CurvedGeometry):
    """A circular arc (2D) that faces its focus."""

    axes = 2
    kind: Literal["arc"]

    def shape(self) -> Shape:
        """Return the arc."""
        return Arc(self.position, self.focus, self.radius, self.diameter)


class BowlGeometry(CurvedGeometry):
    """A spherical cap (3D, or on the axis of an axisymmetric grid) that faces its focus."""

    on_axis = True
    kind: Literal["bowl"]

    def shape(self) -> Shape:
        """Return the cap."""
        return Bowl(self.position, self.focus, self.radius, self.diameter)


class DiscGeometry(FocusedGeometry):
    """A flat disc (3D, or on the axis of an axisymmetric grid)."""

    on_axis = True
    kind: Literal["disc"]

    def shape(self) -> Shape:
        """Return the disc."""
        return Disc(self.position, self.focus, self.diameter)


class RectangleGeometry(GeometryTable):
    """A flat rectangle (3D)."""

    kind: Literal["rectangle"]
    position: Position = Field(description="centre")
    first: Position = Field(description="one side as a vector")
    second: Position = Field(description="the other side, perpendicular to the first")

    def shape(self) -> Shape:
        """Return the rectangle."""
        return Rectangle(self.position, self.first, self.second)


class LineGeometry(GeometryTable):
    """A straight line."""

    axes = None
    kind: Literal["line"]
    start: Position = Field(description="first end")
    end: Position = Field(description="other end")

    def shape(self) -> Shape:
        """Return the line."""
        return Line(self.start, self.end)


#: Sensors of finite size.
Element = Annotated[
    ArcGeometry | BowlGeometry | DiscGeometry | RectangleGeometry | LineGeometry, Field(discriminator="kind")
]


class Signal(GeometryTable, SourceTable):
    """A tone of a source."""

    frequency: PositiveFrequency = Field(description="frequency")
    amplitude: PositivePressure = Field(description="pressure emitted to each side by a large flat source")
    cycles: float | None = Field(default=None, gt=0, description="length of a burst; continuous by default")
    ramp: float = Field(default=3.0, ge=0, description="cycles over which a continuous tone is ramped up")
    delay: Delay = Field(default=0.0, description="delay of the signal")


class CurvedSource(CurvedGeometry, Signal):
    """A source on a circle or sphere."""


class ArcSource(ArcGeometry, CurvedSource):
    """A circular arc (2D) that faces its focus."""


class BowlSource(BowlGeometry, CurvedSource):
    """A spherical cap (3D, or on the axis of an axisymmetric grid) that faces its focus."""


class DiscSource(DiscGeometry, Signal):
    """A flat disc (3D, or on the axis of an axisymmetric grid)."""


class RectangleSource(RectangleGeometry, Signal):
    """A flat rectangle (3D)."""


class LineSource(LineGeometry, Signal):
    """A straight line."""


class InitialPressure(SourceTable):
    """Initial pressure of the run."""

    @abstractmethod
    def field(self, name: str, grid: Grid, folder: Path) -> Floats:
        """Return the pressure (Pa) at all points; files are in `folder`, and messages begin with `name`."""


class BallSource(Ball, InitialPressure):
    """Initial pressure in a disc (2D) or ball, smoothed."""

    kind: Literal["initial-ball"]
    pressure: PositivePressure = Field(description="initial pressure")

    def field(self, name: str, grid: Grid, folder: Path) -> Floats:
        """Return the pressure; CaseError for a ball that contains no point or has a wrong number of axes."""
        check_axes(f"{name}.center", self.center, grid)
        inside = distance(grid, self.center) <= self.radius
        if not inside.any():
            raise CaseError(f"{name}: the ball contains no point of the grid")
        return np.where(inside, self.pressure, 0.0)


class FileSource(InitialPressure):
    """Initial pressure from a file, smoothed."""

    kind: Literal["initial-file"]
    file: FileName = Field(description="pressure in Pa, a .npy of the grid's shape")

    def field(self, name: str, grid: Grid, folder: Path) -> Floats:
        """Return the pressure; FormatError for an invalid file."""
        return read_npy(folder / self.file, grid.shape)


#: Sources by `kind`; more may be added (docs/howto/add-a-source.md).
SOURCES: dict[str, type[SourceTable]] = {
    "arc": ArcSource,
    "bowl": BowlSource,
    "disc": DiscSource,
    "rectangle": RectangleSource,
    "line": LineSource,
    "initial-ball": BallSource,
    "initial-file": FileSource,
}
Source = Annotated[SourceTable, OneKindOf(SOURCES)]


def shape_of(table: GeometryTable, grid: Grid, name: str) -> Shape:
    """Return the shape of a source or sensor; CaseError, which begins with `name`, if the grid has other axes."""
    keys = dict(table)
    for key, value in keys.items():
        if isinstance(value, tuple) and value:  # a position, or a list of them
            for position in value if isinstance(value[0], tuple) else (value,):
                check_axes(f"{name}.{key}", position, grid)
    on_axis = grid.symmetry is not None and table.on_axis
    if table.axes not in (None, len(grid.shape)) and not on_axis:
        raise CaseError(f"{name}: kind {keys['kind']} needs a grid of {table.axes} axes, not {len(grid.shape)}")
    return table.shape()
