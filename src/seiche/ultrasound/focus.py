# SPDX-License-Identifier: BSD-3-Clause
"""The focus of a curved source in a map of pressure amplitudes: position, pressure and -6 dB size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.grid import Grid

Floats = npt.NDArray[np.float64]
#: The focus is searched within this fraction of the focal length around the geometric focus.
SEARCH_FRACTION = 0.25
#: Half of the pressure is -6 dB.
HALF_PRESSURE = 0.5
#: Samples per spacing along a line.
_SAMPLES_PER_SPACING = 8


class Focus(NamedTuple):
    """A focus in SI units.

    Attributes:
        position: coordinates of the largest amplitude (m), at a point of the grid.
        pressure: amplitude there, Pa.
        length: extent along the beam within -6 dB (m); None if it reaches the end of the grid.
        width: the largest extent across the beam within -6 dB (m); None likewise.
        size: volume (m3; 2D: area, m2) of the points around the focus within -6 dB; None if it reaches the end of the
            grid.
    """

    position: tuple[float, ...]
    pressure: float
    length: float | None
    width: float | None
    size: float | None


def find_focus(
    amplitude: npt.NDArray[Any], grid: Grid, source: Sequence[float], geometric: Sequence[float]
) -> Focus | None:
    """Return the focus of a source in a map of amplitudes.

    It is the largest local maximum within a quarter of the focal length from the geometric focus. Bone in front of it
    may have larger amplitudes.

    Args:
        amplitude: pressure amplitudes (Pa) with the shape of the grid.
        grid: the grid; 2D, 3D or axisymmetric.
        source: center of the source, m.
        geometric: centre of curvature of the source, m.

    Returns:
        The focus; None if there is no local maximum in this region.
    """
    from scipy.ndimage import maximum_filter

    given, values = grid, both_sides(np.asarray(amplitude, np.float64), grid)
    if grid.symmetry is not None:
        grid = Grid(values.shape, grid.spacing)
    beam = np.asarray(geometric, np.float64) - np.asarray(source, np.float64)
    focal_length = float(np.linalg.norm(beam))
    coordinates = [grid.positions(axis) for axis in grid.axes]
    squares = [(index - middle) ** 2 for index, middle in zip(coordinates, geometric, strict=True)]
    radius_square = (SEARCH_FRACTION * focal_length) ** 2
    near = [np.flatnonzero(square <= radius_square) for square in squares]
    if not all(len(rows) for rows in near):
        return None
    # The box around the region, and the neighbours of its points.
    box = tuple(slice(max(rows[0] - 1, 0), rows[-1] + 2) for rows in near)
    part, in_region = values[box], sum(np.ix_(*(d[s] for d, s in zip(squares, box, strict=True)))) <= radius_square
    candidates = np.where(in_region & (part >= maximum_filter(part, size=3)) & (part > 0), part, -np.inf)
    in_box = np.unravel_index(int(np.argmax(candidates)), part.shape)
    if not np.isfinite(candidates[in_box]):
        return None
    index = tuple(int(k) + rows.start for k, rows in zip(in_box, box, strict=True))
    directions = _orthonormal(beam / focal_length)
    extents = [_extent(values, index, direction / np.asarray(grid.spacings)) for direction in directions]
    widths = [extent for extent in extents[1:] if extent is not None]
    width = max(widths) if len(widths) == len(extents) - 1 else None
    position = tuple(float(axis[k]) for axis, k in zip(coordinates, index, strict=True))
    return Focus(position, float(values[index]), extents[0], width, half_pressure_size(values, index, given))


def both_sides(values: npt.NDArray[Any], grid: Grid) -> npt.NDArray[Any]:
    """Return values on both sides of an axis of symmetry; those of other grids unchanged."""
    return values if grid.symmetry is None else np.concatenate([values[:, :0:-1], values], axis=1)


def half_pressure_size(values: Floats, index: Sequence[Any], grid: Grid) -> float | None:
    """Return the measure (m3 or m2) of the points that are connected with `index` and exceed half of its value.

    Args:
        values: amplitudes; about an axis of symmetry those of `both_sides`.
        index: of a point of `values`.
        grid: the grid of the case.

    Returns:
        None if these points reach an end of the grid.
    """
    from scipy.ndimage import label

    labels, _ = label(values >= HALF_PRESSURE * values[tuple(index)])
    inside = labels == labels[tuple(index)]
    if any(inside.take((0, -1), axis=axis).any() for axis in range(values.ndim)):
        return None
    weights = np.ones(1)
    if grid.symmetry is not None:  # half of a ring on each side; the point on the axis is a disc
        radii = np.abs(np.arange(values.shape[1]) - values.shape[1] // 2) * grid.spacings[1]
        weights = np.pi * np.where(radii > 0, radii, grid.spacings[1] / 4)
    return float(np.sum(inside * weights) * np.prod(grid.spacings))


def _orthonormal(first: Floats) -> Floats:
    """Return unit vectors as rows; the first is `first`, the others are perpendicular to it."""
    basis, _ = np.linalg.qr(np.column_stack([first, np.eye(len(first))]))
    basis[:, 0] = first  # qr may change the sign
    return np.asarray(basis.T[: len(first)])


def _extent(values: Floats, index: Sequence[Any], direction: Floats) -> float | None:
    """Return the length (m) of the line through `index` on which values exceed half of the value at the point.

    `direction` is the change of the indices per metre. None if an end of the line is not inside the grid.
    """
    from scipy.ndimage import map_coordinates

    step = 1.0 / (_SAMPLES_PER_SPACING * float(np.abs(direction).max()))
    count = int(_SAMPLES_PER_SPACING * np.ceil(np.linalg.norm(values.shape))) + 1
    threshold, total = HALF_PRESSURE * values[tuple(index)], 0.0
    for sign in (1.0, -1.0):
        distances = np.arange(count) * step
        points = np.asarray(index, np.float64)[:, None] + sign * direction[:, None] * distances
        inside = np.all((points >= 0) & (points <= np.asarray(values.shape)[:, None] - 1), axis=0)
        line = map_coordinates(values, points[:, inside], order=1)
        indices_below = np.flatnonzero(line < threshold)
        if not indices_below.size:
            return None
        k = int(indices_below[0])
        total += distances[k - 1] + step * float((line[k - 1] - threshold) / (line[k - 1] - line[k]))
    return total
