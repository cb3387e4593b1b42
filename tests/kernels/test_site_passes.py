# SPDX-License-Identifier: BSD-3-Clause
"""Sites and links of vessels: kernels against NumPy, and the same bits on any number of threads and any device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from seiche.domain import shapes
from seiche.domain.bifurcation import bifurcation_surface
from seiche.domain.candidates import CandidateNodes
from seiche.domain.host_passes import passes_on
from seiche.domain.inside import ON_SURFACE, _by_crossings, _by_winding_number
from seiche.domain.site_rows import SiteRows
from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.domain.surface import Surface
from seiche.domain.surface_hits import SurfaceWall
from seiche.domain.voxelise import voxelise

Floats = npt.NDArray[np.float64]
ARRAYS = ("coords", "boundary", "link_kind", "link_iolet", "link_fraction", "wall_normal")
ALONG = np.array([1.0, 2.0, 0.5]) / np.sqrt(5.25)


def branches() -> SiteSet:
    """Return the sites of a bifurcation given by triangles."""
    surface, planes = bifurcation_surface(resolution=0.4e-3)
    return voxelise(surface, 0.3e-3, planes)[0]


VESSELS: dict[str, Callable[[], SiteSet]] = {
    "tube": lambda: shapes.tube(7.3, 30.0, 1.0, ALONG),
    "duct": lambda: shapes.duct(9.0, 7.0, 40.0, 0.5, plates=True, periodic=False),
    "bifurcation": branches,
}


@pytest.mark.parametrize("vessel", VESSELS)
def test_sites_are_the_same_bits_on_any_number_of_threads_and_any_device(vessel: str, device: str) -> None:
    with passes_on(threads=1):
        expected = VESSELS[vessel]()
    with passes_on(device, threads=None if device == "cuda" else 3):
        result = VESSELS[vessel]()
    for name in ARRAYS:
        assert np.array_equal(getattr(result, name), getattr(expected, name)), name


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 0.0, -1.0), tuple(ALONG)])
def test_a_tube_by_kernels_is_that_of_its_distance_function(axis: tuple[float, float, float]) -> None:
    radius, length, direction = 6.2, 17.0, np.array(axis)

    def wall(points: Floats) -> Floats:
        return np.asarray(np.linalg.norm(points - (points @ direction)[:, None] * direction, axis=1) - radius)

    def ends(points: Floats) -> Floats:
        return np.abs(points @ direction - 0.5 * length) - 0.5 * length

    half = radius * np.sqrt(1.0 - direction**2)
    low, high = np.minimum(0.0, length * direction) - half, np.maximum(0.0, length * direction) + half
    planes = shapes.tube_ends(radius, length, axis)
    expected = shapes.sites_from_distance(wall, low, high, 1.0, planes, region=ends)
    result = shapes.tube(radius, length, 1.0, axis)
    for name in ("coords", "boundary", "link_kind", "link_iolet"):
        assert np.array_equal(getattr(result, name), getattr(expected, name)), name
    assert np.allclose(result.link_fraction, expected.link_fraction, rtol=0.0, atol=2e-7)  # of float32
    assert np.allclose(result.wall_normal, expected.wall_normal, rtol=0.0, atol=2e-7)


def ellipsoid(seed: int, size: float) -> Surface:
    """Return a closed surface of 60 triangles about (6, 6, 6)."""
    random = np.random.default_rng(seed)
    unit = random.normal(size=(32, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    faces = ConvexHull(unit).simplices
    a, b, c = unit[faces.T]
    turned = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0.0
    faces[turned] = faces[turned][:, ::-1]
    return Surface(6.0 + size * unit * random.uniform(0.6, 1.0, 3), faces.astype(np.int32))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30), st.floats(1.0, 8.0))
def test_crossings_of_lattice_lines_give_the_winding_number(seed: int, size: float) -> None:
    """Part of the surface may lie outside the box of nodes."""
    shape, surface = (13, 12, 11), ellipsoid(seed, size)
    rows = _by_crossings(surface, shape, (False, False, False))
    assert rows is not None
    assert np.array_equal(rows.coords(), _by_winding_number(surface, shape))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30))
def test_crossings_cancel_for_vertices_and_edges_on_lattice_lines(seed: int) -> None:
    """All vertices of an octahedron are nodes; those on the surface are solid."""
    half = np.random.default_rng(seed).integers(1, 6, 3)
    vertices = 6.0 + np.concatenate([np.diag(half), -np.diag(half)])
    faces = [(x, y, z) for x in (0, 3) for y in (1, 4) for z in (2, 5)]
    turned = [face if sum(k > 2 for k in face) % 2 == 0 else face[::-1] for face in faces]
    rows = _by_crossings(Surface(vertices, np.array(turned, np.int32)), (13, 13, 13), (False, False, False))
    assert rows is not None
    nodes = np.argwhere(np.ones((13, 13, 13), bool))
    inside = np.sum(np.abs(nodes - 6.0) / half, axis=1) < 1.0 - 1e-9
    assert np.array_equal(rows.coords(), nodes[inside])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30), st.floats(2.0, 6.0))
def test_links_meet_the_first_of_all_triangles(seed: int, size: float) -> None:
    surface, shape = ellipsoid(seed, size), (13, 13, 13)
    coords = np.argwhere(np.ones(shape, bool)).astype(np.int32)
    lattice = CandidateNodes.of(shape, coords, 1.0, (0.0, 0.0, 0.0))
    node, direction = np.repeat(np.arange(len(coords)), 26), np.tile(np.arange(26), len(coords))
    wall = SurfaceWall(surface, np.arange(len(surface.faces), dtype=np.int16))
    hits = wall.find(lattice, node, direction)
    a, b, d = np.moveaxis(surface.corners(), 1, 0)
    best = np.full(len(node), np.inf)
    for e, g, corner in zip(b - a, d - a, a, strict=True):
        s, c = coords[node] - corner, LINK_VECTORS[direction].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            size_along = -(c @ np.cross(e, g))
            t, u, v = (
                (s @ np.cross(e, g)) / size_along,
                *(np.einsum("ij,ij->i", c, cross) / size_along for cross in (np.cross(g, s), np.cross(s, e))),
            )
        hit = (t > 0.0) & (t <= 1.0 + 3.0 * ON_SURFACE) & (u >= -1e-6) & (v >= -1e-6) & (u + v <= 1.0 + 1e-6)
        best = np.where(hit, np.minimum(best, t), best)
    found = np.isfinite(hits.fraction)
    assert np.array_equal(found, np.isfinite(best))
    assert np.allclose(hits.fraction[found], np.minimum(best[found], 1.0), rtol=0.0, atol=1e-12)
    unit = np.cross(b - a, d - a)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    assert np.array_equal(hits.iolet >= 0, found)
    assert np.allclose(hits.normal[found], unit[hits.iolet[found]], rtol=0.0, atol=1e-12)


SHAPES = st.tuples(*[st.integers(1, 7)] * 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), SHAPES, SHAPES, SHAPES)
def test_rows_of_sites_are_their_coordinates(
    seed: int, shape: tuple[int, int, int], low: tuple[int, int, int], high: tuple[int, int, int]
) -> None:
    random = np.random.default_rng(seed)
    coords = np.argwhere(random.random(shape) < 0.6).astype(np.int32)
    rows = SiteRows.of_coords(shape, (False, False, False), coords)
    assert len(rows) == len(coords) and np.array_equal(rows.coords(), coords)
    everywhere = np.argwhere(np.ones(np.array(shape) + 2, bool)) - 1
    number = {tuple(site): index for index, site in enumerate(coords.tolist())}
    assert rows.find(everywhere).tolist() == [number.get(tuple(place), -1) for place in everywhere.tolist()]
    first, last = np.array(low) - 2, np.array(high) - 2
    chosen = np.flatnonzero(np.all((coords >= first) & (coords <= last), axis=1))
    sites, places = rows.in_box(first, last)
    assert np.array_equal(sites, chosen) and np.array_equal(places, coords[chosen])
    removed = random.random(len(coords)) < 0.3
    assert np.array_equal(rows.without(np.flatnonzero(removed)).coords(), coords[~removed])
    pieces = rows.split(np.sort(random.integers(0, len(coords) + 2, 3)))
    kept = random.random(len(pieces[0])) < 0.5
    flags = np.repeat(kept, pieces[1])
    assert np.array_equal(rows.chosen(*(values[kept] for values in pieces)).coords(), coords[flags])
