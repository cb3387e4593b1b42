# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the axisymmetric solver against NumPy and exact solutions, on every device: media, sources, records."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from axisymmetric_oracle import AxisymmetricOracle, gaussian_ball
from seiche.errors import CaseError
from seiche.ultrasound.problem import Absorption, MaskSource, Pml, Problem
from seiche.ultrasound.radial import OUTER_ENDS
from seiche.ultrasound.records import Request
from seiche.ultrasound.relaxation import Relaxation
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.tones import Harmonics

STEPS, SHAPE = 25, (24, 19)
ENDS = pytest.mark.parametrize("outer_end", OUTER_ENDS)
SIGNAL = np.sin(0.5 * np.arange(STEPS + 5))[:, None]
MEDIA = {
    "lossless": {},
    "stokes": {"BonA": 6.0, "absorption": Absorption(0.5, 2.0, stokes=True)},
    "power law": {"BonA": 6.0, "absorption": Absorption(0.7, 1.5)},
    "relaxation": {
        "BonA": 6.0,
        "relaxation": Relaxation(
            np.zeros(SHAPE, np.uint8),
            np.array([[0.01, 0.02, 0.03]]),
            np.array([[1e-8, 4e-8, 2e-7]]),
            np.array([1500.0]),
        ),
    },
}


def problem_of(outer_end: str, **given: object) -> Problem:
    x, r = np.arange(SHAPE[0])[:, None] - SHAPE[0] // 2, np.arange(SHAPE[1])[None, :]
    values: dict[str, object] = {
        "axes": ("x", "y"),
        "shape": SHAPE,
        "spacing": (1e-4, 1.2e-4),
        "dt": 1.5e-8,
        "steps": STEPS,
        "reference_speed": 1800.0,
        "sound_speed": 1500.0,
        "density": 1000.0,
        "pml": (Pml(4, 2.0), Pml(5, 1.5)),
        "initial_pressure": 1e6 * np.exp(-(x**2 + (r - 3) ** 2) / 8),
        "outer_end": outer_end,
    }
    return Problem(**(values | given))  # type: ignore[arg-type]


def layered() -> dict[str, object]:
    """Return sound speed and density of layers, slightly rough."""
    speed, density = np.full(SHAPE, 1500.0), np.full(SHAPE, 1000.0)
    speed[SHAPE[0] // 2 :], density[:, SHAPE[1] // 3 :] = 1800.0, 1200.0
    return {"sound_speed": speed, "density": density * (1 + 0.01 * np.random.default_rng(4).random(SHAPE))}


def compare(problem: Problem, device: str, precision: str, tolerance: float) -> None:
    """Compare every field with that of the oracle, relative to its peak."""
    solver = UltrasoundSolver(problem, device=device, precision=precision, threads=1)
    oracle = AxisymmetricOracle(problem)
    solver.advance(problem.steps)
    peak = {"p": 0.0, "u": 0.0, "r": 0.0}
    for t in range(problem.steps):
        oracle.step(t)
        for name, fields in (("p", [oracle.p]), ("u", oracle.u), ("r", oracle.rho)):
            peak[name] = max(peak[name], *(np.abs(field).max() for field in fields))
    expected = {"p": oracle.p}
    for i, axis in enumerate(problem.axes):
        expected |= {f"u{axis}": oracle.u[i], f"rho{axis}": oracle.rho[i]}
    for name, field in expected.items():
        assert peak[name[0]] > 0
        assert np.abs(solver.field(name) - field).max() / peak[name[0]] < tolerance * (1 if name == "p" else 3), name
    solver.close()


@ENDS
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
@pytest.mark.parametrize("varying", [False, True], ids=["uniform", "layered"])
def test_initial_pressure_spreads_as_in_numpy(outer_end, medium, varying, device):
    compare(problem_of(outer_end, **medium, **(layered() if varying else {})), device, "float64", 1e-12)


@ENDS
def test_single_precision_agrees_to_its_round_off(outer_end, device):
    compare(problem_of(outer_end, **MEDIA["power law"], **layered()), device, "float32", 2e-6)


@ENDS
@pytest.mark.parametrize("mode", ["additive", "additive-no-correction", "dirichlet"])
@pytest.mark.parametrize("quantity", ["p", "x", "y"])
def test_sources_act_as_in_numpy(outer_end, mode, quantity, device):
    points = np.array([3 * SHAPE[1], 3 * SHAPE[1] + 1, 12 * SHAPE[1] + 7, 15 * SHAPE[1] + SHAPE[1] - 2])
    several = np.random.default_rng(2).random((STEPS, 4))
    weights = np.array([1.0, 0.5, -0.3, 0.2])
    for source in (
        MaskSource(quantity, points, 1e-3 * SIGNAL, mode, STEPS - 3, weights=weights),
        MaskSource(quantity, points, 1e-3 * several, mode, STEPS - 3),
    ):
        compare(problem_of(outer_end, initial_pressure=None, sources=(source,)), device, "float64", 1e-12)


def test_equal_masks_of_both_velocities_are_corrected_apart(device):
    points = np.arange(5 * SHAPE[1], 5 * SHAPE[1] + 4)
    sources = tuple(MaskSource(axis, points, SIGNAL, "additive", STEPS) for axis in ("x", "y"))
    compare(problem_of("rigid", initial_pressure=None, sources=sources), device, "float64", 1e-12)


@ENDS
def test_records_agree_with_numpy(outer_end, device):
    problem = problem_of(outer_end, **layered())
    points = np.array([0, 5 * SHAPE[1] + 2, 200])
    request = Request(
        points=points,
        quantities=("p", "u", "u_non_staggered", "p_rms", "p_max_all"),
        first=2,
        harmonics=(Harmonics(3e6, 4, STEPS),),
    )
    solver = UltrasoundSolver(problem, device=device, precision="float64", record=request, threads=1)
    solver.advance(STEPS)
    oracle = AxisymmetricOracle(problem)
    series = {name: [] for name in solver.recorder.series_names()}
    greatest = np.full(SHAPE, -np.inf)
    for t in range(STEPS):
        oracle.step(t)
        if t < 2:
            continue
        greatest = np.maximum(greatest, oracle.p)
        fields = {"p": oracle.p, "ux": oracle.u[0], "uy": oracle.u[1]}
        fields |= {f"u{axis}_non_staggered": oracle.not_staggered(i) for i, axis in enumerate(problem.axes)}
        for name, rows in series.items():
            rows.append(fields[name].ravel()[points])
    for name, rows in series.items():
        np.testing.assert_allclose(solver.recorder.series(name), rows, atol=1e-12 * np.abs(rows).max(), rtol=0)
    np.testing.assert_allclose(solver.recorder.aggregate("p_max_all"), greatest, atol=1e-6, rtol=0)
    rms = np.sqrt(np.mean(np.square(series["p"]), axis=0))
    np.testing.assert_allclose(solver.recorder.aggregate("p_rms"), rms, rtol=1e-12)
    solver.close()


@ENDS
def test_a_restart_continues_with_the_same_bits(outer_end, device):
    points = np.array([3 * SHAPE[1], 9 * SHAPE[1] + 1])
    source = MaskSource("y", points, SIGNAL, "additive", STEPS - 2)
    problem = problem_of(outer_end, sources=(source,), **MEDIA["power law"], **layered())
    request = Request(points=points, quantities=("p", "u_non_staggered", "p_max_all"))
    through, first, second = (UltrasoundSolver(problem, device=device, record=request, threads=1) for _ in range(3))
    through.advance(STEPS)
    first.advance(STEPS // 2)
    second.set_state(first.state())
    second.advance(STEPS - STEPS // 2)
    for name in ("p", "ux", "uy", "rhox", "rhoy"):
        np.testing.assert_array_equal(second.field(name), through.field(name))
    np.testing.assert_array_equal(
        second.recorder.series("uy_non_staggered"), through.recorder.series("uy_non_staggered")
    )


def ball(cfl: float, outer_end: str, device: str, loss: tuple[float, float] | None = None) -> tuple[float, float]:
    """Return the error of a Gaussian ball of width 3 d at t = 40 d/c, and the effect of absorption on the exact field.

    Both are relative to the largest exact pressure. `loss` are the coefficient of absorption in Np/m and the exponent,
    with a unit of time of 1 s and one of length of 1 m.
    """
    shape, width = (112, 57), 3.0
    x, r = np.arange(shape[0])[:, None] - shape[0] // 2, np.arange(shape[1])[None, :]
    distance = np.sqrt(x**2 + r**2)
    coefficient, power = loss or (0.0, 1.5)
    decibels = coefficient * 20 * np.log10(np.e) / 100 * (2e6 * np.pi) ** power
    steps = round(40 / cfl)
    problem = Problem(
        axes=("x", "y"),
        shape=shape,
        spacing=(1.0, 1.0),
        dt=cfl,
        steps=steps + 1,
        reference_speed=1.0,
        sound_speed=1.0,
        density=1.0,
        pml=(Pml(0, 0.0), Pml(0, 0.0)),
        absorption=None if loss is None else Absorption(decibels, power, stokes=power == 2),
        initial_pressure=np.exp(-(distance**2) / (2 * width**2)),
        outer_end=outer_end,
    )
    solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
    solver.advance(steps + 1)
    dispersion = 0.0 if power == 2 else np.tan(np.pi * power / 2)
    law = (2 * coefficient, -2 * coefficient * dispersion, power)
    exact, lossless = (gaussian_ball(distance, width, steps * cfl, loss=one) for one in (law, (0.0, 0.0, power)))
    error = np.abs(solver.field("p") - exact).max()
    solver.close()
    return float(error / np.abs(exact).max()), float(np.abs(lossless - exact).max() / np.abs(exact).max())


@ENDS
def test_a_ball_spreads_with_an_error_of_second_order_in_time(outer_end, device):
    (coarse, _), (fine, _) = (ball(cfl, outer_end, device) for cfl in (0.3, 0.15))
    assert coarse < 3e-3
    assert 3.8 < coarse / fine < 4.2


@pytest.mark.parametrize(("coefficient", "power"), [(0.02, 1.5), (0.002, 1.1), (0.02, 2.0)])
def test_an_absorbed_ball_agrees_with_the_exact_solution(coefficient, power, device):
    error, effect = ball(0.15, "rigid", device, (coefficient, power))
    assert effect > 0.1
    assert error < 0.05 * effect


def test_an_axial_plane_wave_is_exact(device):
    shape, steps, dt = (64, 9), 50, 0.6
    x = np.arange(shape[0], dtype=float)
    wave_number = 2 * np.pi * 3 / shape[0]
    problem = Problem(
        axes=("x", "y"),
        shape=shape,
        spacing=(1.0, 1.0),
        dt=dt,
        steps=steps + 1,
        reference_speed=1.0,
        sound_speed=1.0,
        density=1.0,
        pml=(Pml(0, 0.0), Pml(0, 0.0)),
        initial_pressure=np.repeat(np.cos(wave_number * x)[:, None], shape[1], 1),
        outer_end="rigid",
    )
    solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
    solver.advance(steps + 1)
    exact = np.cos(wave_number * x) * np.cos(wave_number * steps * dt)
    np.testing.assert_allclose(solver.field("p"), np.repeat(exact[:, None], shape[1], 1), atol=1e-12, rtol=0)
    solver.close()


def test_both_outer_ends_absorb_alike_and_nothing_grows_later(device):
    shape, size = (80, 41), 16
    x, r = np.arange(shape[0])[:, None] - shape[0] // 2, np.arange(shape[1])[None, :]
    fields = {}
    for outer_end in OUTER_ENDS:
        problem = problem_of(
            outer_end,
            shape=shape,
            spacing=(1e-4, 1e-4),
            reference_speed=1500.0,
            pml=(Pml(size, 2.0), Pml(size, 2.0)),
            initial_pressure=np.exp(-(x**2 + r**2) / 18),
            steps=3000,
        )
        solver = UltrasoundSolver(problem, device=device, precision="float64", threads=1)
        solver.advance(400)
        fields[outer_end] = solver.field("p")
        solver.advance(2600)
        assert np.abs(solver.field("p")).max() < 1e-5
        solver.close()
    first, second = fields.values()
    assert np.abs(first).max() < 2e-3
    assert np.abs(first - second).max() < 2e-3


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"scheme": "local4"}, "scheme: an axisymmetric grid requires the exact scheme, not 'local4'"),
        ({}, {"transforms": "lines"}, 'transforms: an axisymmetric grid requires "library"'),
        ({"outer_end": "soft"}, {}, "grid.outer_end: 'soft' is not rigid or pressure-release"),
        ({"pml": (Pml(4, 2.0), Pml(20, 2.0))}, {}, "pml_size: 20 along y is not between 0 and 19 points"),
        (
            {
                "axes": ("x",),
                "shape": (24,),
                "spacing": (1e-4,),
                "pml": (Pml(4, 2.0),),
                "initial_pressure": np.ones(24),
            },
            {},
            "grid.symmetry: an axisymmetric grid has 2 axes, not 1",
        ),
    ],
)
def test_impossible_options_are_refused(changes, options, message):
    with pytest.raises(CaseError, match=message):
        UltrasoundSolver(replace(problem_of("rigid"), **changes), **options)
