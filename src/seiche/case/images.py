# SPDX-License-Identifier: BSD-3-Clause
"""Images of voxels in a case: files with the positions of their voxels, and regions in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from seiche.case.quantities import Position, PositiveLength
from seiche.case.tables import FileName, FromList, Table
from seiche.domain.surface import Surface
from seiche.domain.voxels import VoxelImage, VoxelRegion, surface_of_region
from seiche.errors import CaseError
from seiche.io.images import files_of_image, read_image


def folder_files(tables: Any, folder: Path) -> Iterator[Path]:
    """Yield the files in folders that images in `tables`, the values of a case, name."""
    if isinstance(tables, dict):
        if "voxel" in tables and (path := folder / str(tables.get("file"))).is_dir():
            yield from files_of_image(path)
        tables = list(tables.values())
    if isinstance(tables, list | tuple):
        for table in tables:
            yield from folder_files(table, folder)


class ImageFile(Table):
    """An image of voxels: .npy, .npz, NIfTI or TIFF, or a folder with a DICOM series or a stack of TIFF files."""

    file: FileName = Field(description="file or folder, relative to the case file")
    voxel: Annotated[tuple[PositiveLength, ...], FromList] | None = Field(
        default=None,
        min_length=2,
        max_length=3,
        description="voxel size along the axes of the array; by default that of the file, needed for NumPy files",
    )
    unit: PositiveLength | None = Field(
        default=None, description="length unit of NIfTI, DICOM and TIFF files, instead of that in the file"
    )
    position: Position | None = Field(
        default=None, description="centre of the first voxel, instead of that of the file (NumPy, TIFF: zero)"
    )

    def read(self, folder: Path) -> VoxelImage:
        """Return the image; FormatError for an invalid file, BackendUnavailable without the package that reads it."""
        return read_image(folder / self.file, unit=self.unit, voxel=self.voxel, origin=self.position)


class ImageRegion(ImageFile):
    """A region of an image: voxels with some `labels`, or values between limits; by default all that are not zero."""

    labels: Annotated[tuple[int, ...], FromList] | None = Field(
        default=None, min_length=1, max_length=1000, description="values of the voxels of the region"
    )
    above: float | None = Field(default=None, description="lowest value of the region, instead of labels")
    below: float | None = Field(default=None, description="highest value of the region")
    smoothing: float | None = Field(
        default=None,
        ge=0,
        le=5,
        description="width of the smoothing of the surface in voxels; 1 by default for labels, 0 for limits",
    )

    @model_validator(mode="after")
    def _labels_or_limits(self) -> ImageRegion:
        if self.labels is not None and (self.above is not None or self.below is not None):
            raise ValueError("give labels, or the limits above and below; both are given")
        if self.above is not None and self.below is not None and self.above >= self.below:
            raise ValueError(f"above = {self.above:g} must be less than below = {self.below:g}")
        return self

    @property
    def region(self) -> VoxelRegion:
        """Return the region without the image."""
        return VoxelRegion(self.labels, self.above, self.below, self.smoothing)

    def surface(self, folder: Path, periodic: tuple[bool, bool, bool] = (False, False, False)) -> Surface:
        """Return the surface (m) of the region, open at the borders of the image; CaseError if there is none."""
        path = folder / self.file
        stamps = tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in _existing(path))
        return _surface(self, folder, periodic, stamps)


def _existing(path: Path) -> list[Path]:
    return files_of_image(path) if path.exists() else []


@lru_cache(maxsize=2)
def _surface(table: ImageRegion, folder: Path, periodic: tuple[bool, bool, bool], stamps: object) -> Surface:
    """Return the surface of a region; it is needed several times, and `stamps` change with the files."""
    image = table.read(folder)
    try:
        return surface_of_region(image, table.region, periodic)
    except CaseError as error:
        raise CaseError(f"{folder / table.file}: {error}") from None
