# SPDX-License-Identifier: BSD-3-Clause
"""Build a complete `SiteSet` from fluid nodes: cut links at walls and openings, drop unconnected components.

Shared by the analytic shapes and the voxeliser, which differ only in the intersection of links with the wall. An
opening is a disc that cuts every link through it. On the fluid side (where its normal points) the link becomes an inlet
or outlet link, on the far side a wall link. Nodes that only the far side reaches are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seiche.domain.links import boundary_links, role_kinds, wall_direction
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
#: Tolerance in spacings: a node within it of a plane or wall is solid.
TOUCH_TOLERANCE = 1e-9
#: Minimum stored fraction of a link (a node may lie on the wall within round-off).
MIN_FRACTION = 1e-6
#: Nodes processed per pass, so that work arrays fit in the cache.
CHUNK = 1 << 19
#: Extension of a disc beyond its radius in spacings, so that no link passes its rim along a faceted wall.
RIM_MARGIN = 1.0


@dataclass(frozen=True)
class WallHits:
    """First intersections of p links with the wall.

    `fraction` (p,) of the link, NaN without intersection; `normal` (p, 3) unit, out of the fluid; `iolet` (p,) the
    iolet whose opening this part of the surface closes, -1 for a wall.
    """

    fraction: Floats
    normal: Floats
    iolet: npt.NDArray[np.int16]


@dataclass(frozen=True)
class DroppedComponent:
    """A connected component that was removed because it has no iolet (`center` in metres)."""

    sites: int
    center: tuple[float, float, float]


@dataclass(frozen=True)
class CandidateNodes:
    """Candidate fluid nodes: `coords` (n, 3) ascending inside `shape`, at origin + spacing*coords (metres)."""

    shape: tuple[int, int, int]
    coords: npt.NDArray[np.int32]
    spacing: float
    origin: tuple[float, float, float]
    periodic: tuple[bool, bool, bool] = (False, False, False)

    def positions(self, rows: npt.NDArray[np.int64] | slice = slice(None)) -> Floats:
        """Return the positions (p, 3) in metres of the nodes `rows`."""
        return np.asarray(np.asarray(self.origin) + self.spacing * self.coords[rows])

    def keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the linear index (n,) of each node in the padded box, ascending, and the strides (3,)."""
        _, ny, nz = (extent + 2 for extent in self.shape)
        strides = np.array([ny * nz, nz, 1], np.int64)
        keys = (self.coords[:, 0] + np.int64(1)) * strides[0]
        keys += (self.coords[:, 1] + np.int64(1)) * strides[1]
        keys += self.coords[:, 2] + np.int64(1)
        return keys, strides

    def keep(self, flags: npt.NDArray[np.bool_]) -> CandidateNodes:
        """Return the lattice with the nodes flagged in `flags` (n,)."""
        return replace(self, coords=self.coords[flags])

    def trimmed(self) -> CandidateNodes:
        """Return the same nodes in their bounding box, with the origin shifted; periodic axes are unchanged."""
        if not len(self.coords):
            return self
        not_periodic = ~np.array(self.periodic)
        low = np.where(not_periodic, self.coords.min(axis=0), 0)
        nx, ny, nz = np.where(not_periodic, self.coords.max(axis=0) - low + 1, self.shape).tolist()
        x, y, z = (np.asarray(self.origin) + self.spacing * low).tolist()
        coords = (self.coords - low).astype(np.int32)
        return replace(self, shape=(nx, ny, nz), coords=coords, origin=(x, y, z))


#: Function of the lattice, the nodes (p,) at the start of links, and the directions (p,) of the links.
WallFinder = Callable[[CandidateNodes, npt.NDArray[np.int64], npt.NDArray[np.int64]], WallHits]


@dataclass(frozen=True)
class Crossings:
    """Links cut by a disc: node, direction, fraction, iolet, and whether the node is on the fluid side."""

    node: npt.NDArray[np.int64]
    direction: npt.NDArray[np.int64]
    fraction: Floats
    iolet: npt.NDArray[np.int64]
    front: npt.NDArray[np.bool_]


def assemble(
    lattice: CandidateNodes,
    iolets: Sequence[IoletPlane],
    find_walls: WallFinder,
    *,
    prune: bool = True,
    trim: bool = True,
) -> tuple[SiteSet, list[DroppedComponent], int]:
    """Return the sites, the dropped components, and the number of links that intersect neither wall nor disc.

    Those links get the fraction 1/2. With `prune`, components without an iolet are dropped; with `trim`, the box
    shrinks to the remaining sites. Raises CaseError for an iolet that touches no site and for a site that touches two
    iolets.
    """
    for plane in iolets:
        lattice = lattice.keep(~_on_disc(lattice, plane))
    dropped: list[DroppedComponent] = []
    crossings = _crossings(lattice, iolets)
    if prune and iolets:
        roots = crossings.node[crossings.front]
        if len(np.unique(crossings.iolet[crossings.front])) < len(iolets):  # a vessel may end just before its plane
            unpruned = _link(lattice, iolets, crossings, find_walls)[0]
            _check_iolet_links(unpruned)
            roots = unpruned.boundary[(unpruned.link_iolet >= 0).any(axis=1)]
        connected, dropped = _reachable(lattice, crossings, roots)
        lattice = lattice.keep(connected)
        crossings = _crossings(lattice, iolets)
    sites, unresolved = _link(lattice.trimmed() if trim else lattice, iolets, crossings, find_walls)
    _check_iolet_links(sites)
    _check_shared_sites(sites)
    return sites, dropped, unresolved


def _signed_and_radial(lattice: CandidateNodes, plane: IoletPlane) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the nodes near the disc of `plane`, their height over it and offset (p, 3) from its center in spacings."""
    normal = np.asarray(plane.normal)
    origin_height = float(np.dot(np.asarray(lattice.origin) - plane.center, normal)) / lattice.spacing
    heights = lattice.coords @ normal + origin_height
    rows = np.flatnonzero(np.abs(heights) <= np.sqrt(3.0) + TOUCH_TOLERANCE)
    height = heights[rows]
    height[np.abs(height) < TOUCH_TOLERANCE * max(lattice.shape)] = 0.0
    offset = (lattice.positions(rows) - plane.center) / lattice.spacing
    is_close = np.linalg.norm(offset, axis=1) <= _disc_radius(lattice, plane) + 2.0
    return rows[is_close], height[is_close], offset[is_close]


def _disc_radius(lattice: CandidateNodes, plane: IoletPlane) -> float:
    return np.inf if plane.radius is None else plane.radius / lattice.spacing + RIM_MARGIN


def _on_disc(lattice: CandidateNodes, plane: IoletPlane) -> npt.NDArray[np.bool_]:
    """Flag the nodes on the disc itself, which are not fluid."""
    rows, height, offset = _signed_and_radial(lattice, plane)
    flags = np.zeros(len(lattice.coords), bool)
    flags[rows[(height == 0.0) & (np.linalg.norm(offset, axis=1) <= _disc_radius(lattice, plane))]] = True
    return flags


def _crossings(lattice: CandidateNodes, iolets: Sequence[IoletPlane]) -> Crossings:
    """Find every link through the disc of an iolet; if two discs cut one link, both are listed."""
    cuts: list[tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.bool_], int, int]] = []
    for index, plane in enumerate(iolets):
        near_rows, height, offset = _signed_and_radial(lattice, plane)
        for k, vector in enumerate(LINK_VECTORS):
            end = height + float(np.dot(plane.normal, vector))
            end[np.abs(end) < TOUCH_TOLERANCE * max(lattice.shape)] = 0.0
            rows = np.flatnonzero(((height > 0.0) & (end <= 0.0)) | ((height < 0.0) & (end > 0.0)))
            fraction = height[rows] / (height[rows] - end[rows])
            hit = offset[rows] + fraction[:, None] * vector
            inside = np.linalg.norm(hit, axis=1) <= _disc_radius(lattice, plane)
            rows, fraction = rows[inside], fraction[inside]
            cuts.append((near_rows[rows], fraction, height[rows] > 0.0, k, index))
    if not cuts:
        empty = np.zeros(0, np.int64)
        return Crossings(empty, empty, np.zeros(0), empty, np.zeros(0, bool))
    nodes, fractions, fronts, directions, numbers = zip(*cuts, strict=True)
    node, fraction, front = np.concatenate(nodes), np.concatenate(fractions), np.concatenate(fronts)
    direction, number = (np.repeat(values, [len(rows) for rows in nodes]) for values in (directions, numbers))
    return Crossings(node, direction, fraction, number, front)


def _reachable(
    lattice: CandidateNodes, crossings: Crossings, roots: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], list[DroppedComponent]]:
    """Flag the nodes connected to one of `roots` through uncut axis and edge links; return the dropped components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    run, joined = _runs(lattice, crossings)
    count = int(run[-1]) + 1
    graph = coo_array((np.ones(len(joined), np.int8), (joined // count, joined % count)), shape=(count, count))
    _, label_of_run = connected_components(graph, directed=False)
    label = label_of_run[run]
    connected = np.isin(label, label[roots])
    dropped: list[DroppedComponent] = []
    for component in np.unique(label[~connected])[:100]:
        rows = np.flatnonzero(label == component)
        x, y, z = lattice.positions(rows).mean(axis=0)
        dropped.append(DroppedComponent(len(rows), (float(x), float(y), float(z))))
    return connected, sorted(dropped, key=lambda component: -component.sites)


def _runs(lattice: CandidateNodes, crossings: Crossings) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the run of every node, and the pairs of runs joined by uncut axis or edge links (lower * runs + higher).

    A run is a row of nodes along z with uncut links; there are far fewer runs than nodes.
    """
    keys, strides = lattice.keys()
    begins = np.ones(len(keys), bool)
    begins[1:] = np.diff(keys) != 1
    next_along_z = crossings.node[crossings.direction == 13] + 1  # the link to the next node along z
    begins[next_along_z[next_along_z < len(keys)]] = True
    run = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    count = int(run[-1]) + 1
    joined = [np.zeros(0, np.int64)]
    for k in range(14, 26):
        if np.abs(LINK_VECTORS[k]).sum() == 3:
            continue
        cut = np.zeros(len(keys), bool)
        cut[crossings.node[crossings.direction == k]] = True
        step = int(LINK_VECTORS[k].astype(np.int64) @ strides)
        for first in range(0, len(keys), CHUNK):
            ends = keys[first : first + CHUNK] + step
            position = np.minimum(np.searchsorted(keys, ends), len(keys) - 1)
            start = np.flatnonzero((keys[position] == ends) & ~cut[first : first + CHUNK])
            pairs = run[first + start].astype(np.int64) * count + run[position[start]]
            # Neighbours along z mostly join the same two runs.
            joined.append(pairs[np.flatnonzero(np.diff(pairs, prepend=-1))])
    return run, np.unique(np.concatenate(joined))


def _link(
    lattice: CandidateNodes, iolets: Sequence[IoletPlane], crossings: Crossings, find_walls: WallFinder
) -> tuple[SiteSet, int]:
    """Classify every link that leaves the fluid by the first wall or opening it meets."""
    node = crossings.node
    incomplete, absent = boundary_links(lattice.shape, lattice.coords, lattice.periodic)
    boundary = np.union1d(incomplete, node)
    cut = np.zeros((len(boundary), 26), bool)
    cut[np.searchsorted(boundary, incomplete)] = absent
    disc_fraction = np.full((len(boundary), 26), np.inf)
    disc = np.full((len(boundary), 26), -1, np.int16)
    nearest_last = np.argsort(-crossings.fraction, kind="stable")  # the nearest disc overwrites the others
    rows, directions = np.searchsorted(boundary, node[nearest_last]), crossings.direction[nearest_last]
    disc_fraction[rows, directions] = crossings.fraction[nearest_last]
    disc[rows, directions] = np.where(crossings.front, crossings.iolet, -1)[nearest_last]
    cut |= np.isfinite(disc_fraction)

    row, k = np.nonzero(cut)
    hits = find_walls(lattice, boundary[row], k)
    hits_wall = np.isfinite(hits.fraction)
    disc_hit = disc_fraction[row, k]
    disc_first = np.isfinite(disc_hit) & (
        ~hits_wall | (disc_hit <= np.where(hits_wall, hits.fraction, 0.0) + MIN_FRACTION)
    )
    iolet = np.where(disc_first, disc[row, k], np.where(hits_wall, hits.iolet, -1)).astype(np.int16)
    fraction: Floats = np.where(disc_first, disc_hit, np.where(hits_wall, hits.fraction, 0.5))
    kinds = np.append(role_kinds(iolets), np.uint8(LinkKind.WALL))  # index -1 is the wall

    shape = (len(boundary), 26)
    link_kind, link_iolet = np.zeros(shape, np.uint8), np.full(shape, -1, np.int16)
    link_fraction = np.zeros(shape, np.float32)
    link_kind[row, k], link_iolet[row, k] = kinds[iolet], iolet
    link_fraction[row, k] = np.clip(fraction, MIN_FRACTION, 1.0)
    on_wall = hits_wall & ~disc_first & (iolet < 0)
    normals = _wall_normals(row, k, len(boundary), hits, on_wall=on_wall, fraction=fraction)
    if np.any(unset := ~normals.any(axis=1)):  # no wall link of the site met the surface
        normals[unset] = _unit(wall_direction(link_kind[unset]))
    sites = SiteSet(
        lattice.shape, lattice.coords, lattice.spacing, lattice.origin, lattice.periodic,
        boundary, link_kind, link_iolet, link_fraction, normals, tuple(iolets),
    )  # fmt: skip
    return sites, int(np.count_nonzero(~disc_first & ~hits_wall))


def _wall_normals(
    row: npt.NDArray[np.int64],
    direction: npt.NDArray[np.int64],
    count: int,
    hits: WallHits,
    *,
    on_wall: npt.NDArray[np.bool_],
    fraction: Floats,
) -> npt.NDArray[np.float32]:
    """Return the mean wall normal (count, 3) of each site, unit or zero, weighted by the inverse distance of hits."""
    vectors = LINK_VECTORS[direction]
    length = np.maximum(fraction, MIN_FRACTION) * np.linalg.norm(vectors, axis=1)
    total = np.zeros((count, 3))
    for axis in range(3):
        weighted = np.where(on_wall, hits.normal[:, axis] / length, 0.0)
        total[:, axis] = np.bincount(row, weights=weighted, minlength=count)
    return _unit(total)


def _unit(vectors: Floats) -> npt.NDArray[np.float32]:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray((vectors / np.where(length > 0.0, length, 1.0)).astype(np.float32))


def _check_iolet_links(sites: SiteSet) -> None:
    """Raise CaseError when an iolet has no link."""
    touched = np.unique(sites.link_iolet)
    for index, plane in enumerate(sites.iolets):
        if index not in touched:
            raise CaseError(f'iolet "{plane.name}" touches no site; check its center, normal and radius')


def _check_shared_sites(sites: SiteSet) -> None:
    """Raise CaseError if links of one site meet two iolets, since only one boundary condition can apply."""
    max_int16 = np.iinfo(np.int16).max
    last_iolet = sites.link_iolet.max(axis=1, initial=-1)
    first_iolet = np.where(sites.link_iolet >= 0, sites.link_iolet, np.int16(max_int16)).min(axis=1, initial=max_int16)
    shared = np.flatnonzero((last_iolet >= 0) & (first_iolet < last_iolet))
    if len(shared):
        first, second = (sites.iolets[index[shared[0]]].name for index in (first_iolet, last_iolet))
        x, y, z = sites.coords[sites.boundary[shared[0]]]
        position = np.asarray(sites.origin) + sites.spacing * np.array([x, y, z])
        site = f"({x}, {y}, {z}) at (" + ", ".join(f"{value:.6g}" for value in position) + ") m"
        raise CaseError(f'the iolets "{first}" and "{second}" both touch the site {site}; move them apart')
