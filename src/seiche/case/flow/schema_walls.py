# SPDX-License-Identifier: BSD-3-Clause
"""The [walls] table: where walls lie on their links, and which parts of the wall move."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.quantities import AngularVelocity, Direction, Point, PositiveLength, VelocityVector
from seiche.case.tables import FromList, Table

_SHORTEST = 1e-24


class WallOnPlane(Table):
    """The wall within a quarter of a spacing of a plane."""

    kind: Literal["plane"]
    point: Point = Field(description="a point of the plane")
    normal: Direction = Field(description="direction across the plane (any length)")

    @model_validator(mode="after")
    def _normal_has_length(self) -> WallOnPlane:
        if sum(c * c for c in self.normal) < _SHORTEST:
            raise ValueError("normal: its length is zero; expected the direction across the plane")
        return self


class WallInSphere(Table):
    """The wall inside a sphere."""

    kind: Literal["sphere"]
    center: Point = Field(description="its centre")
    radius: PositiveLength = Field(description="its radius")


class WallInCylinder(Table):
    """The wall inside a round cylinder."""

    kind: Literal["cylinder"]
    start: Point = Field(description="one end of its axis")
    end: Point = Field(description="other end of its axis")
    radius: PositiveLength = Field(description="its radius")

    @model_validator(mode="after")
    def _axis_has_length(self) -> WallInCylinder:
        if self.start == self.end:
            raise ValueError("end: is the same as start; expected the other end of the axis")
        return self


class WallInBox(Table):
    """The wall inside a box along the axes."""

    kind: Literal["box"]
    low: Point = Field(description="its lowest corner")
    high: Point = Field(description="its highest corner")

    @model_validator(mode="after")
    def _corners_in_order(self) -> WallInBox:
        if any(low >= high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("high: is not above low along every axis")
        return self


PatchTable = Annotated[WallOnPlane | WallInSphere | WallInCylinder | WallInBox, Field(discriminator="kind")]


class MovingWallTable(Table):
    """A part of the wall that moves along itself; the geometry stays. `velocity` and `rotation` add up."""

    name: str = Field(min_length=1, max_length=100, description="name, for messages")
    velocity: VelocityVector | None = Field(default=None, description="velocity of a wall that slides")
    rotation: AngularVelocity | None = Field(default=None, description="angular velocity, right-handed about `axis`")
    axis: Direction | None = Field(default=None, description="with rotation: direction of the axis (any length)")
    center: Point | None = Field(default=None, description="with rotation: a point of the axis")
    where: PatchTable | None = Field(default=None, description="which part of the wall; all of it by default")

    @model_validator(mode="after")
    def _consistent(self) -> MovingWallTable:
        if self.velocity is None and self.rotation is None:
            raise ValueError("give velocity, rotation or both; none is given")
        for name in ("axis", "center"):
            given = getattr(self, name) is not None
            if given and self.rotation is None:
                raise ValueError(f"{name} goes only with rotation")
            if not given and self.rotation is not None:
                raise ValueError(f"{name} is missing beside rotation")
        if self.axis is not None and sum(c * c for c in self.axis) < _SHORTEST:
            raise ValueError("axis: its length is zero; expected the direction of the axis")
        return self


class WallsTable(Table):
    """How the walls of the vessel act on the fluid."""

    kind: Literal["bounce-back", "bouzidi"] = Field(
        default="bounce-back",
        description="walls half way along every lattice link, or where the geometry cuts it (second order)",
    )
    moving: Annotated[tuple[MovingWallTable, ...], FromList] = Field(default=(), description="parts that move")

    @model_validator(mode="after")
    def _names_differ(self) -> WallsTable:
        names = [wall.name for wall in self.moving]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f'moving: two have the name "{twice}"')
        return self
