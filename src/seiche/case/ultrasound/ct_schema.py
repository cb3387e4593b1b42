# SPDX-License-Identifier: BSD-3-Clause
"""The checked table of media from a CT image."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.images import ImageFile
from seiche.case.quantities import Density, Position, PositiveVelocity
from seiche.case.tables import FromList


class CtTable(ImageFile):
    """Media from a CT image in Hounsfield units, which replace all others where its values reach the threshold.

    A .npy file without `voxel` has the shape of the grid. Other images (NumPy with `voxel`, NIfTI, DICOM, TIFF) are
    interpolated at the points of the grid, or averaged over their cells if voxels are smaller than the spacing.
    """

    curve: Literal["porosity", "tissue"] = Field(
        default="porosity",
        description="bone by its porosity (Aubry et al. 2003), or densities of all tissues by Schneider et al. (1996) "
        "and sound speeds by Mast (2000)",
    )
    threshold: float | None = Field(
        default=None, description="lowest Hounsfield value of the media: by default 100, or -200 for tissue"
    )
    compact_bone: float = Field(default=1000.0, description="porosity: Hounsfield value of compact bone")
    bone_speed: PositiveVelocity = Field(default=3100.0, description="porosity: sound speed of compact bone")
    bone_density: Density = Field(default=2100.0, description="porosity: density of compact bone")
    bone_absorption: Annotated[tuple[float, float], FromList] = Field(
        default=(2.0, 16.0), description="absorption of compact bone and of the most porous bone, dB/(MHz^y cm)"
    )
    bone_shear_speed: PositiveVelocity | None = Field(
        default=None,
        description="porosity: speed of shear waves in compact bone, less in porous bone as the sound speed; selects "
        "the elastic solver",
    )
    bone_shear_absorption: Annotated[tuple[float, float], FromList] | None = Field(
        default=None,
        description="absorption of shear waves in compact bone and in the most porous bone, dB/(MHz^2 cm); needs "
        "bone_shear_speed",
    )
    center: Position | None = Field(
        default=None, description="position in the image of the origin of the grid; by default the middle of the image"
    )
    axes: Annotated[tuple[Annotated[tuple[float, ...], FromList], ...], FromList] | None = Field(
        default=None, description="directions in the image of the axes of the grid; by default those of the image"
    )

    @model_validator(mode="after")
    def _values_are_possible(self) -> CtTable:
        if self.on_grid and (self.center is not None or self.axes is not None):
            raise ValueError("center and axes need an image whose voxels have a known size; add the key voxel")
        if self.threshold is not None and self.threshold >= self.compact_bone and self.curve == "porosity":
            raise ValueError(f"threshold = {self.threshold:g} must be below compact_bone = {self.compact_bone:g}")
        if min(self.bone_absorption) < 0:
            raise ValueError("bone_absorption must not be negative")
        if self.bone_shear_speed is None and self.bone_shear_absorption is not None:
            raise ValueError("bone_shear_speed is missing; bone_shear_absorption needs it")
        if self.bone_shear_speed is not None and self.curve == "tissue":
            raise ValueError('bone_shear_speed: needs curve = "porosity", which distinguishes bone from other tissue')
        if min(self.bone_shear_absorption or (0.0,)) < 0:
            raise ValueError("bone_shear_absorption must not be negative")
        return self

    @property
    def on_grid(self) -> bool:
        """Return whether the file has one value for each point of the grid."""
        return self.file.lower().endswith(".npy") and self.voxel is None
