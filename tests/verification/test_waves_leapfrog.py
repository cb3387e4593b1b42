# SPDX-License-Identifier: BSD-3-Clause
"""Waves by leapfrog with the central flux: its invariant, its order in time, its step, sides, sources and restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.kernels.registry.dg import CENTRAL, Discretisation, words_per_leap
from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Ricker, Solver
from seiche.waves.plane import PlaneWave

LEAP: dict[str, Any] = {"flux": "central", "integrator": "leapfrog"}


def random_solver(medium: str, by_node: bool, device: str, **options: Any) -> Solver:
    """Return a solver with hanging faces, free sides, random materials and a random state; solids meet fluids."""
    random = np.random.default_rng(4)
    forest = Forest.uniform(Brick((2, 2), (False, True)), 1)
    mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 0).balanced())
    shape = (mesh.count, 16) if by_node else (mesh.count,)
    density, cp = 1 + random.random(shape), 2 + random.random(shape)
    cs = np.zeros(shape) if medium == "acoustic" else 1 + 0.5 * random.random(shape)
    cs[::3] = 0
    options = {"boundaries": ("free", "rigid", "free", "free"), **LEAP, **options}
    solver = Solver(mesh, Material(density, cp, cs), nodes=4, medium=medium, device=device, **options)  # type: ignore[arg-type]
    state = random.standard_normal(solver.values().shape)
    if medium == "elastic":
        fluid = cs.reshape(mesh.count, -1).max(1) == 0
        state[fluid, 2:4] = state[fluid, 2:3]  # S = -p I
        state[fluid, 4:] = 0
    solver.start_from(state)
    return solver


@pytest.mark.parametrize(("medium", "by_node"), [("acoustic", False), ("elastic", True)])
def test_the_energy_of_leapfrog_stays(medium: str, by_node: bool, device: str) -> None:
    """The product of velocities half a step before and after, and the strain energy between: eq. 27."""
    solver = random_solver(medium, by_node, device)
    first = solver.energy()
    solver.advance(60)
    assert solver.energy() == pytest.approx(first, rel=2e-13)


def leapfrog_error(steps: int, device: str, **options: Any) -> float:
    """Return the error of a standing wave between rigid walls that 12 nodes resolve, after a time near one period."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((2, 2), (False, True)), 0), tree_size=0.5)
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, 2.0, 3.0),
        nodes=10,
        boundaries="rigid",
        dt=0.6 / steps,
        device=device,
        **options,
    )
    x = solver.positions[..., 0]
    omega = np.pi * 3.0

    def exact(time: float) -> np.ndarray:
        state = np.zeros(solver.values().shape)
        state[:, 0] = np.cos(np.pi * x) * np.cos(omega * time)
        state[:, 1] = np.sin(np.pi * x) * np.sin(omega * (time - solver.velocity_time_offset)) / 6.0
        return state

    solver.start_from(exact(0.0) * (np.arange(3) == 0)[:, None])  # no velocity at time zero
    solver.advance(steps)
    return float(np.abs(solver.values() - exact(solver.time)).max())


def test_leapfrog_is_of_second_order_in_time(device: str) -> None:
    """The phase of a frequency runs ahead by (omega dt)^2/24 of itself; pressures reach one."""
    coarse, fine = (leapfrog_error(steps, device, **LEAP) for steps in (180, 360))
    omega, step = np.pi * 3.0, 0.6 / 360
    assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.02)
    assert fine == pytest.approx(omega * 0.6 * (omega * step) ** 2 / 24 * abs(np.sin(omega * 0.6)), rel=0.3)
    assert leapfrog_error(360, device, flux="central") < 1e-3 * fine


@pytest.mark.parametrize(("medium", "nodes"), [("acoustic", 4), ("elastic", 5)])
def test_the_limit_of_the_leapfrog_step_is_where_waves_begin_to_grow(
    medium: str, nodes: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (True, True)), 2))
    material = Material.uniform(mesh.count, 1.0, 2.0, 1.0 if medium == "elastic" else 0.0)
    largest = Solver(mesh, material, nodes=nodes, device=device, **LEAP).largest_step
    monkeypatch.setattr("seiche.waves.solver.largest_step", lambda *_, **__: 2 * largest)
    grown = {}
    for share in (1.0, 1.06):
        solver = Solver(mesh, material, nodes=nodes, device=device, dt=share * largest, **LEAP)
        state = np.random.default_rng(0).standard_normal(solver.values().shape)
        solver.start_from(state)
        solver.advance(400)
        grown[share] = np.abs(solver.values()).max() / np.abs(state).max()
    assert grown[1.0] < 10 and grown[1.06] > 1e6


@pytest.mark.parametrize("kind", ["free", "rigid", "absorbing"])
def test_sides_reflect_or_absorb_a_pulse_that_leaps(kind: str, device: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((8, 1), (False, True)), 0))
    wave = PlaneWave("p", (1.0, 0.0), 2.0, 1.0)
    material = Material.uniform(mesh.count, 2.0, 1.0)
    solver = Solver(mesh, material, nodes=7, boundaries=kind, device=device, **LEAP)  # type: ignore[arg-type]

    def pulse(t: np.ndarray) -> np.ndarray:
        return np.exp(-((t - 5.0) ** 2) / 0.5)

    solver.start_from(wave.state("acoustic", solver.positions, 0.0, pulse))
    energy = solver.energy()
    solver.advance(round(6.0 / solver.dt))
    mirrored = pulse(16.0 - solver.positions[..., 0] - solver.time) * 2.0
    expected = {"free": -mirrored, "rigid": mirrored, "absorbing": 0 * mirrored}[kind]
    assert np.abs(solver.values()[:, 0] - expected).max() < 7e-3 * 2.0
    assert solver.energy() == pytest.approx(0.0 if kind == "absorbing" else energy, abs=1e-5 * energy)


@pytest.mark.parametrize("medium", ["acoustic", "elastic"])
def test_leapfrog_and_runge_kutta_record_the_same_waves(medium: str, device: str) -> None:
    """Hanging faces, free sides, all kinds of source; velocities are half a step early."""
    forest = Forest.uniform(Brick((4, 4), (False, False)), 0)
    mesh = Mesh.of_forest(forest.refined(np.arange(16) == 5).balanced())
    material = Material.uniform(mesh.count, 1.5, 2.0, 1.1 if medium == "elastic" else 0.0)
    second = {"volume": 0.4} if medium == "acoustic" else {"moment": [[1.0, 0.3], [0.3, -0.5]]}
    sources = [PointSource((2.2, 2.1), Ricker(0.8, 1.5), force=(1.0, -0.5))]
    sources += [PointSource((1.7, 2.0), Gaussian(0.3, 1.6), **second)]  # type: ignore[arg-type]
    samples = {}
    for integrator in ("runge-kutta", "leapfrog"):
        solver = Solver(
            mesh,
            material,
            nodes=5,
            flux="central",
            integrator=integrator,  # type: ignore[arg-type]
            sources=sources,
            receivers=[(3.1, 3.0), (1.0, 2.5)],
            boundaries="free",
            dt=0.004,
            device=device,
        )
        solver.advance(750)
        samples[integrator] = solver.samples()
        lead = solver.velocity_time_offset
    assert lead == 0.002
    exact, result = samples["runge-kutta"], samples["leapfrog"]
    velocity = [name.startswith("v") for name in solver.unknowns]
    exact[1:, :, velocity] = (exact[1:, :, velocity] + exact[:-1, :, velocity]) / 2
    scale = np.abs(exact).max((0, 1))
    assert np.all(np.abs(result - exact)[1:].max((0, 1)) < 5e-4 * scale)


def test_a_staggered_state_continues_unchanged(device: str) -> None:
    solver = random_solver("elastic", False, device, boundaries="absorbing")
    solver.advance(7)
    state, steps = solver.values(), solver.step
    solver.advance(6)
    expected = solver.values()
    second = random_solver("elastic", False, device, boundaries="absorbing")
    second.start_from(state, steps, staggered=True)
    second.advance(6)
    np.testing.assert_array_equal(second.values(), expected)


def test_the_words_of_a_leapfrog_step_are_those_of_the_model() -> None:
    assert words_per_leap(Discretisation("acoustic", 3, 8, CENTRAL)) == 15
    assert words_per_leap(Discretisation("elastic", 3, 8, CENTRAL)) == 36


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "euler"}, r"integrator = 'euler': must be one of runge-kutta, leapfrog"),
        ({"integrator": "leapfrog"}, r'integrator = "leapfrog" requires flux = "central", not "upwind"'),
        ({**LEAP, "variant": "separate"}, r'integrator = "leapfrog" requires variant = "fused", not "separate"'),
        ({**LEAP, "ghosts": "half"}, r'integrator = "leapfrog" requires ghosts = "traces", not "half"'),
    ],
)
def test_what_leapfrog_cannot_go_with_is_rejected(options: dict[str, Any], message: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (True, True)), 0))
    with pytest.raises(CaseError, match=message):
        Solver(mesh, Material.uniform(1, 1.0, 1.0), **options)


def test_rates_are_not_told_with_leapfrog(device: str) -> None:
    with pytest.raises(CaseError, match='the rate of change requires integrator = "runge-kutta"'):
        random_solver("acoustic", False, device).rhs()
