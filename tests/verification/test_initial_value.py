# SPDX-License-Identifier: BSD-3-Clause
"""Exact solutions of initial values against plane waves, ordinary differential equations and simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.initial_value import initial_value

D, C = 1e-4, 1500.0
RNG = np.random.default_rng(2)


@pytest.mark.parametrize("shape", [(32,), (24, 27), (12, 10, 9)])
def test_a_lossless_field_is_that_of_simulate(shape):
    """The k-space scheme without layers is exact, too: the same series to round-off."""
    grid = Grid(shape, D, dt=0.3 * D / C, steps=30)
    pressure, everywhere = RNG.standard_normal(shape), np.ones(shape, bool)
    options = {"pml_size": 0, "smooth_p0": False, "precision": "float64"}
    expected = simulate(grid, Medium(C), Source(p0=pressure), Sensor(mask=everywhere), **options)["p"]
    times = np.arange(30) * grid.dt
    found = initial_value(grid, Medium(C), times, p0=pressure, mask=everywhere, smooth=False, periodic=True)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    fields = initial_value(grid, Medium(C), times, p0=pressure, smooth=False, periodic=True)
    np.testing.assert_array_equal(fields.reshape(30, -1).T, found)
    smooth = simulate(grid, Medium(C), Source(p0=pressure), Sensor(mask=everywhere), **{**options, "smooth_p0": True})[
        "p"
    ]
    found = initial_value(grid, Medium(C), times, p0=pressure, mask=everywhere, periodic=True)
    np.testing.assert_allclose(found, smooth, atol=1e-11)


@pytest.mark.parametrize(
    "medium",
    [
        Medium(C),
        Medium(C, alpha_coeff=5.0, alpha_power=1.5),
        Medium(C, alpha_coeff=400.0, alpha_power=2.0, alpha_mode="stokes"),
    ],
)
@pytest.mark.parametrize("cycles", [0, 1, 3, 16])
def test_a_plane_wave_follows_its_ordinary_differential_equation(medium, cycles):
    """Equation 73, also where it is overdamped (the last medium at high wave numbers)."""
    n, times = 32, np.array([0.0, 1e-7, 4e-7, 9e-7])
    wave = np.cos(2 * np.pi * cycles * np.arange(n) / n)
    k = 2 * np.pi * cycles / (n * D)
    a0, y, tangent = 0.0, 2.0, 0.0
    if medium.alpha_coeff is not None:
        y = float(np.asarray(medium.alpha_power))
        a0 = float(np.asarray(medium.alpha_coeff)) * 100 * (1e-6 / (2 * np.pi)) ** y / (20 * np.log10(np.e))
        tangent = 0.0 if y == 2 else np.tan(np.pi * y / 2)
    damping, square = 2 * a0 * C ** (y + 1) * k**y, (C * k) ** 2 - 2 * a0 * tangent * C ** (y + 2) * k ** (y + 1)
    scale = max(abs(square) ** 0.5, damping, 1e6)
    solution = solve_ivp(
        lambda _, q: [scale * q[1], -damping * q[1] - square / scale * q[0]],
        (0.0, times[-1]),
        [2.0, -3e6 / scale],
        t_eval=times,
        method="Radau",
        rtol=1e-10,
        atol=1e-12,
    )
    found = initial_value(Grid((n,), D), medium, times, p0=2.0 * wave, rate=-3e6 * wave, smooth=False, periodic=True)
    np.testing.assert_allclose(found, solution.y[0][:, None] * wave, atol=1e-7)


def test_an_initial_rate_is_the_derivative_of_an_initial_pressure():
    """The field of a rate q is the integral over time of that of the pressure q."""
    grid, field = Grid((40, 36), D), RNG.standard_normal((40, 36))
    medium = Medium(C, alpha_coeff=0.7, alpha_power=1.4)
    t, step = 5e-7, 1e-10
    before, after = initial_value(grid, medium, [t - step, t + step], rate=field)
    (pressure,) = initial_value(grid, medium, [t], p0=field)
    (response,) = initial_value(grid, medium, [t], rate=field)
    derivative = (after - before) / (2 * step)
    lossless = initial_value(grid, Medium(C), [t - step, t, t + step], rate=field)
    exact = initial_value(grid, Medium(C), [t], p0=field)[0]
    np.testing.assert_allclose((lossless[2] - lossless[0]) / (2 * step), exact, atol=1e-5 * np.abs(exact).max())
    assert np.abs(derivative - pressure).max() < 0.2 * np.abs(pressure).max()  # damping adds a small term
    assert np.abs(response).max() > 0


def test_waves_leave_a_grid_that_is_not_periodic():
    """The field equals that in the middle of a larger grid; in one dimension half of the pulse runs either way."""
    x = (np.arange(64) - 32) * D
    pulse = np.exp(-((x / 4e-4) ** 2))
    times = np.array([1e-6, 3e-6, 2e-5])
    found = initial_value(Grid((64,), D), Medium(C), times, p0=pulse, smooth=False)
    expected = sum(0.5 * np.exp(-(((x - sign * C * times[:, None]) / 4e-4) ** 2)) for sign in (-1, 1))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    medium = Medium(C, alpha_coeff=0.7, alpha_power=1.3)
    near = initial_value(Grid((64,), D), medium, times, p0=pulse, smooth=False)
    far = np.pad(pulse, 4096)
    whole = initial_value(Grid((len(far),), D), medium, times, p0=far, smooth=False, periodic=True)
    np.testing.assert_allclose(near, whole[:, 4096:-4096], atol=1e-4)  # tails of the operator
    large = np.zeros((160, 160))
    large[48:112, 48:112] = np.exp(-((x[:, None] / 3e-4) ** 2) - (x / 5e-4) ** 2)
    small = initial_value(Grid((64, 64), D), Medium(C), times[:2], p0=large[48:112, 48:112], smooth=False)
    wide = initial_value(Grid((160, 160), D), Medium(C), times[:2], p0=large, smooth=False, periodic=True)
    np.testing.assert_allclose(small, wide[:, 48:112, 48:112], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p0": None}, "p0, rate: both are missing; at least one is required"),
        ({"p0": np.ones(7)}, "p0: shape (7,) is not that of the grid, (8, 8), of finite numbers"),
        ({"rate": np.full((8, 8), np.nan)}, "rate: shape (8, 8) is not that of the grid, (8, 8), of finite numbers"),
        ({"times": [-1.0]}, "times: are not finite numbers >= 0"),
        ({"times": [1.0]}, "times: the enlarged grid of"),
        ({"medium": Medium(np.ones((8, 8)))}, "medium: must be uniform"),
        ({"medium": Medium(C, BonA=6.0)}, "medium.BonA: must be None, since exact solutions are linear"),
        ({"medium": Medium(C, shear_speed=0.0)}, "medium: must be a fluid with a power law"),
        ({"grid": Grid((8, 8), D, symmetry="axisymmetric")}, "grid.symmetry: must be None"),
        ({"mask": np.zeros((8, 8))}, "mask: "),
        (
            {"medium": Medium(C, alpha_coeff=2e4, alpha_power=0.5)},
            "medium.alpha_coeff: the dispersion of",
        ),
        (
            {"medium": Medium(C, alpha_coeff=50.0, alpha_power=0.9)},
            "medium.alpha_coeff: the dispersion of",
        ),
        ({"medium": Medium(C, alpha_coeff=1.0, alpha_power=1.0)}, "alpha_power: 1 is too close to 1"),
    ],
)
def test_invalid_input_gives_a_one_line_error(change, words):
    arguments = {"grid": Grid((8, 8), D), "medium": Medium(C), "times": [1e-7], "p0": np.ones((8, 8)), **change}
    with pytest.raises(CaseError) as caught:
        initial_value(arguments.pop("grid"), arguments.pop("medium"), arguments.pop("times"), **arguments)
    assert str(caught.value).startswith(words)
