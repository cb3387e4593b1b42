# SPDX-License-Identifier: BSD-3-Clause
"""Media of an ultrasound case from a CT image."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.ultrasound.ct_schema import CtTable
from seiche.case.ultrasound.points import Floats
from seiche.domain.voxels import VoxelImage
from seiche.errors import CaseError
from seiche.io.arrays import read_npy
from seiche.ultrasound import Grid
from seiche.ultrasound.ct import AIR, BoneModel, medium_of_ct, tissue_of_ct

#: Largest deviation of the products of two axes from those of perpendicular unit vectors.
_SKEW = 1e-4
#: Number of points that are interpolated at a time.
_CHUNK = 1 << 20
#: Hounsfield value of water, and the largest number of samples along an axis of a cell.
_WATER, _MAX_SAMPLES = 0.0, 32


def ct_values(
    table: CtTable, grid: Grid, folder: Path, *, values: Mapping[str, Any], power: float | None
) -> dict[str, Any]:
    """Return the properties of a medium with `values`, replaced where the image reaches the threshold.

    Raises:
        CaseError: the image does not suit the grid, or no value reaches the threshold.
        FormatError: the file is invalid.
    """
    image = hounsfield_of(table, grid, folder, floor=AIR if table.curve == "tissue" else _WATER)
    if table.curve == "tissue":
        threshold = -200.0 if table.threshold is None else table.threshold
        if not image.max() >= threshold:
            raise CaseError(f"medium.ct: no value reaches the threshold {threshold:g}; the maximum is {image.max():g}")
        speed, density = tissue_of_ct(image)
        inside = image >= threshold
        parts = {"sound_speed": speed, "density": density}
        return {name: np.where(inside, part, values.get(name, 0.0)) for name, part in parts.items()}
    model = BoneModel(
        sound_speeds=(1500.0, table.bone_speed),
        densities=(1000.0, table.bone_density),
        attenuations=(0.0, *table.bone_absorption),
        hounsfield=(_WATER, table.compact_bone),
        threshold=100.0 if table.threshold is None else table.threshold,
        shear_speed=table.bone_shear_speed,
        shear_attenuations=table.bone_shear_absorption,
    )
    bone = medium_of_ct(image, model=model, alpha_power=power)
    inside = image >= model.threshold
    names = ("sound_speed", "density", "alpha_coeff", "shear_speed", "shear_alpha_coeff")
    return {
        name: np.where(inside, getattr(bone, name), values.get(name, 0.0))
        for name in names
        if getattr(bone, name) is not None
    }


def hounsfield_of(table: CtTable, grid: Grid, folder: Path, *, floor: float = AIR) -> Floats:
    """Return the Hounsfield units at the points of the grid; points outside the image are air.

    An image with voxels smaller than the spacing is averaged over the cell of each point, otherwise interpolated.

    Args:
        table: the image and its position.
        grid: the grid.
        folder: folder of the file.
        floor: lowest value; values below are replaced before they are averaged.

    Raises:
        CaseError: the image does not suit the grid.
        FormatError: the file is invalid.
    """
    if table.on_grid:
        return np.maximum(read_npy(folder / table.file, grid.shape), floor)
    image, dim = table.read(folder), len(grid.shape)
    if image.values.ndim != dim:
        raise CaseError(f"medium.ct.file: the image has {image.values.ndim} axes, the grid has {dim}")
    image = VoxelImage(np.maximum(image.values, floor).astype(np.float64), image.matrix, image.origin)
    axes = image.matrix / image.voxel if table.axes is None else _rotation(table, dim)
    center = image.corners().mean(axis=0) if table.center is None else np.array(table.center)
    if len(center) != dim:
        raise CaseError(f"medium.ct.center: needs {dim} numbers, one for each axis; it has {len(center)}")
    result = np.zeros(int(np.prod(grid.shape)))
    positions = [grid.positions(axis) for axis in grid.axes]
    offsets = _offsets(grid, np.linalg.inv(image.matrix) @ axes)
    for first in range(0, len(result), _CHUNK):
        numbers = np.unravel_index(np.arange(first, min(first + _CHUNK, len(result))), grid.shape)
        points = np.stack([x[index] for x, index in zip(positions, numbers, strict=True)], axis=1)
        for offset in offsets:
            samples = points + offset
            if grid.symmetry is not None:  # the cell of a point on the axis extends to both sides
                samples[:, 1] = np.abs(samples[:, 1])
            result[first : first + _CHUNK] += image.at(samples @ axes.T + center, outside=max(AIR, floor))
    return np.asarray(result / len(offsets)).reshape(grid.shape)


def _offsets(grid: Grid, voxels_per_length: Floats) -> Floats:
    """Return the positions (n, dim) of samples of a cell relative to its point, at least one for each voxel."""
    lines = []
    for spacing, column in zip(grid.spacings, voxels_per_length.T, strict=True):
        count = min(_MAX_SAMPLES, max(1, int(np.ceil(spacing * np.abs(column).max() - 1e-9))))
        lines.append(spacing * ((np.arange(count) + 0.5) / count - 0.5))
    return np.stack([line.ravel() for line in np.meshgrid(*lines, indexing="ij")], axis=1)


def _rotation(table: CtTable, dim: int) -> Floats:
    """Return the directions of the axes of the grid as columns (dim, dim); CaseError if they are not perpendicular."""
    rows = [np.array(axis, np.float64) for axis in table.axes or ()]
    if [len(row) for row in rows] != [dim] * dim:
        raise CaseError(f"medium.ct.axes: expected {dim} directions of {dim} numbers")
    lengths = [float(np.linalg.norm(row)) for row in rows]
    if not min(lengths) > 0.0:
        raise CaseError("medium.ct.axes: a direction vector is zero")
    matrix = np.stack([row / length for row, length in zip(rows, lengths, strict=True)], axis=1)
    if np.abs(matrix.T @ matrix - np.eye(dim)).max() > _SKEW:
        raise CaseError("medium.ct.axes: the directions are not perpendicular")
    return matrix
