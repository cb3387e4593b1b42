# SPDX-License-Identifier: BSD-3-Clause
"""Images of voxels for tests: a tilted cylinder in oblique, anisotropic voxels, as files of all formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.voxels import VoxelImage

Floats = npt.NDArray[np.float64]
#: Axes of an oblique image: a rotation.
OBLIQUE = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


def image_of(inside: Any, voxel: tuple[float, ...], shape: tuple[int, ...], axes: Floats | None = None) -> VoxelImage:
    """Return the flags `inside(points)` of voxels of these sizes (m), centred at zero."""
    matrix = (np.eye(len(shape)) if axes is None else axes) * np.array(voxel)
    origin = -matrix @ ((np.array(shape) - 1) / 2)
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, len(shape))
    flags = inside(index @ matrix.T + origin)
    return VoxelImage(flags.reshape(shape).astype(np.uint8), matrix, origin)


def cylinder(radius: float, axis: tuple[float, float, float], length: float = np.inf) -> Any:
    """Return a function of points (n, 3) that is true in a cylinder through the origin."""
    direction = np.array(axis) / np.linalg.norm(axis)

    def inside(points: Floats) -> npt.NDArray[np.bool_]:
        along = points @ direction
        across = np.linalg.norm(points - along[:, None] * direction, axis=1)
        return np.asarray((across < radius) & (np.abs(along) < length / 2))

    return inside


def write_nifti(path: Path, image: VoxelImage, unit: str = "mm") -> None:
    """Write an image with an affine matrix in `unit`."""
    import nibabel

    scale = {"mm": 1e3, "micron": 1e6, "meter": 1.0, "unknown": 1e3}[unit]
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = image.matrix * scale, image.origin * scale
    file = nibabel.Nifti1Image(image.values, affine)
    file.header.set_xyzt_units(unit)
    nibabel.save(file, path)


def write_dicom(folder: Path, image: VoxelImage, *, slope: float = 1.0, intercept: float = 0.0) -> None:
    """Write a series with one file per slice along the last axis, in an order that is not that of the slices."""
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    folder.mkdir(parents=True, exist_ok=True)
    series, unit = generate_uid(), 1e3
    voxel = image.voxel
    for k in range(image.values.shape[2]):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CTImageStorage, generate_uid()
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        path = folder / f"image-{(7 * k) % 1009:04d}.dcm"
        item = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
        item.SOPClassUID, item.SOPInstanceUID, item.SeriesInstanceUID = CTImageStorage, generate_uid(), series
        item.ImageOrientationPatient = [round(c, 9) for a in (0, 1) for c in image.matrix[:, a] / voxel[a]]
        item.PixelSpacing = [round(voxel[1] * unit, 6), round(voxel[0] * unit, 6)]
        position = (image.origin + image.matrix @ np.array([0.0, 0.0, k])) * unit
        item.ImagePositionPatient = [round(c, 6) for c in position]
        pixels = np.ascontiguousarray(np.round((image.values[:, :, k] - intercept) / slope).T.astype(np.int16))
        item.Rows, item.Columns = pixels.shape
        item.SamplesPerPixel, item.PhotometricInterpretation = 1, "MONOCHROME2"
        item.BitsAllocated = item.BitsStored = 16
        item.HighBit, item.PixelRepresentation = 15, 1
        item.RescaleSlope, item.RescaleIntercept = slope, intercept
        item.PixelData = pixels.tobytes()
        item.save_as(path, enforce_file_format=True)
