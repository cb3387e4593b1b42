# SPDX-License-Identifier: BSD-3-Clause
"""Medium properties for kernels: numbers where the medium is uniform, arrays where any property varies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry.kspace import DensityKind
from seiche.ultrasound import operators
from seiche.ultrasound.problem import Absorption, Field
from seiche.ultrasound.state import DeviceState


def varies(value: Field | None) -> bool:
    """Return whether a field is an array."""
    return value is not None and np.ndim(value) > 0


def neper_coefficient(absorption: Absorption) -> Field:
    """Return a0 in Np (rad/s)^-y m^-1 from dB/(MHz^y cm) (eq. 11)."""
    scale = 100 * (1e-6 / (2 * np.pi)) ** absorption.alpha_power / (20 * np.log10(np.e))
    coefficient: Field = as_double(absorption.alpha_coeff) * scale
    return coefficient


def as_double(value: Field) -> Field:
    """Return a field in double precision; a number stays a number."""
    return np.asarray(value, np.float64) if varies(value) else float(np.asarray(value))


def tau_of(absorption: Absorption | None, sound_speed: Field) -> Field:
    """Return tau = -2 a0 c0^(y-1) (eq. 11), positive for a gain, zero without absorption."""
    if absorption is None:
        return 0.0
    factor = -2 * absorption.sign
    tau: Field = factor * neper_coefficient(absorption) * as_double(sound_speed) ** (absorption.alpha_power - 1)
    return tau


class MediumArrays:
    """Coefficients on a device, uploaded on first use."""

    def __init__(self, state: DeviceState) -> None:
        problem = state.problem
        self._state = state
        values: dict[str, Field | None] = {"rho0": problem.density, "c0": problem.sound_speed, "BonA": problem.BonA}
        self._values = values
        self._varying = {name: varies(value) for name, value in self._values.items()}
        absorption = problem.absorption
        self._varying["tau"] = absorption is not None and (varies(absorption.alpha_coeff) or self._varying["c0"])

    def members(self, *names: str) -> tuple[bool, dict[str, Any]]:
        """Return whether any of the coefficients `names` varies, and the kernel members of the medium with them."""
        varying = any(self._varying[name] for name in names)
        members: dict[str, Any] = {}
        for name, is_varying in self._varying.items():
            if varying:
                members[name] = self._array(name) if name in names else None
            else:
                members[name] = 0.0 if is_varying else self._number(name)
        return varying, members

    def _number(self, name: str) -> float:
        problem = self._state.problem
        value = tau_of(problem.absorption, problem.sound_speed) if name == "tau" else self._values[name]
        return 0.0 if value is None else float(np.asarray(value))

    def _array(self, name: str) -> Array | None:
        if name == "tau":
            return self._state.table("tau", self._tau)
        value = self._values[name]
        return None if value is None else self._state.field(name, value)

    def _tau(self) -> Array:
        """Return tau on the device, computed plane by plane, since powers are taken in double precision."""
        state, problem = self._state, self._state.problem
        result = np.empty(problem.shape, state.real)
        speed = np.broadcast_to(np.asarray(problem.sound_speed), problem.shape)
        absorption = problem.absorption
        if absorption is None:
            result[...] = 0.0
        else:
            coefficient = np.broadcast_to(np.asarray(absorption.alpha_coeff), problem.shape)

            def compute(k: int) -> None:
                result[k] = tau_of(replace(absorption, alpha_coeff=coefficient[k]), speed[k])

            operators.each_plane(len(result), compute)
        return state.backend.upload(result.reshape(-1))

    def staggered(self) -> tuple[DensityKind, dict[str, Any]]:
        """Return kind and members of the density at staggered points."""
        problem, state = self._state.problem, self._state
        specified = problem.staggered_density
        if specified is not None and any(varies(field) for field in specified):

            def make() -> Array:
                full_fields = [np.broadcast_to(np.asarray(field, state.real), problem.shape) for field in specified]
                return state.backend.upload(np.stack(full_fields))

            return "staggered", {"rho0": state.table("staggered", make)}
        if varies(problem.density) and specified is None:
            return "mean", {"rho0": state.field("rho0", problem.density)}
        uniform = problem.density if specified is None else specified[0]
        return "uniform", {"rho0": float(np.asarray(uniform))}
