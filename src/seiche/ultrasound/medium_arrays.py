# SPDX-License-Identifier: BSD-3-Clause
"""The medium as kernels want it: numbers where it is uniform, arrays where anything varies."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.kernels.registry.kspace import DensityKind
from seiche.ultrasound.problem import Absorption, Field
from seiche.ultrasound.state import State


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
    """Return tau = -2 a0 c0^(y-1) (eq. 11), zero without absorption."""
    if absorption is None:
        return 0.0
    tau: Field = -2 * neper_coefficient(absorption) * as_double(sound_speed) ** (absorption.alpha_power - 1)
    return tau


class MediumArrays:
    """Coefficients on a device; kernels ask for those that they use."""

    def __init__(self, state: State) -> None:
        """Nothing is uploaded before it is asked for."""
        problem = state.problem
        self._state = state
        self._values: dict[str, Field | None] = {
            "rho0": problem.density,
            "c0": problem.sound_speed,
            "BonA": problem.BonA,
            "tau": tau_of(problem.absorption, problem.sound_speed),
        }

    def members(self, *used: str) -> tuple[bool, dict[str, Any]]:
        """Return whether any of the coefficients `used` varies, and the members of the medium that has them."""
        varying = any(varies(self._values[name]) for name in used)
        members: dict[str, Any] = {}
        for name, value in self._values.items():
            if varying:
                members[name] = self._state.field(name, value) if name in used and value is not None else None
            else:
                members[name] = 0.0 if value is None or varies(value) else float(np.asarray(value))
        return varying, members

    def staggered(self) -> tuple[DensityKind, dict[str, Any]]:
        """Return kind and members of the density half a cell further."""
        problem, state = self._state.problem, self._state
        given = problem.staggered_density
        if given is not None and any(varies(one) for one in given):
            whole = np.stack([np.broadcast_to(np.asarray(one, state.real), problem.shape) for one in given])
            return "staggered", {"rho0": state.backend.upload(whole)}
        if varies(problem.density) and given is None:
            return "mean", {"rho0": state.field("rho0", problem.density)}
        uniform = problem.density if given is None else given[0]
        return "uniform", {"rho0": float(np.asarray(uniform))}
