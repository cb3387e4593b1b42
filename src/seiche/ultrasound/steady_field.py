# SPDX-License-Identifier: BSD-3-Clause
"""The continuous wave of any source in a uniform medium, in one step (theory/ultrasound, section 19).

Complex pressures P stand for Re P exp(i w t), like those of `angular_spectrum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.angular_spectrum import wave_number
from seiche.ultrasound.emitter import quadrature_of, weights_at
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import one_number, positive_number
from seiche.ultrasound.shapes import Shape

Complex = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]
#: Largest number of points of the enlarged grid; four arrays of 16 bytes per point are needed.
_MAX_POINTS = 1 << 31
#: Standard deviation in spacings of the end of the Green's function, and how many of them are outside the grid.
_WIDTH, _DEVIATIONS = 2.0, 4.5
#: Ends of the sum in two dimensions.
_ENDS = 25
#: Relative distance from the pole of the transfer function within which its limit is used.
_POLE = 1e-7


def steady_field(grid: Grid, amplitudes: npt.ArrayLike, frequency: float, medium: Medium) -> Complex:
    """Return the complex pressure of a continuous wave at every point of a grid, in free space (eqs. 57 and 58).

    There are no time steps, no absorbing layers and no dispersion. The grid is enlarged by its diagonal along each
    axis, which takes 64 bytes for each point of the enlarged grid.

    Args:
        grid: a Cartesian grid; its time steps have no meaning here.
        amplitudes: complex signals in Pa of an additive pressure source at every point (`Source.p`), zero elsewhere;
            those of bowls and other shapes are `shape_amplitudes`.
        frequency: Hz.
        medium: uniform medium, with a power law or lossless.

    Raises:
        CaseError: an impossible value, or an enlarged grid of too many points; names the argument.
    """
    from scipy.fft import fftn, ifftn, next_fast_len

    values: npt.NDArray[Any] = np.asarray(amplitudes)
    if grid.symmetry is not None:
        raise CaseError("grid.symmetry: must be None; use a grid in three dimensions")
    if values.dtype.kind not in "biufc" or values.shape != grid.shape or not np.isfinite(values).all():
        raise CaseError(f"amplitudes: shape {values.shape} is not that of the grid, {grid.shape}, of finite numbers")
    omega = 2 * np.pi * positive_number("frequency", frequency)
    number = complex(wave_number(medium, frequency))
    speed = float(np.asarray(medium.sound_speed))
    reach = float(np.linalg.norm([(n - 1) * d for n, d in zip(grid.shape, grid.spacings, strict=True)]))
    width = _WIDTH * max(grid.spacings)
    reach += _DEVIATIONS * width
    lengths = (
        n + int(np.ceil((reach + _DEVIATIONS * width) / d)) for n, d in zip(grid.shape, grid.spacings, strict=True)
    )
    shape = tuple(next_fast_len(length) for length in lengths)
    if np.prod([float(n) for n in shape]) > _MAX_POINTS:
        raise CaseError(f"grid: the enlarged grid of {shape} points is too large; use a smaller one")
    squares = [(2 * np.pi * np.fft.fftfreq(n, d)) ** 2 for n, d in zip(shape, grid.spacings, strict=True)]
    magnitude = np.sqrt(np.asarray(sum(np.ix_(*squares)), np.float64))
    source = 2j * omega / (speed * grid.spacings[0]) * values
    spectrum = fftn(source, shape, workers=-1)
    spectrum *= _transfer(magnitude, number, reach, width, len(shape))
    return np.asarray(ifftn(spectrum, overwrite_x=True, workers=-1)[tuple(slice(n) for n in grid.shape)])


def shape_amplitudes(grid: Grid, shapes: Shape | Sequence[Shape], amplitudes: npt.ArrayLike) -> Complex:
    """Return the amplitudes of `steady_field`, in the grid's shape, for shapes between the points of the grid (eq. 27).

    Args:
        grid: a Cartesian grid.
        shapes: one shape, or the elements of an array.
        amplitudes: complex signals in Pa, one number or one for each shape; a delay of t is a factor exp(-i w t).

    Raises:
        CaseError: an impossible shape, or another number of amplitudes.
    """
    elements = list(shapes) if isinstance(shapes, Sequence) else [shapes]
    factors: npt.NDArray[Any] = np.asarray(amplitudes)
    if factors.dtype.kind not in "biufc" or factors.shape not in ((), (len(elements),)):
        raise CaseError(
            f"amplitudes: shape {factors.shape} is not one number, or one for each of {len(elements)} shapes"
        )
    result = np.zeros(int(np.prod(grid.shape)), np.complex128)
    cell = float(np.prod(grid.spacings))
    for index, (shape, factor) in enumerate(zip(elements, np.broadcast_to(factors, len(elements)), strict=True)):
        quadrature = quadrature_of(shape, grid, f"shapes[{index}]")
        unit = grid.spacings[0] ** (len(grid.shape) - quadrature.dimension) / cell
        points, weights = weights_at(grid, quadrature.points, quadrature.weights * unit)
        result[points] += complex(factor) * weights
    return result.reshape(grid.shape)


def steering_amplitudes(delays: npt.ArrayLike, frequency: float) -> Complex:
    """Return the factors exp(-i w t) of the signals of elements with delays t (s), for `shape_amplitudes`.

    Raises:
        CaseError: delays that are not finite numbers, or a frequency that is not positive.
    """
    times: npt.NDArray[Any] = np.asarray(delays)
    if times.dtype.kind not in "biuf" or not np.isfinite(times).all():
        raise CaseError("delays: are not finite numbers")
    return np.asarray(np.exp(-2j * np.pi * positive_number("frequency", one_number("frequency", frequency)) * times))


def _transfer(s: Floats, k: complex, reach: float, width: float, dimensions: int) -> Complex:
    """Return the spectrum at wave numbers s of the Green's function of k, which ends smoothly at `reach` (eq. 58).

    It is the mean over ends with a normal distribution of the standard deviation `width`.
    """
    is_near_pole = np.abs(s - k) < _POLE / reach
    if dimensions == 2:
        numerator, limit = _in_plane(s, k, reach, width)
    else:
        ratio = s / k if dimensions == 1 else np.divide(k, s, out=np.zeros(s.shape, np.complex128), where=s > 0)
        numerator = 1 - 0.5 * ((1 + ratio) * _mean_phase(k - s, reach, width))
        numerator -= 0.5 * ((1 - ratio) * _mean_phase(k + s, reach, width))
        if dimensions == 3:
            bracket = 1 + 1j * k * reach + (k * width) ** 2
            numerator[s == 0] = 1 - bracket * _mean_phase(np.asarray(k), reach, width)
        sign = 1 if dimensions == 1 else -1
        limit = -1j * reach - sign * (1 - complex(_mean_phase(np.asarray(2 * k), reach, width))) / (2 * k)
    numerator /= np.where(is_near_pole, 1.0, s**2 - k**2)
    numerator[is_near_pole] = limit / (2 * k)
    return numerator


def _mean_phase(difference: npt.NDArray[Any], reach: float, width: float) -> Complex:
    """Return the mean of exp(-i q L) over ends L."""
    return np.asarray(np.exp(-1j * difference * reach - 0.5 * (difference * width) ** 2), np.complex128)


def _in_plane(s: Floats, k: complex, reach: float, width: float) -> tuple[Complex, complex]:
    """Return the numerator in two dimensions, and its derivative at s = k, by a sum over ends."""
    from scipy.special import hankel2, j0, j1, jv

    ends = np.linspace(-_DEVIATIONS, _DEVIATIONS, _ENDS)
    weights = np.exp(-0.5 * ends**2)
    numerator, limit = np.ones(s.shape, np.complex128), 0j
    for end, weight in zip(reach + width * ends, weights / weights.sum(), strict=True):
        h0, h1 = (complex(hankel2(order, k * end)) for order in (0, 1))
        factor = -0.5j * np.pi * end * weight
        numerator += factor * (s * j1(s * end) * h0 - k * j0(s * end) * h1)
        limit += factor * k * end * complex(jv(0, k * end) * h0 + jv(1, k * end) * h1)
    return numerator, limit
