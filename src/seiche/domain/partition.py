# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of the sites among ranks: graph partition by METIS, space-filling curve, bisection, or slabs.

All ranks create the graph of cubes of sites and the owners that follow from its partition; rank 0 divides the graph,
whose size does not grow with the vessel. See docs/decisions/0037-partition-by-all-ranks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.block_graph import BlockGraph, cubes_of, layer_weights, slab_owners
from seiche.domain.rank_mapping import MAX_MAPPED_PARTS, host_numbers, ranks_of_parts
from seiche.domain.set_up_ranks import set_up_on, set_up_world
from seiche.domain.sharing import on_all, on_root, shared_from_root
from seiche.domain.site_owners import SiteOwners
from seiche.domain.site_rows import SiteRows
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

Indices: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = npt.NDArray[np.float64]

#: Names of the methods in case files.
METHODS = ("metis", "curve", "bisection", "slabs")

#: Bounds of the vertices of a coarsened graph, sites of a part for each vertex, and minimum vertices per part. METIS
#: takes about 1.3 kB per vertex on rank 0; the sites of a part take 50 to 100 B each on their rank.
_MIN_VERTICES, _MAX_VERTICES, _SITES_PER_VERTEX, _MIN_VERTICES_PER_PART = 60_000, 200_000, 20, 256
#: METIS uses 32-bit integers: weights are scaled to a sum below this.
_MAX_WEIGHT = 1 << 30
#: A METIS partition is accepted up to this ratio of the heaviest part to the mean, or if it is as even as the curve's.
_IMBALANCE = 1.02
#: Up to this many parts METIS makes the best of several cuts; a cut into more parts takes half a minute.
_MAX_PARTS_OF_BEST_CUT = 1024
#: Up to this many parts recursive bisection is tried first: on vessels it cuts 5 to 30 % fewer links than k-way.
_MAX_BISECTED_PARTS = 64


def partition(
    sites: SiteSet,
    parts: int,
    *,
    method: str = "metis",
    weights: npt.NDArray[Any] | None = None,
    block: int = 1,
    most_vertices: int | None = None,
    hosts: Sequence[int] = (),
) -> npt.NDArray[np.int32]:
    """Return the owner of every site, (n,) int32 in 0 ... parts - 1; the same on every call and rank.

    Args:
        sites: the fluid sites; links through periodic directions count.
        parts: number of parts; each has at least one block.
        method: `metis` cuts few links, `curve` (Hilbert order of the blocks) is fast and needs little memory,
            `bisection` halves parts across their longest direction (recursive coordinate bisection): eight parts of a
            cube are 2 x 2 x 2 cubes. `slabs` cuts between layers of blocks across the longest direction: for boxes and
            straight tubes. With the first two, no part exceeds the mean plus the heaviest block, or 1.02 times the mean
            if that is larger. The curve replaces METIS where it is more even.
        weights: cost of each site (n,), at least 0; None counts sites.
        block: edge of the cubes of sites (aligned with coordinate 0) that are not divided.
        most_vertices: cubes of 2, 4, 8 ... times `block` are not divided if there are more blocks than this; by default
            a number that bounds the memory of rank 0.
        hosts: host of each rank, numbers from 0; parts of METIS with many common links go to ranks of one host.

    Raises:
        CaseError: more parts than blocks, or invalid `parts`, `method`, `weights` or `block`.
    """
    cuts: dict[str, Any] = {"method": method, "weights": weights, "block": block, "most_vertices": most_vertices}
    return owners_of(sites, parts, hosts=hosts, **cuts).expanded()


def owners_of(
    sites: SiteSet,
    parts: int,
    *,
    method: str = "metis",
    weights: npt.NDArray[Any] | None = None,
    block: int = 1,
    most_vertices: int | None = None,
    hosts: Sequence[int] = (),
) -> SiteOwners:
    """Return the result of `partition` as pieces of consecutive sites (collective in a set-up)."""
    if parts < 1 or block < 1:
        raise CaseError(f"expected at least one part and blocks of at least one site: {parts}, {block}")
    if method not in METHODS:
        raise CaseError(f"partition {method!r} is unknown: use one of {', '.join(map(repr, METHODS))}")
    values, rows = on_all(lambda: _site_weights(len(sites), weights)), sites.rows
    if parts == 1 and len(sites):
        return SiteOwners(np.zeros(1, np.int64), np.zeros(1, np.int32), len(sites))
    blocks = cubes_of(rows, block)
    if not len(blocks):
        raise CaseError("there are no fluid sites to distribute over the ranks")
    if parts > len(blocks):
        unit = "fluid sites" if block == 1 else f"blocks of {block}^3 sites with fluid"
        raise CaseError(f"{parts} ranks cannot share {len(blocks)} {unit}; use at most {len(blocks)} ranks")
    if method == "slabs":
        return _cut_slabs(rows, blocks, block, values, parts)
    bound = max(_MIN_VERTICES, len(rows) // (_SITES_PER_VERTEX * parts))
    edge = _edge(rows, block, parts, min(_MAX_VERTICES, bound) if most_vertices is None else most_vertices)
    graph = BlockGraph.of(rows, edge, values)
    if method == "curve" or parts == len(blocks):
        cut = lambda: _cut_curve(graph.blocks.coords().astype(np.int64), graph.weights, parts)  # noqa: E731
    elif method == "bisection":
        cut = lambda: _cut_by_bisection(graph.blocks.coords().astype(np.int64), graph.weights, parts)  # noqa: E731
    else:
        cut = lambda: _cut_by_metis(graph, parts, hosts)  # noqa: E731
    return graph.owners(shared_from_root(set_up_world(), cut))


@set_up_stage("partition")
def owners(sites: SiteSet, world: World, **options: Any) -> SiteOwners:
    """Return the owners of the sites by `partition` with `options` on all ranks of `world` (collective).

    Parts of METIS with many common links go to ranks of one host.
    """
    hosts = host_numbers(world)
    if world.emulated:  # one process: all ranks share the result of the first one
        return on_root(world, lambda: owners_of(sites, world.size, hosts=hosts, **options))
    with set_up_on(world):
        return owners_of(sites, world.size, hosts=hosts, **options)


def _edge(rows: SiteRows, block: int, parts: int, most_vertices: int) -> int:
    """Return the edge of the cubes that are the vertices of the graph: `block` times a power of two."""
    edge = block
    while len(cubes_of(rows, edge)) > most_vertices:
        if len(cubes_of(rows, 2 * edge)) < parts * _MIN_VERTICES_PER_PART:
            break
        edge *= 2
    return edge


def _cut_by_metis(graph: BlockGraph, parts: int, hosts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the rank of every vertex, by METIS or, where it is more even, by the curve."""
    matrix, weights = graph.matrix(), graph.weights
    candidates = []
    for recursive in (True, False) if parts <= _MAX_BISECTED_PARTS else (False,):
        owner = _metis(matrix, weights, parts, recursive)
        if hosts and parts <= MAX_MAPPED_PARTS:
            owner = ranks_of_parts(_links_of_parts(matrix, owner, parts), hosts)[owner]
        if _heaviest(owner, weights, parts) <= _IMBALANCE * weights.sum() / parts:
            return owner
        candidates.append(owner)
    # With few vertices per part METIS may leave parts empty or very uneven; the curve satisfies its bounds there, too.
    curve_owner = _cut_curve(graph.blocks.coords().astype(np.int64), weights, parts)
    limit = _heaviest(curve_owner, weights, parts)
    acceptable = [owner for owner in candidates if _heaviest(owner, weights, parts) <= limit]
    return (acceptable or [curve_owner])[0]


def _site_weights(count: int, weights: npt.NDArray[Any] | None) -> Weights | None:
    """Return valid weights, None if all are equal."""
    if weights is None:
        return None
    values = np.asarray(weights, np.float64)
    if values.shape != (count,):
        raise CaseError(f"partition weights have shape {values.shape}, but there are {count} sites")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise CaseError("partition weights must be finite and not negative")
    return np.ascontiguousarray(values) if values.any() else None


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
        options=pymetis.Options(seed=1, ncuts=5 if parts <= _MAX_PARTS_OF_BEST_CUT else 1, ufactor=5),
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


def _cut_by_bisection(grid: Indices, weights: Weights, parts: int) -> npt.NDArray[np.int32]:
    """Return the part of every block by bisection (Berger and Bokhari, IEEE Trans. Comput. 36, 570, 1987)."""
    owner = np.zeros(len(grid), np.int32)

    def bisect(blocks: Indices, first: int, count: int) -> None:
        """Assign blocks, in the order of their coordinates, to `count` parts from `first` on."""
        if count == 1:
            owner[blocks] = first
            return
        axis = int(np.argmax(np.ptp(grid[blocks], axis=0)))
        blocks = blocks[np.argsort(grid[blocks, axis], kind="stable")]
        middles = np.cumsum(weights[blocks]) - weights[blocks] / 2
        lower = count // 2
        cut = int(np.searchsorted(middles, weights[blocks].sum() * lower / count))
        cut = min(max(cut, lower), len(blocks) - (count - lower))
        bisect(blocks[:cut], first, lower)
        bisect(blocks[cut:], first + lower, count - lower)

    bisect(np.arange(len(grid)), 0, parts)
    return owner


def _cut_slabs(rows: SiteRows, blocks: SiteRows, block: int, weights: Weights | None, parts: int) -> SiteOwners:
    """Return the owners of sites by layers of blocks across the longest direction; CaseError for too few layers."""
    axis = int(np.argmax(np.ptp(np.array(blocks.bounds()), axis=0)))
    layer = np.arange(rows.shape[axis]) // block
    present = np.bincount(layer, layer_weights(rows, axis, None)) > 0
    by_layer = np.bincount(layer, layer_weights(rows, axis, weights))[present].astype(np.float64)
    if len(by_layer) < parts:
        raise CaseError(f"partition 'slabs' has {len(by_layer)} layers for {parts} ranks: use 'metis' or 'curve'")
    part = _cut(by_layer, parts)[np.cumsum(present) - 1]
    return slab_owners(rows, axis, part[layer])


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
