# SPDX-License-Identifier: BSD-3-Clause
"""Sensors with the response of a gradient (theory/ultrasound, eq. 72) against plane waves and filters in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Line, Medium, Sensor, Solver, Source, simulate
from seiche.ultrasound.simulate import Layers, problem_of, request_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SPACING, C = 1e-4, 1500.0
OPTIONS: dict[str, Any] = {"pml_size": 0, "smooth_p0": False, "precision": "float64"}
RNG = np.random.default_rng(3)


def plane_wave(shape: tuple[int, ...], cycles: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return a periodic plane wave with whole numbers of cycles along the axes, and its direction."""
    phase = np.zeros(shape)
    for axis, (points, cycle) in enumerate(zip(shape, cycles, strict=True)):
        phase += np.moveaxis(
            2 * np.pi * cycle * np.arange(points) / points + np.zeros((*shape[:axis], *shape[axis + 1 :], points)),
            -1,
            axis,
        )
    k = np.array(cycles) / (np.array(shape) * SPACING)
    return 1e3 * np.cos(phase), k / np.linalg.norm(k)


@pytest.mark.parametrize(("shape", "cycles"), [((24, 30), (3, 2)), ((21, 32), (-2, 5)), ((12, 10, 14), (2, -1, 3))])
@pytest.mark.parametrize("between", [False, True])
def test_a_plane_wave_is_recorded_with_the_cosine_of_its_angle(shape, cycles, between, device):
    """The factor is exact, whatever the direction of a sensor; equal directions need not be neighbours."""
    pressure, unit = plane_wave(shape, cycles)
    grid = Grid(shape, SPACING, dt=0.3 * SPACING / C, steps=20)
    points = RNG.permutation(int(np.prod(shape)))[:7]
    mask = np.zeros(shape, bool)
    mask.flat[points] = True
    positions = (RNG.random((7, len(shape))) - 0.5) * (np.array(shape) - 3) * SPACING
    where: dict[str, Any] = {"positions": positions} if between else {"mask": mask}
    directions = RNG.standard_normal((7, len(shape)))
    directions[4], directions[6] = directions[1], -3 * directions[1]
    run: dict[str, Any] = {**OPTIONS, "device": device}
    found = simulate(grid, Medium(C), Source(p0=pressure), Sensor(**where, directions=directions), **run)["p"]
    plain = simulate(grid, Medium(C), Source(p0=pressure), Sensor(**where), **run)["p"]
    factors = np.abs(directions @ unit) / np.linalg.norm(directions, axis=1)
    np.testing.assert_allclose(found, factors[:, None] * plain, atol=1e-10 * 1e3)
    one = simulate(grid, Medium(C), Source(p0=pressure), Sensor(**where, directions=unit), **run)["p"]
    np.testing.assert_allclose(one, plain, atol=1e-10 * 1e3)


@pytest.mark.parametrize("shape", [(15,), (16,), (15, 18), (16, 14), (9, 10, 8)])
def test_any_field_is_filtered_like_its_spectrum(shape):
    """The real part of the filtered field, as of k-Wave, which at Nyquist numbers is a mean over their signs."""
    pressure = RNG.standard_normal(shape)
    grid = Grid(shape, SPACING, dt=0.3 * SPACING / C, steps=5)
    direction = RNG.standard_normal(len(shape))
    everywhere = Sensor(mask=np.ones(shape, bool))
    fields = simulate(grid, Medium(C), Source(p0=pressure), everywhere, **OPTIONS)["p"].T.reshape(5, *shape)
    k = np.meshgrid(*(2 * np.pi * np.fft.fftfreq(n, SPACING) for n in shape), indexing="ij")
    length = np.sqrt(sum(numbers**2 for numbers in k))
    length.flat[0] = 1.0
    along = np.abs(sum(n * numbers for n, numbers in zip(direction / np.linalg.norm(direction), k, strict=True)))
    axes = tuple(range(1, 1 + len(shape)))
    expected = np.fft.ifftn(np.fft.fftn(fields, axes=axes) * along / length, axes=axes).real
    sensor = Sensor(mask=np.ones(shape, bool), directions=direction)
    found = simulate(grid, Medium(C), Source(p0=pressure), sensor, **OPTIONS)["p"]
    np.testing.assert_allclose(found.T.reshape(5, *shape), expected, atol=1e-12 * np.abs(fields).max())


def test_a_restart_continues_the_series():
    grid, sensor = (
        Grid((20, 18), SPACING, dt=2e-8, steps=30),
        Sensor(mask=np.eye(20, 18) > 0, directions=np.eye(18, 2) + 0.1),
    )
    layers = Layers.of(grid, 4, 2.0, True)
    problem = problem_of(grid, Medium(C), Source(p0=RNG.standard_normal((20, 18))), layers)
    first, second = (Solver(problem, record=request_of(grid, sensor, layers)) for _ in range(2))
    first.advance(12)
    second.set_state(first.state())
    first.advance(18)
    second.advance(18)
    np.testing.assert_array_equal(first.recorder.series("p"), second.recorder.series("p"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"directions": np.ones(3)}, "sensor.directions: shape (3,) is not (2,) or (20, 2)"),
        ({"directions": [0.0, 0.0]}, "sensor.directions: a vector has no length, or is not finite"),
        ({"directions": [np.nan, 0.0]}, "sensor.directions: a vector has no length, or is not finite"),
        ({"record": ("p", "p_max")}, "sensor.directions: apply to the series p; omit the record 'p_max'"),
        (
            {"mask": None, "elements": Line((0.0, 0.0), (1e-4, 0.0))},
            "sensor.directions: require a mask, corners or positions",
        ),
    ],
)
def test_what_does_not_fit_gives_a_one_line_error(change, words):
    grid = Grid((20, 20), SPACING, dt=2e-8, steps=5)
    sensor = Sensor(**{"mask": np.eye(20) > 0, "directions": [1.0, 0.0], **change})
    with pytest.raises(CaseError) as caught:
        simulate(grid, Medium(C), Source(p0=np.ones((20, 20))), sensor, pml_size=4)
    assert str(caught.value).startswith(words)


def test_a_grid_with_symmetry_is_refused():
    grid = Grid((20, 12), SPACING, dt=2e-8, steps=5, symmetry="axisymmetric")
    sensor = Sensor(mask=np.ones((20, 12), bool), directions=(1.0, 0.0))
    with pytest.raises(CaseError, match=r"sensor.directions: require a single rank and a grid without symmetry"):
        simulate(grid, Medium(C), Source(p0=np.ones((20, 12))), sensor, pml_size=4)
