# SPDX-License-Identifier: BSD-3-Clause
"""Small flows that exercise everything at once: both kinds of iolets, a force, walls in all directions, blood."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.flow import Bgk, CarreauYasuda, FlowModel, Newtonian, PressureIolet, Solver, Trt, VelocityIolet

FIELDS = ("density", "velocity", "stress", "shear_rate", "wall_shear_stress", "viscosity")

#: Shear rates of the small flows are about 1e-3, where this fluid thins to half its viscosity at rest.
BLOOD = CarreauYasuda(0.3, 0.02, 2000.0, 0.64, 0.2128)
WATER = Newtonian(0.05)


def tilted_tube(radius: float = 6.3, length: float = 24.0) -> SiteSet:
    return shapes.tube(radius, length, 1.0, axis=(1.0, 0.2, 0.1))


def iolet_model(rheology: CarreauYasuda | Newtonian, collision: Bgk | Trt | None = None) -> FlowModel:
    """Return a pulsating velocity inlet, a pulsating pressure outlet and a force across the tube."""
    inlet = VelocityIolet(0.01, (0.01 + 0.002j,), 100.0, 0.05)
    iolets = (inlet, PressureIolet(1.0, 0.001, 50.0, scheme="nash"))
    return FlowModel(rheology, collision or Trt(), iolets=iolets, body_force=(1e-6, 0.0, 2e-6))


def blood_in_a_tilted_tube() -> tuple[SiteSet, FlowModel]:
    return tilted_tube(), iolet_model(BLOOD)


def site_arrays(solver: Solver) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the state of this rank's sites."""
    return {name: rows[:] for name, rows in solver.state().rows["sites"].arrays.items()}
