# SPDX-License-Identifier: BSD-3-Clause
"""Tiles, sites and messages of all ranks, counted from the tiles of the whole vessel without the tables of any rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from seiche.domain.block_graph import BlockGraph, cubes_of
from seiche.domain.site_owners import SiteOwners
from seiche.domain.site_rows import SiteRows, distinct_numbers
from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.flow.velocity_set import VelocitySet

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SiteTiles:
    """The tiles of `edge`^3 nodes with sites, of which each has one owner.

    Attributes:
        edge: edge of a tile in sites.
        tiles: the T tiles as nodes of a coarser lattice.
        owner: rank of each tile, (T,).
        sites: number of sites of each tile, (T,).
        first, tile: first site (s,) and tile (s,) of each part of a run in one tile.
        boundary: tile (m,) of each site of the boundary arrays.
    """

    edge: int
    tiles: SiteRows
    owner: npt.NDArray[np.int32]
    sites: Counts
    first: Counts
    tile: Counts
    boundary: Counts

    @staticmethod
    def of(sites: SiteSet, owner: SiteOwners, edge: int) -> SiteTiles:
        """Return the tiles of `sites`."""
        rows, tiles = sites.rows, cubes_of(sites.rows, edge)
        cube, first = rows.segments(edge)
        tile = tiles.find(cube)
        owner_of_tile = np.zeros(len(tiles), np.int32)
        owner_of_tile[tile] = owner[first]
        count = np.bincount(tile, np.diff(first, append=len(rows)), len(tiles)).astype(np.int64)
        boundary = tile[np.searchsorted(first, sites.boundary, side="right") - 1]
        return SiteTiles(edge, tiles, owner_of_tile, count, first, tile, boundary)

    def find(self, coords: npt.NDArray[np.int64]) -> Counts:
        """Return the tile (m,) of nodes `coords` (m, 3), -1 where it has no site; periodic axes repeat."""
        return self.tiles.find(coords // self.edge, wrap=True)

    def around(self, tiles: Counts, reach: int) -> Counts:
        """Return the ascending tiles at most `reach` tiles from one of `tiles` (k,) along each axis."""
        step = np.arange(-reach, reach + 1)
        offsets = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1).reshape(-1, 3)
        coords = self.tiles.coords_of(tiles)
        found = [distinct_numbers(self.tiles.find(coords + offset, wrap=True)) for offset in offsets]
        near = distinct_numbers(np.concatenate(found))
        return near[near >= 0]


@dataclass(frozen=True)
class TileCounts:
    """What the tile layouts and the halo of one rank contain.

    Attributes:
        tiles, interior_tiles: own tiles, and those of them without a neighbour tile of another rank.
        copies: copied tiles of other ranks.
        walled: own tiles with walls or nodes without fluid.
        sites, interior_sites: own sites, and those of them in interior tiles.
        messages: populations sent to and received from each peer before a step, (peer, sent, received), by ascending
            peers.
    """

    tiles: int
    interior_tiles: int
    copies: int
    walled: int
    sites: int
    interior_sites: int
    messages: tuple[tuple[int, int, int], ...]


def tile_counts(sites: SiteSet, tiles: SiteTiles, lattice: VelocitySet, ranks: int) -> list[TileCounts]:
    """Return the counts of each of `ranks` ranks, which own whole tiles; `lattice` is D3Q19."""
    owner, count = tiles.owner, len(tiles.tiles)
    at_boundary, copied = np.zeros(count, bool), [np.zeros(0, np.int64)]
    for vector in LINK_VECTORS:
        neighbour = tiles.tiles.neighbours(vector, tiles.tiles)
        tile = np.flatnonzero((neighbour >= 0) & (owner[neighbour] != owner))
        at_boundary[tile] = True
        copied.append(owner[tile].astype(np.int64) * count + neighbour[tile])
    copies = distinct_numbers(np.concatenate(copied)) // max(count, 1)
    numbers = (
        np.bincount(owner, minlength=ranks),
        np.bincount(owner[~at_boundary], minlength=ranks),
        np.bincount(copies, minlength=ranks),
        np.bincount(owner[_walled(sites, tiles, lattice)], minlength=ranks),
        np.bincount(owner, tiles.sites, ranks),
        np.bincount(owner[~at_boundary], tiles.sites[~at_boundary], ranks),
    )
    rank, messages = _messages(sites, tiles, at_boundary, lattice, ranks)
    ends = np.searchsorted(rank, np.arange(ranks + 1)).tolist()
    rows = [(peer, sent, received) for peer, sent, received in messages.tolist()]
    table = np.stack(numbers, axis=1).astype(np.int64).tolist()
    return [
        TileCounts(*row, tuple(rows[begin:end]))  # type: ignore[call-arg]
        for row, (begin, end) in zip(table, pairwise(ends), strict=True)
    ]


def _walled(sites: SiteSet, tiles: SiteTiles, lattice: VelocitySet) -> npt.NDArray[np.bool_]:
    """Return which tiles (T,) contain nodes without fluid or sites with cut links."""
    walled = tiles.sites < tiles.edge**3
    cut = (sites.link_kind[:, lattice.link_rows] != 0).any(axis=1)
    walled[tiles.boundary[cut]] = True
    return walled


def _messages(
    sites: SiteSet, tiles: SiteTiles, at_boundary: npt.NDArray[np.bool_], lattice: VelocitySet, ranks: int
) -> tuple[Counts, Counts]:
    """Return the ascending ranks (m,) and peer, sent, received (m, 3): the links between two ranks without cut ones."""
    first, second, links = BlockGraph.of(sites.rows, tiles.edge).links_between(tiles.owner)
    keys, amounts = [first * ranks + second, second * ranks + first], [links, links]
    near = np.flatnonzero(at_boundary[tiles.boundary])
    coords, kinds = sites.coords[sites.boundary[near]].astype(np.int64), sites.link_kind[near][:, lattice.link_rows]
    for vector, kind in zip(lattice.vectors[1:], kinds.T, strict=True):
        row = np.flatnonzero(kind)
        row = row[((coords[row] + vector) // tiles.edge != coords[row] // tiles.edge).any(axis=1)]
        row = row[sites.rows.find(coords[row] + vector, wrap=True) >= 0]
        own, other = (tiles.owner[tiles.find(x)].astype(np.int64) for x in (coords[row], coords[row] + vector))
        keys.append((own * ranks + other)[own != other])
        amounts.append(np.full(len(keys[-1]), -1, np.int64))
    key, number = np.unique(np.concatenate(keys), return_inverse=True)
    received = np.bincount(number, np.concatenate(amounts), len(key)).astype(np.int64)
    rank, peer = np.divmod(key, ranks)
    sent = received[np.searchsorted(key, peer * ranks + rank)]
    used = (sent > 0) | (received > 0)
    return rank[used], np.stack([peer, sent, received], axis=1)[used]
