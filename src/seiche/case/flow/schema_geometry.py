# SPDX-License-Identifier: BSD-3-Clause
"""The [geometry] table: a file of sites, a surface to voxelise, or a built-in shape."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.quantities import Angle, Direction, Point, PositiveLength
from seiche.case.tables import FileName, FromList, OutputName, Table

Axis = Literal["x", "y", "z"]


class Tube(Table):
    """A round tube; its ends are the iolets "inlet" and "outlet" unless it is periodic."""

    kind: Literal["tube"]
    radius: PositiveLength = Field(description="inner radius")
    length: PositiveLength = Field(description="distance between the ends")
    axis: Direction = Field(
        default=(1.0, 0.0, 0.0), description="direction from inlet to outlet; a lattice axis if periodic"
    )
    periodic: bool = Field(default=False, description="join the ends instead of opening them")


class Duct(Table):
    """A rectangular duct along x; its ends are the iolets "inlet" and "outlet" unless it is periodic."""

    kind: Literal["duct"]
    width: PositiveLength = Field(description="inner size along y")
    height: PositiveLength = Field(description="inner size along z")
    length: PositiveLength = Field(description="size along x")
    periodic: bool = Field(default=True, description="join the ends instead of opening them")


class Channel(Table):
    """Two parallel plates, the gap along z, periodic along x and y."""

    kind: Literal["channel"]
    height: PositiveLength = Field(description="gap between the plates, half way between lattice planes")
    length: PositiveLength = Field(description="size along x")
    width: PositiveLength = Field(description="size along y")


class Box(Table):
    """A box that is periodic in all directions."""

    kind: Literal["box"]
    size: Point = Field(description="edge lengths along x, y and z")


class Bifurcation(Table):
    """A vessel that divides in two, with an aneurysm sac at the apex; iolets "inlet", "outlet1" and "outlet2".

    A key that is left out keeps the default of `seiche.domain.bifurcation.bifurcation_surface`.
    """

    kind: Literal["bifurcation"]
    parent_radius: PositiveLength | None = Field(default=None, description="radius of the parent vessel")
    daughter_radii: Annotated[tuple[PositiveLength, PositiveLength], FromList] | None = Field(
        default=None, description="radii of both daughters"
    )
    angles: Annotated[tuple[Angle, Angle], FromList] | None = Field(
        default=None, description="angle of each daughter to the parent's axis"
    )
    sac_radius: PositiveLength | None = Field(default=None, description="radius of the aneurysm sac")
    parent_length: PositiveLength | None = Field(default=None, description="length of the parent vessel")
    daughter_length: PositiveLength | None = Field(default=None, description="length of each daughter")
    stl: OutputName | None = Field(default=None, description="also write the surface to this file of the output folder")


Shape = Annotated[Tube | Duct | Channel | Box | Bifurcation, Field(discriminator="kind")]


class Geometry(Table):
    """Where the fluid is: exactly one of `gmy`, `stl` and `shape`."""

    spacing: PositiveLength = Field(description="distance between neighbouring lattice sites")
    gmy: FileName | None = Field(default=None, description="HemeLB geometry file, relative to the case file")
    stl: FileName | None = Field(default=None, description="STL surface, ASCII or binary, relative to the case file")
    shape: Shape | None = Field(default=None, description="built-in shape")
    unit: PositiveLength | None = Field(
        default=None, description="length of one unit of the STL file; needed with `stl`"
    )
    origin: Point | None = Field(default=None, description="position of the site (0, 0, 0); only with `gmy` and `stl`")

    @model_validator(mode="after")
    def _one_source(self) -> Geometry:
        source = self.exactly_one_of(("gmy", "stl", "shape"))
        if source == "stl" and self.unit is None:
            raise ValueError('an STL file does not say its unit: add the key unit, such as "1 mm"')
        if source != "stl" and self.unit is not None:
            raise ValueError("the key unit goes only with stl")
        if source == "shape" and self.origin is not None:
            raise ValueError("the key origin goes only with gmy and stl; a built-in shape places itself")
        return self
