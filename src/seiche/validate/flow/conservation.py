# SPDX-License-Identifier: BSD-3-Clause
"""Conservation: mass between walls, momentum under a force, and mass balance with the flow through iolets."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.flow.model import CarreauYasuda, FlowModel, Newtonian, Precision, PressureIolet, VelocityIolet
from seiche.flow.solver import FlowSolver
from seiche.flow.state import site_state
from seiche.flow.velocity_set import D3Q19
from seiche.validate.check import Check, Floats, Setting

_GUO = "Guo, Zheng, Shi 2002, doi:10.1103/PhysRevE.65.046308"
#: Published viscosities (mPa s) at these shear rates (1/s) for human and murine blood.
_SHEAR_RATES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_BLOODS = {
    "human": (CarreauYasuda(160.0, 3.5, 8.2, 0.64, 0.2128), (75.460, 25.973, 8.0399, 4.2826, 3.6294)),
    "murine": (CarreauYasuda(14.49, 3.265, 0.1829, 2.707, 0.4136), (14.490, 14.466, 10.845, 5.3067, 3.7942)),
}


def _random_state(sites: SiteSet) -> dict[str, Floats]:
    """Return a state with random density and velocity at every site and zero mean velocity."""
    random = np.random.default_rng(7)
    excess, velocity = random.uniform(-0.01, 0.01, len(sites)), random.uniform(-0.03, 0.03, (len(sites), 3))
    return {"populations": D3Q19.equilibrium(excess, velocity)}


def mass_drifts(setting: Setting, model: FlowModel, steps: int, prefix: str = "", **options: Any) -> list[Check]:
    """Return checks of the mass in a periodic tube in three precisions; `options` are those of the solver."""
    sites = shapes.tube(5.3, 8.0, 1.0, periodic=True)
    checks = []
    for precision in (Precision(), Precision("float32", "float32"), Precision("float32", "float16")):
        solver = setting.solver(sites, model, precision=precision, **options)
        solver.set_state(site_state(solver, _random_state(sites)))
        initial_mass = solver.monitor().mass
        solver.advance(steps)
        drift = abs(solver.monitor().mass / initial_mass - 1)
        name = f"{prefix}mass drift in {steps:,} steps, {precision.compute}, stored as {precision.storage}"
        exact = precision.storage == "float64"
        checks.append(Check(name, drift, 1e-12 if exact else np.inf, "below" if exact else "recorded"))
    return checks


def mass(setting: Setting) -> list[Check]:
    """Check that the mass in a closed periodic tube changes only by rounding errors."""
    return mass_drifts(setting, FlowModel(Newtonian(0.05)), 1500 if setting.quick else 10_000)


def imbalance(solver: FlowSolver) -> tuple[float, float]:
    """Return the maximum relative difference of mass change and iolet flow, and the maximum flow, in 50 steps."""
    before, max_error, turnover = solver.monitor().mass, 0.0, 0.0
    for _ in range(50):
        solver.advance()
        final_mass, flow = solver.monitor().mass, solver.measures.iolet_flow()
        max_error = max(max_error, abs(final_mass - before - flow.sum()) / final_mass)
        turnover = max(turnover, float(np.abs(flow).max()))
        before = final_mass
    return max_error, turnover


def momentum(setting: Setting) -> list[Check]:
    """Check d(rho u)/dt = g for an arbitrary flow in a periodic box."""
    sites, steps, g = shapes.box((8, 8, 8)), 50, np.array([1e-4, -2e-4, 5e-5])
    max_error = 0.0
    for rheology in (Newtonian(0.05), CarreauYasuda(0.3, 0.02, 100.0, 0.64, 0.2128)):
        solver = setting.solver(sites, FlowModel(rheology, body_force=(g[0], g[1], g[2])))
        solver.set_state(site_state(solver, {**_random_state(sites), "relaxation": np.full(len(sites), 1.2)}))
        totals = []
        for _ in range(2):
            fields = solver.fields(["density", "velocity"])
            totals.append(fields["density"] @ fields["velocity"])
            solver.advance(steps)
        gained = (totals[1] - totals[0]) / (len(sites) * steps)
        max_error = max(max_error, float(np.abs(gained / g - 1).max()))
    return [Check("uniform force: error of d(rho u)/dt = g", max_error, 1e-12, reference=_GUO)]


def iolet_balance(setting: Setting) -> list[Check]:
    """Check that the change of mass in every step equals the flow through the iolets."""
    sites = shapes.tube(5.3, 16.0, 1.0, axis=(1.0, 0.2, 0.1))
    iolets = (VelocityIolet(0.01, (0.01 + 0.002j,), 40.0, 0.05), PressureIolet(1.0, 0.002, 25.0))
    solver = setting.solver(sites, FlowModel(Newtonian(0.05), iolets=iolets, body_force=(1e-6, 0.0, 2e-6)))
    max_error, turnover = imbalance(solver)
    return [
        Check("iolets: change of mass per step minus inflow, over the mass", max_error, 1e-14),
        Check("iolets: largest flow in this balance", turnover, sense="recorded", unit="sites/step"),
    ]


def rheology(setting: Setting) -> list[Check]:
    """Check the Carreau-Yasuda viscosities of human and murine blood over four decades of the shear rate."""
    max_error = max(
        abs(fluid.viscosity(shear) / value - 1)
        for fluid, values in _BLOODS.values()
        for shear, value in zip(_SHEAR_RATES, values, strict=True)
    )
    return [Check("blood: viscosity at 0.1 ... 1000 1/s", max_error, 5e-5, reference="values computed by hand")]
