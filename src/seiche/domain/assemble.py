# SPDX-License-Identifier: BSD-3-Clause
"""From "these lattice nodes are fluid" to a complete `SiteSet`: cut links at walls and openings, drop loose parts.

Shared by the analytic shapes and the voxeliser, which differ only in how a link finds the wall. An opening is a disc
that cuts every link through it: on the fluid side (where its normal points) the link becomes an inlet or outlet link,
on the far side a wall link. What only the far side reaches is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.links import boundary_links, role_kinds, wall_direction
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
#: Lengths below this many spacings count as zero: a node that lies on a plane or wall belongs to the solid.
TOUCHING = 1e-9
#: Smallest fraction of a link that is stored (a node may lie on the wall within round-off).
SMALLEST_FRACTION = 1e-6
#: Nodes looked at together; the work arrays of one round then stay near the processor.
CHUNK = 1 << 19
#: A disc reaches this many spacings beyond its radius, so that no link slips past its rim along a faceted wall.
RIM_SPACINGS = 1.0


@dataclass(frozen=True)
class WallHits:
    """Where p links first meet the wall.

    `fraction` (p,) of the link, NaN where it meets none; `normal` (p, 3) unit, out of the fluid; `iolet` (p,) the
    iolet whose opening this piece of surface closes, -1 for a true wall.
    """

    fraction: Floats
    normal: Floats
    iolet: npt.NDArray[np.int16]


@dataclass(frozen=True)
class Dropped:
    """A connected part that was left out because no iolet opens into it (`center` in metres)."""

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
        positions: Floats = np.asarray(self.origin) + self.spacing * self.coords[rows]
        return positions

    def keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the number (n,) of each node in the box with a layer around it, ascending, and that of a step (3,)."""
        _, ny, nz = (extent + 2 for extent in self.shape)
        strides = np.array([ny * nz, nz, 1], np.int64)
        keys = (self.coords[:, 0] + np.int64(1)) * strides[0]
        keys += (self.coords[:, 1] + np.int64(1)) * strides[1]
        keys += self.coords[:, 2] + np.int64(1)
        return keys, strides

    def keep(self, flags: npt.NDArray[np.bool_]) -> CandidateNodes:
        """Return the lattice with only the nodes flagged in `flags` (n,)."""
        return CandidateNodes(self.shape, self.coords[flags], self.spacing, self.origin, self.periodic)

    def trimmed(self) -> CandidateNodes:
        """Return the same nodes in the smallest box that holds them, with the origin moved; periodic axes stay."""
        if not len(self.coords):
            return self
        free = ~np.array(self.periodic)
        low = np.where(free, self.coords.min(axis=0), 0)
        size = np.where(free, self.coords.max(axis=0) - low + 1, self.shape)
        origin = np.asarray(self.origin) + self.spacing * low
        shape = (int(size[0]), int(size[1]), int(size[2]))
        place = (float(origin[0]), float(origin[1]), float(origin[2]))
        return CandidateNodes(shape, (self.coords - low).astype(np.int32), self.spacing, place, self.periodic)


#: Called with the lattice, the nodes (p,) that links leave and their directions (p,).
WallFinder = Callable[[CandidateNodes, npt.NDArray[np.int64], npt.NDArray[np.int64]], WallHits]


@dataclass(frozen=True)
class Crossings:
    """Links that a disc cuts: node, direction, fraction, iolet, and whether the node is on the fluid side."""

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
) -> tuple[SiteSet, list[Dropped], int]:
    """Return the sites, the parts that were dropped and the number of links that met neither wall nor disc.

    Those links get the fraction 1/2. With `prune`, connected parts without an iolet are left out; with `trim`, the
    box shrinks to the sites that remain. Raises CaseError for an iolet that touches no site and for a site that two
    iolets touch.
    """
    for plane in iolets:
        lattice = lattice.keep(~_on_disc(lattice, plane))
    dropped: list[Dropped] = []
    crossings = _crossings(lattice, iolets)
    if prune and iolets:
        roots = crossings.node[crossings.front]
        if len(np.unique(crossings.iolet[crossings.front])) < len(iolets):  # a vessel may end just before its plane
            everything = _link(lattice, iolets, crossings, find_walls)[0]
            _refuse_untouched(everything)
            roots = everything.boundary[(everything.link_iolet >= 0).any(axis=1)]
        keep, dropped = _reachable(lattice, crossings, roots)
        lattice = lattice.keep(keep)
        crossings = _crossings(lattice, iolets)
    sites, unresolved = _link(lattice.trimmed() if trim else lattice, iolets, crossings, find_walls)
    _refuse_untouched(sites)
    _refuse_shared_sites(sites)
    return sites, dropped, unresolved


def _signed_and_radial(lattice: CandidateNodes, plane: IoletPlane) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the nodes near the disc of `plane`, height over it and offset (p, 3) from its center in spacings."""
    normal = np.asarray(plane.normal)
    ground = float(np.dot(np.asarray(lattice.origin) - plane.center, normal)) / lattice.spacing
    heights = lattice.coords @ normal + ground
    near = np.flatnonzero(np.abs(heights) <= np.sqrt(3.0) + TOUCHING)
    height = heights[near]
    height[np.abs(height) < TOUCHING * max(lattice.shape)] = 0.0
    offset = (lattice.positions(near) - plane.center) / lattice.spacing
    close = np.linalg.norm(offset, axis=1) <= _reach(lattice, plane) + 2.0
    return near[close], height[close], offset[close]


def _reach(lattice: CandidateNodes, plane: IoletPlane) -> float:
    return np.inf if plane.radius is None else plane.radius / lattice.spacing + RIM_SPACINGS


def _on_disc(lattice: CandidateNodes, plane: IoletPlane) -> npt.NDArray[np.bool_]:
    """Flag the nodes that lie on the disc itself: the fluid ends there."""
    near, height, offset = _signed_and_radial(lattice, plane)
    flags = np.zeros(len(lattice.coords), bool)
    flags[near[(height == 0.0) & (np.linalg.norm(offset, axis=1) <= _reach(lattice, plane))]] = True
    return flags


def _crossings(lattice: CandidateNodes, iolets: Sequence[IoletPlane]) -> Crossings:
    """Find every link that passes through the disc of an iolet; where two discs cut one link, both are listed."""
    found: list[tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.bool_], int, int]] = []
    for index, plane in enumerate(iolets):
        near, height, offset = _signed_and_radial(lattice, plane)
        for k, vector in enumerate(LINK_VECTORS):
            end = height + float(np.dot(plane.normal, vector))
            end[np.abs(end) < TOUCHING * max(lattice.shape)] = 0.0
            rows = np.flatnonzero(((height > 0.0) & (end <= 0.0)) | ((height < 0.0) & (end > 0.0)))
            fraction = height[rows] / (height[rows] - end[rows])
            hit = offset[rows] + fraction[:, None] * vector
            inside = np.linalg.norm(hit, axis=1) <= _reach(lattice, plane)
            rows, fraction = rows[inside], fraction[inside]
            found.append((near[rows], fraction, height[rows] > 0.0, k, index))
    if not found:
        nothing = np.zeros(0, np.int64)
        return Crossings(nothing, nothing, np.zeros(0), nothing, np.zeros(0, bool))
    counts = [len(item[0]) for item in found]
    return Crossings(
        np.concatenate([item[0] for item in found]),
        np.repeat(np.array([item[3] for item in found]), counts),
        np.concatenate([item[1] for item in found]),
        np.repeat(np.array([item[4] for item in found]), counts),
        np.concatenate([item[2] for item in found]),
    )


def _reachable(
    lattice: CandidateNodes, crossings: Crossings, roots: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], list[Dropped]]:
    """Flag the nodes that are connected to one of `roots` through uncut axis and edge links."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    run, joined = _runs(lattice, crossings)
    count = int(run[-1]) + 1
    graph = coo_array((np.ones(len(joined), np.int8), (joined // count, joined % count)), shape=(count, count))
    _, label_of_run = connected_components(graph, directed=False)
    label = label_of_run[run]
    wanted_labels = np.unique(label[roots])
    keep = np.isin(label, wanted_labels)
    dropped: list[Dropped] = []
    for part in np.unique(label[~keep]):
        rows = np.flatnonzero(label == part) if len(dropped) < 100 else np.zeros(0, np.int64)
        if len(rows):
            x, y, z = lattice.positions(rows).mean(axis=0)
            dropped.append(Dropped(len(rows), (float(x), float(y), float(z))))
    return keep, sorted(dropped, key=lambda part: -part.sites)


def _runs(lattice: CandidateNodes, crossings: Crossings) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the run of every node, and which runs an uncut axis or edge link joins (lower * number of runs + higher).

    A run is a row of nodes along z whose links are not cut: there are far fewer of them than nodes.
    """
    keys, strides = lattice.keys()
    begins = np.ones(len(keys), bool)
    begins[1:] = np.diff(keys) != 1
    along = crossings.node[crossings.direction == 13] + 1  # the link to the next node along z
    begins[along[along < len(keys)]] = True
    run = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    count = int(run[-1]) + 1
    found = [np.zeros(0, np.int64)]
    for k in range(14, 26):
        if np.abs(LINK_VECTORS[k]).sum() == 3:
            continue
        cut = np.zeros(len(keys), bool)
        cut[crossings.node[crossings.direction == k]] = True
        step = int(LINK_VECTORS[k].astype(np.int64) @ strides)
        for first in range(0, len(keys), CHUNK):
            wanted = keys[first : first + CHUNK] + step
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            start = np.flatnonzero((keys[place] == wanted) & ~cut[first : first + CHUNK])
            pairs = run[first + start].astype(np.int64) * count + run[place[start]]
            # Neighbours along z mostly join the same two runs.
            found.append(pairs[np.flatnonzero(np.diff(pairs, prepend=-1))])
    return run, np.unique(np.concatenate(found))


def _link(
    lattice: CandidateNodes, iolets: Sequence[IoletPlane], crossings: Crossings, find_walls: WallFinder
) -> tuple[SiteSet, int]:
    """Classify every link that leaves the fluid by what it meets first."""
    node = crossings.node
    lacking, lacks = boundary_links(lattice.shape, lattice.coords, lattice.periodic)
    boundary = np.union1d(lacking, node)
    cut = np.zeros((len(boundary), 26), bool)
    cut[np.searchsorted(boundary, lacking)] = lacks
    disc_fraction = np.full((len(boundary), 26), np.inf)
    disc = np.full((len(boundary), 26), -1, np.int16)
    nearest_last = np.argsort(-crossings.fraction, kind="stable")  # the nearest disc is written last and stays
    rows, directions = np.searchsorted(boundary, node[nearest_last]), crossings.direction[nearest_last]
    disc_fraction[rows, directions] = crossings.fraction[nearest_last]
    disc[rows, directions] = np.where(crossings.front, crossings.iolet, -1)[nearest_last]
    cut |= np.isfinite(disc_fraction)

    row, k = np.nonzero(cut)
    hits = find_walls(lattice, boundary[row], k)
    met = np.isfinite(hits.fraction)
    through = disc_fraction[row, k]
    disc_first = np.isfinite(through) & (~met | (through <= np.where(met, hits.fraction, 0.0) + SMALLEST_FRACTION))
    iolet = np.where(disc_first, disc[row, k], np.where(met, hits.iolet, -1)).astype(np.int16)
    fraction: Floats = np.where(disc_first, through, np.where(met, hits.fraction, 0.5))
    kind_of = np.append(role_kinds(iolets), np.uint8(LinkKind.WALL))  # the index -1 finds the wall

    shape = (len(boundary), 26)
    link_kind, link_iolet = np.zeros(shape, np.uint8), np.full(shape, -1, np.int16)
    link_fraction = np.zeros(shape, np.float32)
    link_kind[row, k], link_iolet[row, k] = kind_of[iolet], iolet
    link_fraction[row, k] = np.clip(fraction, SMALLEST_FRACTION, 1.0)
    on_wall = met & ~disc_first & (iolet < 0)
    normals = _wall_normals(row, k, len(boundary), hits, on_wall=on_wall, fraction=fraction)
    if np.any(unset := ~normals.any(axis=1)):  # no wall link of the site found the surface
        normals[unset] = _unit(wall_direction(link_kind[unset]))
    sites = SiteSet(
        lattice.shape, lattice.coords, lattice.spacing, lattice.origin, lattice.periodic,
        boundary, link_kind, link_iolet, link_fraction, normals, tuple(iolets),
    )  # fmt: skip
    return sites, int(np.count_nonzero(~disc_first & ~met))


def _wall_normals(
    row: npt.NDArray[np.int64],
    direction: npt.NDArray[np.int64],
    count: int,
    hits: WallHits,
    *,
    on_wall: npt.NDArray[np.bool_],
    fraction: Floats,
) -> npt.NDArray[np.float32]:
    """Return the mean (count, 3), unit or zero, of the normals that a site's wall links hit; nearer hits weigh more."""
    vectors = LINK_VECTORS[direction]
    length = np.maximum(fraction, SMALLEST_FRACTION) * np.linalg.norm(vectors, axis=1)
    total = np.zeros((count, 3))
    for axis in range(3):
        weighted = np.where(on_wall, hits.normal[:, axis] / length, 0.0)
        total[:, axis] = np.bincount(row, weights=weighted, minlength=count)
    return _unit(total)


def _unit(vectors: Floats) -> npt.NDArray[np.float32]:
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: npt.NDArray[np.float32] = (vectors / np.where(size > 0.0, size, 1.0)).astype(np.float32)
    return scaled


def _refuse_untouched(sites: SiteSet) -> None:
    """Raise CaseError when an iolet has no link."""
    touched = np.unique(sites.link_iolet)
    for index, plane in enumerate(sites.iolets):
        if index not in touched:
            raise CaseError(f'iolet "{plane.name}" touches no site: check its center, normal and radius')


def _refuse_shared_sites(sites: SiteSet) -> None:
    """Raise CaseError when the links of one site meet two iolets: no boundary condition could serve both."""
    last = np.iinfo(np.int16).max
    highest = sites.link_iolet.max(axis=1, initial=-1)
    lowest = np.where(sites.link_iolet >= 0, sites.link_iolet, np.int16(last)).min(axis=1, initial=last)
    shared = np.flatnonzero((highest >= 0) & (lowest < highest))
    if len(shared):
        first, second = (sites.iolets[index[shared[0]]].name for index in (lowest, highest))
        x, y, z = sites.coords[sites.boundary[shared[0]]]
        place = np.asarray(sites.origin) + sites.spacing * np.array([x, y, z])
        where = ", ".join(f"{value:.6g}" for value in place)
        raise CaseError(
            f'the iolets "{first}" and "{second}" both touch the site ({x}, {y}, {z}) at ({where}) m: move them apart'
        )
