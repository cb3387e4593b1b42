# SPDX-License-Identifier: BSD-3-Clause
"""Heat, temperature, dose, media from CT images, and pictures by time reversal, against exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.ct import BoneModel, medium_of_ct
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.thermal import Bioheat, Tissue, heat_deposition


def test_heat_is_twice_absorption_times_intensity():
    """0.5 dB/(MHz^1.5 cm) at 4 MHz is 4 dB/cm = 46.05 Np/m."""
    medium = Medium(1600.0, 1100.0, alpha_coeff=0.5, alpha_power=1.5)
    intensity = 1e5**2 / (2 * 1100 * 1600)
    np.testing.assert_allclose(heat_deposition(np.full((3, 4), 1e5), 4e6, medium), 2 * 46.0517 * intensity, rtol=1e-5)


def test_heat_spreads_as_a_gaussian_widens(device):
    """T = T0 (s^2/(s^2 + 2 D t))^(d/2) exp(-r^2/(2 (s^2 + 2 D t))) in two dimensions, with blood that cools."""
    width, seconds, perfusion, errors = 2e-3, 10.0, 0.01, []
    tissue = Tissue(1050.0, 3600.0, 0.5, perfusion)
    wide = width**2 + 2 * 0.5 / (1050 * 3600) * seconds
    cooled = np.exp(-perfusion * 1060 * 3617 / (1050 * 3600) * seconds)
    for n in (32, 64):
        dx = 32e-3 / n
        x = (np.arange(n) - (n - 1) / 2) * dx
        r2 = x[:, None] ** 2 + x[None, :] ** 2
        heat = Bioheat((n, n), (dx, dx), tissue, 37 + 10 * np.exp(-r2 / (2 * width**2)), device=device)
        heat.run(seconds)
        exact = 37 + 10 * cooled * width**2 / wide * np.exp(-r2 / (2 * wide))
        errors.append(np.abs(heat.temperature - exact).max())
        assert heat.time == pytest.approx(seconds)
    assert errors[1] < 0.021
    assert errors[0] / errors[1] > 3.7


def test_heat_is_kept_where_nothing_cools_and_conductivity_varies(device):
    rng = np.random.default_rng(4)
    shape = (12, 9, 7)
    tissue = Tissue(1000.0, 4000.0, rng.uniform(0.1, 2.0, shape))
    state = Bioheat(shape, (1e-3,) * 3, tissue, 20.0, device=device)
    source = rng.uniform(0, 1e6, shape)
    state.run(3.0, source)
    gained = (state.temperature - 20.0).sum() * 1000 * 4000
    assert gained == pytest.approx(3.0 * source.sum(), rel=1e-12)


def test_layers_in_a_row_conduct_like_resistors(device):
    """Steady flux through layers of different conductivity: temperatures fall in proportion to the resistance."""
    n, dx = 40, 1e-3
    conductivity = np.where(np.arange(n) < 20, 0.2, 1.0)
    state = Bioheat((n,), (dx,), Tissue(1.0, 1.0, conductivity), 0.0, device=device)
    source = np.zeros(n)
    source[0], source[-1] = 1e6, -1e6
    state.run(0.02, source)  # many times the time that heat takes across
    fall = -np.diff(state.temperature)
    assert fall[5] / fall[30] == pytest.approx(5.0, rel=1e-3)
    assert fall[19] / fall[30] == pytest.approx((5 + 1) / 2, rel=1e-3)


@pytest.mark.parametrize(("degrees", "rate"), [(38.0, 0.0), (41.0, 0.0625), (43.0, 1.0), (46.0, 8.0)])
def test_dose_counts_minutes_at_43_degrees(degrees, rate, device):
    state = Bioheat((4,), (1e-3,), Tissue(), degrees, device=device)
    state.run(120.0)
    np.testing.assert_allclose(state.dose, 2 * rate)


def test_bone_of_a_ct_image_follows_its_porosity():
    medium = medium_of_ct(np.array([[-1000.0, 50.0], [500.0, 3000.0]]))
    np.testing.assert_allclose(medium.sound_speed, [[1500, 1500], [2300, 3100]])
    np.testing.assert_allclose(medium.density, [[1000, 1000], [1550, 2100]])
    np.testing.assert_allclose(medium.alpha_coeff, [[0, 0], [2 + 14 * np.sqrt(0.5), 2]])


def test_disc_of_pressure_is_seen_again_by_a_ring_of_sensors():
    n, dx, c = 64, 1e-4, 1500.0
    grid = Grid((n, n), dx, 0.3 * dx / c, 320)
    x = (np.arange(n) - n // 2) * dx
    r = np.hypot(x[:, None], x[None, :])
    p0 = np.exp(-((r / 6e-4) ** 2)) + 0.5 * np.exp(-(((np.hypot(x[:, None] - 8e-4, x[None, :] + 6e-4)) / 4e-4) ** 2))
    ring = np.abs(r - 2.2e-3) < dx / 2
    options = {"pml_size": 8, "smooth_p0": False}
    heard = simulate(grid, Medium(c), Source(p0=p0), Sensor(mask=ring), **options)["p"]
    once = time_reversal(grid, Medium(c), ring, heard, **options)
    inside = r < 1.8e-3
    assert np.linalg.norm((once - p0)[inside]) < 0.15 * np.linalg.norm(p0)
    second = time_reversal(grid, Medium(c), ring, heard, iterations=3, **options)
    assert np.linalg.norm((second - p0)[inside]) < 0.5 * np.linalg.norm((once - p0)[inside])


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: heat_deposition(np.ones(3), 1e6, Medium(1500.0)), "medium.alpha_coeff, alpha_power: are missing"),
        (
            lambda: heat_deposition(np.ones(3), -1.0, Medium(1500.0, alpha_coeff=1.0, alpha_power=1.1)),
            "frequency: -1 Hz is not positive",
        ),
        (
            lambda: Bioheat((3,), (1.0,), Tissue(heat_capacity=0.0)),
            "tissue.heat_capacity: 0 is not a finite number > 0",
        ),
        (lambda: Bioheat((3,), (1.0,), Tissue(perfusion=-1.0)), "tissue.perfusion: -1 is not a finite number >= 0"),
        (lambda: Bioheat((3,), (1.0,), Tissue(), np.ones(4)), "temperature: shape (4,) is not the grid's (3,)"),
        (lambda: Bioheat((3,), (1.0,), Tissue()).run(0.0), "seconds: 0 is not a finite number > 0"),
        (lambda: medium_of_ct(np.zeros((2, 2))), "hounsfield: no value reaches the threshold 100; the maximum is 0"),
        (lambda: medium_of_ct("bone"), "hounsfield: is not an array of numbers"),
        (lambda: medium_of_ct(np.array([np.nan])), "hounsfield: is not an array of finite numbers"),
        (
            lambda: medium_of_ct(np.full(3, 500.0), model=BoneModel(hounsfield=(5.0, 5.0))),
            "hounsfield: the value without bone, 5, must be below that of compact bone, 5",
        ),
        (
            lambda: time_reversal(Grid((4, 4), 1.0, 1e-6, 5), Medium(1500.0), np.eye(4), np.ones((3, 5))),
            "series: shape (3, 5) is not (sensors, time steps) = (4, 5)",
        ),
        (
            lambda: time_reversal(Grid((4, 4), 1.0, 1e-6, 5), Medium(1.0), np.eye(4), np.ones((4, 5)), iterations=0),
            "iterations: 0 must be at least 1",
        ),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
