# SPDX-License-Identifier: BSD-3-Clause
"""Absorption of photoacoustic series in a uniform medium, and its inverse (theory/ultrasound, section 17)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.angular_spectrum import wave_number
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import positive_number, real_numbers

Floats = npt.NDArray[np.float64]
#: The matrix of more samples would need more than 2 GB.
_MAX_SAMPLES = 16_384


def absorbed_series(series: npt.ArrayLike, dt: float, medium: Medium) -> Floats:
    """Return the series (..., times) in an absorbing medium, from those without absorption (eq. 60).

    The first sample belongs to the time of the initial pressure. Sources and sensors may be anywhere. The last samples
    are inaccurate unless the waves have passed.

    Args:
        series: pressure without absorption, Pa.
        dt: s.
        medium: uniform medium with a power law.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values = _series(series)
    return np.asarray(values @ _absorption(values.shape[-1], dt, medium).T)


def restored_series(series: npt.ArrayLike, dt: float, medium: Medium, *, noise: float = 0.01) -> Floats:
    """Return the series (..., times) without the absorption of the medium: the inverse of `absorbed_series` (eq. 61).

    Components that absorption has reduced to less than the noise are not restored.

    Args:
        series: recorded pressure, Pa; the first sample belongs to the time of the initial pressure.
        dt: s.
        medium: uniform medium with a power law.
        noise: relative to the signal without absorption.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    values, level = _series(series), positive_number("noise", noise)
    left, factors, right = np.linalg.svd(_absorption(values.shape[-1], dt, medium))
    return np.asarray((values @ left) * (factors / (factors**2 + level**2)) @ right)


def _absorption(count: int, dt: float, medium: Medium) -> Floats:
    """Return the matrix (times, times) of eq. 60."""
    step = positive_number("dt", dt)
    frequencies = np.fft.rfftfreq(2 * count, step)
    number = wave_number(medium, frequencies)
    scaled = float(np.asarray(medium.sound_speed)) * number
    omega = 2 * np.pi * frequencies
    ratio = np.divide(omega, scaled, out=np.ones(len(omega), np.complex128), where=scaled != 0)
    spectra = ratio[:, None] * np.exp(-1j * scaled[:, None] * (step * np.arange(count)))
    return np.asarray(np.fft.irfft(spectra, 2 * count, axis=0)[:count])


def _series(series: npt.ArrayLike) -> Floats:
    values = real_numbers("series", series)
    if values.ndim < 1 or values.shape[-1] < 2 or not np.isfinite(values).all():
        raise CaseError(f"series: shape {values.shape} is not (..., times) of finite numbers")
    if values.shape[-1] > _MAX_SAMPLES:
        raise CaseError(f"series: {values.shape[-1]} samples are more than {_MAX_SAMPLES}; use a longer time step")
    return values
