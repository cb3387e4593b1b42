# SPDX-License-Identifier: BSD-3-Clause
"""Elastic media against exact solutions: plane waves, absorption, fluid-solid interfaces, layers, sources of stress."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seiche.errors import CaseError, UnstableError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.advice import estimates, lowest_speed, memory
from seiche.ultrasound.elastic_medium import max_elastic_step
from seiche.ultrasound.medium import max_time_step
from seiche.ultrasound.problem import Absorption, Elastic, MaskSource, Pml, Problem
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.validate.check import Setting
from seiche.validate.ultrasound import elastic

WATER, BONE = (1500.0, 0.0, 1000.0), (2800.0, 1500.0, 1850.0)
SHAPES = {2: (24, 20), 3: (12, 10, 8)}


def solid(dimensions: int, cfl: float, **given: object) -> Problem:
    """Return a periodic grid of bone without layers."""
    shape, spacing, (speed, shear, density) = SHAPES[dimensions], 1e-4, BONE
    return Problem(
        **{
            "axes": ("x", "y", "z")[:dimensions],
            "shape": shape,
            "spacing": (spacing,) * dimensions,
            "dt": cfl * spacing / speed,
            "steps": 1000,
            "reference_speed": speed,
            "sound_speed": speed,
            "density": density,
            "elastic": Elastic(shear),
            "pml": (Pml(0, 0.0),) * dimensions,
            **given,
        }
    )


def plane_wave(problem: Problem, kind: str, time: float) -> dict[str, np.ndarray]:
    """Return the fields of a plane wave whose stresses are those at `time`, a solution of the scheme without losses.

    The derivative in time of the scheme turns a frequency w into sin(w dt/2) 2/dt, which is the speed times |k|.
    """
    n = problem.dimensions
    k = 2 * np.pi * np.array([2, 1, 1][:n]) / (np.array(problem.shape) * problem.spacing)
    size = np.linalg.norm(k)
    assert problem.elastic is not None
    across = np.cross([*k, 0][:3], [0, 0, 1]) if n == 2 else np.cross(k, [0.3, -1, 0.5])
    along = (k if kind == "P" else across[:n]) / np.linalg.norm(k if kind == "P" else across)
    speed = float(problem.sound_speed if kind == "P" else problem.elastic.shear_speed)
    mu = problem.density * problem.elastic.shear_speed**2
    modulus = problem.density * problem.sound_speed**2 - 2 * mu
    frequency = 2 / problem.dt * np.arcsin(speed * size * problem.dt / 2)

    def wave(shifted: tuple[int, ...], t: float) -> np.ndarray:
        places = np.indices(problem.shape, float) + np.isin(np.arange(n), shifted).reshape(-1, *[1] * n) / 2
        phase = np.tensordot(k * problem.spacing, places, 1) - frequency * t
        return np.cos(phase)

    fields = {f"u{a}": along[i] * wave((i,), time - problem.dt / 2) for i, a in enumerate(problem.axes)}
    for i, a in enumerate(problem.axes):
        for j in range(i, n):
            strain = mu * (along[i] * k[j] + along[j] * k[i]) + (modulus * (along @ k) if i == j else 0.0)
            shifted = (i, j) if i != j else ()
            fields[f"s{a}{problem.axes[j]}"] = -strain / (speed * size) * wave(shifted, time)
    return fields


def started(problem: Problem, fields: dict[str, np.ndarray], device: str) -> UltrasoundSolver:
    """Return a solver with given fields."""
    solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
    state = solver.state()
    points = state.rows["points"]
    arrays = {**points.arrays, **{name: field.ravel() for name, field in fields.items()}}
    solver.set_state(replace(state, rows={**state.rows, "points": replace(points, arrays=arrays)}))
    return solver


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("kind", ["P", "S"])
def test_oblique_plane_waves_have_no_error_but_the_known_one_in_time(kind, dimensions, device):
    problem = solid(dimensions, 0.3)
    solver = started(problem, plane_wave(problem, kind, 0.0), device)
    solver.advance(300)
    for name, exact in plane_wave(problem, kind, 300 * problem.dt).items():
        scale = max(np.abs(f).max() for g, f in plane_wave(problem, kind, 0.0).items() if g[0] == name[0])
        assert np.abs(solver.field(name) - exact).max() < 1e-10 * scale, name
    solver.close()


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("kind", ["P", "S"])
def test_absorption_of_both_waves_is_that_of_kelvin_and_voigt(kind, dimensions, device):
    """A wave that decays as exp(-g t) is the solution of a recursion over two steps; its last factor is exp(-2 g dt).

    The scheme has 1 - 2 g dt instead, with the theoretical decay g.
    """
    loss, shear_loss = 2.0, 4.0
    medium = {"absorption": Absorption(loss, 2.0, stokes=True), "elastic": Elastic(BONE[1], shear_loss)}
    problem = solid(dimensions, 0.1, **medium)
    solver = started(problem, plane_wave(problem, kind, 0.0), device)
    series = []
    for _ in range(40):
        solver.advance(1)
        series.append(solver.field("uy").ravel()[7])
    solver.close()
    last, middle, first = (np.array(series[k : k + 38]) for k in (2, 1, 0))
    (_, product), *_ = np.linalg.lstsq(np.stack([middle, first], 1), last, rcond=None)
    k = 2 * np.pi * np.array([2, 1, 1][:dimensions]) / (np.array(problem.shape) * problem.spacing)
    speed, coefficient = (BONE[0], loss) if kind == "P" else (BONE[1], shear_loss)
    megahertz = speed * np.linalg.norm(k) / (2 * np.pi) / 1e6
    decay = coefficient * megahertz**2 * 100 / (20 * np.log10(np.e)) * speed
    assert (1 + product) / (2 * problem.dt) == pytest.approx(decay, rel=1e-6)


def test_a_solid_without_shear_is_the_fluid_without_correction(device):
    shape = (20, 18)
    rng = np.random.default_rng(1)
    medium = {"sound_speed": 1500 * (1 + 0.2 * rng.random(shape)), "density": 1000 * (1 + 0.2 * rng.random(shape))}
    source = MaskSource("p", np.array([47, 170]), 1e-6 * rng.random((50, 2)), "additive-no-correction", 50)
    given = {"sources": (source,), "reference_speed": 1e-3, "shape": shape, **medium}
    elastic = solid(2, 0.1, **given, absorption=Absorption(3.0, 2.0, stokes=True), elastic=Elastic(0.0))
    fields = []
    for problem in (elastic, replace(elastic, elastic=None)):
        solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
        solver.advance(100)
        fields.append({name: solver.field(name) for name in ("p", "ux", "uy")})
        solver.close()
    for name, expected in fields[1].items():
        np.testing.assert_allclose(fields[0][name], expected, atol=1e-11 * np.abs(expected).max(), rtol=0)


def bone_below(shape: tuple[int, ...], first: int) -> dict[str, np.ndarray]:
    """Return water, and bone from a point of the first axis on."""
    inside = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) >= first
    return {
        name: np.broadcast_to(np.where(inside, b, w), shape).copy()
        for name, w, b in zip(("sound_speed", "shear_speed", "density"), WATER, BONE, strict=True)
    }


@pytest.mark.parametrize(("period", "tolerance"), [(0, 0.01), (29, 0.005), (16, 0.015)], ids=["0", "20", "39"])
def test_reflection_by_bone_at_an_angle_is_exact(period, tolerance, device):
    found, exact = elastic.reflection(Setting(device), (max(period, 2),), period)
    assert found == pytest.approx(exact, rel=tolerance)


def test_reflection_in_three_dimensions_is_that_in_two(device):
    plane, _ = elastic.reflection(Setting(device), (12,), 12, cfl=0.3)
    found, _ = elastic.reflection(Setting(device), (12, 2), 12, cfl=0.3)
    assert found == pytest.approx(plane, rel=1e-6)


@pytest.mark.parametrize("shape", [(48, 40), (26, 24, 20)], ids=["2D", "3D"])
def test_a_solid_in_the_layers_never_gains_energy(shape, device):
    steps = 3000 if len(shape) == 2 else 600
    medium = bone_below(shape, shape[0] // 2)
    elastic = Elastic(medium.pop("shear_speed"))
    given = {**medium, "shape": shape, "pml": (Pml(8, 2.0),) * len(shape), "elastic": elastic}
    problem = solid(len(shape), 0.3, **given, initial_pressure=np.random.default_rng(3).standard_normal(shape))
    solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
    sizes = []
    for _ in range(3):
        solver.advance(steps // 3)
        sizes.append(max(float(np.abs(solver.field(name)).max()) for name in ("p", "sxx", "sxy")))
    assert sizes[2] < sizes[1] * 1.01 < sizes[0] * 1.02
    solver.close()


@pytest.mark.parametrize("uniform", [True, False], ids=["uniform", "bone in water"])
def test_the_longest_step_is_the_limit_of_stability(uniform, device):
    shape = SHAPES[2]
    medium: dict[str, object] = {"elastic": Elastic(BONE[1], 4.0), "absorption": Absorption(8.0, 2.0, stokes=True)}
    if not uniform:
        fields = bone_below(shape, shape[0] // 2)
        loss = np.where(fields["shear_speed"] > 0, 8.0, 0.0)
        medium = {"elastic": Elastic(fields["shear_speed"], loss / 2), "absorption": Absorption(loss, 2.0, stokes=True)}
        medium |= {"sound_speed": fields["sound_speed"], "density": fields["density"]}
    start = np.random.default_rng(5).standard_normal(shape)
    largest = []
    for factor in (0.99, 1.05):
        problem = solid(2, 0.3, **medium, initial_pressure=start)
        problem = replace(problem, dt=factor * max_elastic_step(problem))
        assert max_time_step(problem) == max_elastic_step(problem)
        solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
        solver.advance(240)
        largest.append(float(np.abs(solver.field("p")).max()))
        solver.close()
    assert largest[0] < 10
    assert not uniform or largest[1] > 1e3


def test_a_light_fluid_beside_bone_shortens_the_longest_step(device):
    """The limits of the two media alone are those of bone, with which air beside bone is unstable."""
    shape = SHAPES[2]
    inside = np.arange(shape[0])[:, None] + np.zeros(shape) >= shape[0] // 2
    medium = {"sound_speed": np.where(inside, BONE[0], 340.0), "density": np.where(inside, BONE[2], 1.2)}
    start = np.random.default_rng(5).standard_normal(shape)
    given = {**medium, "elastic": Elastic(np.where(inside, BONE[1], 0.0)), "initial_pressure": start}
    problem = solid(2, 0.3, **given)
    limit, bone = max_elastic_step(problem), max_elastic_step(solid(2, 0.3))
    assert bone / limit == pytest.approx(16.17, abs=0.01)
    assert limit < max_elastic_step(replace(problem, density=np.where(inside, BONE[2], 12.0)))
    for dt, stable in ((0.99 * limit, True), (0.3 * bone, False)):
        solver = UltrasoundSolver(replace(problem, dt=dt), device=device, precision="float64", threads=1)
        if stable:
            sizes = []
            for _ in range(3):
                solver.advance(1000)
                sizes.append(np.abs(solver.field("p")).max())
            assert max(sizes[1:]) < 2 * sizes[0]
        else:
            with pytest.raises(UnstableError):
                solver.advance(1000)
        solver.close()


def test_the_speed_of_a_scholte_wave_is_that_of_theory():
    assert elastic.surface_speed(elastic.WATER) == pytest.approx(1193.41, abs=0.01)


def test_a_shear_stress_emits_the_same_as_the_couple_of_forces_it_stands_for(device):
    """A source of sxy is a source of the forces d(sxy)/dy along x and d(sxy)/dx along y."""
    shape, point = (40, 40), (20, 20)
    problem = solid(2, 0.2, shape=shape, steps=60)
    signal = np.exp(-(((np.arange(40) - 20) / 6.0) ** 2))[:, None]
    index = np.array([np.ravel_multi_index(point, shape)])
    sources = (MaskSource("sxy", index, signal, "additive", 40),)
    solver = UltrasoundSolver(replace(problem, sources=sources), device=device, precision="float64", threads=1)
    solver.advance(60)
    ux, uy = solver.field("ux"), solver.field("uy")
    np.testing.assert_allclose(ux, uy.T, atol=1e-12 * np.abs(ux).max())
    across = ux[point[0]]
    np.testing.assert_allclose(across[21:29], -across[20:12:-1], atol=1e-12 * np.abs(ux).max())
    assert np.abs(ux).max() > 0
    solver.close()


def test_estimates_use_the_slowest_wave(device):
    shape, dt = (40, 40), 1e-8
    mask = np.zeros(shape)
    mask[20, 20] = 1
    problem = solid(2, 0.2, elastic=Elastic(700.0), shape=shape)
    signal = np.sin(2 * np.pi * 1e6 * np.arange(400) * dt)[:, None]
    problem = replace(problem, dt=dt, sources=(MaskSource("p", np.array([5]), signal, "additive", 400),))
    assert lowest_speed(problem) == 700.0
    resolution, phase = estimates(problem, "exact", 1e6)
    assert resolution.value == pytest.approx(700 / 1e6 / 1e-4)
    assert "lowest shear speed" in resolution.effect
    crossing = 2 * np.pi * 1e6 * shape[0] * 1e-4 / 700
    assert phase.value == pytest.approx(crossing * (2 * np.pi * 1e6 * dt) ** 2 / 24)
    assert "second order" in phase.effect


def test_the_estimated_memory_is_that_of_the_arrays():
    shape = (40, 36)
    fields = bone_below(shape, 20)
    loss = Absorption(np.where(fields["shear_speed"] > 0, 8.0, 0.0), 2.0, stokes=True)
    given = {"sound_speed": fields["sound_speed"], "density": fields["density"], "pml": (Pml(5, 2.0),) * 2}
    problem = solid(2, 0.1, shape=shape, **given, elastic=Elastic(fields["shear_speed"], 0.1), absorption=loss)
    solver = UltrasoundSolver(problem, threads=1)
    points = shape[0] * shape[1]
    layers = sum(memory.size for memories in solver._state.layer_memory.values() for memory in memories.values())
    # pressure, velocity, stress, acceleration; 1/rho twice; lambda, mu, mu xy, chi, eta, eta xy
    assert memory(problem) == 4 * (points * (1 + 2 + 3 + 2 + 2 + 6) + layers)
    solver.close()


@pytest.mark.parametrize(
    ("medium", "record", "message"),
    [
        ({"shear_speed": None}, ("s",), "sensor.record: 's' requires an elastic medium; set medium.shear_speed"),
        ({"shear_speed": None}, ("s_non_staggered",), "sensor.record: 's_non_staggered' requires an elastic medium"),
        ({"shear_speed": None, "shear_alpha_coeff": 3.0}, ("p",), "medium.shear_speed: is missing; shear_alpha_coeff"),
        ({"alpha_coeff": 1.0, "alpha_power": 1.1}, ("p",), "alpha_power: absorption of an elastic medium has the expo"),
    ],
)
def test_what_elastic_media_do_not_have_is_refused(medium, record, message):
    mask = np.zeros((40, 40))
    mask[20, 20] = 1
    given = {"shear_speed": 1500.0, **medium}
    with pytest.raises(CaseError, match=message):
        simulate(
            Grid((40, 40), 1e-4, dt=1e-8, steps=10),
            Medium(2800.0, 1850.0, **given),
            Source(p_mask=mask, p=np.ones(10)),
            Sensor(mask=mask, record=record),
        )


def test_a_step_beyond_the_limit_is_refused():
    mask = np.zeros((40, 40))
    mask[20, 20] = 1
    with pytest.raises(CaseError, match=r"grid.dt: a time step of 2e-08 s is unstable in this medium; the longest"):
        simulate(
            Grid((40, 40), 1e-4, dt=2e-8, steps=10),
            Medium(2800.0, 1850.0, shear_speed=1500.0),
            Source(sxy=np.ones(10), s_mask=mask),
            Sensor(mask=mask),
        )
