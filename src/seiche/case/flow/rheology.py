# SPDX-License-Identifier: BSD-3-Clause
"""Viscosity law of a case in SI units, and its conversion to lattice units."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.units import LatticeUnits
from seiche.flow import model as flow

#: (eta_0 in Pa s, eta_inf in Pa s, lambda in s, a, n) of blood; human blood after Boyd, Buick and Green 2007.
CARREAU_YASUDA = {"human": (0.160, 0.0035, 8.2, 0.64, 0.2128), "mouse": (0.01449, 0.003265, 0.1829, 2.707, 0.4136)}
#: (yield stress in Pa, eta_inf in Pa s, eta_0 in Pa s); the square roots of the first two are 0.1937 and 0.055.
CASSON = {"human": (0.1937**2, 0.055**2, 0.160)}
#: (viscosity at 1/s in Pa s, n, minimum and maximum shear rate in 1/s), for viscosities from 160 to 3.5 mPa s.
POWER_LAW = {"human": (0.004, 0.5, 6.25e-4, 1.3061)}


@dataclass(frozen=True)
class Rheology:
    """Viscosity law: dynamic viscosities (Pa s) at zero and at infinite shear rate, kind, and constants (SI)."""

    eta_0: float
    eta_inf: float
    kind: str = "newtonian"
    constants: tuple[float, ...] = ()

    def to_lattice(self, units: LatticeUnits) -> flow.Rheology:
        """Return the law in lattice units."""
        low, high = (units.to_lattice("viscosity", eta / units.density) for eta in (self.eta_inf, self.eta_0))
        if low == high:
            return flow.Newtonian(low)
        if self.kind == "carreau-yasuda":
            _, _, relaxation_time, a, n = self.constants
            return flow.CarreauYasuda(high, low, units.to_lattice("time", relaxation_time), a, n)
        if self.kind == "casson":
            return flow.Casson(units.to_lattice("stress", self.constants[0]), low, high)
        consistency, n, min_rate, max_rate = self.constants
        # The consistency is the viscosity at a shear rate of 1/s; it is converted to that at 1/step.
        rate_factor = units.to_lattice("rate", 1.0) ** (1.0 - n)
        viscosity_at_one = units.to_lattice("viscosity", consistency / units.density) * rate_factor
        return flow.PowerLaw(
            viscosity_at_one, n, units.to_lattice("rate", min_rate), units.to_lattice("rate", max_rate)
        )


def rheology_of(case: FlowCase) -> Rheology:
    """Return the viscosity law of `case`."""
    table = case.fluid.rheology
    if table is None:
        eta = case.fluid.viscosity or 0.0
        return Rheology(eta, eta)
    if table.kind == "newtonian":
        return Rheology(table.viscosity, table.viscosity)
    if table.kind == "carreau-yasuda":
        values = (table.eta_0, table.eta_inf, table.relaxation_time, table.a, table.n)
        constants = CARREAU_YASUDA[table.preset] if table.preset else _with_nan(values)
        return Rheology(constants[0], constants[1], table.kind, constants)
    if table.kind == "casson":
        constants = (
            CASSON[table.preset] if table.preset else _with_nan((table.yield_stress, table.eta_inf, table.eta_0))
        )
        return Rheology(constants[2], constants[1], table.kind, constants)
    limits = (table.consistency, table.n, table.shear_rate_min, table.shear_rate_max)
    constants = POWER_LAW[table.preset] if table.preset else _with_nan(limits)
    consistency, n, min_rate, max_rate = constants
    return Rheology(consistency * min_rate ** (n - 1), consistency * max_rate ** (n - 1), table.kind, constants)


def _with_nan(values: tuple[float | None, ...]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in values)
