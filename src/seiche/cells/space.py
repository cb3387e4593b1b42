# SPDX-License-Identifier: BSD-3-Clause
"""Fluid of a lattice as a space for packing cells, for vessels of any geometry.

Lengths are in spacings, and coordinates are those of the sites. The cut links of the sites define the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads
from seiche.domain.rows import first_occurrences
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet

Floats = npt.NDArray[np.float64]

#: Distance returned if there is no wall.
_FAR = 1e30
#: Distance from the wall up to which its normal determines the side; beyond it, the nearest site does.
_NEAR = 1.0
#: Distances below _EXACT are exact. Larger distances are measured from one wall point in each cube with edge _COARSE,
#: with a relative error of up to _ROUGH.
_EXACT, _COARSE, _ROUGH = 3.0, 3.0, 0.1
#: Extent of an opening around its axis: _EXTENT times its radius, plus _EXTENT_SITES spacings.
_EXTENT, _EXTENT_SITES = 1.3, 2.0
#: Approximate distance between wall points with contact forces.
POINT_SPACING = 0.75
#: Number of points per query; several queries run in parallel.
_BATCH = 10_000
#: Number of sites that are sampled to determine the largest sphere in a vessel.
_SAMPLES = 20_000


class FluidSpace:
    """The space of the fluid sites, one cube of volume 1 each.

    If `closed`, openings are treated as walls, which no cell crosses. `free` are the depths (spacings) of layers behind
    openings, by name, that are excluded from the space.
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
        lower_corner = self._sites.coords.min(axis=0) - 0.5
        return np.where(self._sites.periodic, 0.0, lower_corner)

    @cached_property
    def high(self) -> Floats:
        """Return the upper corner."""
        upper_corner = self._sites.coords.max(axis=0) + 0.5
        return np.where(self._sites.periodic, self._lengths, upper_corner)

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return the periodic axes."""
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
    def _coarse(self) -> tuple[npt.NDArray[np.int64], Any]:
        rows = first_occurrences(np.floor(self.points / _COARSE).astype(np.int64))
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
        distance = self._from_wall(points)
        for plane, depth in self._layers:
            distance = np.maximum(distance, depth - heights(self._sites, plane, points))
        return distance

    def beyond(self, points: Floats, limit: float) -> npt.NDArray[np.bool_]:
        """Return flags of points (n, 3) that are more than `limit` >= 0 outside; fast for points far from walls."""
        rows = self._find(np.floor(self._wrapped(points) + 0.5).astype(np.int64))
        uncertain = np.flatnonzero((rows < 0) | self._cut[rows] if not self._layers else np.ones(len(points), bool))
        is_outside = np.zeros(len(points), bool)
        if len(uncertain):
            is_outside[uncertain] = self.distance(points[uncertain]) > limit
        return is_outside

    @cached_property
    def _cut(self) -> npt.NDArray[np.bool_]:
        """Return flags of the sites that have a cut link."""
        is_cut = np.zeros(len(self._sites), bool)
        is_cut[self._sites.boundary] = True
        return is_cut

    def _from_wall(self, points: Floats) -> Floats:
        if not len(self.points):
            return np.full(len(points), -_FAR)
        wrapped = self._wrapped(points)
        # In the center of a round vessel, all wall points have the same distance, and an exact search would be slow.
        rows, coarse = self._coarse
        distance, nearest = _nearest(coarse, wrapped, _ROUGH)
        nearest = rows[nearest]
        near_rows = np.flatnonzero(distance < (1 + _ROUGH) * (_EXACT + 2 * _COARSE))
        distance[near_rows], nearest[near_rows] = _nearest(self._tree, wrapped[near_rows])
        offset = wrapped - self._wrapped(self.points[nearest])
        offset -= np.where(self._lengths > 0, self._lengths * np.round(offset / np.maximum(self._lengths, 1.0)), 0.0)
        height = np.einsum("ij,ij->i", offset, self._outwards[nearest])
        inside = self._find(np.floor(wrapped + 0.5).astype(np.int64)) >= 0
        return np.asarray(np.where(distance < _NEAR, height, np.where(inside, -distance, distance)))

    def may_fit(self, half_axes: Floats) -> bool:
        """Return whether a cell fits into the bounding box, and its smallest half axis into the largest sphere."""
        extent = np.sort(0.5 * (self.high - self.low))
        return bool((extent >= half_axes).all() and half_axes[0] <= self._largest_sphere)

    @cached_property
    def _largest_sphere(self) -> float:
        coords = self._sites.coords
        sample = coords[:: max(1, len(coords) // _SAMPLES)].astype(np.float64)
        return 1.0 - float(self.distance(sample).min())


def _nearest(tree: Any, points: Floats, tolerance: float = 0.0) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the distance and the row of the nearest point of a tree for points (n, 3), with a relative `tolerance`."""
    distance, nearest = np.empty(len(points)), np.empty(len(points), np.int64)

    def query(begin: int) -> None:
        batch = slice(begin, begin + _BATCH)
        distance[batch], nearest[batch] = tree.query(points[batch], eps=tolerance)

    begins = range(0, len(points), _BATCH)
    if len(begins) > 1:
        on_threads(query, begins)
    else:
        query(0)
    return distance, nearest


def heights(sites: SiteSet, plane: IoletPlane, points: Floats) -> Floats:
    """Return the heights of points (..., 3) behind an opening, infinite outside its extent.

    Points more than a few spacings in front of the opening belong to another part of the vessel; their heights are also
    infinite.
    """
    offset = points - (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
    axial = offset @ np.asarray(plane.normal)
    height = np.where(axial > -_EXTENT_SITES, axial, np.inf)
    if plane.radius is None:
        return height
    radial = np.linalg.norm(offset - axial[..., None] * np.asarray(plane.normal), axis=-1)
    return np.where(radial < _EXTENT * plane.radius / sites.spacing + _EXTENT_SITES, height, np.inf)


def wall_points(sites: SiteSet, *, openings: bool = False) -> tuple[Floats, Floats]:
    """Return the points (n, 3) where the wall cuts links, and unit vectors (n, 3) out of the fluid at these points.

    With `openings`, the points of inlets and outlets are included. Points that several sites share are returned once.
    """
    kinds = [LinkKind.WALL, LinkKind.INLET, LinkKind.OUTLET] if openings else [LinkKind.WALL]
    row, link = np.nonzero(np.isin(sites.link_kind, kinds))
    if not len(row):
        return np.zeros((0, 3)), np.zeros((0, 3))
    vectors = LINK_VECTORS[link].astype(np.float64)
    points = sites.coords[sites.boundary[row]] + sites.link_fraction[row, link].astype(np.float64)[:, None] * vectors
    sums = np.zeros((len(sites.boundary), 3))
    np.add.at(sums, row, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    has_normal = np.linalg.norm(sites.wall_normal, axis=1) > 0.5
    at_opening = np.isin(sites.link_kind, kinds[1:]).any(axis=1) if openings else np.zeros(len(has_normal), bool)
    outwards = np.where((has_normal & ~at_opening)[:, None], sites.wall_normal, sums)[row]
    length = np.linalg.norm(outwards, axis=1, keepdims=True)
    outwards = np.where(length > 1e-9, outwards / np.maximum(length, 1e-9), vectors)
    first = first_occurrences(np.round(points * 64).astype(np.int64))
    return points[first], np.asarray(outwards[first], np.float64)


def sparse_points(points: Floats) -> Floats:
    """Return the wall points nearest to the center of each cube of POINT_SPACING, a subset of `points` (n, 3).

    Their distance is less than two spacings, which suffices for a force with a reach of one site.
    """
    if not len(points):
        return points
    cubes = np.floor(points / POINT_SPACING).astype(np.int64)
    squared = ((points / POINT_SPACING - cubes - 0.5) ** 2).sum(axis=1)
    order = np.lexsort((squared, *cubes.T[::-1]))
    return np.asarray(points[np.sort(order[first_occurrences(cubes[order])])])
