# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the elastic solver against NumPy, on every device: media, layers, sources, records, restarts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from elastic_oracle import ElasticOracle
from seiche.errors import CaseError
from seiche.ultrasound.problem import Absorption, Elastic, MaskSource, Pml, Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.tones import Harmonics

STEPS = 20
SHAPES = {"2D": (20, 18), "3D": (12, 11, 14)}
DIMENSIONS = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
SIGNAL = np.sin(0.5 * np.arange(STEPS + 5))[:, None]


def problem_of(shape: tuple[int, ...], **given: object) -> Problem:
    n = len(shape)
    distance = np.indices(shape) - np.array([s // 2 for s in shape]).reshape(-1, *[1] * n)
    values: dict[str, object] = {
        "axes": ("x", "y", "z")[:n],
        "shape": shape,
        "spacing": (1e-4, 1.2e-4, 1.1e-4)[:n],
        "dt": 1e-8,
        "steps": STEPS,
        "reference_speed": 2800.0,
        "sound_speed": 2800.0,
        "density": 1850.0,
        "elastic": Elastic(1500.0),
        "pml": (Pml(4, 2.0), Pml(3, 1.5), Pml(0, 1.0))[:n],
        "initial_pressure": 1e6 * np.exp(-np.sum(distance**2, axis=0) / 8),
    }
    return Problem(**(values | given))  # type: ignore[arg-type]


def bone_in_water(shape: tuple[int, ...]) -> dict[str, object]:
    """Return a rough solid half beside water, with absorption of both waves."""
    solid = np.zeros(shape, bool)
    solid[shape[0] // 3 :, : shape[1] // 2] = True
    rough = 1 + 0.02 * np.random.default_rng(4).random(shape)
    return {
        "sound_speed": np.where(solid, 2800.0, 1500.0) * rough,
        "density": np.where(solid, 1850.0, 1000.0) * rough,
        "elastic": Elastic(np.where(solid, 1500.0, 0.0) * rough, np.where(solid, 6.0, 0.0)),
        "absorption": Absorption(np.where(solid, 4.0, 0.1), 2.0, stokes=True),
    }


MEDIA = {
    "uniform": lambda shape: {},
    "absorbing": lambda shape: {
        "elastic": Elastic(1500.0, 8.0),
        "absorption": Absorption(5.0, 2.0, stokes=True),
    },
    "bone in water": bone_in_water,
}


def compare(problem: Problem, device: str, precision: str, tolerance: float, transforms: str = "auto") -> None:
    """Compare every field with that of the oracle, relative to the largest value of its kind."""
    solver = UltrasoundSolver(problem, device=device, precision=precision, threads=1, transforms=transforms)
    oracle = ElasticOracle(problem)
    solver.advance(problem.steps)
    for t in range(problem.steps):
        oracle.step(t)
    stresses = {f"s{problem.axes[i]}{problem.axes[j]}": field for (i, j), field in oracle.s.items()}
    velocities = {f"u{axis}": oracle.v[i] for i, axis in enumerate(problem.axes)}
    for kind in (stresses | {"p": oracle.p}, velocities):
        peak = max(np.abs(field).max() for field in kind.values())
        assert peak > 0
        for name, field in kind.items():
            assert np.abs(solver.field(name) - field).max() < tolerance * peak, name
    solver.close()


@DIMENSIONS
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
def test_initial_pressure_spreads_as_in_numpy(shape, medium, device):
    compare(problem_of(shape, **medium(shape)), device, "float64", 1e-12)


@DIMENSIONS
def test_single_precision_agrees_to_its_round_off(shape, device):
    compare(problem_of(shape, **bone_in_water(shape)), device, "float32", 1e-5)


@DIMENSIONS
def test_lines_of_fixed_length_give_the_same(shape, device):
    lengths = (20, 18) if len(shape) == 2 else (12, 10, 14)
    compare(problem_of(lengths, **bone_in_water(lengths)), device, "float64", 1e-12, "lines")


@DIMENSIONS
@pytest.mark.parametrize("mode", ["additive", "additive-no-correction", "dirichlet"])
@pytest.mark.parametrize("quantity", ["p", "x", "y", "syy", "sxy"])
def test_sources_act_as_in_numpy(shape, mode, quantity, device):
    places = np.array([[3, 3, 8, 9], [2, 3, 7, 8], [5, 5, 5, 5]])
    points = np.ravel_multi_index(tuple(places[: len(shape)]), shape)
    several = np.random.default_rng(2).random((STEPS, 4))
    weights = np.array([1.0, 0.5, -0.3, 0.2])
    scale = 1e-3 if quantity in "pxy" else 1e3
    sources = (
        MaskSource(quantity, points, scale * SIGNAL, mode, STEPS - 3, weights=weights),
        MaskSource(quantity, points + 1, scale * several, mode, STEPS - 3),
    )
    medium = bone_in_water(shape)
    compare(problem_of(shape, initial_pressure=None, sources=sources, **medium), device, "float64", 1e-12)


def test_records_agree_with_numpy(device):
    shape = SHAPES["2D"]
    problem, points = problem_of(shape, **bone_in_water(shape)), np.array([0, 5 * shape[1] + 2, 200])
    request = Request(
        points=points,
        quantities=("p", "u", "s", "u_non_staggered", "s_max", "s_min_all", "p_rms"),
        first=2,
        harmonics=(Harmonics(3e6, 4, STEPS),),
    )
    solver = UltrasoundSolver(problem, device=device, precision="float64", record=request, threads=1)
    solver.advance(STEPS)
    oracle = ElasticOracle(problem)
    series = {name: [] for name in solver.recorder.series_names()}
    least = np.full(shape, np.inf)
    for t in range(STEPS):
        oracle.step(t)
        if t < 2:
            continue
        least = np.minimum(least, oracle.s[0, 1])
        fields = {"p": oracle.p, "ux": oracle.v[0], "uy": oracle.v[1]}
        fields |= {"sxx": oracle.s[0, 0], "syy": oracle.s[1, 1], "sxy": oracle.s[0, 1]}
        for axis in (0, 1):
            k = 2 * np.pi * np.fft.fftfreq(shape[axis])
            back = np.exp(-0.5j * k).reshape([-1, 1] if axis == 0 else [1, -1])
            back[(shape[axis] // 2,) if axis == 0 else (0, shape[axis] // 2)] = 0
            spectrum = np.fft.fft(oracle.v[axis], axis=axis) * back
            fields[f"u{'xy'[axis]}_non_staggered"] = np.fft.ifft(spectrum, axis=axis).real
        for name, rows in series.items():
            rows.append(fields[name].ravel()[points])
    assert {"sxx", "syy", "sxy"} < set(series)
    for name, rows in series.items():
        np.testing.assert_allclose(solver.recorder.series(name), rows, atol=1e-12 * np.abs(rows).max(), rtol=0)
    peak = np.abs(least).max()
    np.testing.assert_allclose(solver.recorder.aggregate("sxy_min_all"), least, atol=1e-12 * peak, rtol=0)
    greatest = np.max(series["syy"], axis=0)
    np.testing.assert_allclose(solver.recorder.aggregate("syy_max"), greatest, rtol=1e-9, atol=1e-12 * peak)
    solver.close()


@DIMENSIONS
def test_a_restart_continues_with_the_same_bits(shape, device):
    points = np.array([3 * shape[1], 9 * shape[1] + 1])
    source = MaskSource("sxy", points, 1e3 * SIGNAL, "additive", STEPS - 2)
    problem = problem_of(shape, sources=(source,), **bone_in_water(shape))
    request = Request(points=points, quantities=("p", "s", "u_non_staggered", "p_max_all"))
    through, first, second = (UltrasoundSolver(problem, device=device, record=request, threads=1) for _ in range(3))
    through.advance(STEPS)
    first.advance(STEPS // 2)
    state = first.state()
    assert {name: rows.keys.size for name, rows in state.rows.items()} == {
        name: keys.size for name, keys in first.keys.items()
    }
    second.set_state(state)
    second.advance(STEPS - STEPS // 2)
    for name in ("p", "ux", "uy", *problem.stresses):
        np.testing.assert_array_equal(second.field(name), through.field(name))
    np.testing.assert_array_equal(second.recorder.series("sxy"), through.recorder.series("sxy"))


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"scheme": "local4"}, "scheme: an elastic medium has a scheme of its own; omit 'local4'"),
        ({}, {"transforms": "library"}, 'transforms: an elastic medium requires "lines" or "auto", not "library"'),
        ({"BonA": 6.0}, {}, "BonA: an elastic medium is linear"),
        ({"absorption": Absorption(1.0, 1.1)}, {}, "alpha_power: absorption of an elastic medium has the exponent 2"),
        ({"elastic": Elastic(2500.0)}, {}, r"shear_speed: reaches sqrt\(3\)/2 of the sound speed"),
        ({"elastic": Elastic(-1.0)}, {}, "shear_speed: -1 is not >= 0"),
        ({"elastic": Elastic(1500.0, 8.0)}, {}, "shear_alpha_coeff: compression would gain energy; .* here up to 1.64"),
        ({"outer_end": "rigid"}, {}, "shear_speed: an elastic medium requires a Cartesian grid with 2 or 3 axes"),
        ({"elastic": None}, {"record": Request(np.array([3]), quantities=("s",))}, "record: stresses require an"),
        (
            {"sources": (MaskSource("sxz", np.array([3]), SIGNAL, "additive", 2),)},
            {},
            "source sxz: the grid has axes x, y",
        ),
        (
            {"elastic": None, "sources": (MaskSource("sxy", np.array([3]), SIGNAL, "additive", 2),)},
            {},
            "source sxy: a stress requires an elastic medium; set shear_speed",
        ),
    ],
)
def test_impossible_options_are_refused(changes, options, message):
    with pytest.raises(CaseError, match=message):
        UltrasoundSolver(replace(problem_of(SHAPES["2D"]), **changes), **options)
