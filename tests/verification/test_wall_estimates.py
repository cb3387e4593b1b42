# SPDX-License-Identifier: BSD-3-Clause
"""The stated error of flow rates due to walls is that of tubes driven by pressures (theory/flow, section 10)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from seiche.case.flow.estimates import wall_error
from seiche.domain import shapes
from seiche.flow import FlowModel, Newtonian, PressureIolet, Solver, Walls
from seiche.flow.velocity_set import CS2

TAU, MACH = 1.0, 0.05


def measured(radius: float, kind: str) -> float:
    """Return the relative error of the flow rate of a tube of a radius (sites)."""
    viscosity, peak, length = (TAU - 0.5) * CS2, MACH * CS2**0.5, round(8 * radius)
    excess = 4 * viscosity * peak / radius**2 * length / CS2
    ends = (PressureIolet(1 + excess / 2), PressureIolet(1 - excess / 2))
    model = FlowModel(Newtonian(viscosity), iolets=ends, walls=Walls(kind))  # type: ignore[arg-type]
    solver = Solver(shapes.tube(radius, length, 1.0), model, threads=1)
    solver.advance(int(9 * radius**2 / (5.783 * viscosity)) + 30 * length)
    return abs(float(solver.measures.iolet_flow()[0]) / (0.5 * peak * math.pi * radius**2) - 1)


@pytest.mark.parametrize("kind", ["bounce-back", "bouzidi"])
def test_stated_errors_of_walls_bound_measured_ones_within_a_factor_of_two(kind: str) -> None:
    setup = SimpleNamespace(model=SimpleNamespace(walls=Walls(kind)))  # type: ignore[arg-type]
    ratios = []
    for radius in (3.0, 4.3, 5.3, 7.5):
        stated = wall_error(setup, radius)  # type: ignore[arg-type]
        assert stated.violated == (kind == "bounce-back" and radius < 10)
        ratios.append(100 * measured(radius, kind) / stated.value)
    assert 0.5 < max(ratios) < 1.1
