# SPDX-License-Identifier: BSD-3-Clause
"""Photoacoustic images from a line or plane of sensors, without a simulation (theory/ultrasound, section 17)."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.numbers import positive_number, real_numbers, whole_number

Floats = npt.NDArray[np.float64]
#: Samples of the spectrum in time relative to those that a series of this length requires.
_OVERSAMPLING = 3
#: Points on either side of a frequency, and the parameter of the Kaiser window, of its interpolation.
_HALF_WIDTH, _WINDOW = 6, 8.0
_OFFSETS = np.arange(1 - _HALF_WIDTH, _HALF_WIDTH + 1)
#: Rows of the table of its weights.
_FRACTIONS = 2048


def kspace_image(
    series: npt.ArrayLike,
    spacing: npt.ArrayLike,
    dt: float,
    sound_speed: float,
    *,
    padding: int = 2,
    positive: bool = False,
) -> Floats:
    """Return the initial pressure (n, depths) or (n, m, depths) from series of a line or plane of sensors (eq. 50).

    The last axis is the distance from the sensors, from 0 in steps of `sound_speed` times `dt`, one for each sample.
    The medium is uniform and lossless, and the source lies on one side of the sensors. Only the first sample belongs to
    time zero. Waves that pass beside the sensors are missing from the image.

    Args:
        series: pressure (n, times) on a line or (n, m, times) on a plane, Pa.
        spacing: between sensors, m; one number or one for each axis of the sensors.
        dt: s.
        sound_speed: m/s.
        padding: multiple of the extents over which the sensors are periodic; 1 for a periodic source.
        positive: set negative pressures to zero.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values = real_numbers("series", series)
    if values.ndim not in (2, 3) or values.shape[-1] < 2 or not values.size or not np.isfinite(values).all():
        raise CaseError(f"series: shape {values.shape} is not (n, times) or (n, m, times) of finite numbers")
    step, speed = positive_number("dt", dt), positive_number("sound_speed", sound_speed)
    sensors = values.shape[:-1]
    distances = np.atleast_1d(real_numbers("spacing", spacing))
    if distances.shape not in ((1,), (len(sensors),)) or not (np.isfinite(distances) & (distances > 0)).all():
        raise CaseError(f"spacing: {spacing!r} is not one positive number, or one for each of {len(sensors)} axes")
    if whole_number("padding", padding) < 1:
        raise CaseError(f"padding: {padding} is not a whole number >= 1")
    shape = tuple(int(padding) * n for n in sensors)
    axes = tuple(range(len(sensors)))
    across = np.fft.rfftn(values, shape, axes=axes)
    numbers = [np.fft.fftfreq(n, d) for n, d in zip(shape, np.broadcast_to(distances, len(shape)), strict=True)]
    numbers[-1] = np.abs(numbers[-1][: shape[-1] // 2 + 1])
    squares = np.asarray(sum(np.ix_(*((2 * np.pi * k) ** 2 for k in numbers))), np.float64)
    image = np.empty(across.shape, np.complex128)
    for row in range(len(across)):  # limits the memory of the oversampled spectra
        image[row] = _depths(across[row], squares[row], step, speed)
    result = np.fft.irfftn(image, shape, axes=axes)[tuple(slice(n) for n in sensors)]
    return np.asarray(np.maximum(result, 0.0) if positive else result, np.float64)


def _depths(series: npt.NDArray[np.complex128], squares: Floats, dt: float, speed: float) -> npt.NDArray[np.complex128]:
    """Return the pressure (..., depths) of one row of transverse wave numbers from their series (..., times)."""
    from scipy.fft import next_fast_len

    count = series.shape[-1]
    # The pressure at the sensors is an even function of time: the spectrum is a cosine transform.
    period = next_fast_len(2 * count * _OVERSAMPLING)
    weights = np.ones(count)
    weights[0] = 0.5  # shared with negative times
    forward = np.fft.fft(series * weights, period, axis=-1)
    backward = np.concatenate([forward[..., :1], forward[..., :0:-1]], axis=-1)
    spectrum = dt * (forward + backward)
    normal = 2 * np.pi * np.fft.rfftfreq(2 * count, speed * dt)
    number = np.sqrt(normal**2 + squares[..., None])
    factor = np.divide(normal, number, out=np.ones_like(number), where=number > 0)
    image_spectrum = _interpolated(spectrum, number * (speed * dt * period / (2 * np.pi)))
    image_spectrum = np.where(number * speed * dt <= np.pi, speed * factor * image_spectrum, 0.0)
    # The image of a source and its mirror image behind the sensors is even: twice a cosine transform.
    ends = np.full(count + 1, 2.0)
    ends[[0, -1]] = 1.0
    image_spectrum = image_spectrum * ends / (count * speed * dt)
    padded = np.concatenate([image_spectrum, np.zeros((*image_spectrum.shape[:-1], count - 1))], axis=-1)
    full_spectrum = np.fft.fft(padded, axis=-1)
    mirrored = np.concatenate([full_spectrum[..., :1], full_spectrum[..., :0:-1]], axis=-1)
    return np.asarray((0.5 * (full_spectrum + mirrored))[..., :count])


def _interpolated(spectrum: npt.NDArray[np.complex128], positions: Floats) -> npt.NDArray[np.complex128]:
    """Return a periodic spectrum (..., n) at fractional indices (..., m), by a windowed sinc from a table."""
    first = np.floor(positions).astype(np.int64)
    table = _weights()
    scaled = (positions - first) * _FRACTIONS
    index = np.minimum(scaled.astype(np.int64), _FRACTIONS - 1)
    rest = scaled - index
    result = np.zeros(positions.shape, np.complex128)
    for column, offset in enumerate(_OFFSETS):
        weight = (1 - rest) * table[index, column] + rest * table[index + 1, column]
        result += weight * np.take_along_axis(spectrum, (first + offset) % spectrum.shape[-1], axis=-1)
    return result


@cache
def _weights() -> Floats:
    """Return the weights of the nearest samples (columns) at fractions of their spacing (rows)."""
    distance = np.linspace(0, 1, _FRACTIONS + 1)[:, None] - _OFFSETS
    inside = np.sqrt(np.maximum(0.0, 1 - (distance / _HALF_WIDTH) ** 2))
    return np.asarray(np.sinc(distance) * np.i0(_WINDOW * inside) / np.i0(_WINDOW))
