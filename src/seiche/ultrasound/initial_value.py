# SPDX-License-Identifier: BSD-3-Clause
"""Waves of an initial pressure and its rate in a uniform medium, in one step (theory/ultrasound, section 21)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.medium_arrays import neper_coefficient
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import check_exponent
from seiche.ultrasound.source import mask_points, smoothed

Complex = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]
#: Largest number of points of the enlarged grid; about six arrays of 8 bytes per point are needed.
_MAX_POINTS = 1 << 31


def initial_value(
    grid: Grid,
    medium: Medium,
    times: npt.ArrayLike,
    *,
    p0: npt.ArrayLike | None = None,
    rate: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
    smooth: bool = True,
    periodic: bool = False,
) -> Floats:
    """Return the pressure (n, *grid) at times, or the series (points, n) at the points of a mask (eqs. 73 and 74).

    The solution is exact for each wave number. There are no time steps and no absorbing layers. The grid is enlarged so
    that no wave returns until the last time, unless it is `periodic`.

    Args:
        grid: a Cartesian grid; its time steps have no meaning here.
        medium: uniform medium, linear, with a power law or lossless.
        times: n times >= 0, s.
        p0: initial pressure in the shape of the grid, Pa; zero by default.
        rate: its initial rate of change in the shape of the grid, Pa/s; zero by default.
        mask: points in the shape of the grid; by default the whole field is returned.
        smooth: smooth both initial values, like `simulate`.
        periodic: whether waves that leave the grid return at the opposite end.

    Raises:
        CaseError: an impossible value, or an enlarged grid of too many points; names the argument.
    """
    from scipy.fft import irfftn, next_fast_len, rfftn

    moments = np.atleast_1d(real_numbers("times", times))
    if moments.ndim != 1 or not (np.isfinite(moments) & (moments >= 0)).all():
        raise CaseError("times: are not finite numbers >= 0")
    if grid.symmetry is not None:
        raise CaseError("grid.symmetry: must be None; use a grid in three dimensions")
    if p0 is None and rate is None:
        raise CaseError("p0, rate: both are missing; at least one is required")
    pressure, change = (_initial(name, values, grid, smooth=smooth) for name, values in (("p0", p0), ("rate", rate)))
    points = None if mask is None else mask_points("mask", mask, grid.shape)
    speed, coefficient, power, tangent = _uniform(medium)
    shape, axes = grid.shape, tuple(range(len(grid.shape)))
    if not periodic and moments.size:
        change_of_speed = (
            power * abs(tangent) * coefficient * speed**power * (np.pi / min(grid.spacings)) ** (power - 1)
        )
        reach = speed * (1 + change_of_speed) * moments.max()  # of the highest wave number, whose group is the fastest
        reaches = [int(np.ceil(reach / d)) + 1 for d in grid.spacings]
        shape = tuple(next_fast_len(n + reach, real=True) for n, reach in zip(shape, reaches, strict=True))
    if np.prod([float(n) for n in shape]) > _MAX_POINTS:
        raise CaseError(f"times: the enlarged grid of {shape} points is too large; use shorter times, or periodic")
    spectra = [rfftn(values, shape, axes=axes, workers=-1) for values in (pressure, change)]
    k = _magnitudes(shape, grid.spacings)
    damping = coefficient * speed ** (power + 1) * k**power
    square = (speed * k) ** 2 - 2 * coefficient * tangent * speed ** (power + 2) * k ** (power + 1)
    if (square < 0).any():
        raise CaseError(
            "medium.alpha_coeff: the dispersion of this power law is so strong that waves would grow; use a smaller "
            'coefficient, or alpha_mode = "no_dispersion"'
        )
    frequency = np.sqrt((square - damping**2).astype(np.complex128))
    inside = tuple(slice(n) for n in grid.shape)
    result = np.empty((len(moments), *grid.shape) if points is None else (len(points), len(moments)))
    for index, t in enumerate(moments):
        cosine, sine = _oscillation(damping, frequency, t)
        spectrum = spectra[0] * (cosine + damping * sine) + spectra[1] * sine
        field = irfftn(spectrum, shape, axes=axes, workers=-1)[inside]
        if points is None:
            result[index] = field
        else:
            result[:, index] = field.reshape(-1)[points]
    return result


def _oscillation(damping: Floats, frequency: Complex, t: float) -> tuple[Floats, Floats]:
    """Return exp(-a t) cos(b t) and exp(-a t) sin(b t)/b; b is imaginary where the damping exceeds the frequency."""
    ahead, behind = np.exp((1j * frequency - damping) * t), np.exp((-1j * frequency - damping) * t)
    slow = np.abs(frequency) * t < 1e-4
    safe = np.where(slow, 1.0, frequency)
    sine = np.where(slow, t * np.exp(-damping * t) * (1 - (frequency * t) ** 2 / 6), (ahead - behind) / (2j * safe))
    return 0.5 * (ahead + behind).real, sine.real


def _magnitudes(shape: tuple[int, ...], spacings: tuple[float, ...]) -> Floats:
    """Return |k| on the half spectrum of a real field."""
    numbers = [2 * np.pi * np.fft.fftfreq(n, d) for n, d in zip(shape, spacings, strict=True)]
    numbers[-1] = 2 * np.pi * np.fft.rfftfreq(shape[-1], spacings[-1])
    return np.sqrt(np.asarray(sum(np.ix_(*(k**2 for k in numbers))), np.float64))


def _initial(name: str, values: npt.ArrayLike | None, grid: Grid, *, smooth: bool) -> Floats:
    """Return an initial field, zero by default."""
    if values is None:
        return np.zeros(grid.shape)
    field = real_numbers(name, values)
    if field.shape != grid.shape or not np.isfinite(field).all():
        raise CaseError(f"{name}: shape {field.shape} is not that of the grid, {grid.shape}, of finite numbers")
    return smoothed(field) if smooth and field.any() else field


def _uniform(medium: Medium) -> tuple[float, float, float, float]:
    """Return c0, a0 (Np (rad/s)^-y m^-1), y and tan(pi y/2) of a uniform medium, zero for terms that it lacks."""
    if np.ndim(medium.sound_speed) or np.ndim(medium.alpha_coeff if medium.alpha_coeff is not None else 0.0):
        raise CaseError("medium: must be uniform")
    if medium.alpha_mode == "relaxation" or medium.gain_below is not None or medium.shear_speed is not None:
        raise CaseError("medium: must be a fluid with a power law, without relaxation or gain")
    if medium.BonA is not None:
        raise CaseError("medium.BonA: must be None, since exact solutions are linear")
    speed, absorption = float(np.asarray(medium.sound_speed)), medium.absorption(())
    if absorption is None:
        return speed, 0.0, 2.0, 0.0
    check_exponent(absorption)
    coefficient = float(np.asarray(neper_coefficient(absorption)))
    tangent = 0.0 if absorption.stokes else absorption.tangent
    if not absorption.losses:
        raise CaseError('medium.alpha_mode: "no_absorption" is not available here')
    return speed, coefficient, absorption.alpha_power, tangent
