# SPDX-License-Identifier: BSD-3-Clause
"""Solid bodies in built-in shapes: sites, cuts of links, repetition, and messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seiche
from seiche.domain.axial_solids import SolidCylinder
from seiche.domain.links import check_sites
from seiche.domain.shapes import box, channel, duct, tube
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.domain.solids import SolidBox, SolidSphere
from seiche.errors import CaseError
from seiche.flow.section import developed_profile

CYLINDER = SolidCylinder((20.0, 12.0, 0.0), (20.0, 12.0, 3.0), 5.0)


def cuts(sites: SiteSet) -> np.ndarray:
    """Return where the links are cut by walls."""
    row, k = np.nonzero(sites.link_kind == LinkKind.WALL)
    step = sites.link_fraction[row, k].astype(float)[:, None] * LINK_VECTORS[k]
    return np.asarray(np.asarray(sites.origin) + sites.coords[sites.boundary[row]] + step)


@pytest.mark.parametrize("height", [1.0, 3.0])
def test_links_end_on_a_cylinder_across_a_channel_or_on_its_plates(height: float):
    """The ends of the cylinder are in periodic planes, so they are no walls."""
    body = SolidCylinder((20.0, 12.0, 0.0), (20.0, 12.0, height), 5.0)
    sites = duct(25.0, height, 40.0, 1.0, periodic=False, plates=True, obstacles=[body])
    check_sites(sites)
    assert sites.periodic == (False, False, True) and sites.shape == (40, 25, round(height))
    points = cuts(sites)
    radius = np.hypot(points[:, 0] - 20.0, points[:, 1] - 12.0)
    on_body = np.abs(radius - 5.0) < 1e-5
    assert on_body.sum() > 20 * height
    np.testing.assert_allclose(np.abs(points[~on_body, 1] - 12.5), 12.5, atol=1e-5)
    assert len(sites) == pytest.approx((1000 - np.pi * 25) * height, rel=0.01)


def test_a_sphere_in_a_box_repeats_across_its_sides():
    """A sphere at a corner of a periodic box removes as much as one in the middle, which has the same sites, moved."""
    middle = box((16, 16, 16), obstacles=[SolidSphere((8.0, 8.0, 8.0), 4.3)])
    corner = box((16, 16, 16), obstacles=[SolidSphere((0.0, 0.0, 16.0), 4.3)])
    check_sites(corner)
    assert len(middle) < 16**3 and len(corner) == len(middle)
    moved = {tuple(position) for position in (corner.coords + 8) % 16}
    assert moved == {tuple(position) for position in middle.coords}
    np.testing.assert_allclose(np.sort(corner.link_fraction.ravel()), np.sort(middle.link_fraction.ravel()), atol=1e-5)


def test_bodies_in_a_tube_and_on_a_plate():
    ball = SolidSphere((10.0, 0.0, 0.0), 3.0)
    plain, blocked = (tube(6.0, 20.0, 1.0, obstacles=bodies) for bodies in ((), [ball]))
    removed = {tuple(position) for position in plain.coords} - {tuple(position) for position in blocked.coords}
    inside = ball.depth(np.asarray(plain.origin) + plain.coords) >= 0.0
    assert removed == {tuple(position) for position in plain.coords[inside]} and len(removed) > 100
    step = channel(8.0, 12.0, 1.0, 1.0, obstacles=[SolidBox((4.0, 0.0, 0.0), (7.0, 1.0, 3.0))])
    check_sites(step)
    assert len(step) == 12 * 8 - 3 * 3
    points = cuts(step)
    beside = (np.abs(points[:, 0] - 5.5) < 1.4) & (points[:, 2] < 4.0)
    np.testing.assert_allclose(points[beside, 2], 3.0, atol=1e-5)


def test_a_computed_profile_between_plates_is_a_parabola():
    """Half-way walls give the parabola at the sites exactly, apart from a constant, h^2/8 (1 - 4 s^2) + 1/8."""
    sites = duct(25.0, 3.0, 10.0, 1.0, periodic=False, plates=True)
    profile = developed_profile(sites, 0)
    y = profile.coords[:, 1] + 0.5
    exact = y * (25.0 - y) / 2 + 1 / 8
    np.testing.assert_allclose(profile.values / profile.values.mean(), exact / exact.mean(), rtol=1e-12)
    assert profile.values.mean() == pytest.approx(1.0, rel=0.01)


def test_a_body_without_a_site_is_rejected():
    with pytest.raises(CaseError, match=r"obstacle 2 contains no lattice node; move it into the shape"):
        tube(6.0, 20.0, 1.0, obstacles=[SolidSphere((9.0, 0.0, 0.0), 2.0), SolidSphere((40.0, 0.0, 0.0), 2.0)])


CASE = """
solver = "flow"
[geometry]
spacing = "1 mm"
shape = { kind = "duct", width = "25 mm", height = "2 mm", length = "40 mm", periodic = false, plates = true }
[[geometry.obstacle]]
kind = "cylinder"
start = ["20 mm", "12 mm", "0 mm"]
end = ["20 mm", "12 mm", "2 mm"]
radius = "5 mm"
[fluid]
viscosity = "4 mPa s"
[lattice]
tau = 0.8
[time]
steps = 20
[walls]
kind = "bouzidi"
[[iolet]]
name = "inlet"
kind = "velocity"
velocity = "1 mm/s"
profile = "computed"
[[iolet]]
name = "outlet"
kind = "pressure"
pressure = "0 Pa"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "case.toml"
    path.write_text(text)
    return path


def test_a_case_has_the_sites_of_its_obstacles(tmp_path: Path):
    sim = seiche.load(written(tmp_path, CASE))
    body = SolidCylinder((0.02, 0.012, 0.0), (0.02, 0.012, 0.002), 0.005)
    expected = duct(0.025, 0.002, 0.04, 1e-3, periodic=False, plates=True, obstacles=[body])
    assert len(sim.fields(["pressure"])["pressure"]) == len(expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('radius = "5 mm"', 'radius = "0.1 mm"', r"geometry: obstacle 1 contains no lattice node"),
        (
            'shape = { kind = "duct", width = "25 mm", height = "2 mm", length = "40 mm", periodic = false, '
            "plates = true }",
            'gmy = "vessel.gmy"',
            r"geometry: obstacle: is not allowed with gmy, whose sites are fixed",
        ),
        (
            'end = ["20 mm", "12 mm", "2 mm"]',
            'end = ["20 mm", "12 mm", "0 mm"]',
            r"end: is equal to start; expected the other end of the axis",
        ),
    ],
)
def test_impossible_obstacles_are_named(tmp_path: Path, old: str, new: str, message: str):
    with pytest.raises(CaseError, match=message):
        seiche.load(written(tmp_path, CASE.replace(old, new))).run()
