# SPDX-License-Identifier: BSD-3-Clause
"""From scan lines to an image: gain over time, envelope, compression, conversion (theory/ultrasound, section 18)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.angular_spectrum import wave_number
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import positive_number, real_numbers

Floats = npt.NDArray[np.float64]


class ScanImage(NamedTuple):
    """An image of scan lines at the points of a regular grid.

    Attributes:
        values: (x, y).
        x: distances from the apex along the direction of angle zero, m.
        y: positions across, m.
    """

    values: Floats
    x: Floats
    y: Floats


def envelope(values: npt.ArrayLike, axis: int = -1) -> Floats:
    """Return the magnitude of the analytic signal along an axis, in the shape of `values`.

    Raises:
        CaseError: not finite numbers, or no such axis.
    """
    from scipy.signal import hilbert

    signals = _finite("values", values)
    if not -signals.ndim <= axis < signals.ndim or not signals.size:
        raise CaseError(f"axis: {axis} is not an axis of values of shape {signals.shape}")
    return np.asarray(np.abs(hilbert(signals, axis=axis)))


def time_gain(series: npt.ArrayLike, dt: float, medium: Medium, frequency: float, *, start: float = 0.0) -> Floats:
    """Return series (..., times) times exp(a c0 t), which restores what the medium absorbs from echoes.

    Args:
        series: records.
        dt: s.
        medium: uniform medium with the absorption coefficient a at the frequency.
        frequency: Hz.
        start: time of the first sample after the emission, s.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    signals = _finite("series", series)
    alpha = -float(wave_number(medium, positive_number("frequency", frequency)).imag)
    time = start + positive_number("dt", dt) * np.arange(signals.shape[-1] if signals.ndim else 0)
    return np.asarray(signals * np.exp(alpha * float(np.asarray(medium.sound_speed)) * time))


def decibels(amplitudes: npt.ArrayLike, dynamic_range: float = 60.0) -> Floats:
    """Return amplitudes in dB relative to the largest one, at least -`dynamic_range`.

    Raises:
        CaseError: negative values, no positive one, or a range that is not positive.
    """
    values = _finite("amplitudes", amplitudes)
    lowest = -positive_number("dynamic_range", dynamic_range)
    if not values.size or values.min() < 0 or values.max() == 0:
        raise CaseError("amplitudes: are not numbers >= 0 with one above 0; use the envelope of a signal")
    relative = np.maximum(values / values.max(), 10 ** (lowest / 20))
    return np.asarray(20 * np.log10(relative))


def log_compression(amplitudes: npt.ArrayLike, factor: float, *, normalise: bool = False) -> Floats:
    """Return m log(1 + b x / m) / log(1 + b) for amplitudes x and their maximum m, or with m = 1 (eq. 56).

    Args:
        amplitudes: x.
        factor: b; larger values raise small amplitudes.
        normalise: whether m is the maximum; else it is 1.

    Raises:
        CaseError: negative values, or a factor that is not positive.
    """
    values, number = _finite("amplitudes", amplitudes), positive_number("factor", factor)
    if not values.size or values.min() < 0:
        raise CaseError("amplitudes: are not numbers >= 0; use the envelope of a signal")
    largest = float(values.max()) if normalise and values.max() > 0 else 1.0
    return np.asarray(largest * np.log1p(number * values / largest) / np.log1p(number))


def scan_convert(
    lines: npt.ArrayLike,
    angles: npt.ArrayLike,
    distances: npt.ArrayLike,
    *,
    spacing: float | None = None,
    shape: tuple[int, int] | None = None,
    outside: float = np.nan,
) -> ScanImage:
    """Return an image (x, y) from scan lines (lines, distances) of a sector, by linear interpolation.

    Give `spacing` for square pixels, or `shape` for a number of points. The image is the box around the sector.

    Args:
        lines: values along the scan lines.
        angles: of the lines to the x axis in ascending order, rad.
        distances: of the values from the apex in ascending order, m; the first may be positive (curved arrays).
        spacing: of the image, m.
        shape: points of the image along x and y.
        outside: value outside the sector.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    turns, lengths = _ascending("angles", angles), _ascending("distances", distances)
    values = _finite("lines", lines)
    if np.abs(turns).max() >= np.pi / 2 or lengths[0] < 0:
        raise CaseError("angles, distances: must be within a right angle of the x axis, and not negative")
    if (spacing is None) == (shape is None):
        raise CaseError("spacing, shape: exactly one of them is required")
    lows = float(lengths[0] * np.cos(turns[[0, -1]]).min()), float((np.outer(lengths[[0, -1]], np.sin(turns))).min())
    highs = float(lengths[-1] * np.cos(turns).max()), float((np.outer(lengths[[0, -1]], np.sin(turns))).max())
    if turns[0] < 0 < turns[-1]:
        highs = float(lengths[-1]), highs[1]
    if spacing is not None:
        step = positive_number("spacing", spacing)
        shape = tuple(int(np.floor((high - low) / step)) + 1 for low, high in zip(lows, highs, strict=True))  # type: ignore[assignment]
        highs = lows[0] + step * (shape[0] - 1), lows[1] + step * (shape[1] - 1)  # type: ignore[index]
    assert shape is not None
    if len(shape) != 2 or min(shape) < 2:
        raise CaseError(f"shape: {shape} is not two numbers of at least 2 points; for spacings use smaller ones")
    x, y = (np.linspace(low, high, n) for low, high, n in zip(lows, highs, shape, strict=True))
    return ScanImage(sector_values(values, turns, lengths, x, y, outside=outside), x, y)


def sector_values(
    lines: npt.ArrayLike, angles: npt.ArrayLike, distances: npt.ArrayLike, x: Floats, y: Floats, *, outside: float
) -> Floats:
    """Return an image (x, y) at given positions (m) from the apex of a sector; arguments as of `scan_convert`.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    from scipy.interpolate import RegularGridInterpolator

    turns, lengths = _ascending("angles", angles), _ascending("distances", distances)
    values = _finite("lines", lines)
    if values.shape != (len(turns), len(lengths)):
        raise CaseError(f"lines: shape {values.shape} is not (angles, distances) = ({len(turns)}, {len(lengths)})")
    places = np.stack([np.arctan2(y, x[:, None]), np.hypot(x[:, None], y)], axis=-1)
    places = _onto_borders(places, turns, lengths)
    table = RegularGridInterpolator((turns, lengths), values, bounds_error=False, fill_value=outside)
    return np.asarray(table(places), np.float64)


def _onto_borders(places: Floats, turns: Floats, lengths: Floats) -> Floats:
    """Move points that round-off has put outside a sector onto its borders."""
    result = places.copy()
    for column, axis in enumerate((turns, lengths)):
        for end in (axis[0], axis[-1]):
            is_on_border = np.abs(places[..., column] - end) < 1e-12 * max(1.0, abs(end))
            result[is_on_border, column] = end
    return result


def _ascending(name: str, values: npt.ArrayLike) -> Floats:
    numbers = _finite(name, values)
    if numbers.ndim != 1 or len(numbers) < 2 or not (np.diff(numbers) > 0).all():
        raise CaseError(f"{name}: are not at least two numbers in ascending order")
    return numbers


def _finite(name: str, values: npt.ArrayLike) -> Floats:
    numbers = real_numbers(name, values)
    if not np.isfinite(numbers).all():
        raise CaseError(f"{name}: not every value is a finite number")
    return numbers
