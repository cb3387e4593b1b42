# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies in a case: vessels, obstacles and regions of media of all kinds use the same tables.

docs/reference/solids.md is generated from here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from seiche.case.images import ImageRegion
from seiche.case.quantities import Length, Position, PositiveLength
from seiche.case.tables import FileName, FromList, OneKindOf, Table, ordered
from seiche.domain.axial_solids import SolidCapsule, SolidCone, SolidCylinder, SolidTorus
from seiche.domain.combined_solids import (
    SolidDifference,
    SolidIntersection,
    SolidOfImage,
    SolidOfSurface,
    SolidUnion,
)
from seiche.domain.solids import SolidBody as SolidBody
from seiche.domain.solids import SolidBox, SolidEllipsoid, SolidLayer, SolidShell, SolidSphere
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.images import files_of_image


class SolidTable(Table):
    """A solid body; positions have one coordinate for each axis of the case."""

    kind: str

    @abstractmethod
    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the body in `dim` dimensions; files are relative to `folder`.

        Raises CaseError for a wrong number of coordinates, beginning with the key, and FormatError for a file.
        """

    def _check_axes(self, dim: int) -> None:
        """Raise a CaseError for a position, other than that of an image, without `dim` coordinates."""
        for name, value in self:
            if name in _POSITIONS and value is not None and len(value) != dim:
                raise CaseError(f"{name}: needs {dim} numbers, one for each axis; it has {len(value)}")


#: Keys of positions and directions.
_POSITIONS = ("center", "start", "end", "lower", "upper", "radii", "axis")


class SphereSolid(SolidTable):
    """A sphere, or a disc in two dimensions."""

    kind: Literal["sphere", "ball"]
    center: Position = Field(description="centre")
    radius: PositiveLength = Field(description="radius")

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the sphere."""
        self._check_axes(dim)
        return SolidSphere(self.center, self.radius)


_RADII = "the inner radius {inner:g} m is not less than the outer radius {outer:g} m"


class ShellSolid(SolidTable):
    """The space between two spheres, or circles in two dimensions."""

    kind: Literal["shell"]
    center: Position = Field(description="centre")
    inner: PositiveLength = Field(description="inner radius")
    outer: PositiveLength = Field(description="outer radius")
    _radii_in_order = ordered("inner", "outer", _RADII)

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the shell."""
        self._check_axes(dim)
        return SolidShell(self.center, self.inner, self.outer)


class EllipsoidSolid(SolidTable):
    """An ellipsoid (2D: an ellipse) along the axes, such as a basin or a salt body."""

    kind: Literal["ellipsoid"]
    center: Position = Field(description="centre")
    radii: Position = Field(description="half axes")

    @model_validator(mode="after")
    def _has_extent(self) -> EllipsoidSolid:
        if min(self.radii) <= 0:
            raise ValueError("radii must be positive")
        return self

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the ellipsoid."""
        self._check_axes(dim)
        return SolidEllipsoid(self.center, self.radii)


class BoxSolid(SolidTable):
    """A box along the axes; a side at a wall or a periodic plane of a vessel is not a surface.

    `low` and `high` are other names of `lower` and `upper`.
    """

    kind: Literal["box"]
    lower: Position = Field(description="corner with the lowest coordinates")
    upper: Position = Field(description="corner with the highest coordinates")
    _corners_in_order = ordered("lower", "upper", "upper must exceed lower along every axis")

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        names = {"low": "lower", "high": "upper"}
        if both := next((old for old, new in names.items() if old in data and new in data), None):
            raise ValueError(f"give {names[both]} or {both}, which are the same; both are given")
        return {names.get(key, key): value for key, value in data.items()}

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the box."""
        self._check_axes(dim)
        return SolidBox(self.lower, self.upper)


class LayerSolid(SolidTable):
    """The space between two heights along the last axis."""

    kind: Literal["layer"]
    bottom: Length = Field(description="lower boundary")
    top: Length = Field(description="upper boundary")
    _has_thickness = ordered("bottom", "top", "bottom = {bottom:g} m must be below top = {top:g} m")

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the layer."""
        return SolidLayer(self.bottom, self.top, dim)


class AxialTable(SolidTable):
    """A round body between two points."""

    start: Position = Field(description="one end of the axis")
    end: Position = Field(description="other end of the axis")

    @model_validator(mode="after")
    def _axis_has_length(self) -> AxialTable:
        if self.start == self.end:
            raise ValueError("end: is equal to start; expected the other end of the axis")
        return self


class CylinderSolid(AxialTable):
    """A round cylinder; an end at a wall or a periodic plane of a vessel is not a surface. In 2D, a rectangle."""

    kind: Literal["cylinder"]
    radius: PositiveLength = Field(description="radius")

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the cylinder."""
        self._check_axes(dim)
        return SolidCylinder(self.start, self.end, self.radius)


class ConeSolid(AxialTable):
    """A cone with its tip at one end, or a truncated one; ends as those of a cylinder. In 2D, a trapezium."""

    kind: Literal["cone"]
    start_radius: Length = Field(ge=0, description="radius at the start; zero for a tip")
    end_radius: Length = Field(ge=0, description="radius at the end; zero for a tip")

    @model_validator(mode="after")
    def _has_extent(self) -> ConeSolid:
        if self.start_radius == self.end_radius == 0.0:
            raise ValueError("start_radius and end_radius are both zero")
        return self

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the cone."""
        self._check_axes(dim)
        return SolidCone(self.start, self.end, (self.start_radius, self.end_radius))


class CapsuleSolid(AxialTable):
    """A cylinder with hemispheres at its ends, whose centres are `start` and `end`."""

    kind: Literal["capsule"]
    radius: PositiveLength = Field(description="radius")

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the capsule."""
        self._check_axes(dim)
        return SolidCapsule(self.start, self.end, self.radius)


class TorusSolid(SolidTable):
    """A ring of circular section, in three dimensions."""

    kind: Literal["torus"]
    center: Position = Field(description="centre")
    axis: Annotated[tuple[float, ...], FromList] = Field(description="direction of the axis (any length)")
    radius: PositiveLength = Field(description="distance of the middle of the section from the axis")
    section: PositiveLength = Field(description="radius of the section")

    @model_validator(mode="after")
    def _axis_has_length(self) -> TorusSolid:
        if not 1e-12 < float(np.linalg.norm(self.axis)) < 1e100:
            raise ValueError("axis: its length is zero; expected the direction of the axis")
        return self

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the ring."""
        if dim != 3:
            raise CaseError(f"kind: a torus needs three axes, not {dim}")
        self._check_axes(dim)
        return SolidTorus(self.center, self.axis, self.radius, self.section)


class StlSolid(SolidTable):
    """The inside of an STL surface, whose holes are closed by flat caps, in three dimensions."""

    kind: Literal["stl"]
    file: FileName = Field(description="STL file, relative to the case file")
    unit: PositiveLength = Field(description='length unit of the file, such as "1 mm"')

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the inside of the surface."""
        from seiche.io.formats.stl import read_stl

        if dim != 3:
            raise CaseError(f"kind: a surface needs three axes, not {dim}")
        raw = read_stl(folder / self.file)
        return SolidOfSurface(Surface(np.asarray(raw.vertices) * self.unit, raw.faces))


class ImageSolid(ImageRegion, SolidTable):
    """A region of an image of voxels; it ends half a voxel beyond the outermost centres of the image."""

    kind: Literal["image"]

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the region."""
        image = self.read(folder)
        if image.values.ndim != dim:
            raise CaseError(f"file: the image has {image.values.ndim} axes, the case has {dim}")
        result = SolidOfImage(image, self.region)
        result.bounds()  # refuses a region without voxels
        return result


class CombinedTable(SolidTable):
    """Bodies that are combined, each of any kind, also a combination."""

    of: Annotated[tuple[Part, ...], FromList] = Field(
        min_length=2, max_length=1000, description="the bodies, each a table of any kind"
    )

    def _parts(self, dim: int, folder: Path) -> tuple[SolidBody, ...]:
        return tuple(body_of(part, dim, folder, f"of[{number}]") for number, part in enumerate(self.of))


class UnionSolid(CombinedTable):
    """The points of any of the bodies `of`."""

    kind: Literal["union"]

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the union."""
        return SolidUnion(self._parts(dim, folder))


class IntersectionSolid(CombinedTable):
    """The points that all bodies `of` have in common."""

    kind: Literal["intersection"]

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the intersection."""
        return SolidIntersection(self._parts(dim, folder))


class DifferenceSolid(CombinedTable):
    """The points of the first body in `of` that none of the others contains."""

    kind: Literal["difference"]

    def solid(self, dim: int, folder: Path) -> SolidBody:
        """Return the difference."""
        return SolidDifference(self._parts(dim, folder))


#: All tables by their key `kind`.
SOLIDS: dict[str, type[Table]] = {}
SOLID = OneKindOf(SOLIDS)
Part = Annotated[SolidTable, SOLID]
for _table in (
    *(SphereSolid, ShellSolid, EllipsoidSolid, BoxSolid, LayerSolid, CylinderSolid, ConeSolid, CapsuleSolid),
    *(TorusSolid, StlSolid, ImageSolid, UnionSolid, IntersectionSolid, DifferenceSolid),
):
    _table.model_rebuild()  # `Part` was not known when combined tables were defined
    SOLIDS |= dict.fromkeys(_table.model_fields["kind"].annotation.__args__, _table)  # type: ignore[union-attr]


def files_of_solids(tables: Any, folder: Path) -> Iterator[Path]:
    """Yield the files of all solid bodies in nested `tables`."""
    if isinstance(tables, StlSolid | ImageSolid):
        yield from files_of_image(folder / tables.file)
    elif isinstance(tables, Table):
        for _, value in tables:
            yield from files_of_solids(value, folder)
    elif isinstance(tables, tuple):
        for table in tables:
            yield from files_of_solids(table, folder)


def body_of(table: SolidTable, dim: int, folder: Path, name: str) -> SolidBody:
    """Return the body of a table; CaseError, beginning with `name`, for a table that does not suit `dim` axes."""
    try:
        return table.solid(dim, folder)
    except CaseError as error:
        is_key = str(error).partition(":")[0].partition("[")[0].isidentifier()
        raise CaseError(f"{name}.{error}" if is_key else f"{name}: {error}") from None
