# SPDX-License-Identifier: BSD-3-Clause
"""The checks of `seiche validate flow` at their quick size: orders of accuracy, exact solutions, conservation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seiche.report.validation import (
    conservation,
    decay,
    equality,
    iolets,
    models,
    moments,
    openings,
    steady,
    vessels,
    walls,
)
from seiche.report.validation.check import Check, Setting

FAMILIES = [
    conservation.rheology,
    conservation.momentum,
    conservation.iolet_balance,
    conservation.mass,
    equality.geometry_files,
    equality.layouts_and_restart,
    decay.shear_wave,
    decay.taylor_green,
    decay.taylor_green_of_each_set,
    steady.plane_channel,
    steady.square_duct,
    steady.reynolds_only,
    steady.blood_channel,
    steady.round_pipe,
    models.shear_waves,
    models.sound_waves,
    models.plane_channels,
    models.casson_channel,
    models.power_law_channel,
    models.power_law_pipe,
    models.kolmogorov_flow,
    openings.pressure_tube,
    openings.parabolic_tube,
    openings.pulsating_tube,
    iolets.pressure_schemes,
    iolets.duct_inlet,
    iolets.windkessel,
    iolets.mixed_balance,
    vessels.flow_split,
    walls.pipes,
    walls.plane_couette,
    walls.round_couette,
    walls.driven_cavity,
    walls.pressure_tubes,
    walls.mass_drift,
    moments.decay,
    moments.walls,
    moments.blood,
    moments.balance,
    moments.equality,
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_measured_value_keeps_its_bound(device: str, family: Callable[[Setting], list[Check]]):
    # One thread: a team on a busy machine waits more than it works.
    checks = family(Setting(device, quick=True, threads=1))
    assert checks
    for check in checks:
        assert check.passed, f"{check.name}: {check.value:g}, bound {check.sense} {check.bound:g}"


@pytest.mark.gpu
def test_gpu_equals_cpu_in_every_layout(device: str):
    (check,) = equality.devices(Setting(device, quick=True))
    assert check.value == 0


def test_a_gpu_run_has_one_check_more_than_a_cpu_run():
    assert equality.devices(Setting("cpu", quick=True)) == []


def test_square_duct_ratio_is_the_published_one():
    assert steady.square_duct_ratio() == pytest.approx(2.0962, abs=1e-4)


def test_quadrature_between_plates_of_a_newtonian_fluid_is_a_parabola():
    import numpy as np

    from seiche.flow import CarreauYasuda

    z = np.linspace(0.05, 0.95, 7)
    profile = steady.plates_profile(CarreauYasuda(0.2, 0.2, 1.0, 2.0, 0.5), 1e-3, 1.0, z)
    np.testing.assert_allclose(profile, 0.5e-3 / 0.2 * z * (1 - z), rtol=1e-6)
