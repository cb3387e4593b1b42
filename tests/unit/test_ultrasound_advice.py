# SPDX-License-Identifier: BSD-3-Clause
"""Estimates before a problem is computed: memory compared with allocations, phase errors with measured ones."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

from seiche.backend.cpu import CpuBackend
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.advice import frequency_range, memory, phase_error, points_per_wavelength, shared_fields
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.simulate import Layers, problem_of, request_of
from seiche.ultrasound.solver import UltrasoundSolver

SHAPE = (40, 36, 32)
ROUGH = 1500.0 + 100 * np.random.default_rng(0).random(SHAPE)
MEDIA = {
    "uniform": Medium(1500.0),
    "nonlinear": Medium(ROUGH, ROUGH, BonA=6.0),
    "full physics": Medium(ROUGH, ROUGH, BonA=ROUGH, alpha_coeff=ROUGH, alpha_power=1.5),
    "stokes": Medium(1500.0, ROUGH, alpha_coeff=0.5, alpha_power=2.0),
    "relaxation": Medium(1500.0, 1000.0, alpha_coeff=0.5, alpha_power=1.1, alpha_mode="relaxation"),
}


def allocated(monkeypatch: pytest.MonkeyPatch, make: Any) -> int:
    """Return the bytes that a backend hands out while `make()` runs."""
    total, zeros = [0], CpuBackend.zeros

    def counting(self: CpuBackend, *arguments: Any) -> Any:
        array = zeros(self, *arguments)
        total[0] += array.nbytes
        return array

    monkeypatch.setattr(CpuBackend, "zeros", counting)  # uploads take their memory from it
    make()
    return total[0]


@pytest.mark.parametrize("scheme", ["exact", "separable", "local4"])
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
def test_memory_that_is_reported_is_what_is_allocated(scheme, medium, monkeypatch):
    mask = np.zeros(SHAPE, bool)
    mask[12, 10:20, 10:20] = True
    grid = Grid(SHAPE, 1e-4, 1e-8, 200)
    layers = Layers.of(grid, 6, 2.0, True)
    source = Source(p_mask=mask, p=np.sin(0.1 * np.arange(200)))
    sensor = Sensor(mask=mask, record=("p", "p_max_all", "p_rms"), frequencies=(1e6,))
    problem, request = problem_of(grid, medium, source, layers), request_of(grid, sensor, layers)
    message = memory(problem, scheme, "float32", request)

    def run() -> None:
        UltrasoundSolver(problem, scheme=scheme, record=request).advance()

    assert allocated(monkeypatch, run) == pytest.approx(message, rel=0.03)


@pytest.mark.parametrize("scheme", ["exact", "separable", "local4"])
@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
def test_memory_of_ranks_that_share_transforms_is_what_is_allocated(scheme, medium, monkeypatch):
    """As of a rank that has all of the grid, with its messages and columns."""
    grid = Grid(SHAPE, 1e-4, 1e-8, 200)
    p0 = np.zeros(SHAPE)
    p0[20, 18, 16] = 1.0
    problem = problem_of(grid, medium, Source(p0=p0), Layers.of(grid, 6, 2.0, True))
    message = memory(problem, scheme) + 4 * problem.points * shared_fields(problem, scheme)

    def run() -> None:
        UltrasoundSolver(problem, decomposition=Decomposition("global"), scheme=scheme).advance()

    assert allocated(monkeypatch, run) == pytest.approx(message, rel=0.03)


def test_a_run_takes_what_is_reported_and_no_more_on_the_host_while_it_is_prepared(monkeypatch):
    monkeypatch.setenv("SEICHE_FFT", "scipy")
    shape = (64, 64, 64)
    rough = np.linspace(1500.0, 1600.0, 64**3, dtype=np.float32).reshape(shape)
    medium = Medium(rough, rough, BonA=rough, alpha_coeff=rough / 1500, alpha_power=1.5)
    mask = np.arange(64**3).reshape(shape) == 5
    source = Source(p_mask=mask, p=np.sin(0.1 * np.arange(50)), p_mode="additive-no-correction")
    grid = Grid(shape, 1e-4, 1e-8, 50)
    problem = problem_of(grid, medium, source, Layers.of(grid, 6, 2.0, True))
    UltrasoundSolver(problem).advance(1)  # imports and kernels
    tracemalloc.start()
    try:
        UltrasoundSolver(problem).advance(2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak == pytest.approx(memory(problem), rel=0.1)


def test_full_physics_takes_less_than_70_bytes_a_point_and_separable_lossless_less_than_50():
    grid, layers = Grid((64,) * 3, 1e-4, 1e-8, 10), None
    layers = Layers.of(grid, 6, 2.0, True)
    rough = np.linspace(1500.0, 1600.0, 64**3).reshape(grid.shape)
    source = Source(p0=np.ones(grid.shape))
    full = Medium(rough, rough, BonA=rough, alpha_coeff=rough, alpha_power=1.5)
    for device in ("cpu", "cuda"):  # with the work area of its transforms
        assert memory(problem_of(grid, full, source, layers), device=device) < 70 * 64**3
        assert memory(problem_of(grid, Medium(rough, rough), source, layers), "separable", device=device) < 50 * 64**3


def problem_at(contrast: float, cfl: float, points: float) -> Any:
    """Return a problem of 16 wavelengths with a tone of so many points a wavelength in the slow half."""
    n, c = int(16 * points), 1500.0
    speed = np.where(np.arange(n) < n // 2, c, contrast * c)
    dx = 1e-3
    grid = Grid((n,), dx, cfl * dx / (contrast * c), 2000)
    frequency = c / (points * dx)
    signal = np.sin(2 * np.pi * frequency * np.arange(2000) * grid.dt)
    source = Source(p_mask=np.arange(n) == 25, p=signal)
    return problem_of(grid, Medium(speed), source, Layers.of(grid, 10, 2.0, True)), frequency


def test_phase_error_is_that_of_the_theory():
    """Contrast 1.8, Courant number 0.3, five points a wavelength, 16 wavelengths: 0.41 rad."""
    problem, frequency = problem_at(1.8, 0.3, 5)
    assert phase_error(problem, frequency, "exact") == pytest.approx(0.41, abs=0.01)
    assert phase_error(problem, frequency, "local4") < 1e-3
    assert phase_error(problem_at(1.0, 0.3, 5)[0], frequency, "exact") == 0.0
    assert phase_error(problem_at(1.0, 0.3, 5)[0], frequency, "separable") > 0.0


def test_frequency_of_a_source_is_found_in_its_signal():
    problem, frequency = problem_at(1.8, 0.3, 5)
    result = frequency_range(problem)
    assert result is not None
    assert result[0] == pytest.approx(frequency, rel=0.01)
    assert result[1] < 1.05 * frequency
    assert points_per_wavelength(problem, frequency) == pytest.approx(5.0)


def warned(**change: Any) -> list[str]:
    """Return the warnings of a run in a medium of two layers."""
    n, dx = 128, 1e-3
    x = np.arange(n)
    inputs = {"contrast": 1.8, "points": 5.0, "scheme": "exact"} | change
    grid = Grid((n,), dx, 0.3 * dx / (1500.0 * inputs["contrast"]), 400)
    frequency = 1500.0 / (inputs["points"] * dx)
    source = Source(p_mask=x == 25, p=np.sin(2 * np.pi * frequency * np.arange(400) * grid.dt))
    medium = Medium(np.where(x < 60, 1500.0, 1500.0 * inputs["contrast"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulate(grid, medium, source, Sensor(mask=x == 90), scheme=inputs["scheme"])
    return [str(one.message) for one in caught]


def test_contrast_that_the_exact_scheme_gets_wrong_is_reported():
    (line,) = warned()
    assert line.startswith(
        "2.925e+05 Hz: phase error in time of waves that cross the grid 0.6104 rad is above 0.1: the"
    )
    assert "use scheme local4 (0.0004 rad) or a time step of" in line
    assert warned(scheme="local4") == []
    assert warned(contrast=1.02) == []


def test_too_few_points_per_wavelength_are_reported():
    (line,) = warned(contrast=1.0, points=3.0)
    assert "points per wavelength 2.927" in line
    assert "is below 4" in line
    (line,) = warned(contrast=1.0, points=1.6)
    assert "points per wavelength 1.579" in line
