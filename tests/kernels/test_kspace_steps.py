# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the k-space solver against NumPy, on every device: media, dimensions, sources, records."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kspace_oracle import Oracle
from seiche.errors import CaseError
from seiche.ultrasound.problem import Absorption, MaskSource, Pml, Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.relaxation import Relaxation
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.tones import Harmonics

STEPS = 30
SHAPES = [(41,), (32, 27), (18, 21, 24), (16, 12, 15)]
#: Greatest difference of the pressure over its peak, for steps in FP32 and FP64; the velocity and the parts of the
#: density get three times that. Signals are added to small numbers again and again, which costs some digits more than
#: an initial pressure.
TOLERANCE = {"float32": 1e-6, "float64": 1e-14}
SOURCE_TOLERANCE = 3e-6


def ball(shape: tuple[int, ...], width: float = 2.0) -> np.ndarray:
    """Return a Gaussian pressure of 1 MPa in the middle."""
    x = np.meshgrid(*[np.arange(n) - n // 2 for n in shape], indexing="ij")
    return 1e6 * np.exp(-sum(one * one for one in x) / (2 * width**2))


def layered(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return sound speed and density of a layer, slightly rough."""
    random = np.random.default_rng(4)
    speed, density = np.full(shape, 1500.0), np.full(shape, 1000.0)
    speed[shape[0] // 2 :], density[..., shape[-1] // 3 :] = 1800.0, 1200.0
    return {"sound_speed": speed, "density": density * (1 + 0.01 * random.random(shape))}


def problem_of(shape: tuple[int, ...], **given: object) -> Problem:
    dimensions = len(shape)
    values: dict[str, object] = {
        "axes": ("x", "y", "z")[:dimensions],
        "shape": shape,
        "spacing": (1e-4, 1.2e-4, 0.9e-4)[:dimensions],
        "dt": 1.5e-8,
        "steps": STEPS,
        "reference_speed": 1800.0,
        "sound_speed": 1500.0,
        "density": 1000.0,
        "pml": (Pml(4, 2.0), Pml(3, 1.5), Pml(4, 2.5))[:dimensions],
    }
    return Problem(**(values | given))  # type: ignore[arg-type]


def compare(
    problem: Problem, device: str, precision: str = "float32", scheme: str = "exact", transforms: str = "auto"
) -> None:
    """Run both and compare every field with its peak in time."""
    solver = UltrasoundSolver(
        problem, device=device, precision=precision, scheme=scheme, threads=2, transforms=transforms
    )
    oracle = Oracle(problem, scheme)
    solver.advance(problem.steps)
    peak = {"p": 0.0, "u": 0.0, "rho": 0.0}
    for t in range(problem.steps):
        oracle.step(t)
        for name, ones in (("p", [oracle.p]), ("u", oracle.u), ("rho", oracle.rho)):
            peak[name] = max(peak[name], *(np.abs(one).max() for one in ones))
    assert peak["p"] > 0
    expected = {"p": oracle.p}
    for i, axis in enumerate(problem.axes):
        expected |= {f"u{axis}": oracle.u[i], f"rho{axis}": oracle.rho[i]}
    for name, field in expected.items():
        error = np.abs(solver.field(name) - field).max() / peak[name.rstrip("xyz")]
        allowed = SOURCE_TOLERANCE if problem.sources else TOLERANCE[precision]
        assert error < allowed * (1 if name == "p" else 3), name


MEDIA = {
    "lossless": {},
    "stokes": {"BonA": 6.0, "absorption": Absorption(0.5, 2.0, stokes=True)},
    "power law": {"BonA": 6.0, "absorption": Absorption(0.7, 1.5)},
    "gain": {"absorption": Absorption(0.7, 1.5, gain_below=6e3)},
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
@pytest.mark.parametrize("varying", [False, True], ids=["uniform", "layered"])
def test_initial_pressure_spreads_as_in_numpy(shape, medium, varying, device):
    rest = layered(shape) if varying else {}
    compare(problem_of(shape, initial_pressure=ball(shape), **medium, **rest), device)


@pytest.mark.parametrize("shape", [(41,), (16, 12, 15)], ids=str)
@pytest.mark.parametrize("absorption", [None, Absorption(0.7, 1.4)], ids=["lossless", "power law"])
def test_double_precision_agrees_to_its_round_off(shape, absorption, device):
    problem = problem_of(shape, initial_pressure=ball(shape), BonA=5.0, absorption=absorption, **layered(shape))
    compare(problem, device, "float64")


@pytest.mark.parametrize("losses", [True, False])
@pytest.mark.parametrize("dispersion", [True, False])
def test_absorption_and_dispersion_can_be_switched_off(losses, dispersion, device):
    absorption = Absorption(np.full((32, 27), 3.0), 1.4, losses=losses, dispersion=dispersion)
    compare(problem_of((32, 27), initial_pressure=ball((32, 27)), absorption=absorption), device)


@pytest.mark.parametrize("shape", [(32, 27), (18, 21, 24), (16, 12, 15)], ids=str)
@pytest.mark.parametrize("varying", [False, True], ids=["uniform", "layered"])
@pytest.mark.parametrize(
    "medium",
    [
        {},
        {"absorption": Absorption(0.7, 1.5)},
        {"BonA": 6.0, "absorption": Absorption(0.7, 1.5)},
        {"BonA": 6.0, "absorption": Absorption(0.5, 2.0, stokes=True)},
        {"absorption": Absorption(0.7, 1.5, losses=False)},
        {"absorption": Absorption(0.7, 1.5, dispersion=False)},
        {"absorption": Absorption(0.7, 1.5, gain_below=6e3)},
    ],
    ids=["lossless", "power law", "nonlinear", "stokes", "dispersion alone", "losses alone", "gain"],
)
def test_transforms_of_lines_step_as_in_numpy(shape, medium, varying, device):
    rest = layered(shape) if varying else {}
    compare(problem_of(shape, initial_pressure=ball(shape), **medium, **rest), device, transforms="lines")


@pytest.mark.parametrize("shape", [(32, 27), (16, 12, 15), (12, 10, 50)], ids=str)
def test_transforms_of_lines_agree_to_double_precision_and_let_sources_act(shape, device):
    """On a GPU half rows of the last grid are extended, while corrected sources use transforms of a library."""
    points = np.arange(5) + int(np.prod(shape)) // 3
    sources = (
        MaskSource("p", points, 1e-3 * SIGNAL, "additive", STEPS - 3),
        MaskSource("x", points, SIGNAL, "additive", STEPS - 10),
        MaskSource("y", points + 20, SIGNAL, "dirichlet", STEPS - 15),
    )
    medium = {"BonA": 6.0, "absorption": Absorption(0.7, 1.5), **layered(shape)}
    compare(problem_of(shape, initial_pressure=ball(shape), **medium), device, "float64", transforms="lines")
    compare(problem_of(shape, sources=sources, **medium), device, "float64", transforms="lines")


def test_lines_whose_length_has_large_factors_are_rejected(device):
    problem = problem_of((22, 24), initial_pressure=ball((22, 24)))
    with pytest.raises(
        CaseError, match=r'transforms: "lines" requires two or three axes with factors of at most 7, not'
    ):
        UltrasoundSolver(problem, device=device, transforms="lines")
    with pytest.raises(CaseError, match="transforms: 'rows' is not auto, library or lines"):
        UltrasoundSolver(problem, device=device, transforms="rows")


def test_staggered_densities_may_be_specified(device):
    shape = (16, 12, 15)
    inputs = tuple(1000.0 + 100 * np.random.default_rng(axis).random(shape) for axis in range(3))
    compare(problem_of(shape, initial_pressure=ball(shape), staggered_density=inputs, **layered(shape)), device)


@pytest.mark.parametrize("scheme", ["separable", "local4"])
@pytest.mark.parametrize("shape", [*SHAPES, (22, 7, 35)], ids=str)
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
@pytest.mark.parametrize("varying", [False, True], ids=["uniform", "layered"])
def test_schemes_along_one_axis_at_a_time_step_as_in_numpy(shape, medium, varying, scheme, device):
    rest = layered(shape) if varying else {}
    pml = tuple(Pml(min(4, n // 2), 2.0) for n in shape)
    problem = problem_of(shape, initial_pressure=ball(shape), pml=pml, **medium, **rest)
    compare(problem, device, scheme=scheme)


@pytest.mark.parametrize("scheme", ["separable", "local4"])
def test_schemes_along_one_axis_agree_to_double_precision(scheme, device):
    shape = (18, 21, 24)
    problem = problem_of(shape, initial_pressure=ball(shape), BonA=6.0, **layered(shape))
    compare(problem, device, "float64", scheme)


@pytest.mark.parametrize("scheme", ["separable", "local4"])
@pytest.mark.parametrize("shape", [(42,), (32, 27), (18, 21, 24)], ids=str)
@pytest.mark.parametrize("transforms", ["library", "lines"])
def test_lines_of_any_and_of_specified_length_step_as_in_numpy(transforms, shape, scheme, device):
    medium = {"BonA": 6.0, "absorption": Absorption(0.7, 1.5), **layered(shape)}
    compare(problem_of(shape, initial_pressure=ball(shape), **medium), device, "float32", scheme, transforms)


@pytest.mark.parametrize("scheme", ["separable", "local4"])
def test_sources_act_in_schemes_along_one_axis(scheme, device):
    shape = (18, 21, 24)
    points = np.arange(5) + 24 * 21 * 9 + 250
    sources = (
        MaskSource("p", points, 1e-3 * SIGNAL, "additive", STEPS - 8),
        MaskSource("x", points, SIGNAL, "additive-no-correction", STEPS - 10),
        MaskSource("z", points + 54, SIGNAL, "dirichlet", STEPS - 5),
    )
    problem = problem_of(shape, sources=sources, BonA=6.0, absorption=Absorption(0.5, 2.0, stokes=True))
    compare(problem, device, scheme=scheme)


@pytest.mark.parametrize("scheme", ["exact", "local4"])
@pytest.mark.parametrize("nonlinear", [False, True])
def test_relaxation_processes_step_as_in_numpy(scheme, nonlinear, device):
    shape = (18, 21, 24)
    random = np.random.default_rng(3)
    relaxation = Relaxation(
        random.integers(0, 2, shape).astype(np.uint8),
        np.array([[0.02, 0.01, 0.03], [0.05, 0.0, 0.1]]),
        np.array([[1e-6, 1e-7, 1e-8], [5e-7, 5e-8, 5e-9]]),
        np.array([1500.0, 1600.0]),
    )
    source = MaskSource("p", np.arange(4) + 4400, 1e-3 * SIGNAL, "additive", STEPS - 9)
    bona = 6.0 if nonlinear else None
    problem = problem_of(
        shape, relaxation=relaxation, initial_pressure=ball(shape), sources=(source,), BonA=bona, **layered(shape)
    )
    compare(problem, device, scheme=scheme)


SIGNAL = np.sin(0.3 * np.arange(STEPS))[:, None]


@pytest.mark.parametrize("mode", ["dirichlet", "additive-no-correction", "additive"])
@pytest.mark.parametrize("many", ["one", "each", "weights", "delays"])
@pytest.mark.parametrize("quantity", ["p", "x", "y"])
@pytest.mark.parametrize("shape", [(32, 27), (16, 12, 15)], ids=str)
def test_sources_act_as_in_numpy(shape, quantity, many, mode, device):
    random = np.random.default_rng(7)
    points = np.sort(random.permutation(int(np.prod(shape)))[:11])
    signal = SIGNAL * (1e-3 if quantity == "p" else 1.0)
    source = MaskSource(quantity, points, signal, mode, STEPS - 6)
    if many == "each":
        source = replace(source, samples=signal * random.random(11))
    elif many == "weights":
        source = replace(source, weights=random.random(11))
    elif many == "delays":
        source = replace(source, delays=random.integers(0, 6, 11))
    medium = {"BonA": 6.0, "absorption": Absorption(0.5, 1.5)} if quantity == "p" else {}
    compare(problem_of(shape, sources=(source,), **medium, **layered(shape)), device)


def test_sources_of_all_kinds_act_together(device):
    shape = (32, 27)
    points = np.arange(5) + 27 * 12
    sources = (
        MaskSource("p", points, 1e-3 * SIGNAL, "additive", STEPS),
        MaskSource("x", points, SIGNAL, "additive", STEPS - 10),
        MaskSource("y", points, 0.5 * SIGNAL, "additive", STEPS - 20),
        MaskSource("x", points + 54, SIGNAL, "additive-no-correction", STEPS - 5, delays=np.arange(5)),
    )
    for stokes in (True, False):
        absorption = Absorption(0.5, 2.0, stokes) if stokes else None
        compare(problem_of(shape, sources=sources, absorption=absorption, initial_pressure=ball(shape)), device)


@pytest.mark.parametrize("shape", [(40,), (32, 27), (16, 12, 15)], ids=str)
def test_records_are_those_of_numpy(shape, device):
    problem = problem_of(shape, initial_pressure=ball(shape), **layered(shape))
    points, first = np.array([5, 17, 30, 6]), 4
    kinds = ("", "_max", "_min", "_rms", "_max_all", "_min_all")
    requested = (*(f"{name}{kind}" for name in "pu" for kind in kinds), "u_non_staggered")
    solver = UltrasoundSolver(problem, device=device, record=Request(points=points, quantities=requested, first=first))
    oracle, seen = Oracle(problem), {}
    for t in range(problem.steps):
        oracle.step(t)
        if t >= first:
            fields = {"p": oracle.p} | {f"u{axis}": oracle.u[i] for i, axis in enumerate(problem.axes)}
            fields |= {f"u{axis}_non_staggered": oracle.not_staggered(i) for i, axis in enumerate(problem.axes)}
            for name, field in fields.items():
                seen.setdefault(name, []).append(field)
    solver.advance(11)
    solver.advance(STEPS - 11)
    recorder = solver.recorder
    peaks = {
        kind: max(np.abs(one).max() for name, ones in seen.items() if name[0] == kind for one in ones) for kind in "pu"
    }
    for name, ones in seen.items():
        full = np.array(ones)
        at = full.reshape(len(ones), -1)[:, points]
        expected = {name: at}
        if not name.endswith("staggered"):
            expected |= {f"{name}_max": at.max(0), f"{name}_min": at.min(0), f"{name}_rms": np.sqrt((at**2).mean(0))}
            expected |= {f"{name}_max_all": full.max(0), f"{name}_min_all": full.min(0)}
        for key, values in expected.items():
            result = recorder.series(key) if key == name else recorder.aggregate(key)
            assert result.shape == values.shape
            assert np.abs(result - values).max() < 3e-6 * peaks[name[0]], key


def test_long_series_pass_through_a_ring(device, monkeypatch):
    monkeypatch.setattr("seiche.ultrasound.records._RING_BYTES", 3 * 7 * 4)
    shape, points = (32, 27), np.arange(7) + 400
    problem = problem_of(shape, initial_pressure=ball(shape))
    request = Request(points=points, quantities=("p",), first=2)
    solver, oracle, rows = UltrasoundSolver(problem, device=device, record=request), Oracle(problem), []
    for t in range(STEPS):
        oracle.step(t)
        rows.append(oracle.p.ravel()[points])
    for steps in (5, 6, 2, 17):
        solver.advance(steps)
    result = solver.recorder.series("p")
    assert result.shape == (STEPS - 2, 7)
    assert np.abs(result - np.array(rows[2:])).max() < 1.5e-6 * 1e6


def test_sensors_between_points_are_weighted_sums(device):
    shape = (32, 27)
    nodes, weights = (
        np.array([[400, 401, 427, 428], [500, 501, 527, 528]]),
        np.array([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]]),
    )
    problem = problem_of(shape, initial_pressure=ball(shape))
    request = Request(nodes=nodes, weights=weights, quantities=("p", "p_max", "u_non_staggered"))
    solver, oracle, rows, moved = UltrasoundSolver(problem, device=device, record=request), Oracle(problem), [], []
    solver.advance(STEPS)
    for t in range(STEPS):
        oracle.step(t)
        rows.append((oracle.p.ravel()[nodes] * weights).sum(1))
        moved.append((oracle.not_staggered(1).ravel()[nodes] * weights).sum(1))
    assert np.abs(solver.recorder.series("p") - rows).max() < 1.5e-6 * 1e6
    assert np.abs(solver.recorder.aggregate("p_max") - np.max(rows, 0)).max() < 1.5e-6 * 1e6
    assert np.abs(solver.recorder.series("uy_non_staggered") - moved).max() < 3e-6 * np.abs(moved).max()


def test_amplitude_and_phase_are_found_while_the_run_continues(device):
    shape, steps = (64,), 600
    frequency = 2e6  # a period is 33 1/3 steps
    time = np.arange(steps) * 1.5e-8
    signal = 1e-3 * np.sin(2 * np.pi * frequency * time)[:, None]
    source = MaskSource("p", np.array([20]), signal, "additive-no-correction", steps)
    problem = problem_of(shape, steps=steps, sources=(source,), pml=(Pml(12, 2.0),), reference_speed=1500.0)
    request = Request(points=np.arange(64), quantities=("p",), first=500, harmonics=(Harmonics(frequency, 500, 600),))
    solver = UltrasoundSolver(problem, device=device, record=request)
    solver.advance(problem.steps)
    series = solver.recorder.series("p").astype(float)
    wave = 2 / 100 * (series * np.exp(-2j * np.pi * frequency * time[500:, None])).sum(0)
    amplitude, phase = solver.recorder.amplitude_and_phase(0)
    assert np.abs(amplitude * np.exp(1j * phase) - wave).max() < 2e-5 * np.abs(wave).max()
