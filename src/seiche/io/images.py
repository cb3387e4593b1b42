# SPDX-License-Identifier: BSD-3-Clause
"""Images of voxels from NumPy, NIfTI, DICOM and TIFF files, with the positions of their voxels.

Coordinates are those of the file: NIfTI has x to the patient's left decreasing (right-anterior-superior), DICOM has it
increasing (left-posterior-superior). The first axis of an array is x.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.voxels import VoxelImage
from seiche.errors import BackendUnavailable, FormatError
from seiche.io.arrays import check_declared_size, one_line, read_image_array

#: Suffixes of the supported files; a folder is a DICOM series or a stack of TIFF files.
SUFFIXES = (".npy", ".npz", ".nii", ".nii.gz", ".tif", ".tiff")
#: Units of length in the headers of NIfTI and TIFF files, in metres.
_UNITS = {
    "meter": 1.0, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "micron": 1e-6, "um": 1e-6, "\u00b5m": 1e-6, "\\u00b5m": 1e-6,
    "nm": 1e-9, "inch": 0.0254, "in": 0.0254,
}  # fmt: skip
_MILLIMETRE = 1e-3
#: Most bytes of an image per byte of a TIFF file by number of its compression: none, LZW (4096 bytes in a code of nine
#: bits), deflate (258 bytes in two bits) and PackBits (128 bytes in two).
_TIFF_RATIO = {1: 1.0, 5: 3641.0, 8: 1032.0, 32946: 1032.0, 32773: 64.0}
#: Largest deviation of the distance of two slices of a series from the mean, relative to it.
_UNEVEN = 0.01


@dataclass(frozen=True)
class _Raw:
    """Values with a matrix and an origin in the unit of the file (metres); both are None if it does not state them."""

    values: npt.NDArray[Any]
    matrix: npt.NDArray[np.float64] | None
    origin: npt.NDArray[np.float64] | None
    unit: float | None


def read_image(
    path: Path,
    *,
    unit: float | None = None,
    voxel: Sequence[float] | None = None,
    origin: Sequence[float] | None = None,
) -> VoxelImage:
    """Return the image in a file or folder.

    Args:
        path: a .npy or .npz file (one array), a NIfTI file, a TIFF file, a folder with a DICOM series, or a folder with
            a stack of TIFF files.
        unit: length (m) of the unit of the file, instead of that in its header.
        voxel: distances (m) between voxels along the axes of the array, instead of those of the file.
        origin: position (m) of the centre of the first voxel, instead of that of the file.

    Raises:
        FormatError: the file is missing or invalid, or does not state the size of its voxels and `voxel` is None.
        BackendUnavailable: the package that reads this format is not installed.
    """
    raw = _reader_of(path)(path)
    values = raw.values
    dim = values.ndim
    if dim not in (2, 3) or min(values.shape) < 1:
        raise FormatError(path, "array", f"has the shape {values.shape}; expected two or three axes")
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise FormatError(path, "array", "not every value is a finite number")
    if unit is not None and raw.matrix is None:
        raise FormatError(path, "voxel size", "is not in the file, so a unit has no effect; set the key voxel instead")
    if raw.matrix is None and voxel is None:
        example = ", ".join(['"0.5 mm"'] * dim)
        raise FormatError(path, "voxel size", f"is not in the file; add the key voxel such as [{example}]")
    for name, vector in (("voxel", voxel), ("origin", origin)):
        if vector is not None and len(vector) != dim:
            raise FormatError(path, name, f"has {len(vector)} numbers, but the array has {dim} axes")
    scale = 1.0 if unit is None or raw.unit is None else unit / raw.unit
    matrix = np.eye(dim) if raw.matrix is None else raw.matrix * scale
    start = np.zeros(dim) if raw.origin is None else raw.origin * scale
    lengths = np.linalg.norm(matrix, axis=0)
    if not (np.isfinite(matrix).all() and lengths.min() > 0.0):
        raise FormatError(path, "voxel size", "is not positive")
    if voxel is not None:
        matrix = matrix / lengths * np.asarray(voxel, np.float64)
    volume = abs(float(np.linalg.det(matrix / np.linalg.norm(matrix, axis=0))))
    if not volume > 0.1:
        raise FormatError(path, "axes", "are nearly in one plane")
    if origin is not None:
        start = np.asarray(origin, np.float64)
    return VoxelImage(values, np.asarray(matrix, np.float64), np.asarray(start, np.float64))


def files_of_image(path: Path) -> list[Path]:
    """Return the files of an image: the file itself, or the files in a folder."""
    return sorted(item for item in path.iterdir() if item.is_file()) if path.is_dir() else [path]


def _reader_of(path: Path) -> Callable[[Path], _Raw]:
    if path.is_dir():
        return _read_tiff_folder if _tiff_files(path) else _read_dicom
    name = path.name.lower()
    if not path.exists():
        raise FormatError(path, "file", "does not exist")
    if name.endswith((".npy", ".npz")):
        return _read_numpy
    if name.endswith((".nii", ".nii.gz")):
        return _read_nifti
    if name.endswith((".tif", ".tiff")):
        return _read_tiff
    if name.endswith((".dcm", ".ima")):
        raise FormatError(path, "file", "is one slice; give the folder of the DICOM series instead")
    raise FormatError(path, "file", f"has no known suffix; expected {', '.join(SUFFIXES)}, or a folder of DICOM files")


def _read_numpy(path: Path) -> _Raw:
    return _Raw(read_image_array(path), None, None, None)


def _module(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise BackendUnavailable(
            f'{name} is not installed, which reads this image; install it with: pip install "seiche[images]"'
        ) from None


def _read_nifti(path: Path) -> _Raw:
    nibabel = _module("nibabel")
    try:
        file = nibabel.load(path)
        if hasattr(file, "header") and int(np.prod(file.shape[3:], dtype=object)) > 1:
            raise FormatError(path, "shape", f"{file.shape} has more than three axes; expected one volume")
        _check_nifti_size(path, file)
        values = np.asanyarray(file.dataobj)
        matrix = np.asarray(file.affine, np.float64)
        unit = _UNITS.get(file.header.get_xyzt_units()[0], _MILLIMETRE)
    except FormatError:
        raise
    except Exception as error:  # nibabel raises errors of many modules for damaged files
        raise FormatError(path, "whole file", f"not a readable NIfTI file: {one_line(error)}") from None
    values = values.reshape(values.shape[:3])
    dim = values.ndim
    return _Raw(values, matrix[:dim, :dim] * unit, matrix[:dim, 3] * unit, unit)


def _check_nifti_size(path: Path, file: Any) -> None:
    """Raise FormatError if the values that the header declares do not fit into the file or into free memory."""
    count, stored = math.prod(int(n) for n in file.shape), path.stat().st_size
    check_declared_size(path, "array", count * file.get_data_dtype().itemsize, stored)
    check_declared_size(path, "array", count * np.dtype(np.float64).itemsize, None)  # after scaling


def _read_dicom(path: Path) -> _Raw:
    slices = _dicom_slices(path)
    _check_dicom_size(path, slices)
    (_, first), place = slices[0], "ImageOrientationPatient"
    try:
        along_row, along_column = _numbers(first.ImageOrientationPatient, 6).reshape(2, 3)
        spacing = _numbers(first.PixelSpacing, 2)
        normal = np.cross(along_row, along_column)
        place = "ImagePositionPatient"
        slices.sort(key=lambda each: float(np.dot(_numbers(each[1].ImagePositionPatient, 3), normal)))
        positions = np.stack([_numbers(item.ImagePositionPatient, 3) for _, item in slices])
    except Exception as error:  # pydicom raises errors of many kinds for invalid values
        raise FormatError(path, place, f"cannot be read: {one_line(error)}") from None
    planes: list[npt.NDArray[Any]] = []
    for file, item in slices:
        _check_orientation(file, item, (along_row, along_column), spacing)
        planes.append(_dicom_pixels(file, item))
        if planes[-1].ndim != 2 or planes[-1].shape != planes[0].shape:
            raise FormatError(file, "PixelData", f"has the shape {planes[-1].shape}; expected one grey image per file")
    step = _slice_step(path, positions, normal)
    matrix = np.stack([along_row * spacing[1], along_column * spacing[0], step], axis=1) * _MILLIMETRE
    return _Raw(np.stack(planes, axis=-1).transpose(1, 0, 2), matrix, positions[0] * _MILLIMETRE, _MILLIMETRE)


def _check_dicom_size(path: Path, slices: Sequence[tuple[Path, Any]]) -> None:
    """Raise FormatError if the pixels that the slices declare do not fit into free memory."""
    total, factors = 0, ("Rows", "Columns", "NumberOfFrames", "SamplesPerPixel")
    for file, item in slices:
        try:
            pixels = math.prod(int(item.get(key) or 1) for key in factors)
        except Exception as error:  # pydicom raises errors of many kinds for invalid values
            raise FormatError(file, "Rows, Columns", f"cannot be read: {one_line(error)}") from None
        total += pixels * np.dtype(np.float64).itemsize  # after rescaling
    check_declared_size(path, "PixelData", 2 * total, None)  # slices, and the volume made of them


def _check_orientation(file: Path, item: Any, axes: tuple[Any, Any], spacing: npt.NDArray[np.float64]) -> None:
    """Raise FormatError if a slice has another orientation or spacing, or one that cannot be read."""
    place = "ImageOrientationPatient"
    try:
        orientation = _numbers(item.ImageOrientationPatient, 6).reshape(2, 3)
        place = "PixelSpacing"
        own_spacing = _numbers(item.PixelSpacing, 2)
    except Exception as error:  # pydicom raises errors of many kinds for invalid values
        raise FormatError(file, place, f"cannot be read: {one_line(error)}") from None
    if not np.allclose(orientation, axes, atol=1e-4):
        raise FormatError(file, "ImageOrientationPatient", "differs from that of other slices")
    if not np.allclose(own_spacing, spacing, rtol=1e-4):
        raise FormatError(file, "PixelSpacing", "differs from that of other slices")


def _dicom_slices(path: Path) -> list[tuple[Path, Any]]:
    """Return the images of the series in a folder and their files; other files are ignored."""
    pydicom = _module("pydicom")
    slices = []
    for file in files_of_image(path):
        try:
            item = pydicom.dcmread(file)
            if "PixelData" in item:
                slices.append((file, item))
        except pydicom.errors.InvalidDicomError:
            continue
        except Exception as error:  # damaged files raise errors of many kinds
            raise FormatError(file, "whole file", f"not a readable DICOM file: {one_line(error)}") from None
    if len(slices) < 2:
        raise FormatError(path, "folder", f"has {len(slices)} DICOM images; expected the slices of one series")
    try:
        series = {str(item.get("SeriesInstanceUID", "")) for _, item in slices}
    except Exception as error:  # pydicom raises errors of many kinds for invalid values
        raise FormatError(path, "SeriesInstanceUID", f"cannot be read: {one_line(error)}") from None
    if len(series) > 1:
        raise FormatError(path, "folder", f"has {len(series)} series; expected one, so move each to its own folder")
    for keyword in ("ImageOrientationPatient", "PixelSpacing", "ImagePositionPatient"):
        for file, item in slices:
            if keyword not in item:
                raise FormatError(file, keyword, "is missing; expected slices with positions in space")
    return slices


def _dicom_pixels(file: Path, item: Any) -> npt.NDArray[Any]:
    """Return the rescaled values of a slice, rows first."""
    try:
        pixels = np.asarray(item.pixel_array)
        slope, intercept = float(item.get("RescaleSlope", 1.0)), float(item.get("RescaleIntercept", 0.0))
    except Exception as error:  # invalid values, or a compression without a decoder
        raise FormatError(file, "PixelData", f"cannot be read: {one_line(error)}") from None
    return pixels if (slope, intercept) == (1.0, 0.0) else pixels * slope + intercept


def _numbers(values: Any, count: int) -> npt.NDArray[np.float64]:
    """Return `count` numbers of a DICOM element; ValueError for another number of them."""
    return np.array([float(value) for value in values], np.float64).reshape(count)


def _slice_step(
    path: Path, positions: npt.NDArray[np.float64], normal: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the vector between adjacent slices; FormatError if slices are missing or given twice."""
    step = (positions[-1] - positions[0]) / (len(positions) - 1)
    distances = np.diff(positions @ normal)
    mean = float(step @ normal)
    uneven = np.abs(distances - mean) > _UNEVEN * mean
    if not mean > 0.0 or uneven.any():
        number = int(np.argmax(np.abs(distances - mean)))
        raise FormatError(
            path,
            f"slices {number + 1} and {number + 2}",
            f"are {distances[number]:.4g} mm apart, the mean is {mean:.4g} mm; slices are missing or given twice",
        )
    return np.asarray(step)


def _tiff_files(folder: Path) -> list[Path]:
    """Return the TIFF files of a folder, in the order of the numbers in their names."""
    files = [file for file in files_of_image(folder) if file.suffix.lower() in (".tif", ".tiff")]
    parts = re.compile(r"(\d+)")
    return sorted(files, key=lambda file: [int(p) if p.isdigit() else p for p in parts.split(file.name)])


def _read_tiff_folder(path: Path) -> _Raw:
    files = _tiff_files(path)
    images = [_read_tiff(file, slices=2 * len(files)) for file in files]  # slices, and the volume made of them
    shapes = {image.values.shape for image in images}
    if len(shapes) > 1 or len(images[0].values.shape) != 2 or len(images) < 2:
        raise FormatError(path, "folder", f"has TIFF files of the shapes {sorted(shapes)}; expected equal slices")
    return replace(images[0], values=np.stack([image.values for image in images], axis=-1), matrix=None, origin=None)


def _read_tiff(path: Path, slices: int = 1) -> _Raw:
    """Return the image in a file, which must fit into free memory `slices` times."""
    tifffile = _module("tifffile")
    try:
        with _without_messages("tifffile"), tifffile.TiffFile(path) as file:
            len(file.pages)  # finds the last page; without it, a loop of pages would be followed forever
            series = file.series[0]
            declared = math.prod(int(n) for n in series.shape) * np.dtype(series.dtype).itemsize
            check_declared_size(path, "array", declared * slices, None)
            ratios = [_TIFF_RATIO.get(int(page.compression), math.inf) for page in file.pages]
            if declared > path.stat().st_size * max(ratios):
                raise FormatError(path, "array", f"declares {declared} bytes: more than the file contains")
            if any(math.prod(page.chunked) != len(page.dataoffsets) for page in file.pages):
                raise FormatError(path, "array", "strips or tiles are missing")
            values = np.asarray(file.series[0].asarray()).squeeze()
            size = _tiff_voxel(file, values.ndim)
    except FormatError:
        raise
    except Exception as error:  # tifffile raises errors of many kinds for damaged files
        raise FormatError(path, "whole file", f"not a readable TIFF file: {one_line(error)}") from None
    if values.ndim not in (2, 3):
        raise FormatError(path, "array", f"has the shape {values.shape}; expected grey slices")
    matrix = None if size is None else np.diag(size)
    return _Raw(values.transpose(), matrix, None, None if size is None else 1.0)


@contextmanager
def _without_messages(name: str) -> Iterator[None]:
    """Suppress what a library logs about a damaged file, which becomes one line of an error."""
    logger = logging.getLogger(name)
    previous, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = previous


def _tiff_voxel(file: Any, dim: int) -> list[float] | None:
    """Return the voxel size (m) along x, y (and z) in the metadata of OME or ImageJ; None without them."""
    if file.ome_metadata:
        sizes = []
        for axis in "XYZ"[:dim]:
            size = re.search(rf'PhysicalSize{axis}="([^"]+)"', file.ome_metadata)
            unit = re.search(rf'PhysicalSize{axis}Unit="([^"]+)"', file.ome_metadata)
            name = unit[1] if unit else "um"
            if size is None or name not in _UNITS:
                return None
            sizes.append(float(size[1]) * _UNITS[name])
        return sizes
    metadata, tags = file.imagej_metadata or {}, file.pages[0].tags
    length = _UNITS.get(str(metadata.get("unit", "")))
    if length is None or "XResolution" not in tags or "YResolution" not in tags:
        return None
    x, y = (tags[name].value[1] / tags[name].value[0] * length for name in ("XResolution", "YResolution"))
    return [x, y, float(metadata.get("spacing", 1.0)) * length][:dim] if dim == 2 or "spacing" in metadata else None
