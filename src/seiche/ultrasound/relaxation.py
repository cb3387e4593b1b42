# SPDX-License-Identifier: BSD-3-Clause
"""Absorption by relaxation processes fitted to a power law (theory/ultrasound, section 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.kernels.registry.kspace import PROCESSES

#: Maximum rate of a process over the upper limit of the band. Faster processes approximate y = 2 better, but increase
#: the unrelaxed speed.
_MAX_RELATIVE_FREQUENCY = 10.0
#: Number of tissues with labels of 8 bits.
MAX_TISSUES = 256

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Relaxation:
    """Relaxation processes of the tissues of a problem.

    Attributes:
        labels: tissue of each point, uint8, in the grid's shape.
        strengths, times: a and tau (s) of the processes of every tissue, (tissues, PROCESSES).
        unrelaxed_speeds: sound speed at infinite frequency of every tissue, m/s.
        targets: coefficient, exponent and sound speed of the power law of every tissue, (3, tissues), if known.
        band: frequencies (Hz) between which the processes follow it, if known.
    """

    labels: npt.NDArray[np.uint8]
    strengths: Array
    times: Array
    unrelaxed_speeds: Array
    targets: Array | None = None
    band: tuple[float, float] | None = None

    def errors(self, frequency: float) -> tuple[float, float] | None:
        """Return the largest relative errors of absorption and phase speed at a `frequency` (Hz); None if unknown."""
        if self.targets is None or self.band is None:
            return None
        at, centre, result = np.array([frequency]), float(np.sqrt(self.band[0] * self.band[1])), [0.0, 0.0]
        tissues = zip(self.strengths, self.times, self.unrelaxed_speeds, self.targets.T, strict=True)
        for strengths, times, unrelaxed, (coefficient, exponent, speed) in tissues:
            if coefficient > 0:
                fitted = response(at, strengths, times, float(unrelaxed))
                expected = power_law(at, float(coefficient), float(exponent), float(speed), centre)
                deviations = [float((a / b - 1)[0]) for a, b in zip(fitted, expected, strict=True)]
                result = [max(pair, key=abs) for pair in zip(result, deviations, strict=True)]
        return result[0], result[1]


def power_law(
    frequency: Array, alpha_coeff: float, alpha_power: float, sound_speed: float, reference: float
) -> tuple[Array, Array]:
    """Return absorption (Np/m) and phase speed (m/s) of a power law whose speed at `reference` Hz is given (eq. 23)."""
    w, w0, y = 2 * np.pi * frequency, 2 * np.pi * reference, alpha_power
    a0 = 100 * alpha_coeff / (20 * np.log10(np.e)) * (1e-6 / (2 * np.pi)) ** y
    if abs(y - 1) < 1e-9:
        dispersion = -2 / np.pi * a0 * np.log(w / w0)
    else:
        dispersion = a0 * np.tan(np.pi * y / 2) * (w ** (y - 1) - w0 ** (y - 1))
    return a0 * w**y, 1 / (1 / sound_speed + dispersion)


def response(frequency: Array, strengths: Array, times: Array, unrelaxed_speed: float) -> tuple[Array, Array]:
    """Return absorption (Np/m) and phase speed (m/s) of relaxation processes (eq. 25)."""
    w = 2 * np.pi * frequency
    wave_number = w / unrelaxed_speed / np.sqrt(1 - (strengths / (1 + 1j * w[:, None] * times)).sum(1))
    return -wave_number.imag, w / wave_number.real


def fit(
    alpha_coeff: float, alpha_power: float, sound_speed: float, band: tuple[float, float]
) -> tuple[Array, Array, float]:
    """Return strengths, times and the unrelaxed speed that follow a power law within `band` (Hz).

    The speed is exact at the geometric mean of the band. CaseError if the absorption deviates by more than 20 %.
    """
    from scipy.optimize import least_squares, nnls

    low, high = band
    if not 0 < low < high < np.inf:
        raise CaseError(f"medium.relaxation_band: {low:g} to {high:g} Hz is not a valid band; expected 0 < low < high")
    if alpha_coeff == 0:
        return np.zeros(PROCESSES), np.full(PROCESSES, 1 / (2 * np.pi * high)), sound_speed
    f, centre = np.geomspace(low, high, 40), float(np.sqrt(low * high))
    alpha, speed = power_law(f, alpha_coeff, alpha_power, sound_speed, centre)
    w = 2 * np.pi * f

    def unpack(x: Array) -> tuple[Array, Array, float]:
        strengths, times = np.exp(x[:PROCESSES]), np.exp(x[PROCESSES:])
        _, unscaled_speed = response(np.array([centre]), strengths, times, 1.0)
        return strengths, times, float(sound_speed / unscaled_speed[0])

    def residuals(x: Array) -> Array:
        absorption, phase_speed = response(f, *unpack(x))
        return np.asarray(np.nan_to_num(np.concatenate([absorption / alpha - 1, phase_speed / speed - 1]), nan=10.0))

    lower_bounds = np.log(np.repeat([1e-9, 1 / (_MAX_RELATIVE_FREQUENCY * w[-1])], PROCESSES))
    upper_bounds = np.log(np.repeat([0.9, _MAX_RELATIVE_FREQUENCY / w[0]], PROCESSES))
    best = None
    for width in (1.0, 2.0, 4.0):
        times = 1 / np.geomspace(w[0] / width, w[-1] * width, PROCESSES)
        columns = w[:, None] ** 2 * times / (1 + (w[:, None] * times) ** 2) / (2 * sound_speed) / alpha[:, None]
        strengths, _ = nnls(columns, np.ones(len(f)))
        start = np.log(np.concatenate([np.maximum(strengths, 1e-3 * strengths.max()), times]))
        result = least_squares(
            residuals, np.clip(start, lower_bounds, upper_bounds), bounds=(lower_bounds, upper_bounds), max_nfev=300
        )
        if best is None or result.cost < best.cost:
            best = result
    assert best is not None
    strengths, times, unrelaxed = unpack(np.asarray(best.x))
    if not np.abs(residuals(best.x)[: len(f)]).max() < 0.2 or strengths.sum() >= 1:
        raise CaseError(
            f"alpha_coeff: {PROCESSES} relaxation processes cannot approximate {alpha_coeff:g} "
            f"dB/(MHz^{alpha_power:g} cm) from {low:g} to {high:g} Hz; use a narrower band"
        )
    return strengths, times, unrelaxed


def tissues_of(
    alpha_coeff: npt.ArrayLike,
    alpha_power: npt.ArrayLike,
    sound_speed: npt.ArrayLike,
    shape: tuple[int, ...],
    band: tuple[float, float],
) -> Relaxation:
    """Return the processes of every distinct combination of coefficient, exponent and sound speed on a grid.

    Raise CaseError for values out of range, too many combinations, or a fit that fails.
    """
    fields = [
        np.broadcast_to(np.asarray(values, np.float64), shape).reshape(-1)
        for values in (alpha_coeff, alpha_power, sound_speed)
    ]
    for name, field in zip(("alpha_coeff", "alpha_power", "sound_speed"), fields, strict=True):
        if not np.isfinite(field).all():
            raise CaseError(f"medium.{name}: not every value is a finite number")
    tissues, labels = np.unique(np.stack(fields), axis=1, return_inverse=True)
    count = tissues.shape[1]
    if count > MAX_TISSUES:
        raise CaseError(
            f"medium: {count} combinations of alpha_coeff, alpha_power and sound_speed; relaxation absorption "
            f"allows {MAX_TISSUES}; round them to fewer tissues"
        )
    if not (tissues[0] >= 0).all():
        raise CaseError(f"medium.alpha_coeff: {tissues[0].min():g} must be >= 0")
    if not ((tissues[1] > 0) & (tissues[1] <= 2)).all():
        raise CaseError(f"medium.alpha_power: {tissues[1].min():g} to {tissues[1].max():g} is not between 0 and 2")
    fits = [fit(float(a), float(y), float(c), band) for a, y, c in tissues.T]
    return Relaxation(
        labels.reshape(shape).astype(np.uint8),
        np.stack([strengths for strengths, _, _ in fits]),
        np.stack([times for _, times, _ in fits]),
        np.array([speed for _, _, speed in fits]),
        tissues,
        band,
    )
