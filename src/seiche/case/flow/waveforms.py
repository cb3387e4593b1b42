# SPDX-License-Identifier: BSD-3-Clause
"""Pulsatile inflow: Fourier harmonics of waveforms, and the peak velocity of their profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seiche.flow.profiles import parabola, womersley

#: Shapes of one cardiac cycle, sampled at equal intervals, with a mean near one. They illustrate typical waveforms
#: (steep systolic rise, dicrotic notch, slow diastolic decay) and are not measured data.
WAVEFORMS: dict[str, tuple[float, ...]] = {
    "internal-carotid": (
        *(0.74, 0.75, 0.84, 1.10, 1.42, 1.62, 1.66, 1.60, 1.50, 1.41, 1.33, 1.24, 1.12, 1.05, 1.08, 1.10),
        *(1.06, 1.01, 0.97, 0.93, 0.90, 0.87, 0.85, 0.83, 0.81, 0.79, 0.78, 0.77, 0.76, 0.75, 0.745, 0.74),
    )
}

#: Range of Womersley numbers: below it, the pulsating profile is a parabola to all digits; above it, no lattice
#: resolves the boundary layer.
WOMERSLEY_RANGE = (0.01, 1000.0)


def womersley_number(radius: float, period: float, kinematic_viscosity: float) -> float:
    """Return alpha = a sqrt(omega/nu), omega = 2 pi/period."""
    return radius * math.sqrt(2.0 * math.pi / (period * kinematic_viscosity))


def harmonics_of(samples: Sequence[float], count: int) -> tuple[complex, ...]:
    """Return c_1 .. c_count of samples/mean = 1 + sum_k Re(c_k exp(2 pi i k t/period)); samples are equidistant."""
    values = np.asarray(samples, np.float64)
    spectrum = np.fft.rfft(values / values.mean()) / len(values)
    return tuple(complex(2.0 * c) for c in spectrum[1 : count + 1])


def peak_velocity(mean: float, harmonics: Sequence[complex], alpha: float) -> float:
    """Return the maximum speed over the opening and one period, in the unit of `mean`.

    `alpha` is the Womersley number of the first harmonic; that of harmonic k is alpha sqrt(k).
    """
    radii, times = np.linspace(0.0, 1.0, 65), np.linspace(0.0, 1.0, 256, endpoint=False)
    speed = np.broadcast_to(mean * parabola(radii), (len(times), len(radii))).copy()
    for k, harmonic in enumerate(harmonics, start=1):
        profile = womersley(radii, alpha * k**0.5)
        speed += np.real(harmonic * np.exp(2j * np.pi * k * times)[:, None] * profile[None, :])
    return float(np.abs(speed).max())
