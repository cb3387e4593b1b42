# SPDX-License-Identifier: BSD-3-Clause
"""Gain instead of absorption, against the exact growth of standing waves, and time reversal that restores images."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.photoacoustic import time_reversal

C, SPACING = 1500.0, 1e-4
NEPERS = 100 / (20 * np.log10(np.e))


def standing(medium: Medium, k: float, time: float, sign: float, full: float = 1.0) -> float:
    """Return p(t)/p(0) of a standing wave by the exact solution of eq. 12, with losses (1) or a gain (-1).

    s^2 + 2 g s + w^2 = 0 with g = a0 c (c k)^y and w^2 = (c k)^2 (1 - 2 a0 c tan(pi y/2) (c k)^(y-1)).
    """
    y = float(np.asarray(medium.alpha_power))
    a0 = NEPERS * float(np.asarray(medium.alpha_coeff)) * (1e-6 / (2 * np.pi)) ** y
    omega = C * k
    growth = full * sign * a0 * C * omega**y
    square = omega**2 * (1 - full * 2 * a0 * C * np.tan(np.pi * y / 2) * omega ** (y - 1))
    root = np.sqrt(square - growth**2)
    density = np.exp(-growth * time) * (np.cos(root * time) + growth / root * np.sin(root * time))
    rate = -np.exp(-growth * time) * square / root * np.sin(root * time)
    return (square * density + 2 * growth * rate) / omega**2


@pytest.mark.parametrize("shape", [(48,), (24, 30), (12, 16, 20)], ids=str)
@pytest.mark.parametrize("power", [1.5, 1.1, 2.0])
@pytest.mark.parametrize("transforms", ["exact", "separable", "local4"])
def test_a_standing_wave_grows_as_fast_as_it_would_decay(shape, power, transforms, device):
    periods = (2,) + (1,) * (len(shape) - 1)
    waves = [2 * np.pi * m / (n * SPACING) for m, n in zip(periods, shape, strict=True)]
    k = float(np.linalg.norm(waves))
    frequency = C * k / (2 * np.pi)
    lossy = Medium(C, alpha_coeff=0.2 / (frequency / 1e6) ** (power - 1), alpha_power=power)
    medium = Medium(C, alpha_coeff=lossy.alpha_coeff, alpha_power=power, gain_below=1.05 * frequency)
    grid = Grid(shape, SPACING, 0.1 * SPACING / C, 400)
    phases = np.ix_(*(wave * np.arange(n) * SPACING for wave, n in zip(waves, shape, strict=True)))
    p0 = np.cos(sum(phases))
    options = {"pml_size": 0, "smooth_p0": False, "precision": "float64", "scheme": transforms, "device": device}
    sensor, time = Sensor(record=("p_final",)), (grid.steps - 1) * grid.dt
    for one, sign in ((lossy, 1.0), (medium, -1.0)):
        field = simulate(grid, one, Source(p0=p0), sensor, **options)["p_final"]
        amplitude = float(np.vdot(field, p0) / np.vdot(p0, p0))
        assert amplitude == pytest.approx(standing(one, k, time, sign), abs=2e-3 * max(1, abs(amplitude)))


def test_waves_above_the_frequency_are_not_amplified():
    """In full at the frequency, not at all at 1.5 times, and half of it where k^2 is 1.5 times as large."""
    n, grid = 60, Grid((60,), SPACING, 0.1 * SPACING / C, 300)
    x, time = np.arange(n) * SPACING, 299 * grid.dt
    for ratio, full in ((1.0, 1.0), (np.sqrt(1.5), 0.5), (1.5, 0.0)):
        k = 2 * np.pi * 6 / (n * SPACING)
        medium = Medium(C, alpha_coeff=0.3, alpha_power=1.4, gain_below=C * k / (2 * np.pi) / ratio)
        options = {"pml_size": 0, "smooth_p0": False, "precision": "float64"}
        field = simulate(grid, medium, Source(p0=np.cos(k * x)), Sensor(record=("p_final",)), **options)["p_final"]
        found = 2 * np.mean(field * np.cos(k * x))
        assert found == pytest.approx(standing(medium, k, time, -1.0, full), abs=3e-3)


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_compensation_restores_a_packet_in_one_dimension(power, device):
    """The packet at 1.5 MHz travels 10 mm to either side and back."""
    n, dx = 400, 1e-4
    grid = Grid((n,), dx, 0.1 * dx / C, 1800)
    x = grid.positions("x")
    p0 = np.exp(-((x / 4e-4) ** 2)) * np.cos(2 * np.pi * 1.5e6 / C * x)
    mask = np.zeros(n, bool)
    mask[[100, 300]] = True
    medium = Medium(C, alpha_coeff=1.5, alpha_power=power)
    options = {"smooth_p0": False, "precision": "float64", "device": device}
    series = simulate(grid, medium, Source(p0=p0), Sensor(mask=mask), **options)["p"]
    image = time_reversal(grid, medium, mask, series, positive=False, compensate=4e6, **options)
    assert np.abs(image - p0).max() < 0.02
    assert np.abs(time_reversal(grid, medium, mask, series, positive=False, **options) - p0).max() > 0.3


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_compensation_restores_an_image_inside_a_ring(power, device):
    n, dx = 72, 1e-4
    grid = Grid((n, n), dx, 0.3 * dx / C, 180)
    x = grid.positions("x")
    r = np.hypot(x[:, None], x)
    p0 = np.exp(-((r / 4e-4) ** 2)) + 0.6 * np.exp(-((np.hypot(x[:, None] - 9e-4, x + 8e-4) / 4e-4) ** 2))
    ring = np.abs(r - 2.6e-3) < 0.75 * dx
    medium = Medium(C, alpha_coeff=3.0, alpha_power=power)
    options = {"pml_size": 8, "smooth_p0": False, "device": device, "precision": "float64"}
    series = simulate(grid, medium, Source(p0=p0), Sensor(mask=ring), **options)["p"]

    def error(**more: float) -> float:
        image = time_reversal(grid, medium, ring, series, **more, **options)
        return float(np.abs(image - p0)[r < 2.2e-3].max())

    assert error(compensate=2e6) < 0.45 * error()
    assert error(compensate=2e6) < 0.04


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gain_below": -1.0}, "medium.gain_below: -1 Hz is not a finite number > 0"),
        ({"gain_below": 1e6, "alpha_coeff": None, "alpha_power": None}, "medium.gain_below: needs a power law"),
        ({"gain_below": 1e6, "alpha_mode": "relaxation"}, "medium.gain_below: needs a power law"),
    ],
)
def test_impossible_gains_are_named(change, words):
    medium = Medium(**({"sound_speed": C, "alpha_coeff": 1.0, "alpha_power": 1.5} | change))
    with pytest.raises(CaseError) as caught:
        simulate(Grid((32,), 1e-4, 1e-8, 3), medium, Source(p0=np.ones(32)), Sensor(record=("p_final",)))
    assert str(caught.value).startswith(words)


def test_compensation_in_a_lossless_medium_is_refused():
    grid, mask = Grid((16, 16), 1e-4, 1e-8, 5), np.eye(16)
    with pytest.raises(CaseError, match=r"medium.gain_below: needs a power law"):
        time_reversal(grid, Medium(C), mask, np.ones((16, 5)), compensate=1e6)
