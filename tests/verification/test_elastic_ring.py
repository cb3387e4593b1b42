# SPDX-License-Identifier: BSD-3-Clause
"""A ring of bone that shears: the series solution by itself, and the solver against it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hankel2

from seiche.validate.check import Setting
from seiche.validate.ultrasound.bone_ring import RADII, SOURCE_AT, exact_ring, ring_errors
from seiche.validate.ultrasound.elastic import BONE, WATER

OMEGA = 2 * np.pi * WATER[0] / 10
SHEAR = BONE[2] * BONE[1] ** 2
MODULI = BONE[2] * BONE[0] ** 2 - 2 * SHEAR, SHEAR


@pytest.mark.parametrize("radius", [8.0, 20.0, 27.0])
def test_a_ring_without_losses_absorbs_no_power(radius):
    """The mean radial flux through circles that do not enclose the source is zero."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    below, above = (exact_ring(OMEGA, MODULI, np.full(400, radius + d), angle, 1.0) for d in (-0.01, 0.01))
    flux = np.imag(np.conj(above + below) * (above - below))
    assert abs(flux.mean()) < 1e-9 * np.abs(flux).mean()


def test_stress_and_displacement_do_not_jump_when_bone_is_nearly_water(monkeypatch):
    """With the properties of water and little shear, the field is that of the source alone."""
    monkeypatch.setattr("seiche.validate.ultrasound.bone_ring.BONE", (1500.0, 0.0, 1000.0))
    mu = 1000 * 40.0**2 * (1 + 0.004j)
    r, angle = np.array([5.0, 10.0, 19.0, 26.0]), np.array([0.3, 1.0, 2.0, 3.0])
    field = exact_ring(OMEGA, (1000 * 1500.0**2 - 2 * mu, mu), r, angle, 1.0)
    alone = hankel2(0, OMEGA / 1500 * np.sqrt(r**2 + SOURCE_AT**2 - 2 * r * SOURCE_AT * np.cos(angle)))
    np.testing.assert_allclose(field, alone, atol=2e-3 * abs(alone).max())
    assert RADII[1] < r[2]


def test_the_field_around_the_ring_is_that_of_the_series():
    inside, outside = ring_errors(Setting(threads=1), 1)
    assert 0.35 < inside < 0.43  # a ring of six points
    assert outside < 0.055
