# SPDX-License-Identifier: BSD-3-Clause
"""The [[output.extraction]] tables: HemeLB extraction files of selected sites, with HemeLB's names."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.quantities import Direction, Interval, Point, PositiveLength, shorten
from seiche.case.tables import FromList, OutputName, Table, check_nonzero_vector

ExtractedField = Literal[
    "pressure",
    "velocity",
    "vonmisesstress",
    "shearstress",
    "shearrate",
    "stresstensor",
    "traction",
    "tangentialprojectiontraction",
    "normalprojectiontraction",
    "mpirank",
]
SiteChoice = Literal[
    "whole", "surface", "inlet", "outlet", "plane", "line", "surfacepoint", "sphere", "surfaceWithinSphere"
]
#: Required and optional keys of each selection of sites.
SELECTION_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "plane": (("point", "normal"), ("radius",)),
    "line": (("point", "end"), ()),
    "surfacepoint": (("point",), ()),
    "sphere": (("point", "radius"), ()),
    "surfaceWithinSphere": (("point", "radius"), ()),
}


class ExtractionOutput(Table):
    """Values at selected sites in a HemeLB extraction file (version 5), with an offset file of its ranks.

    Pressure is in mmHg, velocity in m/s, stresses in Pa, shear rate in 1/s (how-to page "Run a HemeLB case").
    """

    file: OutputName = Field(description="file in the output folder, usually .xtr; the offset file ends with .off")
    every: Interval = Field(description="time or steps between two records")
    fields: Annotated[tuple[ExtractedField, ...], FromList] = Field(
        default=("pressure", "velocity"), min_length=1, description="fields to write"
    )
    names: Annotated[tuple[str, ...], FromList] | None = Field(
        default=None, description="names of the fields in the file; by default those of fields"
    )
    sites: SiteChoice = Field(default="whole", description="selection of sites")
    point: Point | None = Field(default=None, description="point of a plane, line or surface, or centre of a sphere")
    end: Point | None = Field(default=None, description="other end of a line")
    normal: Direction | None = Field(default=None, description="normal of a plane (any length)")
    radius: PositiveLength | None = Field(default=None, description="radius of a sphere, or of a disc in a plane")

    @model_validator(mode="after")
    def _consistent(self) -> ExtractionOutput:
        required, optional = SELECTION_KEYS.get(self.sites, ((), ()))
        for key in ("point", "end", "normal", "radius"):
            present = getattr(self, key) is not None
            if key in required and not present:
                raise ValueError(f'{key}: is missing; sites = "{self.sites}" needs {" and ".join(required)}')
            if present and key not in (*required, *optional):
                raise ValueError(f'{key}: is not allowed with sites = "{self.sites}"')
        check_nonzero_vector("normal", self.normal, "a direction")
        if self.end is not None and self.end == self.point:
            raise ValueError("end: is equal to point; a line needs two points")
        names = self.field_names()
        if len(names) != len(self.fields):
            raise ValueError(f"names: {len(names)} names are given for {len(self.fields)} fields")
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"fields: two fields have the name {shorten(duplicate)} in the file")
        if self.file.endswith(".off") or PurePath(self.file).name in ("", ".."):
            raise ValueError('file: the ending ".off" is reserved for the offset file; expected a name such as "a.xtr"')
        return self

    def field_names(self) -> tuple[str, ...]:
        """Return the names of the fields in the file."""
        return self.fields if self.names is None else self.names
