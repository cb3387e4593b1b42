# SPDX-License-Identifier: BSD-3-Clause
"""Propagation between planes against plane waves, Gaussian beams, O'Neil's bowl and simulations."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Bowl, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.angular_spectrum import (
    propagate,
    propagate_series,
    source_plane,
    source_signals,
    wave_number,
)
from seiche.validate.ultrasound.continuous_waves import on_axis_amplitude

C, F = 1500.0, 500e3
WAVE = C / F
LOSSY = Medium(C, alpha_coeff=0.6, alpha_power=1.3)


def oblique(n: int, dx: float, periods: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return a periodic plane wave in a plane, and its wave numbers there."""
    k = 2 * np.pi * np.array(periods) / (n * dx)
    x = np.arange(n) * dx
    return np.exp(-1j * (k[0] * x[:, None] + k[1] * x)), k


@pytest.mark.parametrize("medium", [Medium(C), LOSSY, Medium(C, alpha_coeff=0.6, alpha_mode="stokes")])
def test_a_plane_wave_keeps_its_exact_phase_and_decay(medium):
    plane, across = oblique(24, WAVE / 3, (3, 2))
    number = complex(wave_number(medium, F))
    normal = np.sqrt(number**2 - across @ across)
    distances = np.array([0.0, 7e-3, 50e-3, -20e-3])
    result = propagate(plane, WAVE / 3, distances, F, medium, padding=1, restrict=False)
    expected = plane * np.exp(-1j * normal * distances)[:, None, None]
    np.testing.assert_allclose(result, expected, rtol=1e-11)


def test_wave_number_has_the_absorption_and_the_phase_speed_of_the_power_law():
    alpha = 0.6 * 0.5**1.3 * 100 / (20 * np.log10(np.e))  # dB/cm at 0.5 MHz in Np/m
    omega = 2 * np.pi * F
    number = complex(wave_number(LOSSY, F))
    assert number.imag == pytest.approx(-alpha, rel=1e-12)
    assert number.real == pytest.approx(omega / C + alpha * np.tan(1.3 * np.pi / 2), rel=1e-12)


def test_a_pulse_is_delayed_and_absorbed_at_each_of_its_frequencies():
    """Two plane waves of different frequencies and directions; the time axis moves with the distance over c0."""
    n, dx, count, dt = 24, WAVE / 4, 64, 1 / F / 16
    time, distance = np.arange(count) * dt, 31e-3
    series, expected = np.zeros((n, n, count)), np.zeros((n, n, count))
    for frequency, periods, amplitude in ((F, (2, 1), 1.0), (2 * F, (0, -3), 0.4)):
        plane, across = oblique(n, dx, periods)
        normal = np.sqrt(complex(wave_number(LOSSY, frequency)) ** 2 - across @ across)
        tone = amplitude * np.exp(2j * np.pi * frequency * time)
        series += (plane[..., None] * tone).real
        retarded = np.exp(-1j * normal * distance + 2j * np.pi * frequency * distance / C)
        expected += (plane[..., None] * tone * retarded).real
    result = propagate_series(series, dx, dt, [distance], LOSSY, padding=1, restrict=False)[0]
    np.testing.assert_allclose(result, expected, atol=1e-11)
    back = propagate_series(result, dx, dt, -distance, LOSSY, padding=1, restrict=False)[0]
    np.testing.assert_allclose(back, series, atol=1e-11)


@pytest.mark.parametrize("distance", [60e-3, -60e-3])
def test_a_gaussian_beam_spreads_forward_and_backward(distance):
    """The waist is ten wavelengths: the paraxial solution is exact to about 1e-3."""
    waist, dx, n = 10 * WAVE, WAVE / 2, 160
    x = (np.arange(n) - n // 2) * dx
    r2 = x[:, None] ** 2 + x**2
    k = 2 * np.pi / WAVE
    q = 1 - 2j * distance / (k * waist**2)
    expected = np.exp(-1j * k * distance) / q * np.exp(-r2 / (waist**2 * q))
    result = propagate(np.exp(-r2 / waist**2), dx, distance, F, Medium(C))[0]
    assert np.abs(result - expected).max() < 3e-3


def test_a_plane_in_front_of_a_bowl_gives_oneils_pressure_on_its_axis():
    size, dx, n, first = 30e-3, WAVE / 4, 96, 6e-3
    bowl = Bowl((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), size, size).quadrature(WAVE / 4)
    x = (np.arange(n) - n // 2) * dx
    k = 2 * np.pi / WAVE
    plane = np.zeros((n, n), complex)
    for point, area in zip(bowl.points, bowl.weights, strict=True):
        r = np.sqrt((x[:, None] - point[0]) ** 2 + (x - point[1]) ** 2 + (first - point[2]) ** 2)
        plane += 1j * k / (2 * np.pi) * area * np.exp(-1j * k * r) / r
    z = np.linspace(12e-3, 45e-3, 23)
    exact = on_axis_amplitude("bowl", z, size, F)
    for restrict, bound in ((False, 0.01), (True, 0.02)):
        found = np.abs(propagate(plane, dx, z - first, F, Medium(C), restrict=restrict)[:, n // 2, n // 2])
        assert np.abs(found - exact).max() < bound * exact.max()
    focal = propagate(plane, dx, size - first, F, Medium(C))[0]
    back = propagate(focal, dx, 20e-3 - size, F, Medium(C))[0]
    assert abs(back[n // 2, n // 2]) == pytest.approx(
        float(on_axis_amplitude("bowl", np.array([20e-3]), size, F)[0]), rel=0.1
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_hydrophone_line_becomes_a_source_that_reproduces_it(device):
    """Measured behind an aperture, propagated back to the source line, and simulated again."""
    dx, n, dt = WAVE / 6, 160, WAVE / 6 / C / 4
    grid = Grid((64, n), dx, dt, 900)
    y = grid.positions("y")
    beam = np.exp(-((y / (4 * WAVE)) ** 2) - 0.7j * 2 * np.pi / WAVE * y * 0.5)
    measured = propagate(beam, dx, 20 * dx, F, Medium(C))[0]
    source = source_plane(propagate(measured, dx, -20 * dx, F, Medium(C))[0], dx, F, Medium(C))
    line = np.zeros(grid.shape, bool)
    line[20] = True
    signals = source_signals(source, F, grid, ramp=5.0)
    sensor = Sensor(record=("p_final",), frequencies=(F,), frequency_window=(grid.steps - 96, grid.steps))
    result = simulate(
        grid, Medium(C), Source(p_mask=line, p=signals), sensor, pml_size=12, precision="float64", device=device
    )
    found = (result["p_amplitude"][0] * np.exp(1j * result["p_phase"][0]))[40]
    inside = np.abs(y) < 55 * dx
    assert np.abs(found - measured)[inside].max() < 0.01 * np.abs(measured).max()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plane": np.zeros((2, 2, 2))}, "plane: shape (2, 2, 2) is not (n,) or (n, m) of numbers"),
        ({"plane": [np.nan]}, "plane: not every value is a finite number"),
        ({"spacing": 0.0}, "spacing: 0 m is not positive"),
        ({"frequency": -1.0}, "frequency: -1 Hz is not positive"),
        ({"padding": 0}, "padding: 0 is not a whole number >= 1"),
        ({"distances": ["a"]}, "distances: is not an array of numbers"),
        ({"medium": Medium(np.array([1500.0, 1600.0]))}, "medium: must be uniform"),
    ],
)
def test_impossible_planes_are_named(change, words):
    arguments = {"plane": np.ones(4), "spacing": 1e-3, "distances": 1e-2, "frequency": F, "medium": Medium(C)}
    with pytest.raises(CaseError) as caught:
        propagate(**(arguments | change))
    assert str(caught.value) == words
    with pytest.raises(CaseError, match=r"series: shape \(3,\) is not \(n, times\)"):
        propagate_series(np.ones(3), 1e-3, 1e-7, 1e-2, Medium(C))
