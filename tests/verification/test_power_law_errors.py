# SPDX-License-Identifier: BSD-3-Clause
"""The errors that are predicted for strong absorption are those of a computed wave, and relaxation has none of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.power_law import ADVISED_ATTENUATION, ADVISED_SPEED, power_law_errors
from seiche.ultrasound.problem import Absorption

FREQUENCY, SPEED, SPACING, NEAR, FAR = 0.5e6, 2800.0, 2.8e-4, 300, 330


def measured(coefficient: float, power: float, mode: str | None) -> tuple[float, float]:
    """Return attenuation (Np/m) and phase speed (m/s) of a wave between two points of a line, once it is steady."""
    dt = 0.2 * SPACING / SPEED
    periods = 40
    steps = int(periods / FREQUENCY / dt)
    time = dt * np.arange(steps)
    grid = Grid((900,), SPACING, dt, steps)
    mask = np.zeros(900, bool)
    mask[250] = True
    ramp = np.minimum(1.0, time * FREQUENCY / 10)
    medium = Medium(
        SPEED, 1000.0, alpha_coeff=coefficient, alpha_power=power, alpha_mode=mode, relaxation_band=(0.3e6, 0.8e6)
    )
    source = Source(p_mask=mask, p=ramp * np.sin(2 * np.pi * FREQUENCY * time))
    sensor_mask = np.zeros(900, bool)
    sensor_mask[[NEAR, FAR]] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = simulate(grid, medium, source, Sensor(mask=sensor_mask, record=("p",)), precision="float64")["p"]
    series = np.asarray(series)
    series = series if series.shape[0] == steps else series.T
    last = round(8 / FREQUENCY / dt)
    window = np.exp(-2j * np.pi * FREQUENCY * time[-last:])
    near, far = (series[-last:] * window[:, None]).sum(axis=0)
    ratio, distance = far / near, (FAR - NEAR) * SPACING
    turns = 2 * np.pi * FREQUENCY * distance / SPEED  # the wave turns less than that, by less than half a turn
    phase = -np.angle(ratio * np.exp(1j * turns)) + turns
    return float(-np.log(abs(ratio)) / distance), float(2 * np.pi * FREQUENCY * distance / phase)


def power_law(coefficient: float, power: float) -> tuple[float, float]:
    attenuation = 100 * coefficient * (FREQUENCY / 1e6) ** power / (20 * np.log10(np.e))
    turning = attenuation * SPEED / (2 * np.pi * FREQUENCY) * np.tan(np.pi * power / 2)
    return attenuation, SPEED / (1 + turning)


@pytest.mark.parametrize(("coefficient", "power"), [(8.6, 1.1), (4.0, 1.3), (2.0, 1.5), (6.0, 0.8)])
def test_predicted_errors_are_those_of_a_wave(coefficient: float, power: float):
    predicted = power_law_errors(Absorption(coefficient, power), SPEED, FREQUENCY)
    attenuation, speed = measured(coefficient, power, None)
    expected = power_law(coefficient, power)
    assert attenuation / expected[0] - 1 == pytest.approx(predicted.attenuation, abs=0.01)
    assert speed / expected[1] - 1 == pytest.approx(predicted.speed, abs=0.002)


def test_strong_absorption_is_far_off_and_relaxation_is_not():
    errors = power_law_errors(Absorption(8.6, 1.1), SPEED, FREQUENCY)
    assert errors.attenuation < -0.3
    assert errors.speed < -0.08
    attenuation, _ = measured(8.6, 1.1, "relaxation")
    assert attenuation == pytest.approx(power_law(8.6, 1.1)[0], rel=0.01)


def test_absorption_of_soft_tissue_is_followed_closely():
    for absorption, speed in ((Absorption(0.75, 1.5), 1540.0), (Absorption(2.17e-3, 2.0, stokes=True), 1482.0)):
        errors = power_law_errors(absorption, speed, 1e6)
        assert abs(errors.attenuation) < ADVISED_ATTENUATION
        assert abs(errors.speed) < ADVISED_SPEED
