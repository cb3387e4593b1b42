# SPDX-License-Identifier: BSD-3-Clause
"""Records of sensors in addition to amplitudes and phases, whose steps differ."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

GRID = Grid((32, 28), 1e-4, 2e-8, 60)
MASK = np.zeros(GRID.shape, bool)
MASK[16, 10:18] = True
P0 = np.zeros(GRID.shape)
P0[12:16, 10:14] = 1e6


def recorded(sensor: Sensor) -> dict[str, np.ndarray]:
    return simulate(GRID, Medium(1500.0), Source(p0=P0), sensor, pml_size=4, precision="float64")


@pytest.mark.parametrize("window", [None, (10, 60), (10, 30), (50, 60)])
def test_sensors_and_amplitudes_keep_their_own_steps(window):
    """Neither begins with the other: aggregates hold what came from the first recorded step on, and nothing else."""
    names = ("p", "p_max", "p_min", "p_rms", "p_max_all")
    result = recorded(Sensor(MASK, record=names, first=40, frequencies=(1e6,), frequency_window=window))
    full = recorded(Sensor(MASK))["p"]
    late = full[:, 40:]
    np.testing.assert_array_equal(result["p"], late)
    np.testing.assert_array_equal(result["p_max"], late.max(axis=1))
    np.testing.assert_array_equal(result["p_min"], late.min(axis=1))
    np.testing.assert_allclose(result["p_rms"], np.sqrt((late**2).mean(axis=1)), rtol=1e-12)
    np.testing.assert_array_equal(result["p_max_all"][MASK], late.max(axis=1))
    first, last = window or (40, 60)
    phase = -2j * np.pi * 1e6 * np.arange(first, last) * GRID.dt
    wave = 2 / (last - first) * (full[:, first:last] * np.exp(phase)).sum(axis=1)
    np.testing.assert_allclose(result["p_amplitude"][0][MASK], np.abs(wave), rtol=1e-9, atol=1e-9 * np.abs(full).max())
