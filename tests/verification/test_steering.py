# SPDX-License-Identifier: BSD-3-Clause
"""Steering by time reversal: delays in a uniform medium, and waves of elements that meet behind a slab."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Emitter, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.shapes import Line
from seiche.ultrasound.steering import ray_delays, time_reversal_delays

SPACING, FREQUENCY, TARGET = 0.5e-3, 5e5, (9e-3, 2e-3)
HEIGHTS = (-9e-3, 0.0, 8e-3)
ELEMENTS = [Line((-14e-3, y - 1e-3), (-14e-3, y + 1e-3)) for y in HEIGHTS]
MIDDLES = [(-14e-3, y) for y in HEIGHTS]


def grid(duration: float = 40e-6) -> Grid:
    """Return 80 x 80 points with time steps for a speed of 2200 m/s."""
    dt = 0.3 * SPACING / 2200.0
    return Grid((80, 80), SPACING, dt, round(duration / dt))


def slab(speed: float) -> Medium:
    """Return water with a slab across a part of the aperture."""
    x, y = np.meshgrid(grid().positions("x"), grid().positions("y"), indexing="ij")
    inside = (x > -6e-3) & (x < 1e-3) & (y > -2e-3)
    return Medium(np.where(inside, speed, 1500.0), 1000.0, sound_speed_ref=2200.0)


def amplitude(medium: Medium, numbers: list[int], delays: np.ndarray) -> float:
    """Return the amplitude of the pressure at the target of continuous waves of some elements."""
    space = grid()
    times = space.dt * np.arange(space.steps)
    signal = 1e4 * np.sin(2 * np.pi * FREQUENCY * times) * np.minimum(times * FREQUENCY / 3, 1.0)
    emitter = Emitter([ELEMENTS[k] for k in numbers], signal, delays=delays[numbers])
    sensor = Sensor(positions=[TARGET])
    series = simulate(space, medium, Source(emitters=(emitter,)), sensor, pml_size=10, threads=1)["p"][0]
    window = round(3 / FREQUENCY / space.dt)
    return float(np.sqrt(2 * np.mean(series[-window:] ** 2)))


def test_delays_in_water_are_those_of_straight_rays():
    """They agree modulo a period, to a fiftieth of one: elements are longer than points."""
    delays = time_reversal_delays(grid(), slab(1500.0), ELEMENTS, TARGET, FREQUENCY, pml_size=10, threads=1)
    rays = ray_delays(grid(), 1500.0, MIDDLES, TARGET)
    phases = np.exp(2j * np.pi * FREQUENCY * (delays - rays))
    np.testing.assert_allclose(np.angle(phases / phases[0]) / (2 * np.pi), 0.0, atol=0.02)
    assert delays.min() == 0.0 and delays.max() < 1 / FREQUENCY


def test_waves_of_all_elements_meet_behind_a_slab():
    """The amplitudes add up to 1 %, which those along straight rays and those without delays do not."""
    medium = slab(2200.0)
    delays = time_reversal_delays(grid(), medium, ELEMENTS, TARGET, FREQUENCY, pml_size=10, threads=1)
    alone = sum(amplitude(medium, [k], np.zeros(3)) for k in range(3))
    reversed_time, rays, plain = (
        amplitude(medium, [0, 1, 2], values) / alone
        for values in (delays, ray_delays(grid(), medium.sound_speed, MIDDLES, TARGET), np.zeros(3))
    )
    assert reversed_time > 0.99
    assert plain < 0.9 and rays < reversed_time


def test_short_runs_and_wrong_arguments_are_refused():
    medium = slab(1500.0)
    with pytest.raises(CaseError, match=r"the wave at element \d is not steady after"):
        time_reversal_delays(grid(20e-6), medium, ELEMENTS, TARGET, FREQUENCY, pml_size=10, threads=1)
    with pytest.raises(CaseError, match="fewer than 6 periods of the wave"):
        time_reversal_delays(grid(5e-6), medium, ELEMENTS, TARGET, FREQUENCY)
    with pytest.raises(CaseError, match="frequency: 0 is not a finite number > 0"):
        time_reversal_delays(grid(), medium, ELEMENTS, TARGET, 0.0)
    with pytest.raises(CaseError, match=r"frequency: 5e\+08 Hz is not below .* the Nyquist frequency"):
        time_reversal_delays(grid(), medium, ELEMENTS, TARGET, 5e8)
    with pytest.raises(CaseError, match="is not a position on 2 axes"):
        time_reversal_delays(grid(), medium, ELEMENTS, (0.0, 0.0, 0.0), FREQUENCY)
