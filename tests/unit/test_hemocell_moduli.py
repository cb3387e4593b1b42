# SPDX-License-Identifier: BSD-3-Clause
"""The moduli of a converted membrane give the energies and forces of HemoCell's network at small strain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seiche.case.blood.hemocell_membrane import ContinuumModuli, SpringCoefficients, continuum_moduli, edge_length

KBT = 4.142e-21
EDGE, SPACING, COUNT = 0.4e-6, 0.5e-6, 1280
AREA = COUNT * math.sqrt(3) / 4 * EDGE**2
SPRINGS = SpringCoefficients(link=15.0, area=5.0, bend=80.0, volume=20.0, viscosity=5e-10)


def moduli(springs: SpringCoefficients = SPRINGS, *, hinges: bool = False, count: int = COUNT) -> ContinuumModuli:
    return continuum_moduli(springs, AREA * count / COUNT, count, spacing=SPACING, energy=KBT, hinges=hinges)


def test_the_edge_is_that_of_equilateral_triangles() -> None:
    assert edge_length(AREA, COUNT) == pytest.approx(EDGE)


@pytest.mark.parametrize(("strain", "share"), [((1e-4, -1e-4, 0.0), 2.0), ((0.0, 0.0, 1e-4), 2.0)])
def test_the_shear_modulus_is_that_of_a_net_of_springs(strain: tuple[float, float, float], share: float) -> None:
    """The energy per area of a net with three edges per vertex is G (e1 - e2)^2/2 in pure shear, any direction."""
    angles = np.pi / 3 * np.arange(3) + 0.2
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    exx, eyy, exy = strain
    gradient = np.array([[1 + exx, exy], [exy, 1 + eyy]])
    stretches = np.linalg.norm(directions @ gradient.T, axis=1) - 1
    force = 15.0 * KBT / 7.5e-9 * (stretches + stretches / np.abs(9 - stretches**2))
    energy = 0.5 * (force * stretches * EDGE).sum() / (math.sqrt(3) / 2 * EDGE**2)
    assert energy == pytest.approx(share * moduli().shear * 1e-8, rel=1e-3)


def test_the_area_modulus_of_the_net_is_twice_its_shear_modulus() -> None:
    strain = 1e-4
    force = 15.0 * KBT / 7.5e-9 * (strain + strain / 9)
    tension = math.sqrt(3) * force / EDGE  # an edge carries the stress of a strip; K = tension/(2 strain)
    assert tension / (2 * strain) == pytest.approx(2 * moduli().shear, rel=1e-3)


def test_the_local_area_modulus_is_the_work_of_the_forces_towards_the_centroid() -> None:
    change = 1e-5
    pull = 5.0 * KBT / 0.5e-6 * (change + change / abs(0.09 - change**2))
    radius = EDGE / math.sqrt(3)
    force = pull * radius / SPACING  # of each vertex, whose distance from the centroid grows by radius change/2
    work = 3 * force * radius / 2 / (math.sqrt(3) / 4 * EDGE**2)
    assert work / change == pytest.approx(moduli().local_area, rel=1e-6)


def test_the_bending_modulus_gives_the_energy_of_a_sphere() -> None:
    """Deviations of vertices of a triangular lattice on a large sphere, with Helfrich's energy 2 k H^2 per area."""
    radius = 1e3 * EDGE
    angles = np.pi / 3 * np.arange(6)
    ring = EDGE * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    deviation = radius - np.sqrt(radius**2 - (ring**2).sum(axis=1)).mean()
    slope = 80.0 * KBT / 0.5e-6 * (1 + 1 / 0.0555)
    energy = 0.5 * slope * EDGE * (deviation / EDGE) ** 2 / (math.sqrt(3) / 2 * EDGE**2)
    assert energy == pytest.approx(2 * moduli().bending / radius**2, rel=1e-4)


def test_the_bending_modulus_of_hinges_gives_their_torque() -> None:
    """The torque of a hinge is 2 sqrt(3) k t in eq. 9 of theory/cells; HemoCell's force acts at the height."""
    force = 80.0 * KBT / 0.5e-6 * (1 + 1 / 2.467)
    torque = force * math.sqrt(3) / 2 * EDGE
    assert torque == pytest.approx(2 * math.sqrt(3) * moduli(hinges=True).bending, rel=1e-9)


def test_the_volume_modulus_is_the_pressure_of_the_forces_on_triangles() -> None:
    change = 1e-6
    force = 20.0 * KBT / 0.5e-6 * change / abs(0.01 - change**2)  # on each of the three vertices of a triangle
    assert 3 * force / (AREA / COUNT) / change == pytest.approx(moduli().volume, rel=1e-6)


def test_surface_viscosity_and_resolution_scale_as_documented() -> None:
    assert moduli().viscosity == pytest.approx(math.sqrt(3) / 4 * 5e-10)
    coarse = continuum_moduli(SPRINGS, AREA, COUNT // 4, spacing=SPACING, energy=KBT, hinges=False)
    assert coarse.shear == pytest.approx(moduli().shear / 2) and coarse.bending == pytest.approx(2 * moduli().bending)
    assert coarse.volume == pytest.approx(moduli().volume)
