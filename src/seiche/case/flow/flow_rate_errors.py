# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of errors of flow rates due to walls and to rounding of populations (theory/flow, section 10)."""

from __future__ import annotations

from collections.abc import Iterator

from seiche.case.flow.setup import FlowSetup
from seiche.flow import Bgk, Regularised
from seiche.solver import Estimate

#: Largest advised error of flow rates due to walls, %.
ADVISED_WALL_ERROR = 10.0
#: Largest advised loss of the flow rate due to rounding, %.
ADVISED_ROUNDING_LOSS = 2.0
#: The loss (%) times the viscosity over the square of the radius (lattice units), with populations in FP16.
_ROUNDING_LOSS = 1.5e-3
_BOUNDS = "theory/flow.md#automatic-checks"


def wall_error(setup: FlowSetup, radius: float) -> Estimate:
    """Return the largest relative error of the flow rate due to walls in a tube of a radius (sites)."""
    slip = abs(16.0 / 3.0 * _magic(setup) - 1.0)
    name, effect = "largest error of the flow rate due to walls", "the position of walls depends on tau"
    remedy = 'use lattice.collision = "trt" with its default magic, or a smaller tau'
    if setup.model.walls.kind != "bouzidi":
        stairs = 100.0 / radius
        value = stairs + 100.0 * slip / radius**2
        if stairs > ADVISED_WALL_ERROR:
            effect, remedy = "curved walls half-way between sites are stairs", 'use walls.kind = "bouzidi"'
        return _bounded(name, value, ADVISED_WALL_ERROR, effect, remedy)
    value = 100.0 * max(1.0, slip) / radius**2
    if slip <= 1.0:
        effect = "curved walls are near few sites"
        remedy = f"use a spacing that is smaller by a factor of {(value / ADVISED_WALL_ERROR) ** 0.5:.2g}"
    return _bounded(name, value, ADVISED_WALL_ERROR, effect, remedy)


def rounding_loss(setup: FlowSetup, radius: float) -> Iterator[Estimate]:
    """Yield the largest loss of the flow rate due to rounding in a vessel of a hydraulic radius (sites), with FP16."""
    if setup.precision.storage != "float16" or setup.case.lattice.layout == "moments":
        return
    viscosity = (setup.invariants.tau[0] - 0.5) / 3.0
    yield _bounded(
        "largest loss of the flow rate due to populations in FP16",
        _ROUNDING_LOSS * radius**2 / viscosity,
        ADVISED_ROUNDING_LOSS,
        "the change of the momentum in a step is smaller than the last place of FP16",
        'use run.precision.storage = "float32", or lattice.collision = "regularised" with lattice.layout = "moments"',
    )


def _magic(setup: FlowSetup) -> float:
    """Return the magic parameter that is farthest from 3/16 (eq. 8), at which half-way walls are exact."""
    collision = setup.model.collision
    if not isinstance(collision, Bgk | Regularised):
        return collision.magic
    values = [(tau - 0.5) * ((tau - 0.5) if isinstance(collision, Bgk) else 0.5) for tau in setup.invariants.tau]
    return max(values, key=lambda value: abs(value - 3.0 / 16.0))


def _bounded(name: str, value: float, upper_bound: float, effect: str, remedy: str) -> Estimate:
    return Estimate(
        name=name, value=value, unit="%", upper_bound=upper_bound, effect=effect, remedy=remedy, source=_BOUNDS
    )
