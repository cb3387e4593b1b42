# SPDX-License-Identifier: BSD-3-Clause
"""The estimated amplitude behind absorbing layers is that of a packet that crosses them in one dimension."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.case.ultrasound.estimates import wrapped_fraction
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

POINTS, SPACING, SPEED, COURANT = 1024, 1e-4, 1500.0, 0.3


def crossed(size: int, points_per_wavelength: float) -> float:
    """Return the amplitude of a packet that leaves a periodic grid and returns to its centre."""
    x, wavelength = SPACING * (np.arange(POINTS) - POINTS // 2), points_per_wavelength * SPACING
    pulse = np.exp(-((x / (4 * wavelength)) ** 2)) * np.cos(2 * np.pi * x / wavelength)
    grid = Grid((POINTS,), SPACING, COURANT * SPACING / SPEED, int(POINTS / COURANT) + 1)
    record = Sensor(mask=np.ones(POINTS), record=("p_final",))
    options = {"pml_size": size, "precision": "float64", "smooth_p0": False}
    found = simulate(grid, Medium(SPEED), Source(p0=pulse), record, **options)
    # Both halves of the packet have crossed the layers and add up.
    return float(np.abs(found["p_final"]).max())


@pytest.mark.parametrize("size", [4, 6, 9, 12])
def test_the_transmitted_amplitude_is_that_of_the_estimate(size: int) -> None:
    for points_per_wavelength in (5, 6, 10, 16):
        ratio = crossed(size, points_per_wavelength) / wrapped_fraction(size, 2.0, coarse=False)
        assert 0.5 < ratio < 2.2
    assert 0.1 < crossed(size, 4) / wrapped_fraction(size, 2.0, coarse=True) < 1.0
