# SPDX-License-Identifier: BSD-3-Clause
"""The focus of a curved source in a map of pressure amplitudes: place, pressure and -6 dB size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.grid import Grid

Floats = npt.NDArray[np.float64]
#: The focus is searched for within this share of the distance between source and geometric focus.
SEARCHED = 0.25
#: Half of the pressure is -6 dB.
HALF = 0.5
#: Samples per spacing along a line.
_FINE = 8


class Focus(NamedTuple):
    """A focus in SI units.

    Attributes:
        position: coordinates of the largest amplitude (m), at a point of the grid.
        pressure: amplitude there, Pa.
        length: extent along the beam within -6 dB (m); None if it reaches the end of the grid.
        width: the largest extent across the beam within -6 dB (m); None likewise.
    """

    position: tuple[float, ...]
    pressure: float
    length: float | None
    width: float | None


def find_focus(
    amplitude: npt.NDArray[Any], grid: Grid, source: Sequence[float], geometric: Sequence[float]
) -> Focus | None:
    """Return the focus of a source in a map of amplitudes.

    It is the largest local maximum within a quarter of the focal length from the geometric focus. Bone in front of it
    may have larger amplitudes.

    Args:
        amplitude: pressure amplitudes (Pa) with the shape of the grid.
        grid: the grid; 2D or 3D.
        source: middle of the source, m.
        geometric: centre of curvature of the source, m.

    Returns:
        The focus; None if there is no local maximum in this region.
    """
    from scipy.ndimage import maximum_filter

    values = np.asarray(amplitude, np.float64)
    beam = np.asarray(geometric, np.float64) - np.asarray(source, np.float64)
    focal_length = float(np.linalg.norm(beam))
    places = [grid.positions(axis) for axis in grid.axes]
    squares = [(place - middle) ** 2 for place, middle in zip(places, geometric, strict=True)]
    near = sum(np.ix_(*squares)) <= (SEARCHED * focal_length) ** 2
    candidates = np.where(near & (values >= maximum_filter(values, size=3)) & (values > 0), values, -np.inf)
    place = np.unravel_index(int(np.argmax(candidates)), values.shape)
    if not np.isfinite(candidates[place]):
        return None
    directions = _orthonormal(beam / focal_length)
    extents = [_extent(values, place, direction / np.asarray(grid.spacings)) for direction in directions]
    across = [extent for extent in extents[1:] if extent is not None]
    width = max(across) if len(across) == len(extents) - 1 else None
    position = tuple(float(axis[k]) for axis, k in zip(places, place, strict=True))
    return Focus(position, float(values[place]), extents[0], width)


def _orthonormal(first: Floats) -> Floats:
    """Return unit vectors as rows; the first is `first`, the others are perpendicular to it."""
    basis, _ = np.linalg.qr(np.column_stack([first, np.eye(len(first))]))
    basis[:, 0] = first  # the sign is free in qr
    return np.asarray(basis.T[: len(first)])


def _extent(values: Floats, place: Sequence[Any], direction: Floats) -> float | None:
    """Return the length (m) of the line through `place` on which the values exceed half of that there.

    `direction` is the change of the indices per metre. None if an end of the line is not inside the grid.
    """
    from scipy.ndimage import map_coordinates

    step = 1.0 / (_FINE * float(np.abs(direction).max()))
    count = int(_FINE * np.ceil(np.linalg.norm(values.shape))) + 1
    half, total = HALF * values[tuple(place)], 0.0
    for sign in (1.0, -1.0):
        along = np.arange(count) * step
        points = np.asarray(place, np.float64)[:, None] + sign * direction[:, None] * along
        inside = np.all((points >= 0) & (points <= np.asarray(values.shape)[:, None] - 1), axis=0)
        line = map_coordinates(values, points[:, inside], order=1)
        below = np.flatnonzero(line < half)
        if not below.size:
            return None
        k = int(below[0])
        total += along[k - 1] + step * float((line[k - 1] - half) / (line[k - 1] - line[k]))
    return total
