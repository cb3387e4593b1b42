# SPDX-License-Identifier: BSD-3-Clause
"""Shapes in a flow case (built-in vessels, selections of sites, parts of the wall) and the [walls] table."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seiche.case.quantities import Angle, AngularVelocity, Direction, Point, PositiveLength, VelocityVector
from seiche.case.tables import FromList, OutputName, Table, check_nonzero_vector, check_unique_names, ordered


class TubeShape(Table):
    """A round tube; its ends are the iolets "inlet" and "outlet" unless it is periodic."""

    kind: Literal["tube"]
    radius: PositiveLength = Field(description="inner radius")
    length: PositiveLength = Field(description="distance between the ends")
    axis: Direction = Field(default=(1.0, 0.0, 0.0), description="from inlet to outlet; a lattice axis if periodic")
    periodic: bool = Field(default=False, description="periodic along the axis, without openings")


class Duct(Table):
    """A rectangular duct along x; its ends are the iolets "inlet" and "outlet" unless it is periodic.

    With `plates`, two plates across y instead.
    """

    kind: Literal["duct"]
    width: PositiveLength = Field(description="inner size along y")
    height: PositiveLength = Field(description="inner size along z")
    length: PositiveLength = Field(description="size along x")
    periodic: bool = Field(default=True, description="periodic along x, without openings")
    plates: bool = Field(default=False, description="walls at y = 0 and y = width only, periodic along z")


class Channel(Table):
    """Two parallel plates, the gap along z, periodic along x and y."""

    kind: Literal["channel"]
    height: PositiveLength = Field(description="gap between the plates, half way between lattice planes")
    length: PositiveLength = Field(description="size along x")
    width: PositiveLength = Field(description="size along y")


class PeriodicBox(Table):
    """A box that is periodic in all directions."""

    kind: Literal["box"]
    size: Point = Field(description="edge lengths along x, y and z")


class Bifurcation(Table):
    """A vessel that divides in two, with an aneurysm sac at the apex; iolets "inlet", "outlet1" and "outlet2".

    Defaults are those of `seiche.domain.bifurcation.bifurcation_surface`.
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


class ArteryTree(Table):
    """A generated arterial tree after Murray's law, with iolets "inlet" and "outlet1", "outlet2" ...

    Every outlet has the same radius, that of the inlet divided by the cube root of their number. The same seed gives
    the same tree (`seiche.domain.tree_surface.tree_surface`).
    """

    kind: Literal["tree"]
    radius: PositiveLength = Field(description="radius of the inlet")
    outlets: int = Field(default=38, ge=2, le=1000, description="number of outlets")
    length_ratio: float = Field(
        default=8.0, ge=4.0, le=100.0, description="length of each branch relative to its radius"
    )
    seed: int = Field(default=1, ge=0, description="seed of the random bifurcations")
    stl: OutputName | None = Field(default=None, description="also write the surface to this file of the output folder")


#: Shapes whose wall is a generated surface.
GENERATED_SURFACES = (Bifurcation, ArteryTree)


def opening_names(shape: object) -> tuple[str, ...]:
    """Return the names of the openings of a built-in shape, or () if it is periodic or none is given."""
    if isinstance(shape, ArteryTree):
        return ("inlet", *(f"outlet{number}" for number in range(1, shape.outlets + 1)))
    if isinstance(shape, Bifurcation):
        return ("inlet", "outlet1", "outlet2")
    return ("inlet", "outlet") if isinstance(shape, TubeShape | Duct) and not shape.periodic else ()


class Plane(Table):
    """Sites within half a spacing of a plane."""

    kind: Literal["plane"]
    point: Point = Field(description="a point of the plane")
    normal: Direction = Field(description="normal of the plane (any length)")

    @model_validator(mode="after")
    def _normal_has_length(self) -> Self:
        check_nonzero_vector("normal", self.normal, "a direction normal to the plane")
        return self


class Segment(Table):
    """Sites along a straight line, up to half the diagonal of a lattice cell away from it."""

    kind: Literal["line"]
    start: Point = Field(description="first end")
    end: Point = Field(description="other end")


class Nearest(Table):
    """The site nearest to each point."""

    kind: Literal["points"]
    points: Annotated[tuple[Point, ...], FromList] = Field(
        min_length=1, max_length=100_000, description="points, each a list of three lengths"
    )


class Sphere(Table):
    """Sites inside a sphere."""

    kind: Literal["sphere"]
    center: Point = Field(description="centre of the sphere")
    radius: PositiveLength = Field(description="radius of the sphere")


class WallOnPlane(Plane):
    """The wall within a quarter of a spacing of a plane."""


class WallInSphere(Sphere):
    """The wall inside a sphere."""


class WallInCylinder(Table):
    """The wall inside a round cylinder."""

    kind: Literal["cylinder"]
    start: Point = Field(description="one end of the axis")
    end: Point = Field(description="other end of the axis")
    radius: PositiveLength = Field(description="radius of the cylinder")

    @model_validator(mode="after")
    def _axis_has_length(self) -> Self:
        if self.start == self.end:
            raise ValueError("end: is equal to start; expected the other end of the axis")
        return self


class WallInBox(Table):
    """The wall inside a box along the axes."""

    kind: Literal["box"]
    low: Point = Field(description="corner with the lowest coordinates")
    high: Point = Field(description="corner with the highest coordinates")
    _corners_in_order = ordered("low", "high", "high: is not above low along every axis")


PatchTable = Annotated[WallOnPlane | WallInSphere | WallInCylinder | WallInBox, Field(discriminator="kind")]


class MovingWallTable(Table):
    """A part of the wall with tangential motion; the geometry is fixed. `velocity` and `rotation` add up."""

    name: str = Field(min_length=1, max_length=100, description="name, for messages")
    velocity: VelocityVector | None = Field(default=None, description="velocity of a sliding wall")
    rotation: AngularVelocity | None = Field(default=None, description="angular velocity (right-hand rule)")
    axis: Direction | None = Field(default=None, description="with rotation: direction of the axis (any length)")
    center: Point | None = Field(default=None, description="with rotation: a point of the axis")
    where: PatchTable | None = Field(default=None, description="part of the wall; all of it by default")

    @model_validator(mode="after")
    def _consistent(self) -> MovingWallTable:
        if self.velocity is None and self.rotation is None:
            raise ValueError("give velocity, rotation or both; neither is given")
        for name in ("axis", "center"):
            present = getattr(self, name) is not None
            if present and self.rotation is None:
                raise ValueError(f"{name} is only allowed with rotation")
            if not present and self.rotation is not None:
                raise ValueError(f"{name} is missing; rotation needs it")
        check_nonzero_vector("axis", self.axis, "the direction of the axis")
        return self


class WallsTable(Table):
    """The boundary condition at the walls of the vessel."""

    kind: Literal["bounce-back", "bouzidi"] = Field(
        default="bounce-back",
        description="wall half way along every link, or where the geometry cuts the link (second order)",
    )
    moving: Annotated[tuple[MovingWallTable, ...], FromList] = Field(default=(), description="moving parts")

    @model_validator(mode="after")
    def _names_differ(self) -> WallsTable:
        check_unique_names("moving: two walls have", self.moving)
        return self
