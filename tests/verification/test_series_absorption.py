# SPDX-License-Identifier: BSD-3-Clause
"""Absorption of series and its inverse, against simulations in one to three dimensions and exact pulses."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.angular_spectrum import wave_number
from seiche.ultrasound.kspace_image import kspace_image
from seiche.ultrasound.series_absorption import absorbed_series, restored_series

C = 1500.0


@pytest.mark.parametrize("power", [1.5, 2.0])
@pytest.mark.parametrize("shape", [(300,), (120, 60), (56, 24, 24)], ids=["1D", "2D", "3D"])
def test_series_of_a_simulation_lose_what_the_matrix_predicts_and_get_it_back(shape, power, device):
    dx = 1e-4
    grid = Grid(shape, dx, 0.15 * dx / C, {1: 1400, 2: 600, 3: 300}[len(shape)])
    axes = [grid.positions(axis) for axis in grid.axes]
    start = axes[0][shape[0] // 4]
    squares = sum(np.ix_((axes[0] - start) ** 2, *(x**2 for x in axes[1:])))
    p0 = np.exp(-np.asarray(squares) / (2 * 2.5e-4**2))
    mask = np.zeros(shape, bool)
    mask[(shape[0] * 3 // 4, *(n // 2 for n in shape[1:]))] = True
    options = {"pml_size": 12, "pml_inside": False, "smooth_p0": False, "precision": "float64", "device": device}
    clear, lossy = (
        simulate(grid, medium, Source(p0=p0), Sensor(mask=mask), **options)["p"]
        for medium in (Medium(C), Medium(C, alpha_coeff=3.0, alpha_power=power))
    )
    medium, peak = Medium(C, alpha_coeff=3.0, alpha_power=power), np.abs(clear).max()
    body = np.s_[:, :-80]  # in two dimensions the waves have not ended with the series
    lost = np.abs(lossy - clear)[body].max()
    assert lost > 0.04 * peak
    assert np.abs(absorbed_series(clear, grid.dt, medium) - lossy)[body].max() < 0.06 * lost
    assert np.abs(restored_series(lossy, grid.dt, medium, noise=1e-3) - clear)[body].max() < 0.12 * lost


@pytest.mark.parametrize("power", [0.8, 1.3, 2.0])
def test_a_plane_tone_burst_is_absorbed_and_delayed_by_the_power_law(power):
    """A plane wave from the distance c0 t0 is F^-1[w/(c0 k) exp(-i c0 k t0) F s0]."""
    dt, count, t0 = 2e-8, 800, 6e-6
    medium = Medium(C, alpha_coeff=4.0, alpha_power=power)
    time = np.arange(count) * dt
    burst = np.cos(2 * np.pi * 1.5e6 * (time - t0)) * np.exp(-(((time - t0) / 0.8e-6) ** 2))
    number = complex(wave_number(medium, 1.5e6))
    found = absorbed_series(burst, dt, medium)
    assert found.max() == pytest.approx(np.exp(C * number.imag * t0), rel=0.12)
    spectrum = np.fft.rfft(burst, 4 * count) * np.exp(2j * np.pi * np.fft.rfftfreq(4 * count, dt) * t0)
    k = wave_number(medium, np.fft.rfftfreq(4 * count, dt))
    narrow = np.fft.irfft(spectrum * np.exp(-1j * C * k * t0), 4 * count)[:count]
    assert np.abs(found - narrow).max() < 0.12 * narrow.max()  # to first order in the width of the burst


def test_noise_limits_what_is_restored():
    dt, time = 2e-8, np.arange(500) * 2e-8
    medium = Medium(C, alpha_coeff=3.0, alpha_power=1.5)
    pulse = np.exp(-(((time - 5e-6) / 1.5e-7) ** 2))
    recorded = absorbed_series(pulse, dt, medium) + 0.01 * np.random.default_rng(2).normal(size=500)
    errors = {level: np.abs(restored_series(recorded, dt, medium, noise=level) - pulse).max() for level in (1e-4, 0.05)}
    assert errors[0.05] < 0.5 * np.abs(recorded - pulse).max()
    assert errors[1e-4] > 5 * errors[0.05]


def test_restored_series_give_the_image_of_a_lossless_medium():
    dt, dx = 2e-8, C * 2e-8
    y = (np.arange(48) - 24) * 4 * dx
    r, ct = np.sqrt((60 * dx) ** 2 + y**2)[:, None], C * np.arange(200) * dt
    clear = (r - ct) / (2 * r) * np.exp(-((r - ct) ** 2) / (2 * (5 * dx) ** 2))
    medium = Medium(C, alpha_coeff=4.0, alpha_power=1.5)
    lossy = absorbed_series(clear, dt, medium)
    images = [kspace_image(s, 4 * dx, dt, C) for s in (clear, lossy, restored_series(lossy, dt, medium, noise=1e-3))]
    assert np.abs(images[2] - images[0]).max() < 0.05 * np.abs(images[1] - images[0]).max()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: absorbed_series(1.0, 1e-8, Medium(C)), "series: shape () is not (..., times) of finite numbers"),
        (lambda: restored_series([1.0, np.nan], 1e-8, Medium(C)), "series: shape (2,) is not"),
        (lambda: restored_series([1.0, 2.0], 0.0, Medium(C)), "dt: 0 is not a finite number > 0"),
        (lambda: restored_series([1.0, 2.0], 1e-8, Medium(C), noise=0.0), "noise: 0 is not a finite number > 0"),
        (lambda: absorbed_series(np.ones(20_000), 1e-8, Medium(C)), "series: 20000 samples are more than 16384"),
        (lambda: absorbed_series([1.0, 2.0], 1e-8, Medium([C, C, 1.0])), "medium: must be uniform"),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
