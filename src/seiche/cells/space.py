# SPDX-License-Identifier: BSD-3-Clause
"""The fluid of a lattice as a space that cells are packed into: any vessel, whatever its geometry was made from.

Lengths in spacings, coordinates those of the sites. The wall is where the links of the sites are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads
from seiche.domain.rows import first_of_each
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet

Floats = npt.NDArray[np.float64]

#: Chosen such that nothing within it is ever near the wall.
_FAR = 1e30
#: Nearer than this to the wall the side is told by its normal, farther by the nearest site.
_NEAR = 1.0
#: Nearer than this distances are exact, farther they are those from one point in each cube of this edge, up to a part.
_EXACT, _COARSE, _ROUGH = 3.0, 3.0, 0.1
#: What is farther than these parts of its radius, and these spacings more, from the axis of an opening is beside it.
_BESIDE, _SITES_BESIDE = 1.3, 2.0
#: Points of a wall that push cells are about so far apart.
POINT_SPACING = 0.75
#: So many points are looked up at once; of more than these by all threads.
_MANY = 10_000
#: Sites at which the widest place of a vessel is looked for.
_SAMPLES = 20_000


class FluidSpace:
    """The space that the fluid sites take up, one cube of volume 1 each.

    `closed` says whether openings count as walls: no cell is then put across them. A layer behind each opening that
    `free` names is not a part of the space either; its depth is in spacings.
    """

    def __init__(self, sites: SiteSet, *, closed: bool = True, free: Mapping[str, float] | None = None) -> None:
        """Find the points of the wall."""
        self._sites = sites
        self._layers = [(plane, free[plane.name]) for plane in sites.iolets if free and plane.name in free]
        self.points, self._outwards = wall_points(sites, openings=closed)
        self._lengths = np.where(sites.periodic, np.asarray(sites.shape, np.float64), 0.0)

    @cached_property
    def low(self) -> Floats:
        """Return the lower corner of the box around the fluid."""
        lowest = self._sites.coords.min(axis=0) - 0.5
        return np.where(self._sites.periodic, 0.0, lowest)

    @cached_property
    def high(self) -> Floats:
        """Return the upper corner."""
        highest = self._sites.coords.max(axis=0) + 0.5
        return np.where(self._sites.periodic, self._lengths, highest)

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return the axes along which the lattice repeats itself."""
        return self._sites.periodic

    @property
    def volume(self) -> float:
        """Return the number of sites."""
        return float(len(self._sites))

    @cached_property
    def _find(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        return self._sites.finder()

    @cached_property
    def _tree(self) -> Any:
        return self._tree_of(self.points)

    @cached_property
    def _some(self) -> tuple[npt.NDArray[np.int64], Any]:
        rows = first_of_each(np.floor(self.points / _COARSE).astype(np.int64))
        return rows, self._tree_of(self.points[rows])

    def _tree_of(self, points: Floats) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._wrapped(points), boxsize=self._lengths)

    def _wrapped(self, points: Floats) -> Floats:
        lengths = self._lengths
        wrapped = np.where(lengths > 0, np.mod(points, np.maximum(lengths, 1.0)), points)
        return np.where((lengths > 0) & (wrapped >= lengths), 0.0, wrapped)  # rounding may reach the length itself

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) from the wall, negative inside."""
        found = self._from_wall(points)
        for plane, depth in self._layers:
            found = np.maximum(found, depth - heights(self._sites, plane, points))
        return found

    def beyond(self, points: Floats, limit: float) -> npt.NDArray[np.bool_]:
        """Tell which points (n, 3) are more than `limit`, 0 or more, outside: soon, as most are far from any wall."""
        rows = self._find(np.floor(self._wrapped(points) + 0.5).astype(np.int64))
        unclear = np.flatnonzero((rows < 0) | self._cut[rows] if not self._layers else np.ones(len(points), bool))
        found = np.zeros(len(points), bool)
        if len(unclear):
            found[unclear] = self.distance(points[unclear]) > limit
        return found

    @cached_property
    def _cut(self) -> npt.NDArray[np.bool_]:
        """Which sites have a link that is cut."""
        cut = np.zeros(len(self._sites), bool)
        cut[self._sites.boundary] = True
        return cut

    def _from_wall(self, points: Floats) -> Floats:
        if not len(self.points):
            return np.full(len(points), -_FAR)
        wrapped = self._wrapped(points)
        # In the middle of a round vessel all of the wall is equally far: there some of its points will do.
        rows, coarse = self._some
        far, nearest = _nearest(coarse, wrapped, _ROUGH)
        nearest = rows[nearest]
        close = np.flatnonzero(far < (1 + _ROUGH) * (_EXACT + 2 * _COARSE))
        far[close], nearest[close] = _nearest(self._tree, wrapped[close])
        between = wrapped - self._wrapped(self.points[nearest])
        between -= np.where(self._lengths > 0, self._lengths * np.round(between / np.maximum(self._lengths, 1.0)), 0.0)
        height = np.einsum("ij,ij->i", between, self._outwards[nearest])
        inside = self._find(np.floor(wrapped + 0.5).astype(np.int64)) >= 0
        return np.asarray(np.where(far < _NEAR, height, np.where(inside, -far, far)))

    def has_room(self, half_axes: Floats) -> bool:
        """Compare with the box around the fluid and with the largest sphere inside."""
        extent = np.sort(0.5 * (self.high - self.low))
        return bool((extent >= half_axes).all() and half_axes[0] <= self._largest_sphere)

    @cached_property
    def _largest_sphere(self) -> float:
        coords = self._sites.coords
        some = coords[:: max(1, len(coords) // _SAMPLES)].astype(np.float64)
        return 1.0 - float(self.distance(some).min())


def _nearest(tree: Any, points: Floats, rough: float = 0.0) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the distances of points (n, 3) from the nearest of a tree, and which it is; up to a part for `rough`."""
    distance, nearest = np.empty(len(points)), np.empty(len(points), np.int64)

    def look_up(begin: int) -> None:
        some = slice(begin, begin + _MANY)
        distance[some], nearest[some] = tree.query(points[some], eps=rough)

    begins = range(0, len(points), _MANY)
    if len(begins) > 1:
        on_threads(look_up, begins)
    else:
        look_up(0)
    return distance, nearest


def heights(sites: SiteSet, plane: IoletPlane, points: Floats) -> Floats:
    """Return how far points (..., 3) among the sites are behind an opening, infinite for those beside it or before it.

    What is more than a few spacings before the opening is in another part of the vessel.
    """
    offset = points - (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
    along = offset @ np.asarray(plane.normal)
    height = np.where(along > -_SITES_BESIDE, along, np.inf)
    if plane.radius is None:
        return height
    aside = np.linalg.norm(offset - along[..., None] * np.asarray(plane.normal), axis=-1)
    return np.where(aside < _BESIDE * plane.radius / sites.spacing + _SITES_BESIDE, height, np.inf)


def wall_points(sites: SiteSet, *, openings: bool = False) -> tuple[Floats, Floats]:
    """Return where links are cut by the wall, (n, 3), and the directions out of the fluid there, unit vectors (n, 3).

    With `openings` also where they are cut by inlets and outlets. Each point is there once: neighbouring sites share
    some.
    """
    kinds = [LinkKind.WALL, LinkKind.INLET, LinkKind.OUTLET] if openings else [LinkKind.WALL]
    row, link = np.nonzero(np.isin(sites.link_kind, kinds))
    if not len(row):
        return np.zeros((0, 3)), np.zeros((0, 3))
    vectors = LINK_VECTORS[link].astype(np.float64)
    places = sites.coords[sites.boundary[row]] + sites.link_fraction[row, link].astype(np.float64)[:, None] * vectors
    sums = np.zeros((len(sites.boundary), 3))
    np.add.at(sums, row, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    known = np.linalg.norm(sites.wall_normal, axis=1) > 0.5
    plain = np.isin(sites.link_kind, kinds[1:]).any(axis=1) if openings else np.zeros(len(known), bool)
    outwards = np.where((known & ~plain)[:, None], sites.wall_normal, sums)[row]
    length = np.linalg.norm(outwards, axis=1, keepdims=True)
    outwards = np.where(length > 1e-9, outwards / np.maximum(length, 1e-9), vectors)
    first = first_of_each(np.round(places * 64).astype(np.int64))
    return places[first], np.asarray(outwards[first], np.float64)


def sparse_points(points: Floats) -> Floats:
    """Return some of the points (n, 3) of a wall: the one nearest the middle of each cube of POINT_SPACING.

    Enough for a force that reaches one site: what is left is less than two spacings apart.
    """
    if not len(points):
        return points
    cubes = np.floor(points / POINT_SPACING).astype(np.int64)
    beside = ((points / POINT_SPACING - cubes - 0.5) ** 2).sum(axis=1)
    order = np.lexsort((beside, *cubes.T[::-1]))
    return np.asarray(points[np.sort(order[first_of_each(cubes[order])])])
