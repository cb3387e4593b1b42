# SPDX-License-Identifier: BSD-3-Clause
"""Built-in geometries have the sites, fractions, normals and openings that their formulas say."""

import numpy as np
import pytest

from seiche.domain.links import check_sites
from seiche.domain.shapes import bifurcation_surface, box, channel, duct, sites_from_distance, tube
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind
from seiche.domain.tube_union import CenterlineTube
from seiche.domain.voxelise import voxelise
from seiche.errors import CaseError


def cut_points(sites, kind):
    """Return where links of `kind` are cut, and the wall normals of their sites."""
    row, k = np.nonzero(sites.link_kind == kind)
    step = sites.link_fraction[row, k].astype(float)[:, None] * LINK_VECTORS[k]
    return np.asarray(sites.origin) + sites.spacing * (sites.coords[sites.boundary[row]] + step), sites.wall_normal[row]


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 0, -1), (1, 2, 0.5), (-1, 1, 3)])
def test_links_of_a_tube_end_on_its_wall_and_on_its_ends(axis):
    radius, length, spacing = 7.3e-4, 30.2e-4, 1e-4
    sites = tube(radius, length, spacing, axis)
    check_sites(sites)
    direction = np.array(axis) / np.linalg.norm(axis)
    points, normals = cut_points(sites, LinkKind.WALL)
    radial = points - (points @ direction)[:, None] * direction
    assert np.abs(np.linalg.norm(radial, axis=1) - radius).max() < 1e-6 * spacing
    assert np.einsum("ij,ij->i", radial / radius, normals).min() > 0.9
    for kind, position in ((LinkKind.INLET, 0.0), (LinkKind.OUTLET, length)):
        points, _ = cut_points(sites, kind)
        assert np.abs(points @ direction - position).max() < 1e-6 * spacing
    assert [plane.name for plane in sites.iolets] == ["inlet", "outlet"]
    assert len(sites) * spacing**3 == pytest.approx(np.pi * radius**2 * length, rel=0.03)


def test_number_of_sites_of_a_tube_converges_to_its_volume():
    errors = [abs(len(tube(1.0, 1.0, h)) * h**3 / np.pi - 1.0) for h in (0.1, 0.02)]
    assert errors[1] < min(errors[0], 1e-3)


def test_periodic_tube_has_walls_only_and_wraps_along_its_axis():
    sites = tube(4.0, 6.0, 1.0, (0, 1, 0), periodic=True)
    check_sites(sites)
    assert sites.periodic == (False, True, False)
    assert sites.shape[1] == 6
    assert set(np.unique(sites.link_kind)) == {LinkKind.NONE, LinkKind.WALL}


def test_walls_of_channel_and_duct_lie_half_way_between_sites():
    for sites, count in ((channel(8e-3, 4e-3, 5e-3, 1e-3), 4 * 5 * 8), (duct(5e-3, 3e-3, 4e-3, 1e-3), 60)):
        check_sites(sites)
        assert len(sites) == count
        assert set(np.unique(sites.link_fraction)) == {np.float32(0.0), np.float32(0.5)}


@pytest.mark.parametrize("height", [6.37, 7.9, 6.02])
def test_fraction_of_links_to_a_plane_wall_is_exact(height):
    sites = duct(4.0, height, 3.0, 1.0)
    top = (sites.coords[:, 2] == sites.coords[:, 2].max())[sites.boundary] & (sites.coords[sites.boundary, 1] == 1)
    upwards = LINK_VECTORS[:, 2] == 1
    expected = height - (sites.coords[:, 2].max() + 0.5)
    assert np.abs(sites.link_fraction[top][:, upwards] - expected).max() < 1e-6


def test_open_duct_has_inlet_at_its_beginning_and_outlet_at_its_end():
    sites = duct(4.0, 4.0, 6.3, 1.0, periodic=False)
    check_sites(sites)
    assert len(sites) == 16 * 6
    assert np.allclose(cut_points(sites, LinkKind.INLET)[0][:, 0], 0.0, atol=1e-6)
    assert np.allclose(cut_points(sites, LinkKind.OUTLET)[0][:, 0], 6.3, atol=1e-6)


def test_box_is_full_and_has_no_links():
    sites = box((3, 4, 5), 0.1)
    check_sites(sites)
    assert len(sites) == 60
    assert sites.periodic == (True, True, True)
    assert len(sites.boundary) == 0


def test_sphere_from_a_distance_function_has_its_normals_along_the_radius():
    sites = sites_from_distance(lambda x: np.linalg.norm(x, axis=1) - 5.2, (-6.0,) * 3, (6.0,) * 3, 1.0)
    check_sites(sites)
    points = np.asarray(sites.origin) + sites.coords[sites.boundary]
    cosine = np.einsum("ij,ij->i", points, sites.wall_normal) / np.linalg.norm(points, axis=1)
    assert cosine.min() > 0.97
    assert np.allclose(np.linalg.norm(cut_points(sites, LinkKind.WALL)[0], axis=1), 5.2, atol=1e-6)


def test_openings_cut_a_vessel_that_is_given_by_its_distance():
    planes = (
        IoletPlane("in", "inlet", (-3.1, 0.0, 0.0), (1.0, 0.0, 0.0)),
        IoletPlane("out", "outlet", (2.0, 0.0, 0.0), (-1.0, 0.0, 0.0), 5.0),
    )
    sites = sites_from_distance(lambda x: np.linalg.norm(x, axis=1) - 5.2, (-6.0,) * 3, (6.0,) * 3, 0.5, planes)
    check_sites(sites)
    x = sites.origin[0] + 0.5 * sites.coords[:, 0]
    assert (x.min(), x.max()) == (-2.75, 1.75)
    for kind, position in ((LinkKind.INLET, -3.1), (LinkKind.OUTLET, 2.0)):
        assert np.allclose(cut_points(sites, kind)[0][:, 0], position, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tube(-1.0, 5.0, 1.0), "radius = -1 m must be positive"),
        (lambda: tube(3.0, 5.0, 1.0, (1, 1, 0), periodic=True), "lattice axis"),
        (lambda: tube(3.0, 5.5, 1.0, periodic=True), "length = 5.5 m must be a whole number of spacings"),
        (lambda: tube(3.0, 5.0, 1.0, (0, 0, 0)), "not all zero"),
        (lambda: tube(0.1, 5.0, 1.0), "contains no site"),
        (lambda: channel(4.5, 2.0, 2.0, 1.0), "height = 4.5 m must be a whole number"),
        (lambda: box((0, 1, 1)), "at least one site"),
        (lambda: bifurcation_surface(angles=(0.1, 1.0)), "angles"),
        (lambda: bifurcation_surface(daughter_length=1e-3, resolution=3e-4), "three round openings"),
    ],
)
def test_impossible_measures_are_rejected(make, message):
    with pytest.raises(CaseError, match=message):
        make()


def test_default_bifurcation_has_three_openings_and_enough_sites():
    surface, planes = bifurcation_surface()
    loops = surface.boundary_loops()
    assert len(loops) == 3
    assert [plane.name for plane in planes] == ["inlet", "outlet1", "outlet2"]
    for plane in planes:
        nearest = min(loops, key=lambda loop: np.linalg.norm(np.subtract(loop.center, plane.center)))
        assert np.linalg.norm(np.subtract(nearest.center, plane.center)) < 2e-7
        assert nearest.radius == pytest.approx(plane.radius, rel=2e-3)
        assert np.dot(nearest.normal, plane.normal) == pytest.approx(-1.0, abs=1e-9)
    sites, report = voxelise(surface, 1e-4, planes)
    check_sites(sites)
    assert report.lines() == []
    assert 160_000 <= len(sites) <= 200_000
    assert len(sites) * 1e-12 == pytest.approx(surface.volume, rel=5e-3)
    assert set(np.unique(sites.link_iolet)) == {-1, 0, 1, 2}


def test_closed_and_open_bifurcations_give_the_same_sites():
    open_, planes = bifurcation_surface(resolution=3e-4)
    closed, _ = bifurcation_surface(resolution=3e-4, open_ends=False)
    assert closed.boundary_loops() == []
    assert closed.volume == pytest.approx(open_.volume)
    first, second = voxelise(open_, 3e-4, planes)[0], voxelise(closed, 3e-4, planes)[0]
    assert np.array_equal(first.coords, second.coords)
    assert np.array_equal(first.link_kind, second.link_kind)
    assert np.allclose(first.link_fraction, second.link_fraction)


def test_bifurcation_without_a_sac_is_smaller_and_still_whole():
    surface, planes = bifurcation_surface(sac_radius=0.0, resolution=3e-4)
    assert len(surface.boundary_loops()) == 3
    assert surface.volume < bifurcation_surface(resolution=3e-4)[0].volume - 3e-8
    check_sites(voxelise(surface, 3e-4, planes)[0])


def test_distances_in_blocks_equal_those_from_all_segments():
    random = np.random.default_rng(3)
    tube = CenterlineTube(np.cumsum(random.normal(size=(20, 3)), axis=0), 0.3)
    centers = tube.points[random.integers(20, size=40)] + random.normal(size=(40, 3))
    inside = random.normal(size=(40, 50, 3))
    inside *= 0.8 / np.maximum(np.linalg.norm(inside, axis=2, keepdims=True), 0.8)
    positions = (centers[:, None] + inside).reshape(-1, 3)
    in_blocks = tube.distance_in_blocks(positions, np.arange(0, 2001, 50), centers, 0.8)
    np.testing.assert_array_equal(in_blocks, tube.distance(positions))
