# SPDX-License-Identifier: BSD-3-Clause
"""The checks of `seiche validate flow` at their quick size: orders of accuracy, exact solutions, conservation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seiche.validate.check import Check, Setting
from seiche.validate.flow import FAMILIES, cylinder, equality, steady

#: Those that start jobs, need a GPU or have no quick form have tests of their own.
ALONE = (equality.ranks, equality.devices, cylinder.shedding)


@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if family not in ALONE], ids=lambda family: family.__name__
)
def test_measured_value_keeps_its_bound(device: str, family: Callable[[Setting], list[Check]]):
    # One thread: a team on a busy machine waits more than it works.
    checks = family(Setting(device, quick=True, threads=1))
    assert checks
    for check in checks:
        assert check.passed, f"{check.name}: {check.value:g}, bound {check.sense} {check.bound:g}"


@pytest.mark.nightly
def test_cylinder_at_re_100_sheds_vortices_as_the_benchmark_does(device: str):
    checks = cylinder.shedding(Setting(device, threads=2))
    assert len(checks) == 3 and all(check.passed for check in checks)


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
