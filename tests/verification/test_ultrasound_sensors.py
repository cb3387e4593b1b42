# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of finite size, their response, and tones of several frequencies against standing waves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import j0, j1

from seiche.errors import CaseError
from seiche.ultrasound import Disc, Grid, Line, Medium, Rectangle, Sensor, Source, simulate
from seiche.ultrasound.sensor import filtered

C, DX = 1500.0, 1e-3
OPTIONS: dict[str, Any] = {"pml_size": 0, "smooth_p0": False, "precision": "float64"}


def standing(shape: tuple[int, ...], *periods: int, steps: int = 40) -> tuple[Grid, Source, np.ndarray]:
    """Return a periodic standing wave cos(k.x) cos(c k t), which the scheme reproduces exactly, and k."""
    grid = Grid(shape, DX, 0.2 * DX / C, steps)
    wave = 2 * np.pi * np.array(periods) / (np.array(shape) * DX)
    phase = sum(k * x for k, x in zip(wave, np.meshgrid(*map(grid.positions, grid.axes), indexing="ij"), strict=True))
    return grid, Source(p0=np.cos(phase)), wave


def test_a_line_has_the_directivity_of_its_length(device):
    """The mean over a line of length L is the value in its middle times sin(x)/x, x = k_along L/2."""
    grid, source, wave = standing((48, 40), 6, 5)
    lines, middles, expected = [], np.array([[2.3e-3, -3.1e-3], [-5.2e-3, 0.4e-3]]), []
    time = np.arange(grid.steps) * grid.dt
    for middle in middles:
        for angle in (0.0, 0.4, 1.3, 2.5):
            along = np.array([-np.sin(angle), np.cos(angle)])
            lines.append(Line(tuple(middle - 4.1e-3 * along), tuple(middle + 4.1e-3 * along)))
            factor = np.sinc(wave @ along * 4.1e-3 / np.pi)
            expected.append(factor * np.cos(wave @ middle) * np.cos(C * np.linalg.norm(wave) * time))
    records = ("p", "p_max", "p_rms", "p_min")
    result = simulate(grid, Medium(C), source, Sensor(elements=lines, record=records), device=device, **OPTIONS)
    assert np.abs(result["p"] - expected).max() < 3e-4
    np.testing.assert_allclose(result["p_max"], result["p"].max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(result["p_rms"], np.sqrt((result["p"] ** 2).mean(axis=1)), rtol=1e-12)


def test_a_disc_and_a_rectangle_have_the_directivity_of_their_surfaces():
    grid, source, wave = standing((24, 20, 20), 3, 2, 3, steps=10)
    disc = Disc((0.3e-3, 0.2e-3, -0.4e-3), (1.0, 0.2e-3, -0.4e-3), 7e-3)
    rectangle = Rectangle((0.0, 0.1e-3, 0.0), (0.0, 5e-3, 0.0), (0.0, 0.0, 3e-3))
    result = simulate(grid, Medium(C), source, Sensor(elements=[disc, rectangle]), **OPTIONS)["p"]
    time = np.cos(C * np.linalg.norm(wave) * np.arange(grid.steps) * grid.dt)
    across = np.linalg.norm(wave[1:]) * 3.5e-3
    expected = [
        2 * j1(across) / across * np.cos(wave @ disc.position),
        np.sinc(wave[1] * 2.5e-3 / np.pi) * np.sinc(wave[2] * 1.5e-3 / np.pi) * np.cos(wave @ rectangle.position),
    ]
    assert np.abs(result - np.outer(expected, time)).max() < 3e-4


def test_a_disc_about_an_axis_of_symmetry_averages_over_its_surface():
    grid = Grid((24, 40), DX, 1e-7, 2, symmetry="axisymmetric")
    nodes, weights = Sensor(elements=Disc((0.2e-3, 0.0), (1.0, 0.0), 20.6e-3)).nodes(grid)
    k, radius = 2 * np.pi / (8 * DX), 10.3e-3
    x, r = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    field = np.cos(0.5 * k * x) * j0(k * r)
    expected = np.cos(0.5 * k * 0.2e-3) * 2 * j1(k * radius) / (k * radius)
    assert (weights * field.ravel()[nodes]).sum() == pytest.approx(expected, abs=3e-4)


def test_response_scales_a_tone_by_a_gaussian_of_its_frequency():
    time = np.arange(400) * 1e-8
    for frequency, factor in ((2e6, 1.0), (2.5e6, 0.5), (1.5e6, 0.5), (3e6, 1 / 16)):
        tone = np.cos(2 * np.pi * frequency * time + 0.3)
        np.testing.assert_allclose(filtered(tone, 1e-8, 2e6, 0.5), factor * tone, atol=1e-12)


def test_tones_of_several_frequencies_are_separated_without_whole_periods(device):
    """Two standing waves of incommensurate frequencies; the window is no whole number of periods of either."""
    grid, first, wave = standing((48,), 4, steps=311)
    _, second, other = standing((48,), 7)
    grid_source = Source(p0=np.asarray(first.p0) + 0.1 * np.asarray(second.p0))
    frequencies = tuple(C * float(k[0]) / (2 * np.pi) for k in (wave, other))
    sensor = Sensor(record=("p_final",), frequencies=frequencies, frequency_window=(17, 311))
    result = simulate(grid, Medium(C), grid_source, sensor, device=device, **OPTIONS)
    x = grid.positions("x")
    expected = np.abs([np.cos(wave[0] * x), 0.1 * np.cos(other[0] * x)])
    np.testing.assert_allclose(result["p_amplitude"], expected, atol=1e-12)
    steady = expected > 1e-3
    assert np.abs(np.sin(result["p_phase"][steady])).max() < 1e-9  # 0 or pi


def test_frequencies_that_the_window_cannot_distinguish_are_rejected():
    grid, source, _ = standing((48,), 4, steps=100)
    sensor = Sensor(record=("p_final",), frequencies=(1e5, 1.01e5))
    with pytest.raises(CaseError, match=r"record: 100 steps .* are too few to distinguish the frequencies 100000, 10"):
        simulate(grid, Medium(C), source, sensor, **OPTIONS)
