# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces become the sites that lie inside them, whatever state the surface is in."""

import numpy as np
import pytest

from seiche.domain.links import check_sites
from seiche.domain.shapes import tube
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind
from seiche.domain.surface import Surface, subdivided
from seiche.domain.voxelise import voxelise
from seiche.errors import CaseError
from seiche.io.formats.stl import read_stl
from stl_files import openscad_tube

INLET = IoletPlane("in", "inlet", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
OUTLET = IoletPlane("out", "outlet", (20.0, 0.0, 0.0), (-1.0, 0.0, 0.0), 5.0)


def revolved(x, radius, around=96):
    """Return the closed surface of the profile `radius`(`x`) turned around the x axis; zero radius closes an end."""
    angle = 2.0 * np.pi * np.arange(around) / around
    rings = np.stack(
        np.broadcast_arrays(x[:, None], radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle)), -1
    )
    a, c = rings[:-1], rings[1:]
    b, d = np.roll(a, -1, axis=1), np.roll(c, -1, axis=1)
    triangles = np.stack([np.stack([a, b, c], 2), np.stack([b, d, c], 2)], 2).reshape(-1, 3, 3)
    return Surface.from_triangles(triangles[:, ::-1] if radius[0] < 0 else triangles)


def cylinder(closed=True, around=96, length=20.0):
    x, radius = np.linspace(0.0, length, 21), np.full(21, 5.0)
    if closed:
        x, radius = np.concatenate([[0.0], x, [length]]), np.concatenate([[0.0], radius, [0.0]])
    return revolved(x, radius, around)


def box_surface(low, high):
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([(q[0], q[i], q[i + 1]) for q in quads for i in (1, 2)], np.int32)
    return Surface(np.asarray(low) + corners * (np.asarray(high, float) - low), faces)


def test_measures_of_a_box():
    surface = box_surface((1, 2, 3), (3, 5, 7))
    assert surface.volume == pytest.approx(24.0)
    assert surface.area == pytest.approx(52.0)
    assert surface.boundary_loops() == []
    opened = Surface(surface.vertices, surface.faces[:-2])
    (rim,) = opened.boundary_loops()
    assert rim.center == pytest.approx((2.0, 3.5, 7.0))
    assert rim.normal == pytest.approx((0.0, 0.0, 1.0))
    assert rim.radius == pytest.approx(np.hypot(1.0, 1.5))
    assert opened.volume == pytest.approx(24.0)


def test_subdivision_keeps_area_and_parents():
    corners = box_surface((0, 0, 0), (9, 1, 2)).corners()
    pieces, parent = subdivided(corners, 1.0)
    area = np.linalg.norm(np.cross(pieces[:, 1] - pieces[:, 0], pieces[:, 2] - pieces[:, 0]), axis=1) / 2
    full = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    assert np.allclose(np.bincount(parent, area), full)
    assert np.linalg.norm(np.roll(pieces, 1, axis=1) - pieces, axis=2).max() <= 1.0


def test_clipping_leaves_a_rim_in_the_plane():
    cut = cylinder().clipped((14.3, 0.0, 0.0), (-1.0, 0.0, 0.0), 100.0)
    (rim,) = cut.boundary_loops()
    assert rim.center == pytest.approx((14.3, 0.0, 0.0), abs=1e-9)
    assert rim.normal == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)
    assert cut.volume == pytest.approx(cylinder().volume * 14.3 / 20.0)


@pytest.mark.parametrize("gap", [0.25, 0.5, 0.93173, 1e-3])
def test_fraction_to_a_plane_wall_of_triangles(gap):
    """Walls at the distance `gap` from the outermost sites; lattice lines meet edges and corners of triangles."""
    sites, report = voxelise(box_surface((0.5 - gap,) * 3, (6.5 + gap, 5.5 + gap, 4.5 + gap)), 1.0)
    check_sites(sites)
    assert report.lines() == []
    assert len(sites) == 7 * 6 * 5
    cut = sites.link_kind == LinkKind.WALL
    assert np.abs(sites.link_fraction[cut] - gap).max() < 1e-5
    assert np.allclose(np.linalg.norm(sites.wall_normal, axis=1), 1.0, atol=1e-6)


def test_volume_of_a_voxelised_sphere_converges():
    angle = np.linspace(0.0, np.pi, 181)
    sphere = revolved(-3.0 * np.cos(angle), 3.0 * np.sin(angle).round(12), 180)
    assert sphere.volume == pytest.approx(36.0 * np.pi, rel=1e-3)
    errors = [abs(len(voxelise(sphere, h)[0]) * h**3 / sphere.volume - 1.0) for h in (0.5, 0.1)]
    assert errors[1] < min(errors[0], 1e-3)


def test_closed_surface_and_open_surface_at_the_planes_agree():
    closed, _ = voxelise(cylinder(), 0.5, [INLET, OUTLET])
    opened, report = voxelise(cylinder(closed=False), 0.5, [INLET, OUTLET])
    check_sites(opened)
    assert report.lines() == []
    for name in ("coords", "link_kind", "link_iolet", "link_fraction"):
        assert np.array_equal(getattr(closed, name), getattr(opened, name))
    assert closed.iolets[0].radius == pytest.approx(5.0, abs=0.5)


def test_faceted_tube_has_the_sites_of_the_analytic_tube():
    faceted, _ = voxelise(cylinder(around=720), 0.5, [INLET, OUTLET])
    exact = tube(5.0, 20.0, 0.5)
    assert np.array_equal(faceted.coords, exact.coords)
    differ = faceted.link_kind != exact.link_kind  # only links that meet wall and opening at once
    assert np.all(np.abs(exact.link_fraction[differ] - 0.5) < 1e-3)
    assert differ.sum() < 0.002 * np.count_nonzero(exact.link_kind)
    assert np.abs(faceted.link_fraction - exact.link_fraction).max() < 1e-3
    assert np.einsum("ij,ij->i", faceted.wall_normal, exact.wall_normal)[faceted.wall_normal.any(axis=1)].min() > 0.999


def test_a_plane_across_the_vessel_cuts_off_what_lies_behind_it():
    middle = IoletPlane("out", "outlet", (12.0, 0.0, 0.0), (-1.0, 0.3, 0.0))
    sites, report = voxelise(cylinder(), 0.5, [INLET, middle])
    check_sites(sites)
    assert len(sites) * 0.125 == pytest.approx(25.0 * np.pi * 12.0, rel=0.02)
    assert [part.center[0] > 12.0 for part in report.dropped] == [True]
    assert len(sites) + report.dropped[0].sites == len(voxelise(cylinder(), 0.5)[0])
    row, k = np.nonzero(sites.link_kind == LinkKind.OUTLET)
    points = np.asarray(sites.origin) + 0.5 * (
        sites.coords[sites.boundary[row]] + sites.link_fraction[row, k][:, None] * LINK_VECTORS[k]
    )
    assert np.abs((points - middle.center) @ np.array(middle.normal)).max() < 1e-5


def test_hole_in_the_wall_is_reported_and_does_not_leak():
    surface = cylinder()
    middle = surface.corners().mean(axis=1)
    torn = Surface(surface.vertices, surface.faces[np.linalg.norm(middle - (10.2, 5.0, 0.0), axis=1) > 0.9])
    full, _ = voxelise(surface, 0.5, [INLET, OUTLET])
    sites, report = voxelise(torn, 0.5, [INLET, OUTLET])
    check_sites(sites)
    (hole,) = report.holes
    assert np.linalg.norm(np.subtract(hole.center, (10.2, 5.0, 0.0))) < 0.5
    assert 0.5 < hole.radius < 2.0
    assert report.unresolved_links > 0
    assert len(report.lines()) == 2
    assert abs(len(sites) - len(full)) < 0.001 * len(full)


def test_given_origin_fixes_the_lattice():
    sites, _ = voxelise(cylinder(), 1.0, [INLET, OUTLET], origin=(-1.0, -5.75, -6.0))
    check_sites(sites)
    assert sites.origin == (-1.0, -5.75, -6.0)
    assert sites.coords[:, 0].min() == 2  # the site at x = 0 lies on the inlet plane
    inlet = sites.link_kind == LinkKind.INLET
    assert np.all(sites.link_fraction[inlet] == 1.0)


def test_tube_as_openscad_writes_it(tmp_path):
    path = tmp_path / "tube.stl"
    path.write_text(openscad_tube())
    planes = [
        IoletPlane("in", "inlet", (-10.0, -5.0, 0.0), (1.0, 0.0, 0.0)),
        IoletPlane("out", "outlet", (10.0, -5.0, 0.0), (-1.0, 0.0, 0.0)),
    ]
    sites, report = voxelise(read_stl(path), 0.5, planes)
    check_sites(sites)
    assert report.lines() == []
    exact = tube(5.0, 20.0, 0.5)
    assert np.array_equal(sites.coords, exact.coords)  # the facets' sagitta is less than any site's distance
    assert [np.count_nonzero(sites.link_kind == kind) for kind in (2, 3)] == [2724, 2724]


@pytest.mark.parametrize(
    ("iolets", "message"),
    [
        ([IoletPlane("lost", "inlet", (40.0, 0.0, 0.0), (1.0, 0.0, 0.0), 5.0)], 'iolet "lost" touches no site'),
        ([IoletPlane("lost", "inlet", (40.0, 0.0, 0.0), (1.0, 0.0, 0.0))], 'iolet "lost" touches no site'),
        (
            [INLET, IoletPlane("near", "outlet", (0.4, 0.0, 0.0), (-1.0, 0.0, 0.0))],
            r'"in" and "near" both touch the site \(',
        ),
        ([IoletPlane("back", "inlet", (0.0, 0.0, 0.0), (-1.0, 0.0, 0.0), 5.0)], '"back": its normal points out'),
        ([IoletPlane("flat", "inlet", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 5.0)], "normal that is not zero"),
        ([IoletPlane("thin", "inlet", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), -5.0)], "radius = -5 m must be positive"),
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_iolets_that_are_invalid_are_rejected(iolets, message, closed):
    with pytest.raises(CaseError, match=message):
        voxelise(cylinder(closed=closed), 0.5, iolets)


def test_a_surface_that_is_inside_out_in_part_is_reported():
    surface = box_surface((0.0,) * 3, (8.0,) * 3)
    assert not len(surface.orientation_conflicts())
    faces = surface.faces.copy()
    faces[0] = faces[0, ::-1]
    turned = Surface(surface.vertices, faces)
    corners = turned.corners()[0]
    sides = {tuple(middle) for middle in 0.5 * (corners + np.roll(corners, -1, axis=0))}
    assert {tuple(middle) for middle in turned.orientation_conflicts()} == sides
    _, report = voxelise(turned, 1.0)
    assert "inside out: triangles have opposite orientations at 3 edges" in report.lines()[-1]


def test_an_iolet_narrower_than_its_opening_is_reported():
    narrow = IoletPlane("in", "inlet", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 2.0)
    _, report = voxelise(cylinder(closed=False), 0.5, [narrow, OUTLET])
    (line,) = report.lines()
    assert line.startswith('iolet "in" of radius 2 m is narrower than its opening, whose rim has a mean radius of 5 m')


@pytest.mark.parametrize("closed", [True, False])
def test_a_surface_that_is_inside_out_is_reversed(closed):
    surface = cylinder(closed)
    inverted = Surface(surface.vertices, surface.faces[:, ::-1])
    expected, _ = voxelise(surface, 0.5, [INLET, OUTLET])
    sites, report = voxelise(inverted, 0.5, [INLET, OUTLET])
    assert report.lines() == ["the surface is inside out (its volume is negative): its triangles were reversed"]
    np.testing.assert_array_equal(sites.coords, expected.coords)
    np.testing.assert_array_equal(sites.link_kind, expected.link_kind)
    np.testing.assert_array_equal(sites.wall_normal, expected.wall_normal)


@pytest.mark.parametrize("closed", [True, False])
def test_a_periodic_surface_is_a_periodic_tube(closed):
    sites, report = voxelise(cylinder(closed, around=720), 1.0, periodic=(True, False, False))
    expected = tube(5.0, 20.0, 1.0, periodic=True)
    check_sites(sites)
    assert report.lines() == [] and sites.periodic == (True, False, False)
    assert sites.shape == expected.shape
    np.testing.assert_array_equal(sites.coords, expected.coords)
    np.testing.assert_array_equal(sites.link_kind, expected.link_kind)
    np.testing.assert_allclose(sites.link_fraction, expected.link_fraction, atol=2e-3)


def test_an_obstacle_that_reaches_through_a_periodic_slab_has_walls_at_its_sides_only():
    """A block through the whole depth, one spacing thick: the slab repeats, and both ends are open rims."""
    outer, inner = box_surface((0, 0, 0), (12, 12, 1)), box_surface((4, 4, 0), (8, 8, 1))
    faces = np.concatenate([outer.faces, inner.faces[:, ::-1] + 8])
    both = Surface(np.concatenate([outer.vertices, inner.vertices]), faces)
    flat = np.ptp(both.corners()[:, :, 2], axis=1) == 0.0
    for surface in (both, Surface(both.vertices, both.faces[~flat])):
        sites, _ = voxelise(surface, 1.0, periodic=(True, False, True))
        assert len(sites) == 12 * 12 - 4 * 4
        z_links = LINK_VECTORS[:, 2] != 0
        single = z_links & ~LINK_VECTORS[:, :2].any(axis=1)
        assert not sites.link_kind[:, single].any()
        walls = (sites.link_kind == LinkKind.WALL) & ~z_links
        # Two plates of 12 sites with 3 links, and a block of 16 sites around with 3 links and 4 corners with one.
        assert walls.sum() == 2 * 12 * 3 + 4 * (4 * 3 - 2) + 4


def test_a_periodic_length_that_is_no_whole_number_of_spacings_is_rejected():
    with pytest.raises(
        CaseError, match=r"20 m long along the periodic axis x, not a whole number of spacings of 0.3 m"
    ):
        voxelise(cylinder(), 0.3, periodic=(True, False, False))


def test_surfaces_that_are_invalid_are_rejected():
    surface = cylinder()
    with pytest.raises(
        CaseError, match=r"contains no site at the spacing 1000 m: it is 20 m long; check spacing and unit"
    ):
        voxelise(cylinder(closed=False), 1000.0, [INLET, OUTLET])
    with pytest.raises(CaseError, match="contains no site"):
        voxelise(box_surface((0.6,) * 3, (0.9,) * 3), 1.0)
    with pytest.raises(CaseError, match="check unit and spacing"):
        voxelise(surface, 1e-6)
    with pytest.raises(CaseError, match="must be positive"):
        voxelise(surface, 0.0)
    with pytest.raises(CaseError, match="extends below the origin"):
        voxelise(surface, 0.5, origin=(1.0, 0.0, 0.0))
