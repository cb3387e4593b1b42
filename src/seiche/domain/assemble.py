# SPDX-License-Identifier: BSD-3-Clause
"""Build a complete `SiteSet` from fluid nodes: cut links at walls and openings, drop unconnected components.

Shared by the analytic shapes and the voxeliser, which differ only in the intersection of links with the wall. An
opening is a disc that cuts every link through it. On the fluid side (where its normal points) the link becomes an inlet
or outlet link, on the far side a wall link. Nodes that only the far side reaches are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seiche.domain.candidates import CandidateNodes, Crossings, WallFinder, disc_crossings, nodes_on_disc
from seiche.domain.cut_links import CutLinks, cut_links, linked_sites
from seiche.domain.set_up_ranks import joined, set_up_world, sum_of_all
from seiche.domain.site_rows import Indices, SiteRows, expanded
from seiche.domain.sites import LINK_VECTORS, IoletPlane, SiteSet
from seiche.domain.world import raise_together
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

#: Directions of links that connect parts: one of each pair along an axis or an edge of the lattice, without +z.
_CONNECTING = [k for k in range(14, 26) if np.abs(LINK_VECTORS[k]).sum() <= 2]
#: Direction of the link to the next node along z.
_ALONG_Z = 13


@dataclass(frozen=True)
class DroppedComponent:
    """A connected component that was removed because it has no iolet (`center` in metres)."""

    sites: int
    center: tuple[float, float, float]


@set_up_stage("link")
def assemble(
    lattice: CandidateNodes,
    iolets: Sequence[IoletPlane],
    find_walls: WallFinder,
    *,
    prune: bool = True,
    trim: bool = True,
) -> tuple[SiteSet, list[DroppedComponent], int]:
    """Return the sites, the dropped components, and the number of links that intersect neither wall nor disc.

    Those links get the fraction 1/2. Each rank cuts the links of its share of the sites (collective). With `prune`,
    components without an iolet are dropped; with `trim`, the box shrinks to the remaining sites. Raises CaseError for
    an iolet that touches no site and for a site that touches two iolets.
    """
    for plane in iolets:
        lattice = replace(lattice, rows=lattice.rows.without(nodes_on_disc(lattice, plane)))
    dropped: list[DroppedComponent] = []
    crossings = disc_crossings(lattice, iolets)
    if prune and iolets:
        roots = crossings.node[crossings.front]
        if len(np.unique(crossings.iolet[crossings.front])) < len(iolets):  # a vessel may end just before its plane
            unpruned = cut_links(lattice, iolets, crossings, find_walls)
            _check_iolet_links(iolets, unpruned)
            roots = joined(unpruned.boundary[unpruned.rows])
        connected, dropped = _reachable(lattice, crossings, roots)
        if dropped:
            lattice = replace(lattice, rows=connected)
            crossings = disc_crossings(lattice, iolets)
    lattice = lattice.trimmed() if trim else lattice
    links = cut_links(lattice, iolets, crossings, find_walls)
    _check_iolet_links(iolets, links)
    _check_shared_sites(lattice, iolets, links)
    return linked_sites(lattice, iolets, links), dropped, sum_of_all(links.unresolved)


def _reachable(
    lattice: CandidateNodes, crossings: Crossings, roots: Indices
) -> tuple[SiteRows, list[DroppedComponent]]:
    """Return the nodes connected to one of `roots` through uncut axis and edge links, and the dropped components.

    The graph has a vertex for each piece of a run between cut links; there are far fewer pieces than nodes.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    start, length, run = lattice.rows.split(crossings.node[crossings.direction == _ALONG_Z] + 1)
    count = len(start)
    first, second = _joined(lattice, crossings, (start, length, run))
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(count, count))
    _, label = connected_components(graph, directed=False)
    connected = np.isin(label, label[np.searchsorted(start, roots, side="right") - 1])
    dropped: list[DroppedComponent] = []
    for component in np.unique(label[~connected])[:100]:
        pieces = label == component
        nodes = expanded(start[pieces], start[pieces] + length[pieces])
        x, y, z = lattice.positions(nodes).mean(axis=0)
        dropped.append(DroppedComponent(len(nodes), (float(x), float(y), float(z))))
    connected_rows = lattice.rows.chosen(start[connected], length[connected], run[connected])
    return connected_rows, sorted(dropped, key=lambda component: -component.sites)


def _joined(
    lattice: CandidateNodes, crossings: Crossings, pieces: tuple[Indices, Indices, Indices]
) -> tuple[Indices, Indices]:
    """Return the pairs of pieces of runs with an uncut link between them."""
    start, count = pieces[0], len(pieces[0])
    firsts, seconds = [], []
    for k in _CONNECTING:
        first, second, links = lattice.rows.touching(LINK_VECTORS[k], *pieces)
        node = crossings.node[crossings.direction == k]
        end = lattice.rows.find(lattice.rows.coords_of(node) + LINK_VECTORS[k])
        cut = np.unique(np.stack([node, end], axis=1)[end >= 0], axis=0)
        piece, other = np.searchsorted(start, cut.T, side="right") - 1
        pair, cuts = np.unique(piece * count + other, return_counts=True)
        if len(pair):
            key = first * count + second
            position = np.minimum(np.searchsorted(pair, key), len(pair) - 1)
            links = links - np.where(pair[position] == key, cuts[position], 0)
        firsts.append(first[links > 0])
        seconds.append(second[links > 0])
    return np.concatenate(firsts), np.concatenate(seconds)


def _check_iolet_links(iolets: Sequence[IoletPlane], links: CutLinks) -> None:
    """Raise CaseError on all ranks when an iolet has no link (collective)."""
    has_own_links = np.isin(np.arange(len(iolets)), links.iolet[links.rows])
    touched = np.any(set_up_world().allgather(has_own_links), axis=0)
    for index, plane in enumerate(iolets):
        if not touched[index]:
            raise CaseError(f'iolet "{plane.name}" touches no site; check its center, normal and radius')


def _check_shared_sites(lattice: CandidateNodes, iolets: Sequence[IoletPlane], links: CutLinks) -> None:
    """Raise CaseError on all ranks if links of one site meet two iolets, which have one condition each."""
    max_int16 = np.iinfo(np.int16).max
    link_iolet = links.iolet[links.rows]
    last_iolet = link_iolet.max(axis=1, initial=-1)
    first_iolet = np.where(link_iolet >= 0, link_iolet, np.int16(max_int16)).min(axis=1, initial=max_int16)
    shared, problem = np.flatnonzero(first_iolet < last_iolet), None
    if len(shared):
        first, second = (iolets[index[shared[0]]].name for index in (first_iolet, last_iolet))
        x, y, z = lattice.rows.coords_of(links.boundary[links.rows[shared[:1]]])[0].tolist()
        position = np.asarray(lattice.origin) + lattice.spacing * np.array([x, y, z])
        site = f"({x}, {y}, {z}) at (" + ", ".join(f"{value:.6g}" for value in position) + ") m"
        problem = f'the iolets "{first}" and "{second}" both touch the site {site}; move them apart'
    raise_together(set_up_world(), problem, CaseError)
