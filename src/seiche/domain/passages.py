# SPDX-License-Identifier: BSD-3-Clause
"""Passages of a vessel: the narrowest one between its openings, and the straight part behind each opening.

Both are computed from at most 30,000 sites on a coarser lattice. The distance of a site from the wall is that from
the nearest cut of a link, increased by at most one step of this lattice towards the middle of the vessel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import host_threads
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

#: Maximum number of sites that are examined.
_MAX_NODES = 30_000
#: Minimum width, in steps of the coarser lattice, that this lattice resolves.
_MIN_WIDTH = 3.0
#: Points of a leaf of the tree of the wall; with fewer, searches in the middle of tubes take longer.
_LEAF = 64
#: Depth, in radii of an opening, up to which the vessel behind it is examined, and sideways.
REACH, _SIDEWAYS = 6.0, 2.5
#: Shift of a cross-section, in radii, and ratios of its area to that at the opening, at a bend or a branch.
_SHIFT, _SMALLER, _LARGER = 0.25, 0.7, 1.4
#: Half thickness of a cross-section in radii.
_SLAB = 0.25
#: Minimum radius, in steps of the coarser lattice, that can be examined.
_MIN_RADIUS = 2.5


@dataclass(frozen=True)
class Passage:
    """The narrowest passage: its width and a position in it, in m."""

    width: float
    position: tuple[float, float, float]


class Passages:
    """The sites of a vessel on a coarser lattice, with their distances from the wall."""

    def __init__(self, sites: SiteSet) -> None:
        """Choose the sites of the coarser lattice."""
        self._sites, self.step = sites, 1
        while len(sites) / self.step**3 > _MAX_NODES:
            self.step += 1
        coords = sites.coords
        for axis in range(3 if self.step > 1 else 0):
            coords = coords[coords[:, axis] % self.step == 0]
        self.coords = coords.astype(np.int64)

    @cached_property
    def distances(self) -> Floats:
        """Return the distances from the wall in spacings, infinite without a wall, (n,)."""
        tree, points = self._wall()
        if tree is None:
            return np.full(len(self.coords), np.inf)
        positions, threads = self.coords.astype(np.float64), host_threads()
        distance, nearest = tree.query(positions, workers=threads)
        for part in (0.5, 0.25, 0.25):
            offset = positions - points[nearest]
            moved = positions + part * self.step * offset / np.maximum(distance, 1e-9)[:, None]
            farther, nearest_to_moved = tree.query(moved, workers=threads)
            better = farther > distance
            positions[better], distance[better] = moved[better], farther[better]
            nearest[better] = nearest_to_moved[better]
        return np.asarray(distance)

    def _wall(self) -> tuple[Any, Floats]:
        """Return a tree of the cuts of links by the wall, None without any, and their positions in spacings."""
        from scipy.spatial import cKDTree

        sites = self._sites
        stride = self.step**2  # boundary sites about one step apart
        rows, links = np.nonzero(sites.link_kind[::stride] == LinkKind.WALL)
        fraction = sites.link_fraction[::stride][rows, links].astype(np.float64)
        fraction[fraction <= 0] = 0.5
        points = sites.coords[sites.boundary[::stride][rows]] + fraction[:, None] * LINK_VECTORS[links]
        return (cKDTree(points, leafsize=_LEAF) if len(points) else None), points

    @cached_property
    def _edges(self) -> tuple[Indices, Indices]:
        """Return pairs of neighbours on the coarser lattice with no wall between them."""
        shape = np.array(self._sites.shape, np.int64) // self.step + 3
        keys = np.ravel_multi_index(list((self.coords // self.step + 1).T), shape)
        order = np.argsort(keys)
        first, second = [], []
        for vector in LINK_VECTORS[13:]:
            other = keys + (vector[0] * shape[1] + vector[1]) * shape[2] + vector[2]
            row = np.minimum(np.searchsorted(keys, other, sorter=order), len(keys) - 1)
            neighbours = np.nonzero(keys[order[row]] == other)[0]
            target = order[row[neighbours]]
            length = self.step * float(np.linalg.norm(vector))
            free = self.distances[neighbours] + self.distances[target] >= length * (1 - 1e-6)
            first.append(neighbours[free])
            second.append(target[free])
        return np.concatenate(first), np.concatenate(second)

    def _components(self, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Return the number of the connected part of each site, -1 for those that are not `used`."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        first, second = self._edges
        both_used, rows = used[first] & used[second], np.cumsum(used) - 1
        pairs, count = (rows[first[both_used]], rows[second[both_used]]), int(used.sum())
        graph = coo_array((np.ones(len(pairs[0]), np.int8), pairs), shape=(count, count))
        part = np.full(len(self.coords), -1, np.int32)
        _, part[used] = connected_components(graph, directed=False)
        return part

    @cached_property
    def ends(self) -> list[Indices]:
        """Return the sites at each opening; in a periodic vessel without several openings, those at two ends."""
        from scipy.spatial import cKDTree

        sites, ends = self._sites, []
        for number in range(len(sites.iolets)):
            rows = np.nonzero((sites.link_iolet == number).any(1))[0]
            near_sites = np.zeros(0, np.int64)
            if len(rows):
                distance, _ = cKDTree(sites.coords[sites.boundary[rows]]).query(self.coords, workers=host_threads())
                near_sites = np.nonzero(distance <= 2 * self.step)[0]
            ends.append(near_sites)
        if len(ends) < 2 and any(sites.periodic):
            periodic_coordinate = self.coords[:, sites.periodic.index(True)]
            ends = [
                np.nonzero(periodic_coordinate <= periodic_coordinate.min())[0],
                np.nonzero(periodic_coordinate >= periodic_coordinate.max())[0],
            ]
        return ends

    def narrowest(self) -> Passage | None:
        """Return the narrowest part of the widest path that connects all ends.

        None if they are not connected, or if the coarser lattice does not resolve it.
        """
        ends, distances = [end for end in self.ends if len(end)], self.distances
        if len(ends) < 2 or not np.isfinite(distances).all():
            return None

        def connected(min_distance: float) -> bool:
            part = self._components(distances >= min_distance)
            parts = [set(part[end].tolist()) - {-1} for end in ends]
            return bool(set.intersection(*parts))

        values = np.unique(distances)
        low, high = 0, len(values)
        if not connected(values[0]):
            return None
        while high - low > 1:  # connected at values[low], not at values[high]
            middle = (low + high) // 2
            low, high = (middle, high) if connected(values[middle]) else (low, middle)
        if self.step > 1 and 2.0 * values[low] < _MIN_WIDTH * self.step:
            return None
        position = self._sites.spacing * self.coords[int(np.argmin(abs(distances - values[low])))] + self._sites.origin
        return Passage(2.0 * self._sites.spacing * float(values[low]), tuple(position.tolist()))

    def straight(self, number: int) -> float | None:
        """Return the depth, in radii, of the first bend, branch or change of width behind an opening, at most `REACH`.

        It is `REACH` if there is none, and None if another opening is nearer or the radius is too small.
        """
        sites, plane = self._sites, self._sites.iolets[number]
        radius = (plane.radius or 0.0) / sites.spacing
        if radius < _MIN_RADIUS * self.step or not len(self.ends[number]):
            return None
        center = (np.array(plane.center) - sites.origin) / sites.spacing
        offset = self.coords - center
        depth = offset @ np.array(plane.normal)
        lateral = offset - depth[:, None] * np.array(plane.normal)
        is_near = (depth >= -self.step) & (np.linalg.norm(lateral, axis=1) <= _SIDEWAYS * radius)
        limit = min(
            (float(depth[end][is_near[end]].min(initial=np.inf)) for end in self._others(number)), default=np.inf
        )
        half = self.step * max(2.0, np.ceil(_SLAB * radius / self.step))  # whole steps: equal sums along the lattice
        first = 0.0
        for section_depth in np.arange(half, REACH * radius, 0.5 * half):
            if section_depth + half >= limit - self.step:
                return None
            # Sites connected only through deeper parts, such as those of another branch, are excluded.
            part = self._components(is_near & (depth <= section_depth + half))
            reached = np.isin(part, part[self.ends[number]]) & (part >= 0)
            weights = np.maximum(0.0, 1.0 - np.abs(depth[reached] - section_depth) / half)
            area = float(weights.sum())
            first = first or area
            shift = np.linalg.norm(weights @ lateral[reached]) / max(area, 1e-9) / radius
            if shift > _SHIFT or not _SMALLER * first <= area <= _LARGER * first:
                return float(section_depth) / radius
        return REACH

    def _others(self, number: int) -> list[Indices]:
        """Return the sites at all openings but one."""
        return [end for other, end in enumerate(self.ends) if other != number]
