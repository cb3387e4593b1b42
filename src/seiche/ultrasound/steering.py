# SPDX-License-Identifier: BSD-3-Clause
"""Steering of several sources to a target in a medium that is not uniform: along straight rays, or by time reversal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.emitter import Emitter
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium, on_grid
from seiche.ultrasound.numbers import positive_number, real_numbers
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.shapes import PointSet, Shape
from seiche.ultrasound.simulate import simulate
from seiche.ultrasound.source import Source

Floats = npt.NDArray[np.float64]
#: Samples of the slowness per spacing along a ray.
_SAMPLES_PER_SPACING = 8
#: Periods in which the source of time reversal grows, and periods of each of the two last windows that are compared.
_GROWTH, _WINDOW = 3, 3
#: Relative difference of the amplitudes in these windows up to which the wave is steady.
_STEADY = 0.02


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


def time_reversal_delays(
    grid: Grid,
    medium: Medium,
    elements: Sequence[Shape],
    target: npt.ArrayLike,
    frequency: float,
    **options: Any,
) -> Floats:
    """Return the delays (n,) in s after which continuous waves of all elements are in phase at a target.

    One run computes the wave of a point source at the target, which the elements receive. By reciprocity, the wave of
    an element has the same phase at the target. Refraction, reflections and absorption are taken into account. Delays
    are less than one period; the smallest is 0.

    Args:
        grid: the grid; with its time steps, or one crossing of the diagonal.
        medium: acoustic properties.
        elements: the shapes of the elements.
        target: position (axes,), m.
        frequency: of the continuous wave, Hz.
        options: other arguments of `simulate`, such as `device`, `scheme` or `world`.

    Raises:
        CaseError: an impossible value, or a run that ends before the wave at an element is steady.

    Source: Aubry et al. (2003), doi:10.1121/1.1529663.
    """
    period = 1 / positive_number("frequency", frequency)
    place = np.atleast_2d(real_numbers("target", target))
    if place.shape != (1, len(grid.shape)):
        raise CaseError(f"target: shape {np.shape(target)} is not a position on {len(grid.shape)} axes")
    grid = grid.completed(medium.sound_speed)
    assert grid.dt is not None and grid.steps is not None
    if period <= 2 * grid.dt:
        raise CaseError(
            f"frequency: {frequency:g} Hz is not below {0.5 / grid.dt:g} Hz, the Nyquist frequency of a step"
        )
    window = int(_WINDOW * period / grid.dt)
    if 2 * window > grid.steps:
        raise CaseError(f"grid.steps: {grid.steps} are fewer than {2 * _WINDOW} periods of the wave")
    times = grid.dt * np.arange(grid.steps, dtype=np.float64)
    signal = np.sin(2 * np.pi * times / period) * np.minimum(times / (_GROWTH * period), 1.0)
    source, sensor = (
        Source(emitters=(Emitter(PointSet(place, grid.spacings[0], 1), signal),)),
        Sensor(elements=list(elements)),
    )
    series = simulate(grid, medium, source, sensor, **options)["p"]
    before, last = (
        _amplitudes(series[:, part], times[part], frequency)
        for part in (slice(-2 * window, -window), slice(-window, None))
    )
    changes = np.abs(last - before) > _STEADY * np.abs(last)
    if changes.any():
        raise CaseError(
            f"grid.steps: the wave at element {int(changes.argmax())} is not steady after {grid.steps} steps; use more"
        )
    delays = np.angle(last / last[0]) / (2 * np.pi) * period
    return np.asarray(delays - delays.min())


def _amplitudes(series: npt.NDArray[Any], times: Floats, frequency: float) -> npt.NDArray[np.complex128]:
    """Return the complex amplitudes a (n,) of the sines |a| sin(2 pi f t + arg a) closest to series (n, times)."""
    waves = np.stack([np.sin(2 * np.pi * frequency * times), np.cos(2 * np.pi * frequency * times)], axis=1)
    (sines, cosines), *_ = np.linalg.lstsq(waves, np.asarray(series, np.float64).T, rcond=None)
    return np.asarray(sines + 1j * cosines)
