# SPDX-License-Identifier: BSD-3-Clause
"""Conversion between SI and lattice units (dx = dt = 1, cs^2 = 1/3, reference density 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

#: Squared speed of sound of the lattice.
CS2 = 1.0 / 3.0

Kind = (
    Literal["length", "time", "rate", "velocity", "viscosity", "flow_rate", "mass_flow", "mass", "stress"]
    | Literal["force_density", "resistance", "compliance", "surface_modulus", "surface_viscosity"]
    | Literal["energy", "force"]
)
#: Powers of (spacing, step, density) in one lattice unit of each kind.
POWERS: dict[Kind, tuple[int, int, int]] = {
    "length": (1, 0, 0),
    "time": (0, 1, 0),
    "rate": (0, -1, 0),
    "velocity": (1, -1, 0),
    "viscosity": (2, -1, 0),
    "flow_rate": (3, -1, 0),
    "mass_flow": (3, -1, 1),
    "mass": (3, 0, 1),
    "stress": (2, -2, 1),
    "force_density": (1, -2, 1),
    "resistance": (-1, -1, 1),
    "compliance": (1, 2, -1),
    "surface_modulus": (3, -2, 1),
    "surface_viscosity": (3, -1, 1),
    "energy": (5, -2, 1),
    "force": (4, -2, 1),
}

Value = TypeVar("Value", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class LatticeUnits:
    """Lattice units of `spacing` m, `step` s and `density` kg/m^3; lattice density 1 is at `reference_pressure` Pa.

    `viscosity` is kinematic (m^2/s), `flow_rate` is a volume flow rate (m^3/s), and `rate` is a shear rate or a
    frequency (1/s).
    """

    spacing: float
    step: float
    density: float
    reference_pressure: float = 0.0

    def scale(self, kind: Kind) -> float:
        """Return the SI value of one lattice unit of `kind`."""
        length, time, mass = POWERS[kind]
        return float(self.spacing**length * self.step**time * self.density**mass)

    def to_lattice(self, kind: Kind, value: Value) -> Value:
        """Return the SI `value` in lattice units."""
        return value / self.scale(kind)

    def to_si(self, kind: Kind, value: Value) -> Value:
        """Return the lattice `value` in SI units."""
        return value * self.scale(kind)

    def density_of_pressure(self, pressure: Value) -> Value:
        """Return the lattice density at `pressure` (Pa): rho = 1 + (p - p_ref)/(cs^2 * unit of stress)."""
        return 1.0 + self.to_lattice("stress", pressure - self.reference_pressure) / CS2

    def pressure_of_density(self, density: Value) -> Value:
        """Return the pressure (Pa) at the lattice `density`; the inverse of `density_of_pressure`."""
        return self.reference_pressure + (density - 1.0) * (CS2 * self.scale("stress"))

    def relaxation_time(self, kinematic_viscosity: float) -> float:
        """Return tau = 1/2 + 3 nu dt/dx^2 for `kinematic_viscosity` in m^2/s."""
        return 0.5 + self.to_lattice("viscosity", kinematic_viscosity) / CS2


def step_of_relaxation_time(tau: float, spacing: float, kinematic_viscosity: float) -> float:
    """Return the time step (s) at which `kinematic_viscosity` (m^2/s) has the relaxation time `tau`."""
    return CS2 * (tau - 0.5) * spacing**2 / kinematic_viscosity


def step_of_mach(mach: float, spacing: float, velocity: float) -> float:
    """Return the time step (s) at which `velocity` (m/s) has the Mach number `mach`."""
    return float(mach * CS2**0.5 * spacing / velocity)
