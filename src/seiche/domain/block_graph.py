# SPDX-License-Identifier: BSD-3-Clause
"""Cubes of sites as the vertices of a graph, created by all ranks from runs of sites; no array has an item per site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.set_up_ranks import joined, own_part
from seiche.domain.site_owners import Ranks, SiteOwners
from seiche.domain.site_rows import Indices, SiteRows, Triple
from seiche.kernels.registry import sites as registry

Weights = npt.NDArray[np.float64]

#: Columns of the table of links: cubes at (dx, dy, dz) from a cube, with dx from 0 to 1 and dy, dz from -1 to 1.
_OFFSETS = np.stack(np.meshgrid([0, 1], [-1, 0, 1], [-1, 0, 1], indexing="ij"), axis=-1).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class BlockGraph:
    """The cubes of `edge`^3 nodes with sites.

    `rows` are the sites and `blocks` the cubes, both as runs. `weights` (v,) and `links` (v, 18) are those of
    `BlockLinks` in kernels/sites/blocks.hpp.
    """

    rows: SiteRows
    blocks: SiteRows
    edge: int
    weights: Weights
    links: npt.NDArray[np.uint32]

    @staticmethod
    def of(rows: SiteRows, edge: int, site_weights: Weights | None = None) -> BlockGraph:
        """Return the graph with the `site_weights` (n,) of cubes, by default their numbers of sites (collective)."""
        blocks = cubes_of(rows, edge)
        column = _columns(rows, edge, blocks.shape[1])
        sites = np.bincount(column, rows.end - rows.begin, blocks.shape[0] * blocks.shape[1])
        own = own_part(offsets(sites.astype(np.int64)))
        first, end = (int(blocks.site[blocks.first[k]]) for k in (own.start, own.stop))
        weights, links = np.zeros(len(blocks)), np.zeros((len(blocks), len(_OFFSETS)), np.uint32)
        run_pass(
            registry.block_links(), own, rows=rows.members, blocks=blocks.members, edge=edge,
            site_weights=site_weights, weights=weights, links=links,
        )  # fmt: skip
        return BlockGraph(rows, blocks, edge, joined(weights[first:end]), joined(links[first:end]))

    def matrix(self) -> Any:
        """Return the numbers of links between two vertices as a SciPy CSR matrix (v, v), int32."""
        from scipy.sparse import coo_array

        count = len(self.blocks)
        vertex, offset = np.nonzero(self.links)
        coords = self.blocks.coords_of(vertex) + _OFFSETS[offset]
        ends = vertex.astype(np.int32), self.blocks.find(coords, wrap=True).astype(np.int32)
        links = self.links[vertex, offset].astype(np.int32)
        both = (np.concatenate(ends), np.concatenate(ends[::-1]))
        return coo_array((np.concatenate([links, links]), both), shape=(count, count)).tocsr()

    def links_between(self, owner: npt.NDArray[Any]) -> tuple[Indices, Indices, Indices]:
        """Return the links between cubes of different `owner` (v,): both owners (m,) and numbers of links (m,).

        A pair of owners may occur several times, in any order.
        """
        pairs = [np.zeros((3, 0), np.int64)]
        for vector, links in zip(_OFFSETS, self.links.T, strict=True):
            other = self.blocks.neighbours(vector, self.blocks)
            cube = np.flatnonzero((links > 0) & (owner != owner[other]))
            pairs.append(np.stack([owner[cube], owner[other[cube]], links[cube]]).astype(np.int64))
        first, second, links = np.concatenate(pairs, axis=1)
        return first, second, links

    def owners(self, owner_of_block: npt.NDArray[Any]) -> SiteOwners:
        """Return the owners of the sites from those of the cubes (v,), which are the same on all ranks (collective)."""
        rows, owner = self.rows, np.ascontiguousarray(owner_of_block, np.int32)
        own = own_part(rows.site)
        common = {"rows": rows.members, "blocks": self.blocks.members, "edge": self.edge, "owner": owner}
        counts = np.zeros(len(rows.begin), np.int32)
        run_pass(registry.owner_pieces(fill=False), own, first=None, counts=counts, starts=None, owners=None, **common)
        first = offsets(counts)
        starts, owners = np.empty(first[-1], np.int64), np.empty(first[-1], np.int32)
        run_pass(
            registry.owner_pieces(fill=True), own, first=first, counts=None, starts=starts, owners=owners, **common
        )
        pieces = SiteOwners.merged(starts, owners, len(rows))
        return SiteOwners.merged(joined(pieces.start), joined(pieces.owner), len(rows))


def cubes_of(rows: SiteRows, edge: int) -> SiteRows:
    """Return the cubes of `edge`^3 nodes that contain sites, as the nodes of a coarser lattice."""
    return rows if edge == 1 else cuboids_of(rows, (edge, edge, edge))


def cuboids_of(rows: SiteRows, edges: Triple) -> SiteRows:
    """Return the cuboids with `edges` in nodes that contain sites, as the nodes of a coarser lattice."""
    nx, ny, nz = (-(-extent // edge) for extent, edge in zip(rows.shape, edges, strict=True))
    x, y = np.divmod(rows.row, rows.shape[1])
    # Positions on one axis, on which the columns of cuboids follow each other with a gap.
    first = (x // edges[0] * ny + y // edges[1]) * (nz + 1)
    low, high = first + rows.begin // edges[2], first + (rows.end - 1) // edges[2] + 1
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    begins = np.ones(len(low), bool)
    begins[1:] = low[1:] > reach[:-1]
    last = np.append(begins[1:], True)[: len(begins)]
    column, begin = np.divmod(low[begins], nz + 1)
    return SiteRows.of_runs((nx, ny, nz), rows.periodic, column, begin, reach[last] - column * (nz + 1))


def slab_owners(rows: SiteRows, axis: int, part_of_layer: Ranks) -> SiteOwners:
    """Return the owners of sites from those of all layers across an axis, (n,), n >= the extent along it."""
    if axis == 2:
        changes = np.flatnonzero(np.diff(part_of_layer)) + 1
        inside = [np.flatnonzero((rows.begin < z) & (z < rows.end)) for z in changes]
        cuts = [rows.site[run] + (z - rows.begin[run]) for run, z in zip(inside, changes, strict=True)]
        start, _, run = rows.split(np.concatenate([np.zeros(0, np.int64), *cuts]))
        layer = rows.begin[run] + (start - rows.site[run])
    else:
        start, layer = rows.site[:-1], np.divmod(rows.row, rows.shape[1])[axis]
    return SiteOwners.merged(start, part_of_layer[layer], len(rows))


def layer_weights(rows: SiteRows, axis: int, weights: Weights | None) -> Weights:
    """Return the weight of the sites in each layer across an axis, (n,)."""
    extent = rows.shape[axis]
    if weights is not None:
        run = np.repeat(np.arange(len(rows.begin)), rows.end - rows.begin)
        return np.bincount(rows.coords_of(np.arange(len(rows)), run)[:, axis], weights, extent).astype(np.float64)
    if axis == 2:
        change = np.bincount(rows.begin, minlength=extent + 1) - np.bincount(rows.end, minlength=extent + 1)
        return np.cumsum(change)[:extent].astype(np.float64)
    layer = np.divmod(rows.row, rows.shape[1])[axis]
    return np.bincount(layer, rows.end - rows.begin, extent).astype(np.float64)


def _columns(rows: SiteRows, edge: int, width: int) -> Indices:
    """Return the column of cubes of each run (r,)."""
    x, y = np.divmod(rows.row, rows.shape[1])
    return np.asarray(x // edge * width + y // edge)
