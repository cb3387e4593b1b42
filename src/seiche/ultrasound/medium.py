# SPDX-License-Identifier: BSD-3-Clause
"""Acoustic medium, and its longest stable time step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.elastic_medium import max_elastic_step
from seiche.ultrasound.host_fields import extremes, reduced
from seiche.ultrasound.medium_arrays import as_double, neper_coefficient, tau_of
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Absorption, Elastic, Field, Problem
from seiche.ultrasound.relaxation import Relaxation, tissues_of

AlphaMode = Literal["no_absorption", "no_dispersion", "stokes", "relaxation"]
#: Default band (Hz) in which relaxation processes follow a power law.
BAND = (0.5e6, 5e6)


@dataclass(frozen=True)
class Medium:
    """Properties of a medium: numbers, or arrays in the shape of the grid.

    Attributes:
        sound_speed: c0, m/s.
        density: rho0, kg/m3.
        BonA: parameter of nonlinearity B/A.
        alpha_coeff, alpha_power: absorption alpha_coeff f^alpha_power in dB/(MHz^y cm).
        alpha_mode: "no_absorption" or "no_dispersion" omits one of the two terms. "stokes" has the exponent 2 without
            transforms. "relaxation" fits relaxation processes, without transforms, for exponents up to 2 that may vary
            in space; in other modes they must be uniform. The sound speed is then that at the geometric mean of the
            band.
        sound_speed_ref: c_ref of the k-space correction; the largest sound speed by default.
        staggered_density: density at points half a spacing further along each axis, for the momentum equation; means of
            neighbours by default.
        shear_speed: speed of shear waves in m/s, 0 in fluids; selects the elastic solver. The sound speed and
            alpha_coeff are then those of compressional waves, and the exponent of absorption is 2.
        shear_alpha_coeff: absorption of shear waves, dB/(MHz^2 cm).
        relaxation_band: frequencies (Hz) in which relaxation processes follow the power law.
        gain_below: frequency (Hz) up to which waves are amplified as much as they would be absorbed, for waves that
            travel backwards in time. The gain falls to zero at 1.41 times this frequency.
    """

    sound_speed: npt.ArrayLike
    density: npt.ArrayLike = 1000.0
    BonA: npt.ArrayLike | None = None
    alpha_coeff: npt.ArrayLike | None = None
    alpha_power: npt.ArrayLike | None = None
    alpha_mode: AlphaMode | None = None
    sound_speed_ref: float | None = None
    relaxation_band: tuple[float, float] = BAND
    staggered_density: tuple[npt.ArrayLike, ...] | None = None
    gain_below: float | None = None
    shear_speed: npt.ArrayLike | None = None
    shear_alpha_coeff: npt.ArrayLike | None = None

    def absorption(self, shape: tuple[int, ...]) -> Absorption | None:
        """Return the absorption on a grid.

        Raises:
            CaseError: only one of coefficient and exponent is given, or an unknown mode.
        """
        if self.alpha_mode not in (None, "no_absorption", "no_dispersion", "stokes", "relaxation"):
            raise CaseError(
                f"medium.alpha_mode: {self.alpha_mode!r} is not no_absorption, no_dispersion, stokes or relaxation"
            )
        if self.gain_below is not None:
            self._check_gain()
        if self.alpha_mode == "relaxation":
            return None
        stokes = self.alpha_mode == "stokes"
        if self.alpha_coeff is None:
            if self.alpha_power is not None or stokes:
                raise CaseError(f"medium.alpha_coeff: is missing; {'alpha_mode' if stokes else 'alpha_power'} is set")
            return None
        has_exponent_2 = stokes or self.shear_speed is not None
        power = 2.0 if has_exponent_2 and self.alpha_power is None else self.alpha_power
        if power is None:
            raise CaseError("medium.alpha_power: is missing; alpha_coeff is set")
        exponent = on_grid("medium.alpha_power", power, shape)
        if not isinstance(exponent, float):
            raise CaseError(
                'medium.alpha_power: an array of several exponents requires alpha_mode = "relaxation"; otherwise use'
                " one number"
            )
        coefficient = on_grid("medium.alpha_coeff", self.alpha_coeff, shape)
        if exponent == 2.0 and self.alpha_mode == "no_absorption":
            return None  # the exponent 2 has no dispersion, so both terms are absent
        gain = None
        if self.gain_below is not None:  # in full at this frequency for every sound speed
            gain = 2 * np.pi * self.gain_below / float(np.min(real_numbers("medium.sound_speed", self.sound_speed)))
        return Absorption(
            coefficient,
            exponent,
            gain is None and (stokes or exponent == 2.0),
            losses=self.alpha_mode != "no_absorption",
            dispersion=self.alpha_mode != "no_dispersion" and (gain is None or exponent != 2.0),
            gain_below=gain,
        )

    def elastic(self, shape: tuple[int, ...]) -> Elastic | None:
        """Return the properties of shear waves on a grid, None for fluids.

        Raises:
            CaseError: an array of another shape, or absorption of shear waves without their speed.
        """
        loss = self.shear_alpha_coeff
        if self.shear_speed is None:
            if loss is not None:
                raise CaseError("medium.shear_speed: is missing; shear_alpha_coeff is set")
            return None
        losses = None if loss is None else on_grid("medium.shear_alpha_coeff", loss, shape)
        return Elastic(on_grid("medium.shear_speed", self.shear_speed, shape), losses)

    def _check_gain(self) -> None:
        """Raise CaseError unless a gain is possible."""
        assert self.gain_below is not None
        if not (np.isfinite(self.gain_below) and self.gain_below > 0):
            raise CaseError(f"medium.gain_below: {self.gain_below:g} Hz is not a finite number > 0")
        if self.alpha_coeff is None or self.alpha_mode in ("relaxation", "no_absorption"):
            raise CaseError(
                "medium.gain_below: needs a power law, with alpha_coeff and alpha_power, or Stokes absorption"
            )

    def relaxation(self, shape: tuple[int, ...]) -> Relaxation | None:
        """Return the relaxation processes on a grid, None in other modes.

        Raises:
            CaseError: coefficient or exponent is missing or has another shape, or no processes approximate the power
                law.
        """
        if self.alpha_mode != "relaxation":
            return None
        if self.alpha_coeff is None or self.alpha_power is None:
            raise CaseError('medium.alpha_coeff, alpha_power: alpha_mode = "relaxation" requires both')
        coefficient = on_grid("medium.alpha_coeff", self.alpha_coeff, shape)
        power = on_grid("medium.alpha_power", self.alpha_power, shape)
        speed = on_grid("medium.sound_speed", self.sound_speed, shape)
        band = real_numbers("medium.relaxation_band", self.relaxation_band)
        if band.shape != (2,):
            raise CaseError(f"medium.relaxation_band: {self.relaxation_band} is not two frequencies")
        return tissues_of(coefficient, power, speed, shape, (float(band[0]), float(band[1])))


def on_grid(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Field:
    """Return a number, or an array of the grid's shape; a constant array becomes one number. CaseError otherwise."""
    array = np.asarray(value) if getattr(value, "dtype", None) == np.float32 else real_numbers(name, value)
    if array.size == 1:
        return float(array.ravel()[0])
    if array.shape != shape:
        raise CaseError(f"{name}: shape {array.shape} is not the grid's {shape}")
    if array.flat[0] != array.flat[-1]:
        return array
    least, greatest = extremes(array)
    return least if least == greatest else array


#: The largest eigenvalue of the radial operator exceeds that of a Cartesian axis by up to this number divided by the
#: number of points (theory, section 15).
_RADIAL_EXCESS = 1.3
#: Courant numbers up to which axis-wise schemes are stable in one, two and three dimensions.
_CFL_LIMITS = {"separable": (0.87, 0.61, 0.50), "local4": (1.10, 0.78, 0.63)}


def max_time_step(problem: Problem, scheme: str = "exact") -> float:
    """Return the longest stable time step (s), infinity if every one is stable (theory, eqs. 17 and 69).

    Without losses and with c_ref >= max(c0) the exact correction has no limit; the other schemes always have one.
    """
    if problem.elastic is not None:
        return max_elastic_step(problem)
    limit = _limit_of_losses(problem)
    if scheme in _CFL_LIMITS:
        number = _CFL_LIMITS[scheme][problem.dimensions - 1]
        limit = min(limit, number * min(problem.spacing) / extremes(problem.sound_speed)[1])
    return limit


def _limit_of_losses(problem: Problem) -> float:
    max_sound_speed = extremes(problem.sound_speed)[1]
    if problem.outer_end is not None:
        max_sound_speed *= float(np.sqrt(1 + _RADIAL_EXCESS / problem.shape[-1]))
    wave_number = float(np.sqrt(sum((np.pi / d) ** 2 for d in problem.spacing)))
    reference = problem.reference_speed
    absorption = problem.absorption
    if absorption is None:
        return (
            np.inf
            if reference >= max_sound_speed
            else 2 / (reference * wave_number) * float(np.arcsin(reference / max_sound_speed))
        )
    y = absorption.alpha_power

    def eta(coefficient: Field, speed: Field) -> Field:
        neper = np.asarray(neper_coefficient(replace(absorption, alpha_coeff=coefficient)))
        return 2 * neper * np.asarray(as_double(speed)) ** y * float(np.tan(np.pi * y / 2))

    def tau(coefficient: Field, speed: Field) -> Field:
        return tau_of(replace(absorption, alpha_coeff=coefficient), speed)

    fields = absorption.alpha_coeff, problem.sound_speed
    has_loss = absorption.losses and absorption.gain_below is None
    min_tau = reduced(np.min, tau, *fields) if has_loss else 0.0
    min_eta = reduced(np.min, eta, *fields) if absorption.dispersion and not absorption.stokes else 0.0
    stiffness_factor = 1 - min_eta * wave_number ** (y - 1)
    if stiffness_factor <= 0:
        return 0.0
    if y < 1 and absorption.dispersion:
        # The dispersion is strongest in the longest wave.
        longest = max(n * d for n, d in zip(problem.transform_shape, problem.spacing, strict=True))
        if 1 - reduced(np.max, eta, *fields) * (2 * np.pi / longest) ** (y - 1) <= 0:
            return 0.0
    correction = 1.0
    dt = 0.0
    for _ in range(50):
        loss = max_sound_speed * min_tau * correction * wave_number ** (y - 1)
        dt = (loss + np.sqrt(loss**2 + 4 * stiffness_factor)) / (
            stiffness_factor * wave_number * correction * max_sound_speed
        )
        updated = float(np.sinc(reference * wave_number * min(dt, 2 * np.pi / (reference * wave_number)) / 2 / np.pi))
        if updated < 0.05:
            return float(dt)
        if abs(updated - correction) < 1e-6:
            break
        correction = updated
    return float(dt)
