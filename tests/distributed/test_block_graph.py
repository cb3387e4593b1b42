# SPDX-License-Identifier: BSD-3-Clause
"""The graph of cubes of sites and the owners of sites are those of the list of all links, on any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from seiche.domain.block_graph import BlockGraph, layer_weights, slab_owners
from seiche.domain.occupancy import Occupancy, occupancy
from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.site_owners import SiteOwners
from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.domain.world import World

D3Q19 = LINK_VECTORS[np.abs(LINK_VECTORS).sum(axis=1) <= 2]
CASES = [
    ((9, 7, 11), (False, False, False), 0.5),
    ((8, 6, 12), (True, True, True), 0.9),
    ((12, 1, 10), (False, True, True), 0.7),
    ((5, 13, 6), (True, False, False), 0.1),
]


def sparse(shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], share: float) -> SiteSet:
    fluid = np.random.default_rng(5).random(shape) < share
    return SiteSet(shape, np.argwhere(fluid).astype(np.int32), 1.0, periodic=periodic)


def cubes(sites: SiteSet, edge: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the coordinates of the cubes, and the cube of each site."""
    blocks, of_site = np.unique(sites.coords // edge, axis=0, return_inverse=True)
    return blocks.astype(np.int64), of_site.reshape(-1)


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("edge", [1, 2, 3, 4, 20])
@pytest.mark.parametrize(("shape", "periodic", "share"), CASES)
def test_cubes_and_their_links_are_those_of_the_sites(shape, periodic, share, edge):
    sites = sparse(shape, periodic, share)
    random = np.random.default_rng(6)
    blocks, of_site = cubes(sites, edge)
    site_weights = random.integers(0, 9, len(sites)).astype(np.float64)
    links = np.zeros((len(blocks), len(blocks)), np.int64)
    for vector in D3Q19:
        other = sites.find(sites.coords.astype(np.int64) + vector)
        linked = np.flatnonzero(other >= 0)
        np.add.at(links, (of_site[linked], of_site[other[linked]]), 1)
    np.fill_diagonal(links, 0)
    owner = random.integers(0, 4, len(blocks))
    with set_up_on(World.from_mpi()):
        graph = BlockGraph.of(sites.rows, edge)
        weighted = BlockGraph.of(sites.rows, edge, site_weights)
        owners = graph.owners(owner)
    np.testing.assert_array_equal(graph.blocks.coords(), blocks)
    np.testing.assert_array_equal(graph.weights, np.bincount(of_site))
    np.testing.assert_array_equal(weighted.weights, np.bincount(of_site, site_weights))
    np.testing.assert_array_equal(graph.matrix().toarray(), links)
    np.testing.assert_array_equal(owners.expanded(), owner[of_site])
    assert np.all(owners.owner[1:] != owners.owner[:-1])


@pytest.mark.parametrize(("edge", "run"), [(4, 1), (4, 4), (4, 16), (8, 2), (8, 8)])
@pytest.mark.parametrize(("shape", "periodic", "share"), CASES)
def test_tiles_and_lanes_are_counted_as_from_coordinates(shape, periodic, share, edge, run):
    sites = boundary_of(sparse(shape, periodic, share))
    tiles, of_site = cubes(sites, edge)
    walled = np.bincount(of_site) < edge**3
    walled[of_site[sites.boundary]] = True
    x, y, z = (sites.coords % edge).T
    runs = np.stack([of_site, (x + edge * (y + edge * z)) // run], axis=1)
    expected = Occupancy(len(tiles), int(walled.sum()), len(np.unique(runs, axis=0)) * run)
    assert occupancy(sites, edge, run) == expected


def boundary_of(sites: SiteSet) -> SiteSet:
    """Return the same sites, each third of which is at a boundary."""
    return replace(sites, boundary=np.arange(0, len(sites), 3))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("shape", "periodic", "share"), CASES)
def test_slabs_follow_the_layers(shape, periodic, share, axis):
    sites = sparse(shape, periodic, share)
    part = (np.arange(shape[axis]) * 3 // shape[axis]).astype(np.int32)
    layer = sites.coords[:, axis]
    np.testing.assert_array_equal(slab_owners(sites.rows, axis, part).expanded(), part[layer])
    weights = np.random.default_rng(7).integers(0, 9, len(sites)).astype(np.float64)
    for given, expected in ((None, np.bincount(layer, minlength=shape[axis])), (weights, np.bincount(layer, weights))):
        np.testing.assert_array_equal(layer_weights(sites.rows, axis, given)[: len(expected)], expected)


def test_sites_of_a_rank_are_numbered_in_their_order():
    owner = np.random.default_rng(8).integers(0, 3, 200)
    owners = SiteOwners.of(owner)
    np.testing.assert_array_equal(owners.expanded(), owner)
    np.testing.assert_array_equal(owners[np.array([5, 199, 0])], owner[[5, 199, 0]])
    for rank in range(4):  # rank 3 has none
        own, pieces = np.flatnonzero(owner == rank), owners.of_rank(rank)
        np.testing.assert_array_equal(pieces.sites(), own)
        rows = np.full(200, -1)
        rows[own] = np.arange(len(own))
        np.testing.assert_array_equal(pieces.rows_of(np.append(np.arange(200), -1)), np.append(rows, -1))
        some = np.array([3, 4, 50, 51, 52, 199])
        np.testing.assert_array_equal(pieces.among(some), np.flatnonzero(owner[some] == rank))
