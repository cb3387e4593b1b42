# SPDX-License-Identifier: BSD-3-Clause
"""Links that leave the fluid: found the same way by every method, and checked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.domain.links import boundary_links, check_sites, direction_index, outward_normals, with_iolets
from seiche.domain.shapes import box, tube
from seiche.domain.sites import LINK_VECTORS, SiteSet


def test_opposite_direction_has_the_opposite_vector():
    for k, vector in enumerate(LINK_VECTORS):
        assert direction_index(vector) == k
        assert np.array_equal(LINK_VECTORS[25 - k], -vector)
    with pytest.raises(ValueError, match="26 lattice vectors"):
        direction_index((0, 0, 0))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 6)] * 3), st.tuples(*[st.booleans()] * 3))
def test_absent_neighbours_agree_with_a_search_for_each(seed, shape, periodic):
    mask = np.random.default_rng(seed).random(shape) < 0.7
    coords = np.argwhere(mask).astype(np.int32)
    boundary, absent = boundary_links(shape, coords, periodic)
    sites = SiteSet(shape, coords, 1.0, periodic=periodic)
    missing = sites.find(coords[:, None, :].astype(np.int64) + LINK_VECTORS) < 0
    assert np.array_equal(boundary, np.flatnonzero(missing.any(axis=1)))
    assert np.array_equal(absent, missing[boundary])


def test_normals_are_turned_outwards_whichever_way_a_file_has_them():
    sites = tube(4.0, 6.0, 1.0)
    inwards = replace(sites, wall_normal=-sites.wall_normal)
    none = replace(sites, wall_normal=np.zeros_like(sites.wall_normal))
    assert np.allclose(outward_normals(sites), sites.wall_normal, atol=1e-6)
    assert np.allclose(outward_normals(inwards), sites.wall_normal, atol=1e-6)
    walls = (sites.link_kind == 1).any(axis=1)
    assert np.einsum("ij,ij->i", outward_normals(none), sites.wall_normal)[walls].min() > 0.8


def test_openings_in_other_roles_have_links_of_other_kinds():
    sites = tube(3.0, 5.0, 1.0)
    inlet, outlet = sites.iolets
    turned = with_iolets(sites, (replace(inlet, role="outlet"), replace(outlet, role="inlet")))
    check_sites(turned)
    assert np.array_equal(turned.link_kind == 1, sites.link_kind == 1)
    assert np.array_equal(turned.link_kind == 2, sites.link_kind == 3)
    assert np.array_equal(turned.link_kind == 3, sites.link_kind == 2)
    assert turned.fingerprint != sites.fingerprint
    named = with_iolets(sites, (replace(inlet, name="artery"), outlet))
    assert named.link_kind is sites.link_kind and named.iolets[0].name == "artery"
    with pytest.raises(ValueError, match="mixes up inlet and outlet"):
        check_sites(replace(sites, iolets=turned.iolets))
    closed = box((2, 3, 4))
    assert with_iolets(closed, ()).link_kind is closed.link_kind


def test_check_names_the_site_whose_open_link_is_not_cut():
    sites = tube(3.0, 5.0, 1.0)
    check_sites(sites)
    check_sites(box((2, 3, 4)))
    row, k = np.argwhere(sites.link_kind == 1)[5]
    kind, fraction = sites.link_kind.copy(), sites.link_fraction.copy()
    kind[row, k], fraction[row, k] = 0, 0.0
    x, y, z = sites.coords[sites.boundary[row]]
    with pytest.raises(ValueError, match=rf"site \({x}, {y}, {z}\) has a link that meets no fluid site"):
        check_sites(replace(sites, link_kind=kind, link_fraction=fraction))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"coords": s.coords[::-1]}, "out of order"),
        (lambda s: {"shape": (2, 2, 2)}, "outside the box"),
        (lambda s: {"link_fraction": np.where(s.link_kind > 0, np.float32(1.5), np.float32(0.0))}, r"not in \(0, 1\]"),
        (lambda s: {"link_kind": np.where(s.link_kind == 2, np.uint8(3), s.link_kind)}, "mixes up inlet and outlet"),
        (lambda s: {"link_iolet": np.where(s.link_iolet >= 0, np.int16(7), np.int16(-1))}, "does not exist"),
        (lambda s: {"link_kind": s.link_kind[:-1]}, "shape"),
        (lambda s: {"wall_normal": np.full_like(s.wall_normal, np.nan)}, "not finite"),
    ],
)
def test_check_rejects_every_broken_promise(change, message):
    sites = tube(3.0, 5.0, 1.0)
    with pytest.raises(ValueError, match=message):
        check_sites(replace(sites, **change(sites)))
