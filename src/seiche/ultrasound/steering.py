# SPDX-License-Identifier: BSD-3-Clause
"""Steering of several sources to a target through a medium that is not uniform, along straight rays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import on_grid
from seiche.ultrasound.numbers import real_numbers

Floats = npt.NDArray[np.float64]
#: Samples of the slowness per spacing along a ray.
_SAMPLES_PER_SPACING = 8


def ray_times(grid: Grid, sound_speed: npt.ArrayLike, sources: npt.ArrayLike, target: npt.ArrayLike) -> Floats:
    """Return the travel times (n,) in s along straight rays, the integrals of the slowness 1/c.

    Refraction is neglected. The slowness is interpolated linearly between the points of the grid.

    Args:
        grid: the grid.
        sound_speed: m/s, one number or an array in the shape of the grid.
        sources: positions (n, axes), m.
        target: position (axes,), m.

    Raises:
        CaseError: positions with another number of axes.
    """
    from scipy.ndimage import map_coordinates

    starts, end = np.atleast_2d(real_numbers("sources", sources)), real_numbers("target", target)
    if starts.shape[1:] != (len(grid.shape),) or end.shape != (len(grid.shape),):
        raise CaseError(f"sources, target: {starts.shape} and {end.shape} are not positions on {len(grid.shape)} axes")
    speed = np.asarray(on_grid("sound_speed", sound_speed, grid.shape), np.float64)
    lengths = np.linalg.norm(starts - end, axis=1)
    if speed.ndim == 0:
        return np.asarray(lengths / float(speed))
    slowness, origin = 1 / speed, np.array([grid.positions(axis)[0] for axis in grid.axes])
    result = np.empty(len(starts))
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        count = max(1, int(np.ceil(_SAMPLES_PER_SPACING * length / min(grid.spacings))))
        fractions = (np.arange(count) + 0.5) / count
        points = (start + fractions[:, None] * (end - start) - origin) / np.asarray(grid.spacings)
        result[number] = length * map_coordinates(slowness, points.T, order=1, mode="nearest").mean()
    return result


def ray_delays(grid: Grid, sound_speed: npt.ArrayLike, sources: npt.ArrayLike, target: npt.ArrayLike) -> Floats:
    """Return the delays (n,) in s after which waves of all sources meet at a target; the smallest is 0.

    Arguments and errors are those of `ray_times`.
    """
    times = ray_times(grid, sound_speed, sources, target)
    return np.asarray(times.max() - times)
