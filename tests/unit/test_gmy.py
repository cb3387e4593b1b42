# SPDX-License-Identifier: BSD-3-Clause
"""`.gmy` files are read exactly and written back byte for byte."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmy_files import NEIGHBOURS, four_cube, large_cylinder
from seiche.domain.assemble import assemble
from seiche.domain.candidates import CandidateNodes
from seiche.domain.implicit_walls import ImplicitWall
from seiche.domain.links import outward_normals, wall_direction
from seiche.domain.shapes import box, tube
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.errors import CaseError
from seiche.io.formats.gmy import read_gmy, read_gmy_header, write_gmy

ARRAYS = ("coords", "boundary", "link_kind", "link_iolet", "link_fraction", "wall_normal")
D3Q19 = np.abs(LINK_VECTORS).sum(axis=1) < 3
D3Q15 = np.abs(LINK_VECTORS).sum(axis=1) != 2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vessel.gmy"


def counts(sites, directions=slice(None)):
    return tuple(np.bincount(sites.link_kind[:, directions].ravel(), minlength=4)[1:].tolist())


@pytest.mark.parametrize(
    ("vessel", "sites", "all_links", "d3q19", "d3q15", "normals", "edge_sites"),
    [
        (four_cube, 64, (440, 144, 144), (272, 80, 80), (232, 80, 80), 48, 24),
        (large_cylinder, 5576, (14248, 1352, 1352), (8552, 772, 772), (7600, 744, 744), 1768, 104),
    ],
)
def test_published_counts_and_byte_equal_round_trip(path, vessel, sites, all_links, d3q19, d3q15, normals, edge_sites):
    """The counts are those of `four_cube.gmy` and `large_cylinder.gmy` of HemeLB's tests."""
    path.write_bytes(vessel().file())
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
    write_gmy(path.with_name("copy.gmy"), read, header.block, level=header.level)
    assert path.with_name("copy.gmy").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("vessel", [four_cube, large_cylinder])
@pytest.mark.parametrize("plus", [False, True])
def test_every_record_of_a_file_is_read_as_it_stands_there(path, vessel, plus):
    made = vessel()
    weights = [7 + 2**27 * block for block in range(int(np.prod(made.blocks)))] if plus else None
    path.write_bytes(made.file(weights))
    header, read = read_gmy_header(path), read_gmy(path, orient=False)
    assert (header.blocks, header.block, header.level, header.plus) == (made.blocks, made.edge, made.level, plus)
    assert (header.weights.tolist() if plus else header.weights) == weights
    assert [tuple(position) for position in read.coords.tolist()] == sorted(made.sites)
    row_of = dict(zip(read.boundary.tolist(), range(len(read.boundary)), strict=True))
    for index, (position, site) in enumerate(sorted(made.sites.items())):
        assert bool(site.cuts) == (index in row_of), position
        if not site.cuts:
            continue
        row = row_of[index]
        cuts = [site.cuts.get(step, (0, 0.0)) for step in NEIGHBOURS]
        assert read.link_kind[row].tolist() == [kind for kind, _ in cuts], position
        assert read.link_iolet[row].tolist() == [kind - 2 if kind > 1 else -1 for kind, _ in cuts], position
        assert read.link_fraction[row].tolist() == [np.float32(fraction) for _, fraction in cuts], position
        assert read.wall_normal[row].tolist() == [np.float32(value) for value in site.normal or (0, 0, 0)], position


def test_sites_of_the_public_files_are_those_that_hemelb_wrote(path):
    """Against CRC-32 of what `four_cube.gmy` and `large_cylinder.gmy` of HemeLB's tests hold."""
    path.write_bytes(four_cube().file())
    assert zlib.crc32(zlib.decompress(path.read_bytes()[44:])) == 988850274
    path.write_bytes(large_cylinder().file())
    sites = read_gmy(path)
    assert zlib.crc32(sites.coords.astype("<i4").tobytes()) == 724311387
    assert zlib.crc32(sites.link_kind.tobytes()) == 2806725850


def test_openings_are_estimated_from_the_cut_links(path):
    path.write_bytes(large_cylinder().file())
    sites = read_gmy(path, spacing=1.4e-6, origin=(-1.05e-5, -1.05e-5, -2.45e-5))
    inlet, outlet = sites.iolets
    assert (inlet.name, inlet.role, outlet.name, outlet.role) == ("inlet0", "inlet", "outlet0", "outlet")
    assert inlet.center == pytest.approx((0.0, 0.0, -2.4e-5), abs=1e-11)
    assert outlet.center == pytest.approx((0.0, 0.0, 2.4e-5), abs=1e-11)
    assert inlet.normal == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert outlet.normal == pytest.approx((0.0, 0.0, -1.0), abs=1e-9)
    assert inlet.radius == pytest.approx(1e-5, rel=0.05)


def test_opening_of_a_tilted_tube_is_estimated(tmp_path):
    sites = tube(9.0, 20.0, 1.0, (1, 2, 3))
    write_gmy(tmp_path / "tube.gmy", sites)
    for result, true in zip(read_gmy(tmp_path / "tube.gmy", origin=sites.origin).iolets, sites.iolets, strict=True):
        assert np.dot(result.normal, true.normal) > 0.9999
        assert np.linalg.norm(np.subtract(result.center, true.center)) < 0.5
        assert result.radius == pytest.approx(9.0, rel=0.06)


def random_sites(seed, shape):
    random = np.random.default_rng(seed)
    coords = np.argwhere(random.random(shape) < 0.6).astype(np.int32)
    if not len(coords):
        coords = np.zeros((1, 3), np.int32)
    wall = ImplicitWall(lambda points: random.uniform(0.1, 2.0, len(points)), 1.0)
    return assemble(CandidateNodes.of(shape, coords, 1.0, (0.0, 0.0, 0.0)), (), wall.find, trim=False)[0], random


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 7)] * 3), st.integers(1, 9), st.integers(0, 9))
def test_random_sites_survive_a_round_trip(tmp_path_factory, seed, shape, block, level):
    sites, _ = random_sites(seed, shape)
    path = tmp_path_factory.mktemp("gmy") / "random.gmy"
    write_gmy(path, sites, block, level=level)
    second = read_gmy(path, orient=False)
    for name in ARRAYS:
        assert np.array_equal(getattr(second, name), getattr(sites, name)), name
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
    repeated = read_gmy(tmp_path / "x.gmy")
    assert [plane.name for plane in repeated.iolets] == ["inlet0", "outlet0", "outlet1"]
    assert np.array_equal(repeated.link_iolet, iolet)
    assert repeated.iolets[1].center[2] < repeated.iolets[2].center[2]


def test_weighted_form_is_recognised_by_its_sizes_and_written_back_byte_for_byte(tmp_path):
    vessel = large_cylinder()
    weights = [7 + 2**27 * block for block in range(20)]
    (tmp_path / "x.gmy").write_bytes(vessel.file())
    (tmp_path / "x.gmy+").write_bytes(vessel.file(weights))
    header = read_gmy_header(tmp_path / "x.gmy+")
    assert header.plus
    assert header.weights.tolist() == weights
    assert read_gmy_header(tmp_path / "x.gmy").weights is None
    sites, second = read_gmy(tmp_path / "x.gmy"), read_gmy(tmp_path / "x.gmy+")
    for name in ARRAYS:
        assert np.array_equal(getattr(second, name), getattr(sites, name)), name
    write_gmy(tmp_path / "y.gmy+", second, header.block, level=header.level, weights=header.weights)
    assert (tmp_path / "y.gmy+").read_bytes() == (tmp_path / "x.gmy+").read_bytes()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 7)] * 3), st.integers(1, 9), st.integers(0, 9))
def test_random_sites_with_weights_survive_a_round_trip(tmp_path_factory, seed, shape, block, level):
    sites, random = random_sites(seed, shape)
    weights = random.integers(0, 2**32, int(np.prod([-(-extent // block) for extent in shape])))
    path = tmp_path_factory.mktemp("gmy") / "random.gmy+"
    write_gmy(path, sites, block, level=level, weights=weights)
    second, header = read_gmy(path, orient=False), read_gmy_header(path)
    assert np.array_equal(header.weights, weights)
    for name in ARRAYS:
        assert np.array_equal(getattr(second, name), getattr(sites, name)), name
    write_gmy(path.with_name("copy.gmy+"), second, block, level=level, weights=header.weights)
    assert path.with_name("copy.gmy+").read_bytes() == path.read_bytes()


def test_weight_of_a_block_is_the_sum_over_its_sites(tmp_path):
    (tmp_path / "x.gmy").write_bytes(four_cube().file())
    sites = read_gmy(tmp_path / "x.gmy")
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
    # Against the true normal of the tube, which is not in the file.
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
    second = read_gmy(tmp_path / "x.gmy")
    for name in ARRAYS:
        assert np.array_equal(getattr(second, name), getattr(sites, name)), name


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
