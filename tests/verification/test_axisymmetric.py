# SPDX-License-Identifier: BSD-3-Clause
"""Axisymmetric grids from Python: sources against exact solutions, conservation, layers, sensors, images."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Arc, Bowl, Disc, Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.advice import estimates
from seiche.ultrasound.emitter import weights_at
from seiche.ultrasound.extents import slow_extent_advice
from seiche.ultrasound.medium import max_time_step
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.problem import Pml, Problem
from seiche.ultrasound.simulate import Layers, problem_of

FREQUENCY, SPEED = 500e3, 1500.0


def axial_amplitude(
    shape: Bowl | Disc, start: float, *, cfl: float, quantity: str = "p"
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances from the source along the axis and the amplitude there, for a source of 1 Pa at x = start."""
    spacing = SPEED / FREQUENCY / 5
    period = int(np.ceil(5 / cfl))
    dt, steps = 1 / FREQUENCY / period, period * 30
    grid = Grid((135, 61), spacing, dt, steps, symmetry="axisymmetric")
    time = np.arange(steps) * dt
    signal = np.sin(2 * np.pi * FREQUENCY * time) * np.minimum(1, FREQUENCY * time / 3)
    scale = 1.0 if quantity == "p" else 1 / (1000 * SPEED)
    source = Source(emitters=Emitter(shape, scale * signal, quantity=quantity))  # type: ignore[arg-type]
    sensor = Sensor(record=(), frequencies=(FREQUENCY,), frequency_window=(steps - 3 * period, steps))
    result = simulate(grid, Medium(SPEED), source, sensor)
    distance = grid.positions("x") - start
    inside = (distance > 8e-3) & (distance < 45e-3)
    return distance[inside], result["p_amplitude"][0, inside, 0]


def test_a_bowl_agrees_with_oneil_on_the_axis():
    start, radius, aperture = -0.026, 0.03, 0.015
    bowl = Bowl((start, 0.0), (0.0, 0.0), radius, 2 * aperture)
    distance, result = axial_amplitude(bowl, start, cfl=0.15)
    wave_number = 2 * np.pi * FREQUENCY / SPEED
    depth = radius - np.sqrt(radius**2 - aperture**2)
    edge = np.sqrt((distance - depth) ** 2 + aperture**2)
    exact = np.abs(2 / (1 - distance / radius) * np.sin(wave_number * (edge - distance) / 2))
    assert np.abs(result - exact).max() < 0.005 * exact.max()


def test_a_piston_agrees_with_the_exact_solution_on_the_axis():
    start, aperture = -0.026, 0.0105
    disc = Disc((start, 0.0), (0.0, 0.0), 2 * aperture)
    distance, result = axial_amplitude(disc, start, cfl=0.15)
    wave_number = 2 * np.pi * FREQUENCY / SPEED
    exact = np.abs(2 * np.sin(wave_number * (np.sqrt(distance**2 + aperture**2) - distance) / 2))
    assert np.abs(result - exact).max() < 0.01 * exact.max()


def test_the_normal_velocity_of_a_bowl_radiates_as_a_surface_of_dipoles():
    """Far away, the layer of dipoles has the pressure of a layer of monopoles of u rho c."""
    start, radius = -0.026, 0.03
    bowl = Bowl((start, 0.0), (0.0, 0.0), radius, 0.02)
    distance, monopoles = axial_amplitude(bowl, start, cfl=0.3)
    _, dipoles = axial_amplitude(bowl, start, cfl=0.3, quantity="u")
    focus = np.argmin(np.abs(distance - radius))
    assert dipoles[focus] == pytest.approx(monopoles[focus], rel=0.02)


def test_weights_of_a_ring_across_the_axis_integrate_smooth_fields():
    grid = Grid((40, 20), 1.0, symmetry="axisymmetric")
    radii, shares = np.polynomial.legendre.leggauss(40)
    radii, shares = 6 * (radii + 1), 6 * shares
    points, weights = weights_at(grid, np.stack([np.full(40, 0.3), radii], 1), shares)
    x, r = (grid.positions(axis) for axis in "xy")
    for k in (0.0, 0.5, 1.0):
        field = np.cos(0.4 * x)[:, None] * np.cos(k * r)[None]
        # A line from r = 0 and its mirror image: the sum over r >= 0 counts the axis once, other points twice.
        doubled = np.where(np.arange(20) == 0, 0.5, 1.0)
        sum_ = np.sum(weights * (field * doubled).ravel()[points])
        assert sum_ == pytest.approx(np.cos(0.4 * 0.3) * np.sum(shares * np.cos(k * radii)), abs=2e-3)


def test_mass_of_a_ball_is_conserved_with_the_weights_of_the_theory_page():
    shape, spacing = (80, 41), 1e-3
    grid = Grid(shape, spacing, 0.3 * spacing / SPEED, 400, symmetry="axisymmetric")
    x, r = (grid.positions(axis) for axis in "xy")
    pressure = np.exp(-(x[:, None] ** 2 + r[None] ** 2) / (2 * (3 * spacing) ** 2))
    weights = 2 * np.pi * r * spacing**2
    weights[0] = np.pi / 6 * spacing**3
    weights[-1] /= 2  # half a cell at the rigid end
    result = simulate(
        grid, Medium(SPEED), Source(p0=pressure), Sensor(record=("p_final",)), pml_size=0, smooth_p0=False
    )
    mass, start = np.sum(weights * result["p_final"]), np.sum(weights * pressure)
    assert mass == pytest.approx(start, rel=1e-3)


def test_layers_outside_and_inside_give_the_same_field():
    spacing, size = 1e-3, 10
    inner = Grid((40, 24), spacing, 0.2e-6, 120, symmetry="axisymmetric")
    outer = Grid((60, 34), spacing, 0.2e-6, 120, symmetry="axisymmetric")
    fields, positions = [], np.array([[5e-3, 0.0], [-3.3e-3, 7.7e-3]])
    for grid, inside in ((inner, False), (outer, True)):
        x, r = (grid.positions(axis) for axis in "xy")
        pressure = np.exp(-(x[:, None] ** 2 + (r[None] - 4e-3) ** 2) / (2 * (2 * spacing) ** 2))
        sensor = Sensor(positions=positions, record=("p", "p_final", "I_avg"))
        options = {"pml_size": size, "pml_inside": inside, "smooth_p0": False, "precision": "float64"}
        fields.append(simulate(grid, Medium(SPEED), Source(p0=pressure), sensor, **options))
    inner_field, outer_field = fields
    outer_field["p_final"] = outer_field["p_final"][size:-size, :-size]
    for name in ("p", "Iy_avg", "p_final"):
        largest = np.abs(outer_field[name]).max()
        np.testing.assert_allclose(inner_field[name], outer_field[name], rtol=0, atol=1e-12 * largest, err_msg=name)
    assert np.abs(fields[0]["p"]).max() > 0.01


def test_a_smoothed_ball_remains_symmetric_and_round():
    grid = Grid((48, 24), 1e-3, 1e-7, 1, symmetry="axisymmetric")
    x, r = (grid.positions(axis) for axis in "xy")
    ball = (x[:, None] ** 2 + r[None] ** 2 <= (6e-3) ** 2).astype(float)
    pressure = problem_of(grid, Medium(SPEED), Source(p0=ball), Layers.of(grid, 0, 2.0, True)).initial_pressure
    assert pressure is not None
    np.testing.assert_allclose(pressure[25:45, 0], pressure[23:3:-1, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(pressure[24, :20], pressure[24:44, 0], rtol=0, atol=1e-2)


def test_time_reversal_finds_a_ball_inside_a_sphere_of_sensors():
    grid = Grid((64, 32), 1e-3, 0.2e-6, 200, symmetry="axisymmetric")
    x, r = (grid.positions(axis) for axis in "xy")
    ball = np.exp(-((x[:, None] - 3e-3) ** 2 + r[None] ** 2) / (2 * (3e-3) ** 2))
    mask = np.abs(np.hypot(x[:, None], r[None]) - 18e-3) <= 0.5e-3
    options = {"pml_size": 8, "smooth_p0": False}
    series = simulate(grid, Medium(SPEED), Source(p0=ball), Sensor(mask=mask), **options)["p"]
    image = time_reversal(grid, Medium(SPEED), mask, series, **options)
    inside = np.hypot(x[:, None], r[None]) < 15e-3
    assert np.abs(image - ball)[inside].max() < 0.2
    assert np.unravel_index(np.argmax(image * inside), image.shape) == (35, 0)


def test_the_longest_stable_step_is_stable_and_a_longer_one_is_not():
    shape = (16, 12)
    rough = np.random.default_rng(1).standard_normal(shape)
    problem = Problem(
        axes=("x", "y"),
        shape=shape,
        spacing=(1.0, 1.0),
        dt=0.1,
        steps=2000,
        reference_speed=1.0,
        sound_speed=1.0,
        density=1.0,
        pml=(Pml(0, 0.0), Pml(0, 0.0)),
        initial_pressure=rough,
        outer_end="rigid",
    )
    limit = max_time_step(problem)
    assert 0.55 < limit < 0.7
    from seiche.ultrasound import Solver

    for factor, bounded in ((0.999, True), (1.3, False)):
        solver = Solver(replace(problem, dt=factor * limit), precision="float64")
        try:
            solver.advance(2000)
            largest = np.abs(solver.field("p")).max()
        except Exception:
            largest = np.inf
        assert (largest < 100) == bounded
        solver.close()


def test_estimates_and_advice_for_an_axisymmetric_grid():
    grid = Grid((64, 48), 0.5e-3, 1e-7, 100, symmetry="axisymmetric")
    signal = np.sin(2 * np.pi * FREQUENCY * np.arange(100) * 1e-7)
    source = Source(emitters=Emitter(Disc((-8e-3, 0.0), (0.0, 0.0), 8e-3), signal))
    problem = problem_of(grid, Medium(SPEED), source, Layers.of(grid, None, 2.0, True))
    focus = [one for one in estimates(problem, "exact", FREQUENCY) if "focus" in one.name]
    assert len(focus) == 1
    assert focus[0].value == pytest.approx(0.1 * (2 * np.pi * FREQUENCY * 1e-7) ** 2)
    assert slow_extent_advice(problem) == (
        "48 points along y, absorbing layers included, have the prime factor 47 after symmetric extension across "
        "the axis, for which the transforms are slow; 46 or 49 points would be faster",
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Grid((20, 20, 20), 1e-3, symmetry="axisymmetric"),
            "grid.symmetry: an axisymmetric grid has 2 axes, not 3",
        ),
        (lambda: Grid((20, 20), 1e-3, symmetry="spherical"), "grid.symmetry: 'spherical' is not axisymmetric"),
        (
            lambda: Grid((20, 20), 1e-3, symmetry="axisymmetric", outer_end="WSWA"),
            "grid.outer_end: 'WSWA' is not rigid or",
        ),
        (lambda: emit(Bowl((0.0, 1e-3), (5e-3, 0.0), 5e-3, 5e-3)), "bowl: position .* are not on the axis of symmetry"),
        (lambda: emit(Bowl((0.0, 0.0, 0.0), (5e-3, 0.0, 0.0), 5e-3, 5e-3)), "are not points in 2 dimensions"),
        (lambda: emit(Arc((0.0, 0.0), (5e-3, 0.0), 8e-3, 8e-3)), "an? Arc does not lie inside the grid"),
    ],
)
def test_impossible_grids_and_shapes_are_refused(make, message):
    with pytest.raises(CaseError, match=message):
        make()


def emit(shape: Bowl | Arc) -> None:
    grid = Grid((40, 30), 1e-3, 1e-7, 10, symmetry="axisymmetric")
    Source(emitters=Emitter(shape, np.ones(10))).on(grid, SPEED)


def test_other_shapes_stand_for_their_surface_of_revolution():
    """A cylinder around the axis emits an axial sum of rings that is symmetric about its middle."""
    grid = Grid((61, 30), 1e-3, 0.2e-6, 100, symmetry="axisymmetric")
    cylinder = Line((-5e-3, 8e-3), (5e-3, 8e-3))
    signal = np.sin(2 * np.pi * 200e3 * np.arange(20) * 0.2e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = simulate(
            grid,
            Medium(SPEED),
            Source(emitters=Emitter(cylinder, signal)),
            Sensor(record=("p_max_all",)),
            precision="float64",
            pml_size=8,
        )["p_max_all"]
    np.testing.assert_allclose(result[31:51, 0], result[29:9:-1, 0], rtol=1e-6)
    assert result[30, 0] == result[:, :6].max()
