# SPDX-License-Identifier: BSD-3-Clause
"""Partitions: every site has one owner, blocks stay whole, loads stay even, and the result never changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.domain.partition import hilbert_index, partition
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError

METHODS = ("metis", "curve", "bisection")


def full_box(shape: tuple[int, int, int], periodic: tuple[bool, bool, bool] = (False, False, False)) -> SiteSet:
    coords = np.stack(np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij"), axis=-1)
    return SiteSet(shape, coords.reshape(-1, 3).astype(np.int32), 1.0, periodic=periodic)


def round_tube(radius: int, length: int) -> SiteSet:
    edge = 2 * radius + 2
    box = full_box((length, edge, edge))
    inside = np.sum((box.coords[:, 1:] - (radius + 0.5)) ** 2, axis=1) < radius**2
    return SiteSet(box.shape, box.coords[inside], 1.0)


@st.composite
def sparse_sites(draw: st.DrawFn) -> SiteSet:
    shape = tuple(draw(st.integers(1, 9)) for _ in range(3))
    box = full_box(shape, tuple(draw(st.booleans()) for _ in range(3)))
    retained = np.random.default_rng(draw(st.integers(0, 2**32))).random(len(box)) < draw(st.floats(0.05, 1.0))
    retained[draw(st.integers(0, len(box) - 1))] = True
    return SiteSet(box.shape, box.coords[retained], 1.0, periodic=box.periodic)


@settings(max_examples=150, deadline=None)
@given(sites=sparse_sites(), method=st.sampled_from(METHODS), block=st.integers(1, 4), data=st.data())
def test_partition_covers_sites_by_whole_blocks_within_the_balance_bound(sites, method, block, data):
    block_of_site = np.unique(sites.coords // block, axis=0, return_inverse=True)[1].ravel()
    parts = data.draw(st.integers(1, int(block_of_site.max()) + 1))
    seed = data.draw(st.integers(0, 2**32))
    weights = data.draw(st.sampled_from((None, np.random.default_rng(seed).random(len(sites)))))

    owner = partition(sites, parts, method=method, weights=weights, block=block)

    assert owner.dtype == np.int32 and owner.shape == (len(sites),)
    assert set(owner.tolist()) == set(range(parts))
    first_of_block = np.zeros(block_of_site.max() + 1, int)
    first_of_block[block_of_site[::-1]] = owner[::-1]
    np.testing.assert_array_equal(owner, first_of_block[block_of_site])
    cost = np.ones(len(sites)) if weights is None else weights
    heaviest_block = np.bincount(block_of_site, cost).max()
    mean = cost.sum() / parts
    assert np.bincount(owner, cost).max() <= max(1.03 * mean, mean + heaviest_block) * (1 + 1e-12)
    second = partition(sites, parts, method=method, weights=weights, block=block)
    np.testing.assert_array_equal(owner, second)


def test_slabs_cut_straight_across_the_longest_direction():
    tube = round_tube(4, 30)
    owner = partition(tube, 3, method="slabs", block=2)
    np.testing.assert_array_equal(owner, tube.coords[:, 0] // 10)
    with pytest.raises(CaseError, match="partition 'slabs' has 15 layers for 16 ranks: use 'metis' or 'curve'"):
        partition(tube, 16, method="slabs", block=2)


def test_bisection_cuts_boxes_in_three_directions():
    box = full_box((24, 24, 24))
    owner = partition(box, 8, method="bisection", block=4)
    np.testing.assert_array_equal(owner, (box.coords // 12) @ (4, 2, 1))
    long_box = full_box((24, 12, 12))
    np.testing.assert_array_equal(partition(long_box, 2, method="bisection"), long_box.coords[:, 0] // 12)
    three = partition(long_box, 3, method="bisection")
    np.testing.assert_array_equal(three, long_box.coords[:, 0] // 8)


def imbalance(owner: npt.NDArray[np.int32]) -> float:
    """Return the sites of the largest part over the mean."""
    sizes = np.bincount(owner)
    return float(sizes.max() / sizes.mean())


def cut_links(sites: SiteSet, owner: npt.NDArray[np.int32]) -> int:
    """Return how many of the D3Q19 links, in both directions, join sites of different parts."""
    cut = 0
    for vector in np.ndindex(3, 3, 3):
        if np.abs(np.array(vector) - 1).sum() <= 2:
            other = sites.find(sites.coords.astype(np.int64) + np.array(vector) - 1)
            cut += int(np.count_nonzero(owner[other >= 0] != owner[other[other >= 0]]))
    return cut


@pytest.mark.parametrize("block", [1, 4])
def test_metis_cuts_a_tube_across_its_axis(block):
    # Two cross-sections of sites face each other at each of the cuts: the curve cuts three times as many links.
    sites = round_tube(12, 64)
    section = np.count_nonzero(sites.coords[:, 0] == 0)
    owner = partition(sites, 2, block=block)
    assert imbalance(owner) <= 1.03
    assert 9 * section < cut_links(sites, owner) <= 1.05 * 10 * section


@pytest.mark.parametrize("method", METHODS)
def test_loads_follow_the_weights(method):
    sites = full_box((24, 12, 12))
    weights = np.where(sites.coords[:, 0] < 6, 5, 1)
    owner = partition(sites, 4, method=method, weights=weights)
    loads = np.bincount(owner, weights)
    assert loads.max() <= 1.03 * loads.mean()


def test_disconnected_sites_are_shared_evenly():
    coords = np.array([(10 * i, 0, 0) for i in range(12)], np.int32)
    sites = SiteSet((200, 1, 1), coords, 1.0)
    for method in METHODS:
        owner = partition(sites, 3, method=method)
        np.testing.assert_array_equal(np.bincount(owner), [4, 4, 4])
        assert cut_links(sites, owner) == 0


def test_coarsening_keeps_balance_and_whole_blocks():
    sites = full_box((40, 40, 40))
    owner = partition(sites, 3, block=2, most_vertices=2000)
    coarse = owner.reshape(10, 4, 10, 4, 10, 4)
    np.testing.assert_array_equal(coarse, coarse[:, :1, :, :1, :, :1].repeat(4, 1).repeat(4, 3).repeat(4, 5))
    assert imbalance(owner) <= 1.03


def test_hilbert_curve_visits_every_point_by_unit_steps():
    points = full_box((16, 16, 16)).coords.astype(np.int64)
    index = hilbert_index(points)
    np.testing.assert_array_equal(np.sort(index), np.arange(16**3))
    steps = np.abs(np.diff(points[np.argsort(index)], axis=0)).sum(axis=1)
    assert steps.max() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": 9}, "9 ranks cannot share 8 fluid sites; use at most 8 ranks"),
        ({"parts": 2, "block": 2}, "2 ranks cannot share 1 blocks of 2^3 sites with fluid; use at most 1 ranks"),
        ({"parts": 0}, "expected at least one part and blocks of at least one site: 0, 1"),
        (
            {"parts": 2, "method": "metric"},
            "partition 'metric' is unknown: use one of 'metis', 'curve', 'bisection', 'slabs'",
        ),
        ({"parts": 2, "weights": np.ones(7)}, "partition weights have shape (7,), but there are 8 sites"),
        ({"parts": 2, "weights": np.full(8, np.nan)}, "partition weights must be finite and not negative"),
    ],
)
def test_impossible_partitions_are_rejected_in_one_line(arguments, message):
    with pytest.raises(CaseError) as raised:
        partition(full_box((2, 2, 2)), **arguments)
    assert str(raised.value) == message


def test_no_sites_are_rejected():
    with pytest.raises(CaseError, match="there are no fluid sites to distribute over the ranks"):
        partition(SiteSet((4, 4, 4), np.zeros((0, 3), np.int32), 1.0), 1)
