# SPDX-License-Identifier: BSD-3-Clause
"""The tables [[output.force]] of a flow case: measured parts of the wall."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from seiche.case.flow.schema_shapes import PatchTable
from seiche.case.quantities import Direction, Point, PositiveArea, PositiveLength, PositiveVelocity
from seiche.case.tables import Table, check_nonzero_vector


class ForceOutput(Table):
    """Force and torque of the fluid on a part of the wall, recorded with the flow rates (`record_every`).

    With `velocity` U and `area` A, also the drag and lift coefficients 2 F/(rho U^2 A); with `length` D also the
    Strouhal number f D/U of the lift.
    """

    name: str = Field(min_length=1, max_length=100, description="name of the body")
    where: PatchTable | None = Field(default=None, description="part of the wall; all of it by default")
    center: Point = Field(default=(0.0, 0.0, 0.0), description="point about which the torque is taken")
    drag: Direction = Field(default=(1.0, 0.0, 0.0), description="direction of the drag (any length)")
    lift: Direction = Field(default=(0.0, 1.0, 0.0), description="direction of the lift (any length)")
    velocity: PositiveVelocity | None = Field(default=None, description="reference velocity of the coefficients")
    area: PositiveArea | None = Field(default=None, description="reference area of the coefficients")
    length: PositiveLength | None = Field(default=None, description="reference length of the Strouhal number")

    @model_validator(mode="after")
    def _references_complete(self) -> Self:
        check_nonzero_vector("drag", self.drag, "the direction of the drag")
        check_nonzero_vector("lift", self.lift, "the direction of the lift")
        if (self.velocity is None) != (self.area is None):
            missing_key = "velocity" if self.velocity is None else "area"
            raise ValueError(f"{missing_key}: is missing; coefficients need velocity and area")
        if self.length is not None and self.velocity is None:
            raise ValueError("velocity: is missing; the Strouhal number needs velocity and area")
        return self
