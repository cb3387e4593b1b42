# SPDX-License-Identifier: BSD-3-Clause
"""The stated error of flow rates due to walls is that of tubes driven by pressures (theory/flow, section 10)."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from seiche.case.flow.flow_rate_errors import rounding_loss, wall_error
from seiche.domain import shapes
from seiche.flow import Bgk, FlowModel, Newtonian, Precision, PressureIolet, Regularised, Solver, Trt, Walls
from seiche.flow.model import Collision
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


def setup_of(kind: str, collision: Collision, tau: float, storage: str = "float64", layout: str = "auto") -> Any:
    """Return the parts of a setup that the estimates need."""
    return SimpleNamespace(
        model=SimpleNamespace(walls=Walls(kind), collision=collision),  # type: ignore[arg-type]
        invariants=SimpleNamespace(tau=(tau, tau)),
        precision=Precision("float32" if storage != "float64" else "float64", storage),  # type: ignore[arg-type]
        case=SimpleNamespace(lattice=SimpleNamespace(layout=layout)),
    )


def flow_of_pipe(radius: float, tau: float, kind: str, collision: Collision, precision: Precision) -> float:
    """Return the flow rate of a periodic pipe driven by a force, relative to Poiseuille's law."""
    viscosity = (tau - 0.5) * CS2
    force = 4 * viscosity * MACH * CS2**0.5 / radius**2
    model = FlowModel(Newtonian(viscosity), collision, body_force=(force, 0.0, 0.0), walls=Walls(kind))  # type: ignore[arg-type]
    solver = Solver(shapes.tube(radius, 1.0, 1.0, periodic=True), model, precision=precision, threads=1)
    solver.advance(int(9 * radius**2 / (5.783 * viscosity)) + 100)
    flow = float(solver.fields(["velocity"])["velocity"][:, 0].sum())
    return flow / (0.5 * MACH * CS2**0.5 * math.pi * radius**2)


@pytest.mark.parametrize(
    ("collision", "tau", "violated"),
    [
        (Bgk(), 2.0, True),
        (Bgk(), 1.5, True),
        (Bgk(), 0.6, False),
        (Regularised(), 2.0, True),
        (Regularised(), 0.536, False),
    ],
)
def test_stated_errors_of_interpolated_walls_with_one_rate_bound_those_of_pipes(
    collision: Collision, tau: float, violated: bool
) -> None:
    """The position of the wall depends on tau with them; the bound is that of half-way walls along the lattice."""
    stated = wall_error(setup_of("bouzidi", collision, tau), 5.0)
    error = 100 * abs(flow_of_pipe(5.0, tau, "bouzidi", collision, Precision()) - 1)
    assert 0.25 * stated.value < error < stated.value
    assert stated.violated == violated
    assert not wall_error(setup_of("bouzidi", Trt(), tau), 5.0).violated


@pytest.mark.parametrize("tau", [0.51, 0.536, 0.6, 1.0])
def test_the_stated_loss_of_the_flow_rate_with_populations_in_fp16_bounds_that_of_pipes(tau: float) -> None:
    """Changes of the momentum below half the last place are lost; FP32 and moments in FP16 lose none."""
    (stated,) = rounding_loss(setup_of("bouzidi", Trt(), tau, "float16"), 5.0)
    exact, rounded = (
        flow_of_pipe(5.0, tau, "bouzidi", Trt(), precision)
        for precision in (Precision(), Precision("float32", "float16"))
    )
    loss = 100 * (1 - rounded / exact)
    assert 0.3 * stated.value < loss < stated.value
    assert stated.violated == (tau < 0.6)
    assert not [*rounding_loss(setup_of("bouzidi", Trt(), tau, "float32"), 5.0)]
    assert not [*rounding_loss(setup_of("bouzidi", Regularised(), tau, "float16", "moments"), 5.0)]


@pytest.mark.parametrize("kind", ["bounce-back", "bouzidi"])
def test_stated_errors_of_walls_bound_measured_ones_within_a_factor_of_two(kind: str) -> None:
    setup = setup_of(kind, Trt(), TAU)
    ratios = []
    for radius in (3.0, 4.3, 5.3, 7.5):
        stated = wall_error(setup, radius)  # type: ignore[arg-type]
        assert stated.violated == (radius < (10 if kind == "bounce-back" else 10**0.5))
        ratios.append(100 * measured(radius, kind) / stated.value)
    assert 0.5 < max(ratios) < 1.1
    if kind == "bouzidi":
        warning = wall_error(setup, 1.25).warning  # type: ignore[arg-type]
        assert warning is not None
        assert "64 % is above 10: curved walls are near few sites" in warning and "by a factor of 2.5" in warning
