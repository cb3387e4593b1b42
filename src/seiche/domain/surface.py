# SPDX-License-Identifier: BSD-3-Clause
"""Triangulated surfaces: area, volume, open rims, clipping at a plane, capping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bounds(points: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper corner (..., 3) of the boxes around points (..., n, 3).

    Evaluated by component, which is ten times faster in numpy than over triples.
    """
    xyz = [points[..., axis] for axis in range(3)]
    return np.stack([x.min(axis=-1) for x in xyz], axis=-1), np.stack([x.max(axis=-1) for x in xyz], axis=-1)


def along_axis(points: Floats, axis: Floats) -> Floats:
    """Return the products (n,) of points (n, d) with a vector (d,).

    Each one is the same for any n, which a product of matrices does not ensure.
    """
    result = points[:, 0] * axis[0]
    for k in range(1, len(axis)):
        result += points[:, k] * axis[k]
    return np.asarray(result)


def in_box(points: Floats, low: Floats, high: Floats) -> npt.NDArray[np.bool_]:
    """Return flags of the points (..., 3) in a box or on its faces."""
    x, y, z = ((points[..., axis] >= low[axis]) & (points[..., axis] <= high[axis]) for axis in range(3))
    return np.asarray(x & y & z)


@dataclass(frozen=True)
class Loop:
    """An open rim of a surface: a closed chain of edges of one triangle each.

    `vertices` (k,) are vertex indices of the surface in rim order, the order of triangles of a cap that closes the
    surface. `center` in metres, `normal` (unit) outwards, `radius` the mean distance of the rim from its center
    (metres).
    """

    vertices: npt.NDArray[np.int32]
    center: tuple[float, float, float]
    normal: tuple[float, float, float]
    radius: float


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles `faces` (f, 3) int32 over `vertices` (v, 3) float64; counter-clockwise from outside."""

    vertices: Floats
    faces: npt.NDArray[np.int32]

    @staticmethod
    def from_triangles(corners: Floats) -> Surface:
        """Make a surface from triangles (f, 3, 3): merge equal vertices, drop triangles with repeated ones."""
        return Surface.merged(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))

    @staticmethod
    def merged(vertices: Floats, faces: npt.NDArray[np.integer[Any]]) -> Surface:
        """Make a surface from triangles (f, 3) over vertices (v, 3): merge equal ones, drop triangles as above."""
        is_used = np.zeros(len(vertices), bool)
        is_used[faces.reshape(-1)] = True
        used = np.flatnonzero(is_used)
        points = vertices[used] + 0.0  # -0.0 and 0.0 are equal
        order = np.lexsort(points.T[::-1])
        ordered = points[order]
        first = np.ones(len(points), bool)
        first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
        index = np.empty(len(vertices), np.int64)
        index[used[order]] = np.cumsum(first) - 1
        a, b, c = index[faces.T]
        distinct = (a != b) & (b != c) & (c != a)
        return Surface(ordered[first], np.stack([a, b, c], axis=1)[distinct].astype(np.int32))

    def corners(self) -> Floats:
        """Return the corner points (f, 3, 3) of every triangle."""
        return np.asarray(self.vertices[self.faces])

    def faces_within(self, is_member: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the triangles (n,), ascending, of which all three vertices are members (v,)."""
        first = np.flatnonzero(is_member[self.faces[:, 0]])
        return np.asarray(first[is_member[self.faces[first, 1]] & is_member[self.faces[first, 2]]])

    def vertices_near(self, point: Sequence[float], distance: float) -> npt.NDArray[np.int64]:
        """Return the vertices (n,), ascending, within `distance` of a point."""
        in_slab = np.flatnonzero(np.abs(self.vertices[:, 0] - point[0]) <= distance)
        return np.asarray(in_slab[np.linalg.norm(self.vertices[in_slab] - np.asarray(point), axis=1) <= distance])

    def vector_areas(self) -> Floats:
        """Return half the cross product of two edges of every triangle: area times outward normal, (f, 3)."""
        a, b, c = np.moveaxis(self.corners(), 1, 0)
        return np.asarray(0.5 * np.cross(b - a, c - a))

    @property
    def area(self) -> float:
        """Total area in square metres."""
        return float(np.linalg.norm(self.vector_areas(), axis=1).sum())

    @property
    def volume(self) -> float:
        """Volume in cubic metres, negative for a closed surface that is inside out (divergence theorem).

        Open rims are capped by a fan of triangles around their center.
        """
        closed = self.capped(self.boundary_loops())
        shifted = closed.corners() - closed.vertices.mean(axis=0) if len(closed.vertices) else closed.corners()
        return float(np.einsum("ij,ij->i", shifted[:, 0], closed.vector_areas()).sum() / 3.0)

    def outward(self) -> Surface:
        """Return the surface with all triangles reversed if its volume is negative, otherwise itself."""
        return self if self.volume >= 0.0 else Surface(self.vertices, np.ascontiguousarray(self.faces[:, ::-1]))

    def boundary_loops(self) -> list[Loop]:
        """Return the open rims by decreasing radius; rims that share a vertex are traversed in a fixed order."""
        return list(self._boundary_loops)

    @cached_property
    def _boundary_loops(self) -> list[Loop]:
        starts, ends = self._open_edges()
        next_vertices: dict[int, list[int]] = {}
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            next_vertices.setdefault(start, []).append(end)
        chains = []
        while next_vertices:
            first = next(iter(next_vertices))
            chain = [first]
            while (successors := next_vertices.get(chain[-1])) is not None:
                chain.append(successors.pop(0))
                if not successors:
                    del next_vertices[chain[-2]]
                if chain[-1] == first:
                    break
            chains.append(chain[:-1] if chain[-1] == first else chain)
        return sorted((self._loop(chain) for chain in chains if len(chain) > 2), key=lambda loop: -loop.radius)

    def is_closed(self) -> bool:
        """Return whether the triangles at each edge cancel, so that crossings of the surface can be counted."""
        _, _, sign, keys = self._edges()
        _, edge = np.unique(keys, return_inverse=True)
        return bool(len(keys)) and not np.bincount(edge, weights=sign).any()

    def _open_edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return start and end of the directed edges without a partner, oriented as edges of a cap."""
        start, end, sign, keys = self._edges()
        odd_keys, counts = np.unique(keys, return_counts=True)
        edges, edge = _members(keys, odd_keys[counts % 2 == 1])  # few edges, so that no inverse of all is sorted
        balance = np.bincount(edge, weights=sign[edges])
        is_open = balance[edge] * sign[edges] > 0.0
        _, unique = np.unique(edge[is_open], return_index=True)
        open_edges = edges[is_open][unique]
        return end[open_edges], start[open_edges]

    def _edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats, npt.NDArray[np.int64]]:
        """Return start, end, sign of the direction and undirected key of the three edges of every triangle, (3 f,)."""
        start = self.faces.astype(np.int64).reshape(-1)
        end = np.roll(self.faces.astype(np.int64), -1, axis=1).reshape(-1)
        keys = np.minimum(start, end) * len(self.vertices) + np.maximum(start, end)
        return start, end, np.where(start < end, 1.0, -1.0), keys

    def orientation_conflicts(self) -> Floats:
        """Return the midpoints (n, 3) of the edges between two triangles of opposite orientation."""
        start, end, sign, keys = self._edges()
        directed_keys, counts = np.unique(2 * keys + (sign > 0.0), return_counts=True)
        one_direction, differs = np.ones(len(counts), bool), np.diff(directed_keys >> 1) != 0
        one_direction[1:] &= differs
        one_direction[:-1] &= differs
        edges, edge = _members(keys, directed_keys[(counts == 2) & one_direction] >> 1)
        edges = edges[np.unique(edge, return_index=True)[1]]
        return np.asarray(0.5 * (self.vertices[start[edges]] + self.vertices[end[edges]]))

    def _loop(self, chain: list[int]) -> Loop:
        points = self.vertices[chain]
        center = _rim_center(points)
        radii = points - center
        normal = np.cross(radii, np.roll(radii, -1, axis=0)).sum(axis=0)
        length = float(np.linalg.norm(normal))
        unit = normal / length if length > 0.0 else normal
        radius = float(np.linalg.norm(radii, axis=1).mean())
        return Loop(np.array(chain, np.int32), _triple(center), _triple(unit), radius)

    def capped(self, loops: Sequence[Loop]) -> Surface:
        """Return the surface with each of `loops` closed by a fan of triangles around its center, appended in order."""
        vertices, faces = [self.vertices], [self.faces]
        for number, loop in enumerate(loops):
            center = np.full(len(loop.vertices), len(self.vertices) + number, np.int32)
            vertices.append(np.array([loop.center]))
            faces.append(np.stack([loop.vertices, np.roll(loop.vertices, -1), center], axis=1))
        return Surface(np.concatenate(vertices), np.concatenate(faces))

    def clipped(self, center: Sequence[float] | Floats, normal: Sequence[float] | Floats, radius: float) -> Surface:
        """Remove the surface behind the plane through `center` with `normal`, within `radius` (metres) of `center`.

        Triangles that cross the plane are cut exactly at it, which leaves a rim in the plane.
        """
        height = (self.vertices - np.asarray(center)) @ np.asarray(normal)
        height[np.abs(height) < 1e-12 * radius] = 0.0
        within_radius = np.linalg.norm(self.vertices - np.asarray(center), axis=1) <= radius
        behind = height[self.faces] < 0.0
        affected = within_radius[self.faces].all(axis=1) & behind.any(axis=1)
        pieces = [self.faces[~affected]]
        edges: dict[tuple[int, int], int] = {}
        cuts: list[Floats] = []

        def crossing(inner: int, outer: int) -> int:
            key = (min(inner, outer), max(inner, outer))
            if key not in edges:
                share = height[inner] / (height[inner] - height[outer])
                cuts.append(self.vertices[inner] + share * (self.vertices[outer] - self.vertices[inner]))
                edges[key] = len(self.vertices) + len(cuts) - 1
            return edges[key]

        for face, removed in zip(self.faces[affected].tolist(), behind[affected].tolist(), strict=True):
            polygon: list[int] = []
            for i in range(3):
                j = (i + 1) % 3
                if not removed[i]:
                    polygon.append(face[i])
                if removed[i] != removed[j] and height[face[i]] != 0.0 and height[face[j]] != 0.0:
                    polygon.append(crossing(*((face[j], face[i]) if removed[i] else (face[i], face[j]))))
            pieces.extend(np.array([[polygon[0], polygon[i], polygon[i + 1]]]) for i in range(1, len(polygon) - 1))
        vertices = np.concatenate([self.vertices, np.array(cuts).reshape(-1, 3)])
        return Surface.from_triangles(vertices[np.concatenate(pieces)])


def _members(
    values: npt.NDArray[np.int64], members: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the indices (n,) of the values that are among `members` (m,), ascending, and their positions there."""
    position = np.searchsorted(members, values)
    position[position == len(members)] = 0
    indices = np.flatnonzero(members[position] == values) if len(members) else np.zeros(0, np.int64)
    return indices, position[indices]


def subdivided(corners: Floats, max_edge: float) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Bisect the longest edge of triangles (f, 3, 3) until none exceeds `max_edge`.

    Returns the pieces (p, 3, 3) and the original triangle (p,) of each.
    """
    finished, owners = [], []
    parent = np.arange(len(corners))
    while len(corners):
        edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        is_small = edges.max(axis=1) <= max_edge
        finished.append(corners[is_small])
        owners.append(parent[is_small])
        corners, parent = corners[~is_small], parent[~is_small]
        rotation = (edges[~is_small].argmax(axis=1)[:, None] + np.arange(3)) % 3  # the longest edge becomes the first
        a, b, c = np.moveaxis(np.take_along_axis(corners, rotation[:, :, None], axis=1), 1, 0)
        midpoint = 0.5 * (a + b)
        corners = np.concatenate([np.stack([a, midpoint, c], axis=1), np.stack([midpoint, b, c], axis=1)])
        parent = np.concatenate([parent, parent])
    if not finished:
        return corners, parent
    return np.concatenate(finished), np.concatenate(owners)


def _rim_center(points: Floats) -> Floats:
    """Return the mean of a closed chain of points (k, 3), weighted by the lengths of their edges."""
    edge = np.linalg.norm(np.roll(points, -1, axis=0) - points, axis=1)
    weight = edge + np.roll(edge, 1)
    return np.asarray(np.average(points, axis=0, weights=weight) if weight.sum() > 0.0 else points.mean(axis=0))


def _triple(values: Floats) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
