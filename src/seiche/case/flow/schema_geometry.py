# SPDX-License-Identifier: BSD-3-Clause
"""The [geometry] table: a file of sites, a surface to voxelise, or a built-in shape."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from seiche.case.flow.schema_shapes import Bifurcation, Channel, Duct, PeriodicBox, Tube
from seiche.case.quantities import Point, PositiveLength
from seiche.case.tables import FileName, Table

Shape = Annotated[Tube | Duct | Channel | PeriodicBox | Bifurcation, Field(discriminator="kind")]


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
