# SPDX-License-Identifier: BSD-3-Clause
"""The [walls] table: position of walls on their links, and moving parts of the wall."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.flow.schema_shapes import WallInBox, WallInCylinder, WallInSphere, WallOnPlane
from seiche.case.quantities import AngularVelocity, Direction, Point, VelocityVector
from seiche.case.tables import FromList, Table, refuse_null, refuse_twins

PatchTable = Annotated[WallOnPlane | WallInSphere | WallInCylinder | WallInBox, Field(discriminator="kind")]


class MovingWallTable(Table):
    """A part of the wall with tangential motion; the geometry is fixed. `velocity` and `rotation` add up."""

    name: str = Field(min_length=1, max_length=100, description="name, for messages")
    velocity: VelocityVector | None = Field(default=None, description="velocity of a sliding wall")
    rotation: AngularVelocity | None = Field(
        default=None, description="angular velocity about `axis` (right-hand rule)"
    )
    axis: Direction | None = Field(default=None, description="with rotation: direction of the axis (any length)")
    center: Point | None = Field(default=None, description="with rotation: a point of the axis")
    where: PatchTable | None = Field(default=None, description="part of the wall; all of it by default")

    @model_validator(mode="after")
    def _consistent(self) -> MovingWallTable:
        if self.velocity is None and self.rotation is None:
            raise ValueError("give velocity, rotation or both; none is given")
        for name in ("axis", "center"):
            present = getattr(self, name) is not None
            if present and self.rotation is None:
                raise ValueError(f"{name} is only allowed with rotation")
            if not present and self.rotation is not None:
                raise ValueError(f"{name} is missing; rotation needs it")
        refuse_null("axis", self.axis, "the direction of the axis")
        return self


class WallsTable(Table):
    """The boundary condition at the walls of the vessel."""

    kind: Literal["bounce-back", "bouzidi"] = Field(
        default="bounce-back",
        description="wall half way along every link, or where the geometry cuts it (second order)",
    )
    moving: Annotated[tuple[MovingWallTable, ...], FromList] = Field(default=(), description="moving parts")

    @model_validator(mode="after")
    def _names_differ(self) -> WallsTable:
        refuse_twins("moving: two have", self.moving)
        return self
