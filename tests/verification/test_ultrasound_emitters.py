# SPDX-License-Identifier: BSD-3-Clause
"""Sources between the points of a grid: their weights, and their fields against integrals over the shapes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hankel1

from seiche.errors import CaseError
from seiche.ultrasound import Arc, Bowl, Disc, Emitter, Grid, Line, Medium, Rectangle, Sensor, Source, simulate
from seiche.ultrasound.emitter import delayed, weights_at

C = 1500.0
CUBE = Grid((36, 34, 33), 1e-3, 1e-7, 40)
ORIGIN = (0.2e-3, -0.3e-3, 0.1e-3)
SHAPES = {
    "bowl": (Bowl(ORIGIN, (5e-3, 4e-3, 3e-3), 12e-3, 14e-3), 2 * np.pi * 12e-3 * (12e-3 - np.sqrt(12e-3**2 - 7e-3**2))),
    "disc": (Disc(ORIGIN, (5e-3, 1e-3, 0.0), 13e-3), np.pi * 6.5e-3**2),
    "rectangle": (Rectangle(ORIGIN, (3e-3, 4e-3, 0.0), (8e-3, -6e-3, 0.0)), 50e-6),
    "line": (Line((-5e-3, -4e-3, 1e-3), (4e-3, 3e-3, -2e-3)), np.sqrt(81 + 49 + 9) * 1e-3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_weights_of_a_shape_add_up_to_its_measure(name):
    shape, measure = SHAPES[name]
    result = shape.quadrature(0.3e-3)
    assert result.weights.sum() == pytest.approx(measure, rel=1e-9)
    if result.normals is not None:
        np.testing.assert_allclose(np.linalg.norm(result.normals, axis=1), 1.0)


@pytest.mark.parametrize("name", ["bowl", "disc", "rectangle"])
def test_shapes_face_their_focus_or_the_cross_product_of_their_sides(name):
    shape, _ = SHAPES[name]
    result = shape.quadrature(0.5e-3)
    mean = (result.normals * result.weights[:, None]).sum(axis=0)
    axis = np.subtract(shape.focus, ORIGIN) if name != "rectangle" else np.array([0.0, 0.0, -1.0])
    np.testing.assert_allclose(mean / np.linalg.norm(mean), axis / np.linalg.norm(axis), atol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_weights_integrate_waves_of_four_points_per_wavelength_over_the_shape(name):
    """The sum of w exp(ikx) over the grid is the integral over the shape, whatever the direction of k."""
    shape, measure = SHAPES[name]
    result = shape.quadrature(1e-3 / 3)
    at, weights = weights_at(CUBE, result.points, result.weights)
    x = np.stack(np.meshgrid(*[CUBE.positions(axis) for axis in CUBE.axes], indexing="ij"), -1).reshape(-1, 3)[at]
    fine = shape.quadrature(1e-4)
    for direction in np.random.default_rng(3).normal(size=(6, 3)):
        k = 2 * np.pi / 4e-3 * direction / np.linalg.norm(direction)
        exact = (fine.weights * np.exp(1j * fine.points @ k)).sum()
        assert abs((weights * np.exp(1j * x @ k)).sum() - exact) < 5e-4 * measure


def test_field_of_an_arc_is_the_integral_of_its_cylindrical_waves(device):
    """P = p0 k/2 | integral of H0(k r) over the arc |, six points a wavelength."""
    f = 5e5
    dx, period = C / f / 6, 24
    grid = Grid((96, 88), dx, 1 / f / period, 24 * period)
    t = np.arange(grid.steps) / (f * period)
    start = grid.positions("x")[14]
    arc = Arc((start, 0.3e-3), (start + 20e-3, 2e-3), 20e-3, 20e-3)
    signal = 1e5 * np.sin(2 * np.pi * f * t) * np.minimum(1, t * f / 3)
    window = (20 * period, 24 * period)
    result = simulate(
        grid,
        Medium(C),
        Source(emitters=(Emitter(arc, signal),)),
        Sensor(record=(), frequencies=(f,), frequency_window=window),
        pml_size=12,
        device=device,
    )["p_amplitude"][0]
    fine = arc.quadrature(dx / 20)
    x = np.stack(np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij"), -1)
    exact = np.zeros(grid.shape, complex)
    k = 2 * np.pi * f / C
    for point, weight in zip(fine.points, fine.weights, strict=True):
        exact += 1e5 * k / 2 * weight * hankel1(0, k * np.linalg.norm(x - point, axis=-1))
    inside = (slice(32, 82), slice(14, 74))
    assert np.abs(result - np.abs(exact))[inside].max() < 2e-3 * np.abs(exact)[inside].max()


@pytest.mark.parametrize("quantity", ["p", "u"])
def test_long_oblique_line_sends_a_plane_wave_of_its_signal_to_both_sides(quantity):
    """Velocity along the line's normal: pressure rho c u before it, minus that behind it."""
    f, dx = 5e5, C / 5e5 / 8
    grid = Grid((120, 120), dx, dx / C / 5, 300)
    t = np.arange(grid.steps) * grid.dt
    a = np.deg2rad(20)
    reach = 58 * dx
    line = Line((reach * np.sin(a), -reach * np.cos(a)), (-reach * np.sin(a), reach * np.cos(a)))  # faces -x
    pulse = np.exp(-(((t - 4e-6) * f) ** 2)) * np.sin(2 * np.pi * f * (t - 4e-6))
    amplitude = 1e5 if quantity == "p" else 1e5 / (1000 * C)
    away = 16 * dx * np.array([[-np.cos(a), -np.sin(a)], [np.cos(a), np.sin(a)]])
    p = simulate(
        grid,
        Medium(C),
        Source(emitters=(Emitter(line, amplitude * pulse, quantity=quantity),)),
        Sensor(positions=away),
        pml_size=10,
        pml_inside=False,
    )["p"]
    peak = [one[np.argmax(np.abs(one[:250]))] for one in p]
    sign = 1.0 if quantity == "p" else -1.0
    np.testing.assert_allclose(np.abs(peak), np.abs(1e5 * pulse).max(), rtol=0.02)  # interpolated between points
    assert np.sign(peak[0] / peak[1]) == sign


def test_elements_of_an_array_act_like_emitters_of_their_own():
    lines = [Line((-4e-3, y), (-4e-3, y + 3e-3)) for y in (-6e-3, 1e-3)]
    grid = Grid((40, 44), 0.5e-3, 1e-7, 60)
    wave = np.sin(2 * np.pi * 3e5 * np.arange(30) * 1e-7)
    delays, factors = np.array([0.0, 2.5e-7]), np.array([1.0, 0.4])
    sensor = Sensor(mask=np.arange(40 * 44).reshape(40, 44) % 37 == 0)
    together = Source(emitters=(Emitter(lines, wave, delays, factors),))
    single = Source(
        emitters=tuple(
            Emitter(line, wave, [delay], [factor]) for line, delay, factor in zip(lines, delays, factors, strict=True)
        )
    )
    first, second = (
        simulate(grid, Medium(C), source, sensor, pml_size=6, precision="float64")["p"] for source in (together, single)
    )
    np.testing.assert_allclose(first, second, atol=1e-12 * np.abs(first).max())


def test_delay_of_part_of_a_step_moves_a_smooth_signal():
    t = np.arange(80.0)
    bump = lambda t: np.exp(-((t - 30) ** 2) / 50) * np.cos(0.3 * t)  # noqa: E731
    np.testing.assert_allclose(delayed(bump(t), 7.3)[:80], bump(t - 7.3), atol=1e-4)
    np.testing.assert_array_equal(delayed(bump(t), 3.0)[3:], bump(t))


@pytest.mark.parametrize(
    ("emitter", "words"),
    [
        (Emitter(SHAPES["disc"][0], np.zeros((2, 3))), "signal is not an array (n_times,) of finite numbers"),
        (Emitter((), np.ones(3)), "has no shape"),
        (Emitter(Disc(ORIGIN, ORIGIN, 1e-3), np.ones(3)), f"disc: position and focus are the same point, {ORIGIN}"),
        (Emitter(Disc(ORIGIN, (1.0, 0.0, 0.0), -1e-3), np.ones(3)), "disc: diameter -0.001 m is not positive"),
        (
            Emitter(Bowl(ORIGIN, (1.0, 0.0, 0.0), 1e-3, 3e-3), np.ones(3)),
            "bowl: diameter 0.003 m is not between 0 and twice the radius 0.001 m",
        ),
        (
            Emitter(Rectangle(ORIGIN, (1e-3, 0, 0), (1e-3, 1e-3, 0)), np.ones(3)),
            "rectangle: sides (0.001, 0, 0) and (0.001, 0.001, 0) are not at a right angle",
        ),
        (Emitter(Line(ORIGIN, ORIGIN), np.ones(3)), f"line: start and end are the same point, {ORIGIN}"),
        (Emitter(Line((0, 0), (1e-3, 0)), np.ones(3)), "a Line in 2 dimensions on a grid of 3"),
        (
            Emitter(SHAPES["line"][0], np.ones(3), quantity="u"),
            "a Line in 3 dimensions has no normal direction; use quantity p",
        ),
        (Emitter(Disc((0.1, 0, 0), (1.0, 0, 0), 1e-3), np.ones(3)), "a Disc does not lie inside the grid"),
        (Emitter(SHAPES["disc"][0], np.ones(3), delays=[1.0, 2.0]), "delays are not 1 finite numbers, one per shape"),
        (Emitter(SHAPES["disc"][0], np.ones(3), delays=[-1.0]), "a delay of -1 s is negative"),
        (Emitter(SHAPES["disc"][0], np.ones(3), mode="dirichlet"), "quantity 'p' and mode 'dirichlet': quantity"),
    ],
)
def test_impossible_emitters_give_one_line_errors(emitter, words):
    with pytest.raises(CaseError) as caught:
        Source(emitters=(emitter,)).on(CUBE, C)
    assert str(caught.value).startswith(f"source.emitters[0]: {words}")


def test_weights_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("seiche.ultrasound.emitter._CHUNK", 1 << 14)
    positions = np.random.default_rng(3).uniform(-3e-3, 3e-3, (200, 3))
    results = []
    for threads in ("1", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results.append(weights_at(Grid((40, 40, 40), 0.25e-3), positions, np.ones(200)))
    (points, weights), (other_points, other_weights) = results
    np.testing.assert_array_equal(points, other_points)
    np.testing.assert_array_equal(weights, other_weights)
