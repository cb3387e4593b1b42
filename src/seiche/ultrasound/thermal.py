# SPDX-License-Identifier: BSD-3-Clause
"""What absorbed sound does to tissue: heat, temperature, thermal dose (theory/ultrasound, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.medium import Medium, on_grid
from seiche.ultrasound.medium_arrays import neper_coefficient
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Absorption, Field

Floats = npt.NDArray[np.float64]
#: Part of the longest stable step that is taken.
_SAFETY = 0.8
#: Temperatures (degrees Celsius) between which a thermal dose counts a quarter, and above which a half, a degree.
_DOSE_FROM, _DOSE_AT = 39.0, 43.0


def heat_deposition(amplitude: npt.ArrayLike, frequency: float, medium: Medium) -> Floats:
    """Return the heat (W/m3) that waves of a pressure `amplitude` (Pa) at `frequency` (Hz) leave, eq. 28.

    Raises:
        CaseError: the medium does not absorb, or the shapes differ.
    """
    pressure = np.asarray(amplitude, np.float64)
    shape = pressure.shape
    if medium.alpha_coeff is None or (medium.alpha_power is None and medium.alpha_mode != "stokes"):
        raise CaseError("medium.alpha_coeff, alpha_power: are missing; a medium that absorbs nothing does not heat up")
    if not frequency > 0:
        raise CaseError(f"frequency: {frequency:g} Hz is not positive")
    power = 2.0 if medium.alpha_power is None else on_grid("medium.alpha_power", medium.alpha_power, shape)
    coefficient = on_grid("medium.alpha_coeff", medium.alpha_coeff, shape)
    decibels = np.asarray(coefficient) * (frequency / 1e6) ** np.asarray(power)
    alpha = neper_coefficient(Absorption(decibels, 0.0))  # dB/cm in Np/m
    speed = np.asarray(on_grid("medium.sound_speed", medium.sound_speed, shape))
    density = np.asarray(on_grid("medium.density", medium.density, shape))
    return np.asarray(alpha * pressure**2 / (density * speed), np.float64)


@dataclass(frozen=True)
class Tissue:
    """How tissue conducts heat: numbers, or arrays in the shape of the grid.

    Attributes:
        density: kg/m3.
        heat_capacity: J/(kg K).
        conductivity: W/(m K).
        perfusion: volume of blood that flows through a volume of tissue a second, 1/s.
        blood_density, blood_heat_capacity, blood_temperature: of the blood that comes, degrees Celsius.
    """

    density: npt.ArrayLike = 1000.0
    heat_capacity: npt.ArrayLike = 3600.0
    conductivity: npt.ArrayLike = 0.5
    perfusion: npt.ArrayLike = 0.0
    blood_density: float = 1060.0
    blood_heat_capacity: float = 3617.0
    blood_temperature: float = 37.0


class Bioheat:
    """Temperature of tissue in time by Pennes' equation (eq. 29); no heat passes the border of the grid.

    Attributes:
        temperature: degrees Celsius, in the shape of the grid.
        dose: thermal dose in equivalent minutes at 43 degrees (eq. 30).
        time: seconds.
    """

    def __init__(
        self, shape: tuple[int, ...], spacing: tuple[float, ...], tissue: Tissue, temperature: npt.ArrayLike = 37.0
    ) -> None:
        """Begin at a temperature, one number or an array.

        Raises:
            CaseError: shapes that differ, or values that are impossible.
        """
        self.spacing = tuple(float(one) for one in real_numbers("spacing", spacing))
        if len(self.spacing) != len(shape) or not all(0 < one < np.inf for one in self.spacing):
            raise CaseError(f"spacing: {spacing} is not one positive number for each axis of {shape} points")
        for name in ("blood_density", "blood_heat_capacity", "blood_temperature"):
            if not np.isfinite(getattr(tissue, name)):
                raise CaseError(f"tissue.{name}: {getattr(tissue, name)} is not a finite number")

        def field(name: str, least: float, exclusive: bool) -> Field:
            value = on_grid(f"tissue.{name}", getattr(tissue, name), shape)
            low = float(np.min(value))
            if not np.isfinite(value).all() or low < least or (exclusive and low == least):
                raise CaseError(f"tissue.{name}: {low:g} is not a finite number {'>' if exclusive else '>='} {least:g}")
            return value

        self._capacity = np.asarray(field("density", 0.0, True)) * np.asarray(field("heat_capacity", 0.0, True))
        conductivity = np.broadcast_to(np.asarray(field("conductivity", 0.0, False), np.float64), shape)
        self._between = [_harmonic(conductivity, axis) for axis in range(len(shape))]
        blood = tissue.blood_density * tissue.blood_heat_capacity
        self._cooling = np.asarray(field("perfusion", 0.0, False)) * blood
        self._blood = tissue.blood_temperature
        start = np.asarray(on_grid("temperature", temperature, shape), np.float64)
        if not np.isfinite(start).all():
            raise CaseError("temperature: not every value is a finite number")
        self.temperature: Floats = np.array(np.broadcast_to(start, shape))
        self.dose: Floats = np.zeros(shape)
        self.time = 0.0
        greatest = 4 * sum(
            float(between.max(initial=0.0)) / d**2 for between, d in zip(self._between, spacing, strict=True)
        )
        rate = (greatest + float(np.max(self._cooling))) / float(np.min(self._capacity))
        #: Longest stable step, s.
        self.longest_step = 2 / rate if rate > 0 else np.inf

    def run(self, seconds: float, heat: npt.ArrayLike = 0.0) -> None:
        """Advance by `seconds` with a heat source (W/m3) that stays the same: second order in time, in equal steps.

        Raises:
            CaseError: a time that is not positive, or heat of another shape.
        """
        if not (np.isfinite(seconds) and seconds > 0):
            raise CaseError(f"seconds: {seconds:g} is not a finite number > 0")
        source = np.asarray(on_grid("heat", heat, self.temperature.shape), np.float64)
        if not np.isfinite(source).all():
            raise CaseError("heat: not every value is a finite number")
        steps = max(1, int(np.ceil(seconds / (_SAFETY * self.longest_step)))) if np.isfinite(self.longest_step) else 1
        dt = seconds / steps
        for _ in range(steps):
            before = self.temperature
            rate = self._rate(before, source)
            self.temperature = before + dt / 2 * (rate + self._rate(before + dt * rate, source))
            self.dose += dt / 60 * 0.5 * (dose_rate(before) + dose_rate(self.temperature))
            self.time += dt

    def _rate(self, temperature: Floats, source: Floats) -> Floats:
        """Return dT/dt, K/s."""
        total = source + self._cooling * (self._blood - temperature)
        for axis, (between, spacing) in enumerate(zip(self._between, self.spacing, strict=True)):
            flux = between * np.diff(temperature, axis=axis) / spacing**2
            edge = [(1, 1) if k == axis else (0, 0) for k in range(temperature.ndim)]
            total = total + np.diff(np.pad(flux, edge), axis=axis)
        return np.asarray(total / self._capacity)


def dose_rate(temperature: npt.ArrayLike) -> Floats:
    """Return minutes at 43 degrees that are worth one minute at a temperature (eq. 30)."""
    degrees = np.asarray(temperature, np.float64)
    base = np.where(degrees >= _DOSE_AT, 0.5, np.where(degrees >= _DOSE_FROM, 0.25, 0.0))
    return np.asarray(base ** (_DOSE_AT - np.minimum(degrees, 100.0)))


def _harmonic(values: Floats, axis: int) -> Floats:
    """Return the harmonic means of neighbours along an axis: what two half cells conduct together."""
    low = values.take(range(values.shape[axis] - 1), axis)
    high = values.take(range(1, values.shape[axis]), axis)
    total = low + high
    return np.asarray(np.divide(2 * low * high, total, out=np.zeros_like(total), where=total > 0))
