# SPDX-License-Identifier: BSD-3-Clause
"""What the checks of blood compare with: tables that others printed, and shapes that are known."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.cells import icosphere
from seiche.couple.limits import step_limit
from seiche.validate.cells import suspensions
from seiche.validate.cells.capsule_table import TABLE, extrapolated
from seiche.validate.cells.capsules import deformation
from seiche.validate.cells.one_cell import CellMotion
from seiche.validate.cells.red_cells import CYTOSOL, DEXTRAN, PLASMA, CellLattice
from seiche.validate.cells.tubes import TubeMeasurements, TubeSuspension, hematocrit_ratio, relative_viscosity, swollen


@pytest.mark.parametrize(
    ("hematocrit", "expected"),
    [
        (0.15, {6: 1.090, 10: 1.070, 20: 1.126, 40: 1.207, 500: 1.478}),
        (0.30, {6: 1.181, 10: 1.170, 20: 1.307, 40: 1.494, 500: 2.136}),
        (0.45, {6: 1.274, 10: 1.328, 20: 1.588, 40: 1.923, 500: 3.110}),
    ],
)
def test_viscosity_in_tubes_is_that_of_the_published_fit(hematocrit: float, expected: dict[int, float]) -> None:
    for diameter, value in expected.items():
        assert relative_viscosity(diameter, hematocrit) == pytest.approx(value, abs=6e-4)


def test_tubes_hold_less_cells_than_they_pass_on() -> None:
    for diameter, value in {10: 0.719, 20: 0.735, 40: 0.787, 100: 0.890}.items():
        assert hematocrit_ratio(diameter, 0.45) == pytest.approx(value, abs=6e-4)


def test_a_lattice_keeps_the_ratio_of_viscous_and_elastic_forces() -> None:
    """The capillary number mu g a / G is the same in pN, um and s as on the lattice."""
    for lattice in (CellLattice(0.5, 4e-6, PLASMA), CellLattice(0.25, 1e-5, DEXTRAN, 2.0)):
        cell, rate = lattice.red_cell(162), 57.1
        radius = float(np.abs(cell.mesh.vertices[:, 0]).max())
        on_lattice = lattice.viscosity * rate * lattice.step * radius / cell.model.law.shear
        assert on_lattice == pytest.approx(lattice.outer * rate * 3.785 / 2.8, rel=1e-3)
        assert cell.model.bending / (cell.model.law.shear * radius**2) == pytest.approx(
            0.2 / (2.8 * 3.785**2), rel=1e-3
        )
    assert CellLattice(0.5, 4e-6, PLASMA).density == pytest.approx(38400)


@pytest.mark.parametrize("lattice", [suspensions._FINE, TubeSuspension(20.0, 0.3).lattice])
def test_tubes_take_at_most_half_the_longest_stable_step(lattice: CellLattice) -> None:
    """At 1.09 times that step, a cell in the tube of 20 um became unstable after 55 000 steps."""
    limit = step_limit(
        open_backend("cpu", 1),
        lattice.red_cell(642),
        "peskin",
        lattice.viscosity,
        scheme="adams-bashforth",
        viscosity_contrast=CYTOSOL / lattice.outer,
    )
    assert limit.ratio > 2


def _turning(strain: float, times: int, *, body: float, membrane: float) -> CellMotion:
    """Return an ellipse that turns by `body` a unit of strain, on which points go round by `membrane`."""
    ball, result = icosphere(162).vertices, []
    for t in strain * np.arange(times):
        phase = np.arctan2(ball[:, 2], ball[:, 0]) - membrane * t
        r = np.hypot(ball[:, 0], ball[:, 2])
        x, z = 4 * r * np.cos(phase), 2 * r * np.sin(phase)
        c, s = np.cos(0.3 - body * t), np.sin(0.3 - body * t)
        result.append(np.stack([c * x - s * z, 3 * ball[:, 1], s * x + c * z], axis=1) + np.array([t, 0, 0]))
    return CellMotion(np.array(result), strain, 0.5, (0.0, 0.0))


def test_tank_treading_and_tumbling_are_distinguished() -> None:
    treading = _turning(0.05, 801, body=0.0, membrane=0.22)
    assert treading.half_turns() == pytest.approx(0, abs=0.02)
    assert treading.treading_rate() == pytest.approx(0.22, abs=0.01)
    assert treading.half_axes()[-1] == pytest.approx([2.0, 1.0, 1.5], rel=0.02)
    tumbling = _turning(0.05, 401, body=0.3, membrane=0.0)
    assert tumbling.half_turns() == pytest.approx(0.3 * 20 / np.pi, abs=0.05)


def test_the_layer_without_cells_ends_at_the_outermost_membrane() -> None:
    tube = TubeSuspension(20.0, 0.3, length=40.0)
    along = np.repeat(np.arange(80.0), 64)
    angle = np.tile(np.arange(64) * 2 * np.pi / 64, 80)
    ring = np.stack([along, 16 * np.cos(angle) + tube.axis[0], 16 * np.sin(angle) + tube.axis[1]], axis=1)
    assert tube.layer(ring[None]) == pytest.approx(2.0, abs=1e-6)


def test_the_table_of_capsules_is_in_order() -> None:
    for law in {row.name for row in TABLE}:
        values = [row.deformation for row in TABLE if row.name == law]
        assert values == sorted(values)
    assert extrapolated((4.0, 8.0), [1.2, 1.1]) == pytest.approx(1.0)
    axes = deformation(icosphere(642).vertices * [3.0, 2.0, 1.5], icosphere(642).faces)
    assert axes == pytest.approx((3.0 - 1.5) / 4.5, abs=1e-3)


def test_a_sphere_that_the_flow_sees_larger_has_the_volume_of_that_sphere() -> None:
    ball = icosphere(2562)
    assert swollen(ball, 0.1) == pytest.approx(1.1**3, rel=1e-3)
    assert swollen(ball, 0.0) == pytest.approx(1.0)


def test_what_was_seen_of_a_tube_is_combined() -> None:
    """Half as fast as plasma; cells 1.2 times as fast as the whole; twenty samples of which the last ten count."""
    tube = TubeSuspension(20.0, 0.3)
    step = 100.0 * np.arange(1, 21)
    drift = np.full(20, 0.001)
    rows = np.stack(
        [step, np.full(20, 0.005), 0.006 * step, np.full(20, 2.0), np.full(20, 0.3), 2 * drift, drift], axis=1
    )
    result = TubeMeasurements(tube, 0.01, rows)
    assert result.viscosity == pytest.approx(2.0)
    assert result.discharge_hematocrit == pytest.approx(0.36)
    assert result.effective_hematocrit > 1.4 * 0.36
    assert result.layer == pytest.approx(2.0 - 0.67 * 0.5)
    assert result.drift == pytest.approx((0.002, 0.001))
