# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the time series of a flow case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seiche.case.compressed import CompressedTable, ErrorTable
from seiche.case.flow.schema_shapes import Nearest, Plane, Segment, Sphere
from seiche.case.quantities import (
    Density,
    Interval,
    PositivePressure,
    PositiveRate,
    PositiveVelocity,
    StepsOrTime,
    Viscosity,
)
from seiche.case.tables import FromList, OutputName

FieldName = Literal[
    "pressure", "density", "velocity", "shear_rate", "stress", "wall_shear_stress", "traction", "viscosity"
]
Where = Annotated[Plane | Segment | Nearest | Sphere, Field(discriminator="kind")]


class WallErrors(ErrorTable):
    """Largest absolute error of stored values by field; each component of a vector has it."""

    pressure: PositivePressure | None = Field(default=None, description="error of pressures")
    wall_shear_stress: PositivePressure | None = Field(default=None, description="error of the wall shear stress")
    traction: PositivePressure | None = Field(default=None, description="error of the traction")


class SiteErrors(WallErrors):
    """Largest absolute error of stored values by field; each component of a vector has it."""

    density: Density | None = Field(default=None, description="error of the density")
    velocity: PositiveVelocity | None = Field(default=None, description="error of velocities")
    shear_rate: PositiveRate | None = Field(default=None, description="error of the shear rate")
    stress: PositivePressure | None = Field(default=None, description="error of stresses")
    viscosity: Viscosity | None = Field(default=None, description="error of the viscosity")


class FieldOutput(CompressedTable):
    """A time series of values at every fluid site, or at those that `where` selects, in SI units."""

    file: OutputName = Field(description="VTKHDF file in the output folder")
    every: Interval = Field(description="time or steps between two states")
    fields: Annotated[tuple[FieldName, ...], FromList] = Field(
        default=("pressure", "velocity"), min_length=1, description="fields to write"
    )
    where: Where | None = Field(default=None, description="selected sites; all by default")
    absolute_error: SiteErrors | None = Field(default=None, description="largest absolute errors")


class SurfaceOutput(CompressedTable):
    """A time series of values on the vessel wall, in SI units."""

    file: OutputName = Field(description="VTKHDF file in the output folder")
    every: Interval = Field(description="time or steps between two states")
    fields: Annotated[tuple[Literal["wall_shear_stress", "traction", "pressure"], ...], FromList] = Field(
        default=("wall_shear_stress",), min_length=1, description="fields to write"
    )
    absolute_error: WallErrors | None = Field(default=None, description="largest absolute errors")


class AveragesOutput(CompressedTable):
    """Means over time windows on the wall: wall shear stress, oscillatory shear index, relative residence time.

    One state is written at the end of every window.
    """

    file: OutputName = Field(description="VTKHDF file in the output folder")
    start: StepsOrTime = Field(default=0, description="time or steps before the first window")
    window: Interval | None = Field(
        default=None, description="length of a window; by default the period of the iolets, or the remaining run"
    )
    every: Interval | None = Field(
        default=None, description="time or steps between two samples; 200 samples per window by default"
    )
