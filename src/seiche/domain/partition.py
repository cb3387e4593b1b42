# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of the sites among ranks: graph partition by METIS, space-filling curve, or slabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.rank_mapping import MAX_MAPPED_PARTS, ranks_of_parts
from seiche.domain.rows import distinct
from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.errors import CaseError

Indices: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = npt.NDArray[np.float64]

#: Names of the methods in case files.
METHODS = ("metis", "curve", "slabs")

#: One of each pair of opposite D3Q19 directions (the first non-zero component is positive). Shape (9, 3).
_HALF_D3Q19 = LINK_VECTORS[13:][np.abs(LINK_VECTORS[13:]).sum(axis=1) <= 2].astype(np.int64)
#: Sites processed per pass, so that work arrays fit in the cache.
_CHUNK = 1 << 19
#: Maximum vertices of a coarsened graph, and minimum vertices per part.
_MAX_VERTICES, _MIN_VERTICES_PER_PART = 200_000, 256
#: METIS uses 32-bit integers: weights are scaled to a sum below this.
_MAX_WEIGHT = 1 << 30
#: A METIS partition is accepted up to this ratio of the heaviest part to the mean, or if it is as even as the curve's.
_IMBALANCE = 1.03
#: Up to this many parts recursive bisection is tried first: on vessels it cuts 5 to 30 % fewer links than k-way.
_MAX_BISECTED_PARTS = 64


def partition(
    sites: SiteSet,
    parts: int,
    *,
    method: str = "metis",
    weights: npt.NDArray[Any] | None = None,
    block: int = 1,
    most_vertices: int = _MAX_VERTICES,
    hosts: Sequence[int] = (),
) -> npt.NDArray[np.int32]:
    """Return the owner of every site, (n,) int32 in 0 ... parts - 1; the same on every call and rank.

    Args:
        sites: the fluid sites; links through periodic directions count.
        parts: number of parts; each has at least one block.
        method: `metis` cuts few links, `curve` (Hilbert order of the blocks) is fast and needs little memory, `slabs`
            cuts between layers of blocks across the longest direction: for boxes and straight tubes. With the first
            two, no part exceeds the mean plus the heaviest block, or 1.03 times the mean if that is larger. The curve
            replaces METIS where it is more even.
        weights: cost of each site (n,), at least 0; None counts sites.
        block: edge of the cubes of sites (aligned with coordinate 0) that are not divided.
        most_vertices: METIS uses cubes of 2, 4, 8 ... times `block` if there are more blocks than this.
        hosts: host of each rank, numbers from 0; parts of METIS with many common links go to ranks of one host.

    Raises:
        CaseError: more parts than blocks, or invalid `parts`, `method`, `weights` or `block`.
    """
    if parts < 1 or block < 1:
        raise CaseError(f"expected at least one part and blocks of at least one site: {parts}, {block}")
    if method not in METHODS:
        raise CaseError(f"partition {method!r} is unknown: use one of {', '.join(map(repr, METHODS))}")
    site_weights = _site_weights(len(sites), weights)
    if parts == 1 and len(sites):
        return np.zeros(len(sites), np.int32)
    grid, block_of_site = _blocks(sites, block)
    if not len(grid):
        raise CaseError("there are no fluid sites to distribute over the ranks")
    if parts > len(grid):
        unit = "fluid sites" if block == 1 else f"blocks of {block}^3 sites with fluid"
        raise CaseError(f"{parts} ranks cannot share {len(grid)} {unit}; use at most {len(grid)} ranks")
    block_weights: Weights = np.bincount(block_of_site, site_weights, len(grid)).astype(np.float64)
    if method == "slabs":
        return _cut_slabs(grid, block_weights, parts)[block_of_site]
    if method == "curve" or parts == len(grid):
        return _cut_curve(grid, block_weights, parts)[block_of_site]
    blocks, vertex_of_block = grid, np.arange(len(grid))
    while len(grid) > most_vertices:
        coarser, vertex_of_vertex = distinct(grid // 2)
        if len(coarser) < parts * _MIN_VERTICES_PER_PART:
            break
        grid, vertex_of_block = coarser, vertex_of_vertex[vertex_of_block]
    vertex_weights: Weights = np.bincount(vertex_of_block, block_weights, len(grid)).astype(np.float64)
    graph = _graph(sites, vertex_of_block[block_of_site], len(grid))
    candidates = []
    for recursive in (True, False) if parts <= _MAX_BISECTED_PARTS else (False,):
        vertex_owner = _metis(graph, vertex_weights, parts, recursive)
        if hosts and parts <= MAX_MAPPED_PARTS:
            vertex_owner = ranks_of_parts(_links_of_parts(graph, vertex_owner, parts), hosts)[vertex_owner]
        owner = vertex_owner[vertex_of_block]
        if _heaviest(owner, block_weights, parts) <= _IMBALANCE * block_weights.sum() / parts:
            return owner[block_of_site]
        candidates.append(owner)
    # With few vertices per part METIS may leave parts empty or very uneven; the curve satisfies its bounds there, too.
    curve_owner = _cut_curve(blocks, block_weights, parts)
    limit = _heaviest(curve_owner, block_weights, parts)
    acceptable = [owner for owner in candidates if _heaviest(owner, block_weights, parts) <= limit]
    return (acceptable or [curve_owner])[0][block_of_site]


def _site_weights(count: int, weights: npt.NDArray[Any] | None) -> Weights:
    if weights is None:
        return np.ones(count)
    values = np.asarray(weights, np.float64)
    if values.shape != (count,):
        raise CaseError(f"partition weights have shape {values.shape}, but there are {count} sites")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise CaseError("partition weights must be finite and not negative")
    return values if values.any() else np.ones(count)


def _blocks(sites: SiteSet, block: int) -> tuple[Indices, Indices]:
    """Return the coordinates (m, 3) of the blocks with sites, ascending, and the block of every site (n,)."""
    if block == 1:
        return sites.coords.astype(np.int64), np.arange(len(sites))
    return distinct(sites.coords.astype(np.int64) // block)


def _links(sites: SiteSet) -> Iterator[tuple[Indices, Indices]]:
    """Yield the D3Q19 links between fluid sites, one of each opposite pair, as indices of both ends."""
    find = sites.finder()
    for begin in range(0, len(sites), _CHUNK):
        coords = sites.coords[begin : begin + _CHUNK].astype(np.int64)
        for vector in _HALF_D3Q19:
            neighbour = find(coords + vector)
            rows = np.flatnonzero(neighbour >= 0)
            yield begin + rows, neighbour[rows]


def _crossings(sites: SiteSet, vertex_of_site: Indices, count: int) -> tuple[Indices, Indices]:
    """Return keys (lower vertex * count + higher one) of the linked pairs of vertices, and their numbers of links."""
    chunks: list[tuple[Indices, Indices]] = []
    for first, second in _links(sites):
        ends = np.stack([vertex_of_site[first], vertex_of_site[second]])
        ends = ends[:, ends[0] != ends[1]]
        chunks.append(np.unique(ends.min(axis=0) * count + ends.max(axis=0), return_counts=True))
    keys, number = np.unique(np.concatenate([pairs for pairs, _ in chunks]), return_inverse=True)
    return keys, np.bincount(number, np.concatenate([links for _, links in chunks]), len(keys)).astype(np.int64)


def _graph(sites: SiteSet, vertex_of_site: Indices, count: int) -> Any:
    """Return the graph of the vertices as a SciPy CSR matrix of the numbers of links between two vertices."""
    from scipy.sparse import coo_array

    keys, links = _crossings(sites, vertex_of_site, count)
    lower, higher = (keys // count).astype(np.int32), (keys % count).astype(np.int32)
    ends = (np.concatenate([lower, higher]), np.concatenate([higher, lower]))
    return coo_array((np.concatenate([links, links]).astype(np.int32), ends), shape=(count, count)).tocsr()


def _links_of_parts(graph: Any, owner: npt.NDArray[np.int32], parts: int) -> Indices:
    """Return the number of links between each two parts, (parts, parts), with zero diagonal."""
    from scipy.sparse import coo_array

    edges = graph.tocoo()
    ends = owner[edges.row], owner[edges.col]
    links = coo_array((edges.data.astype(np.int64), ends), shape=(parts, parts)).toarray()
    np.fill_diagonal(links, 0)
    return np.asarray(links, np.int64)


def _metis(graph: Any, weights: Weights, parts: int, recursive: bool) -> npt.NDArray[np.int32]:
    """Return the part of every vertex by METIS (Karypis and Kumar, SIAM J. Sci. Comput. 20, 359, 1998)."""
    import pymetis

    is_integer = np.array_equal(weights, np.round(weights)) and weights.sum() < _MAX_WEIGHT
    scaled = weights if is_integer else np.round(weights * (_MAX_WEIGHT / 2 / weights.sum()))
    _, part = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(graph.indptr, graph.indices),
        vweights=scaled.astype(np.int32),
        eweights=graph.data,
        recursive=recursive,
        # The best of five cuts is cheap after coarsening and saves up to a tenth of the links.
        options=pymetis.Options(seed=1, ncuts=5, ufactor=5),
    )
    return np.asarray(part, np.int32)


def _heaviest(owner: npt.NDArray[np.int32], weights: Weights, parts: int) -> float:
    """Return the weight of the heaviest part, infinity if a part is empty."""
    if not np.bincount(owner, minlength=parts).all():
        return float("inf")
    return float(np.bincount(owner, weights, parts).max())


def _cut_curve(grid: Indices, weights: Weights, parts: int) -> npt.NDArray[np.int32]:
    """Return the part of every block: the Hilbert curve through them, cut into pieces of equal weight."""
    order = np.argsort(hilbert_index(grid), kind="stable")
    owner = np.empty(len(grid), np.int32)
    owner[order] = _cut(weights[order], parts)
    return owner


def _cut_slabs(grid: Indices, weights: Weights, parts: int) -> npt.NDArray[np.int32]:
    """Return the part of every block, by layers across the longest direction; CaseError for too few layers."""
    axis = int(np.argmax(np.ptp(grid, axis=0)))
    layers, layer = np.unique(grid[:, axis], return_inverse=True)
    if len(layers) < parts:
        raise CaseError(f"partition 'slabs' has {len(layers)} layers for {parts} ranks: use 'metis' or 'curve'")
    return _cut(np.bincount(layer, weights).astype(np.float64), parts)[layer]


def _cut(weights: Weights, parts: int) -> npt.NDArray[np.int32]:
    """Return the part of every item of a sequence, cut into pieces of equal weight with at least one item each.

    Items are assigned by their midpoints, so no piece exceeds its share by more than an item.
    """
    middles = np.cumsum(weights) - weights / 2
    part_numbers = np.arange(1, parts)
    cuts = np.searchsorted(middles, part_numbers * (weights.sum() / parts))
    cuts = np.maximum(np.maximum.accumulate(cuts - part_numbers), 0) + part_numbers
    cuts = np.minimum(cuts, len(weights) - parts + part_numbers)
    return np.searchsorted(cuts, np.arange(len(weights)), side="right").astype(np.int32)


def hilbert_index(coords: Indices) -> Indices:
    """Return the position (n,) of points `coords` (n, 3), 0 <= coordinate < 2^21, on a Hilbert curve.

    Successive points of a full cube of 2^k points per edge are neighbours. The transform is vectorised over the points,
    bit by bit (Skilling, AIP Conf. Proc. 707, 381, 2004).
    """
    axes = [coords[:, axis].astype(np.int64) for axis in range(3)]
    bits = max(1, int(coords.max(initial=0)).bit_length())
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for axis in range(3):
            # If the bit is set the curve of the octant is reflected in x, otherwise x and this axis are exchanged.
            is_set = -(axes[axis] >> bit & 1)
            axes[0] ^= low & is_set
            swap = (axes[0] ^ axes[axis]) & low & ~is_set
            axes[0] ^= swap
            axes[axis] ^= swap
    axes[1] ^= axes[0]
    axes[2] ^= axes[1]
    flip = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flip ^= -(axes[2] >> bit & 1) & ((1 << bit) - 1)
    index = np.zeros_like(flip)
    for bit in range(bits - 1, -1, -1):
        for axis in range(3):
            index = index << 1 | ((axes[axis] ^ flip) >> bit & 1)
    return index
