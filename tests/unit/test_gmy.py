# SPDX-License-Identifier: BSD-3-Clause
"""`.gmy` files are read exactly and written back byte for byte."""

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.domain.assemble import Lattice, assemble
from seiche.domain.links import outward_normals, wall_direction
from seiche.domain.shapes import ImplicitWall, box, tube
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.errors import CaseError
from seiche.io.formats.gmy import read_gmy, read_gmy_header, write_gmy

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
ARRAYS = ("coords", "boundary", "link_kind", "link_iolet", "link_fraction", "wall_normal")
D3Q19 = np.abs(LINK_VECTORS).sum(axis=1) < 3
D3Q15 = np.abs(LINK_VECTORS).sum(axis=1) != 2


def shared_file(name):
    path = SHARED / "data/geometry" / name
    if not path.exists():
        pytest.skip("no shared data")
    return path


def counts(sites, directions=slice(None)):
    return tuple(np.bincount(sites.link_kind[:, directions].ravel(), minlength=4)[1:].tolist())


@pytest.mark.parametrize(
    ("name", "sites", "all_links", "d3q19", "d3q15", "normals", "edge_sites"),
    [
        ("four_cube.gmy", 64, (440, 144, 144), (272, 80, 80), (232, 80, 80), 48, 24),
        ("large_cylinder.gmy", 5576, (14248, 1352, 1352), (8552, 772, 772), (7600, 744, 744), 1768, 104),
    ],
)
def test_published_counts_and_byte_equal_round_trip(
    tmp_path, name, sites, all_links, d3q19, d3q15, normals, edge_sites
):
    path = shared_file(name)
    read = read_gmy(path)
    assert len(read) == sites
    assert counts(read) == all_links
    assert counts(read, D3Q19) == d3q19
    assert counts(read, D3Q15) == d3q15
    walls = (read.link_kind == LinkKind.WALL).any(axis=1)
    assert np.count_nonzero(read.wall_normal.any(axis=1)) == normals
    assert np.count_nonzero(walls & (read.link_kind >= LinkKind.INLET).any(axis=1)) == edge_sites
    as_stored = read_gmy(path, orient=False)  # the tool's normals point outwards
    assert np.einsum("ij,ij->i", outward_normals(as_stored), as_stored.wall_normal)[walls].min() > 0.99
    assert np.array_equal(read.wall_normal, as_stored.wall_normal)
    header = read_gmy_header(path)
    write_gmy(tmp_path / name, read, header.block, level=header.level)
    assert (tmp_path / name).read_bytes() == path.read_bytes()


def test_openings_are_estimated_from_the_cut_links():
    sites = read_gmy(shared_file("large_cylinder.gmy"), spacing=1.4e-6, origin=(-1.05e-5, -1.05e-5, -2.45248049736e-5))
    inlet, outlet = sites.iolets
    assert (inlet.name, inlet.role, outlet.name, outlet.role) == ("inlet0", "inlet", "outlet0", "outlet")
    assert inlet.center == pytest.approx((0.0, 0.0, -2.4e-5), abs=1e-7)
    assert outlet.center == pytest.approx((0.0, 0.0, 2.4e-5), abs=1e-7)
    assert inlet.normal == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert outlet.normal == pytest.approx((0.0, 0.0, -1.0), abs=1e-9)
    assert inlet.radius == pytest.approx(1e-5, rel=0.05)


def test_opening_of_a_tilted_tube_is_estimated(tmp_path):
    sites = tube(9.0, 20.0, 1.0, (1, 2, 3))
    write_gmy(tmp_path / "tube.gmy", sites)
    for found, true in zip(read_gmy(tmp_path / "tube.gmy", origin=sites.origin).iolets, sites.iolets, strict=True):
        assert np.dot(found.normal, true.normal) > 0.9999
        assert np.linalg.norm(np.subtract(found.center, true.center)) < 0.5
        assert found.radius == pytest.approx(9.0, rel=0.06)


def random_sites(seed, shape):
    random = np.random.default_rng(seed)
    coords = np.argwhere(random.random(shape) < 0.6).astype(np.int32)
    if not len(coords):
        coords = np.zeros((1, 3), np.int32)
    wall = ImplicitWall(lambda points: random.uniform(0.1, 2.0, len(points)), 1.0)
    return assemble(Lattice(shape, coords, 1.0, (0.0, 0.0, 0.0)), (), wall.find, trim=False)[0], random


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 7)] * 3), st.integers(1, 9), st.integers(0, 9))
def test_random_sites_survive_a_round_trip(tmp_path_factory, seed, shape, block, level):
    sites, _ = random_sites(seed, shape)
    path = tmp_path_factory.mktemp("gmy") / "random.gmy"
    write_gmy(path, sites, block, level=level)
    again = read_gmy(path, orient=False)
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(sites, name)), name
    header = read_gmy_header(path)
    assert header.block == block
    assert header.blocks == tuple(-(-extent // block) for extent in shape)


def test_several_iolets_keep_their_numbers(tmp_path):
    sites = tube(3.0, 12.0, 1.0)
    outlet = sites.link_iolet == 1
    upper = sites.coords[sites.boundary, 2] >= sites.shape[2] // 2
    iolet = np.where(outlet & upper[:, None], np.int16(2), sites.link_iolet)
    first, second = sites.iolets
    sites = replace(sites, link_iolet=iolet, iolets=(first, second, replace(second, name="outlet2")))
    write_gmy(tmp_path / "x.gmy", sites)
    again = read_gmy(tmp_path / "x.gmy")
    assert [plane.name for plane in again.iolets] == ["inlet0", "outlet0", "outlet1"]
    assert np.array_equal(again.link_iolet, iolet)
    assert again.iolets[1].center[2] < again.iolets[2].center[2]


def test_weighted_form_is_told_apart_by_its_sizes_and_written_back_byte_for_byte(tmp_path):
    sites = tube(5.0, 20.0, 1.0)
    write_gmy(tmp_path / "x.gmy", sites)
    data = (tmp_path / "x.gmy").read_bytes()
    table = read_gmy_header(tmp_path / "x.gmy").records
    weights = np.arange(len(table)) * 2**28 + 7
    weighted = np.insert(table, 1, weights, axis=1).astype(">u4").tobytes()
    (tmp_path / "x.gmy+").write_bytes(data[:32] + weighted + data[32 + 12 * len(table) :])
    header = read_gmy_header(tmp_path / "x.gmy+")
    assert header.plus
    assert np.array_equal(header.weights, weights)
    assert read_gmy_header(tmp_path / "x.gmy").weights is None
    again = read_gmy(tmp_path / "x.gmy+")
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(sites, name)), name
    write_gmy(tmp_path / "y.gmy+", again, header.block, level=header.level, weights=header.weights)
    assert (tmp_path / "y.gmy+").read_bytes() == (tmp_path / "x.gmy+").read_bytes()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 7)] * 3), st.integers(1, 9), st.integers(0, 9))
def test_random_sites_with_weights_survive_a_round_trip(tmp_path_factory, seed, shape, block, level):
    sites, random = random_sites(seed, shape)
    weights = random.integers(0, 2**32, int(np.prod([-(-extent // block) for extent in shape])))
    path = tmp_path_factory.mktemp("gmy") / "random.gmy+"
    write_gmy(path, sites, block, level=level, weights=weights)
    again, header = read_gmy(path, orient=False), read_gmy_header(path)
    assert np.array_equal(header.weights, weights)
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(sites, name)), name
    write_gmy(path.with_name("copy.gmy+"), again, block, level=level, weights=header.weights)
    assert path.with_name("copy.gmy+").read_bytes() == path.read_bytes()


def test_weight_of_a_block_is_the_sum_over_its_sites(tmp_path):
    sites = read_gmy(shared_file("four_cube.gmy"))
    write_gmy(tmp_path / "x.gmy+", sites, 6, weights="sites")
    # 8 sites inside, 24 at walls alone (4 edges and 4 faces of the two middle layers), 8 at iolets alone, 24 at both.
    assert read_gmy_header(tmp_path / "x.gmy+").weights.tolist() == [8 + 2 * 24 + 4 * (8 + 24)]
    write_gmy(tmp_path / "y.gmy+", sites, 3, weights="sites")
    assert read_gmy_header(tmp_path / "y.gmy+").weights.tolist() == [(8 + 2 * 24 + 4 * 32) // 8] * 8


@pytest.mark.parametrize("inwards", [True, False])
def test_normals_of_both_conventions_are_turned_outwards(tmp_path, inwards):
    sites = tube(5.0, 20.0, 1.0, (1, 2, 3))
    wall = (sites.link_kind == LinkKind.WALL).any(axis=1)
    write_gmy(tmp_path / "x.gmy", replace(sites, wall_normal=-sites.wall_normal) if inwards else sites)
    read = read_gmy(tmp_path / "x.gmy")
    assert np.array_equal(read.wall_normal, sites.wall_normal)
    direction = wall_direction(read.link_kind)[wall]
    assert np.einsum("ij,ij->i", read.wall_normal[wall], direction).min() >= 0
    # Against the true normal of the tube, which nothing that was read knows.
    axis = np.array((1, 2, 3)) / 14**0.5
    offset = np.asarray(sites.origin) + sites.coords[sites.boundary[wall]]
    radial = offset - (offset @ axis)[:, None] * axis
    cosine = np.einsum("ij,ij->i", read.wall_normal[wall], radial) / np.linalg.norm(radial, axis=1)
    assert cosine.min() > 0.98
    copy = read_gmy(tmp_path / "x.gmy", orient=False)
    write_gmy(tmp_path / "copy.gmy", copy)
    assert (tmp_path / "copy.gmy").read_bytes() == (tmp_path / "x.gmy").read_bytes()


def test_many_blocks_with_and_without_fluid_survive_a_round_trip(tmp_path):
    sites = tube(12.0, 90.0, 1.0, (3, 1, 2))
    write_gmy(tmp_path / "x.gmy", sites)
    header = read_gmy_header(tmp_path / "x.gmy")
    assert 0 < np.count_nonzero(header.records[:, 0]) < len(header.records)
    again = read_gmy(tmp_path / "x.gmy")
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(sites, name)), name


def test_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "x.gmy"
    path.write_bytes(b"precious")
    sites = tube(3.0, 5.0, 1.0)
    broken = replace(sites, link_kind=np.zeros_like(sites.link_kind), link_fraction=np.zeros_like(sites.link_fraction))
    for wrong, message in (
        (broken, r"site \(\d+, \d+, \d+\)"),
        (box((2, 2, 2)), "periodic"),
        (SiteSet((1, 1, 1), np.zeros((0, 3), np.int32), 1.0), "at least one site"),
    ):
        with pytest.raises(CaseError, match=message):
            write_gmy(path, wrong)
    for weights, message in (
        ([1, 2], r"2 weights for the 1 blocks of the .gmy\+ file; expected one for each"),
        ([-1], r"a weight of a .gmy\+ file must be in 0 ... 2\^32 - 1, not -1 ... -1"),
        ([2**32], "not 4294967296 ... 4294967296"),
    ):
        with pytest.raises(CaseError, match=message):
            write_gmy(path, sites, 64, weights=weights)
    with pytest.raises(zlib.error):
        write_gmy(path, sites, level=77)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]
