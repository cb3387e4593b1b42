# SPDX-License-Identifier: BSD-3-Clause
"""Propagation of a measured or computed plane through a homogeneous medium (theory/ultrasound, section 16).

A plane has one axis (in two dimensions) or two. Complex pressures P stand for Re P exp(i w t), like those of amplitude
and phase of `simulate`. The waves travel along the normal, in the direction of positive distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.medium_arrays import neper_coefficient
from seiche.ultrasound.numbers import real_numbers

Complex = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]


def wave_number(medium: Medium, frequency: npt.ArrayLike) -> Complex:
    """Return the complex wave numbers (1/m) of a uniform medium at frequencies (Hz), eq. 45.

    Raises:
        CaseError: the medium varies in space, or has relaxation processes or a gain.
    """
    omega = 2 * np.pi * real_numbers("frequency", frequency)
    if np.ndim(medium.sound_speed) or np.ndim(medium.alpha_coeff if medium.alpha_coeff is not None else 0.0):
        raise CaseError("medium: must be uniform")
    if medium.alpha_mode == "relaxation":
        raise CaseError("medium.alpha_mode: relaxation is not available here; use a power law")
    if medium.gain_below is not None:
        raise CaseError("medium.gain_below: is not available here; negative distances compensate absorption")
    lossless = np.asarray(omega / float(np.asarray(medium.sound_speed)), np.complex128)
    absorption = medium.absorption(())
    if absorption is None:
        return lossless
    loss = float(np.asarray(neper_coefficient(absorption))) * omega**absorption.alpha_power
    tangent = 0.0 if absorption.stokes else absorption.tangent
    return np.asarray(lossless + tangent * loss - 1j * loss * absorption.losses)


def propagate(
    plane: npt.ArrayLike,
    spacing: float,
    distances: npt.ArrayLike,
    frequency: float,
    medium: Medium,
    *,
    padding: int = 2,
    restrict: bool = True,
) -> Complex:
    """Return the pressure (distances, *plane) of a continuous wave at other planes (eqs. 46 and 47).

    Args:
        plane: complex pressure (n,) or (n, m), Pa.
        spacing: between its points, m.
        distances: from the plane, m; negative ones are against the direction of the waves, where absorption is
            compensated and evanescent waves are omitted.
        frequency: Hz.
        medium: uniform medium.
        padding: multiple of the extents over which waves are periodic; 1 for a periodic plane.
        restrict: omit waves that are so oblique that they would enter from the periodic images of the plane.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values = _plane("plane", plane)
    if not frequency > 0:
        raise CaseError(f"frequency: {frequency:g} Hz is not positive")
    number = wave_number(medium, frequency)[None]
    result = _propagated(values[..., None], _positive(spacing), distances, number, padding=padding, restrict=restrict)
    return result[..., 0]


def propagate_series(
    series: npt.ArrayLike,
    spacing: float,
    dt: float,
    distances: npt.ArrayLike,
    medium: Medium,
    *,
    padding: int = 2,
    restrict: bool = True,
) -> Floats:
    """Return the series (distances, *plane, times) of a pulse at other planes, each later by distance / c0.

    Args:
        series: pressure (n, times) or (n, m, times), Pa; it must be zero at both ends, since time is periodic.
        spacing: between the points, m.
        dt: s.
        distances: as of `propagate`.
        medium: uniform medium.
        padding: as of `propagate`.
        restrict: as of `propagate`.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values = real_numbers("series", series)
    if values.ndim not in (2, 3) or not values.size or not np.isfinite(values).all():
        raise CaseError(f"series: shape {values.shape} is not (n, times) or (n, m, times) of finite numbers")
    count = values.shape[-1]
    frequencies = np.fft.rfftfreq(count, dt)
    # The time factor of `propagate` is exp(i w t), that of an inverse transform.
    result = _propagated(
        np.fft.rfft(values, axis=-1),
        _positive(spacing),
        distances,
        wave_number(medium, frequencies),
        padding=padding,
        restrict=restrict,
        retard=np.asarray(2 * np.pi * frequencies / float(np.asarray(medium.sound_speed)), np.float64),
    )
    return np.asarray(np.fft.irfft(result, count, axis=-1))


def source_plane(
    plane: npt.ArrayLike, spacing: float, frequency: float, medium: Medium, *, padding: int = 2
) -> Complex:
    """Return the complex signals of an additive pressure source in a plane that emits this pressure (eq. 48).

    A source in a plane emits a wave at the angle t to the normal with 1/cos(t) times its strength. For a measured plane
    that was propagated backwards, this is a holographic source; `source_signals` gives its series.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values = _plane("plane", plane)
    if not frequency > 0:
        raise CaseError(f"frequency: {frequency:g} Hz is not positive")
    shape = tuple(padding * n for n in values.shape)
    number = wave_number(medium, frequency).real
    normal = np.sqrt(np.maximum(0.0, 1 - _transverse(shape, _positive(spacing)) / number**2))
    spectrum = np.fft.fftn(values, shape, axes=tuple(range(values.ndim))) * normal
    return np.asarray(np.fft.ifftn(spectrum)[tuple(slice(n) for n in values.shape)])


def source_signals(plane: npt.ArrayLike, frequency: float, grid: Grid, *, ramp: float = 3.0) -> Floats:
    """Return the series (points, times) of `Source.p` for a plane of complex signals, in C order of its points.

    Samples belong to times half a step before those of the records, since a step adds them between two records.

    Args:
        plane: result of `source_plane`, Pa.
        frequency: Hz.
        grid: grid with its time steps.
        ramp: periods over which the amplitude increases linearly.

    Raises:
        CaseError: the plane is not one of numbers, or the grid has no time steps.
    """
    values = _plane("plane", plane).ravel()
    if grid.dt is None or grid.steps is None:
        raise CaseError("grid: has no time steps; use Grid.with_time")
    time = (np.arange(grid.steps) - 0.5) * grid.dt
    rise = np.clip(time * frequency / ramp, 0.0, 1.0) if ramp > 0 else np.ones_like(time)
    return np.asarray((values[:, None] * np.exp(2j * np.pi * frequency * time)).real * rise)


def _propagated(
    values: Complex,
    spacing: float,
    distances: npt.ArrayLike,
    numbers: Complex,
    *,
    padding: int,
    restrict: bool,
    retard: Floats | None = None,
) -> Complex:
    """Return planes (distances, *plane, frequencies) for the wave numbers of the last axis."""
    steps = np.atleast_1d(real_numbers("distances", distances))
    if padding < 1 or int(padding) != padding:
        raise CaseError(f"padding: {padding} is not a whole number >= 1")
    plane = values.shape[:-1]
    shape = tuple(int(padding) * n for n in plane)
    axes = tuple(range(len(plane)))
    spectrum = np.fft.fftn(values, shape, axes=axes)
    squares = _transverse(shape, spacing)
    width = min(shape) * spacing / np.sqrt(2)
    result = np.empty((len(steps), *values.shape), np.complex128)
    for row, step in enumerate(steps):
        for column, number in enumerate(numbers):
            normal = np.sqrt(number**2 - squares + 0j)
            normal = np.where(normal.imag > 0, -normal, normal)
            factor = np.exp(-1j * normal * step) if step >= 0 else np.zeros(shape, np.complex128)
            travelling = squares < number.real**2
            if step < 0:
                factor[travelling] = np.exp(-1j * normal[travelling] * step)
            if restrict and step:
                factor[squares > number.real**2 * width**2 / (width**2 + step**2)] = 0.0
            if retard is not None:
                factor = factor * np.exp(1j * retard[column] * step)
            part = np.fft.ifftn(spectrum[..., column] * factor)
            result[row, ..., column] = part[tuple(slice(n) for n in plane)]
    return result


def _transverse(shape: Sequence[int], spacing: float) -> Floats:
    """Return the squares of the wave numbers in the plane, (1/m)^2."""
    numbers = [(2 * np.pi * np.fft.fftfreq(n, spacing)) ** 2 for n in shape]
    return np.asarray(numbers[0] if len(shape) == 1 else numbers[0][:, None] + numbers[1])


def _plane(name: str, plane: npt.ArrayLike) -> Complex:
    values: npt.NDArray[Any] = np.asarray(plane)
    if values.dtype.kind not in "biufc" or values.ndim not in (1, 2) or not values.size:
        raise CaseError(f"{name}: shape {values.shape} is not (n,) or (n, m) of numbers")
    if not np.isfinite(values).all():
        raise CaseError(f"{name}: not every value is a finite number")
    return np.asarray(values, np.complex128)


def _positive(spacing: float) -> float:
    if not (np.isfinite(spacing) and spacing > 0):
        raise CaseError(f"spacing: {spacing:g} m is not positive")
    return float(spacing)
