# SPDX-License-Identifier: BSD-3-Clause
"""Triangulated surfaces: measures, open rims, clipping at a plane, capping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bounds(points: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper corner (..., 3) of the boxes around points (..., n, 3).

    By component: numpy takes ten times as long over triples.
    """
    parts = [points[..., axis] for axis in range(3)]
    return np.stack([x.min(axis=-1) for x in parts], axis=-1), np.stack([x.max(axis=-1) for x in parts], axis=-1)


def in_box(points: Floats, low: Floats, high: Floats) -> npt.NDArray[np.bool_]:
    """Tell which points (..., 3) are in a box, or on its faces."""
    one, two, three = ((points[..., axis] >= low[axis]) & (points[..., axis] <= high[axis]) for axis in range(3))
    return np.asarray(one & two & three)


@dataclass(frozen=True)
class Loop:
    """An open rim of a surface: a closed chain of edges that belong to one triangle only.

    `vertices` (k,) are rows of the surface's vertices in the order of the rim (so that capping it with triangles in
    that order closes the surface); `center` (metres), `normal` (unit, out of the surface's inside) and `radius`
    (metres, mean distance of the rim from its center).
    """

    vertices: npt.NDArray[np.int32]
    center: tuple[float, float, float]
    normal: tuple[float, float, float]
    radius: float


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles `faces` (f, 3) int32 over `vertices` (v, 3) float64; counter-clockwise as seen from outside."""

    vertices: Floats
    faces: npt.NDArray[np.int32]

    @staticmethod
    def from_triangles(corners: Floats) -> Surface:
        """Make a surface from triangles (f, 3, 3), merging equal vertices and dropping triangles that lose a corner."""
        points = corners.reshape(-1, 3) + 0.0  # -0.0 and 0.0 are the same place
        order = np.lexsort(points.T[::-1])
        ordered = points[order]
        first = np.ones(len(points), bool)
        first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
        index = np.empty(len(points), np.int64)
        index[order] = np.cumsum(first) - 1
        return Surface(ordered[first], _without_slivers(index.reshape(-1, 3)))

    def corners(self) -> Floats:
        """Return the corner points (f, 3, 3) of every triangle."""
        points: Floats = self.vertices[self.faces]
        return points

    def vector_areas(self) -> Floats:
        """Return half the cross product of two edges of every triangle: area times outward normal, (f, 3)."""
        a, b, c = np.moveaxis(self.corners(), 1, 0)
        areas: Floats = 0.5 * np.cross(b - a, c - a)
        return areas

    @property
    def area(self) -> float:
        """Total area in square metres."""
        return float(np.linalg.norm(self.vector_areas(), axis=1).sum())

    @property
    def volume(self) -> float:
        """Volume in cubic metres, negative for a closed surface that is inside out (divergence theorem).

        Open rims count as capped by the fan of triangles around their center.
        """
        closed = self.capped(self.boundary_loops())
        shifted = closed.corners() - closed.vertices.mean(axis=0) if len(closed.vertices) else closed.corners()
        return float(np.einsum("ij,ij->i", shifted[:, 0], closed.vector_areas()).sum() / 3.0)

    def boundary_loops(self) -> list[Loop]:
        """Return the open rims, the longest first; rims that touch in a vertex are followed in a fixed order."""
        starts, ends = self._open_edges()
        follow: dict[int, list[int]] = {}
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            follow.setdefault(start, []).append(end)
        chains = []
        while follow:
            first = next(iter(follow))
            chain = [first]
            while (options := follow.get(chain[-1])) is not None:
                chain.append(options.pop(0))
                if not options:
                    del follow[chain[-2]]
                if chain[-1] == first:
                    break
            chains.append(chain[:-1] if chain[-1] == first else chain)
        return sorted((self._loop(chain) for chain in chains if len(chain) > 2), key=lambda loop: -loop.radius)

    def _open_edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return start and end of the directed edges without a partner, turned so that they would cap the hole."""
        start = self.faces.astype(np.int64).reshape(-1)
        end = np.roll(self.faces.astype(np.int64), -1, axis=1).reshape(-1)
        count = len(self.vertices)
        undirected = np.minimum(start, end) * count + np.maximum(start, end)
        _, place = np.unique(undirected, return_inverse=True)
        balance = np.bincount(place, weights=np.where(start < end, 1.0, -1.0))
        times = np.bincount(place)
        alone = np.flatnonzero((times[place] % 2 == 1) & (balance[place] * np.where(start < end, 1.0, -1.0) > 0.0))
        _, unique = np.unique(place[alone], return_index=True)
        return end[alone[unique]], start[alone[unique]]

    def clashes(self) -> Floats:
        """Return the middles (n, 3) of the edges at which two triangles face opposite ways (one is inside out)."""
        start = self.faces.astype(np.int64).reshape(-1)
        end = np.roll(self.faces.astype(np.int64), -1, axis=1).reshape(-1)
        undirected = np.minimum(start, end) * len(self.vertices) + np.maximum(start, end)
        _, first, place, times = np.unique(undirected, return_index=True, return_inverse=True, return_counts=True)
        same_way = np.abs(np.bincount(place, weights=np.where(start < end, 1.0, -1.0))) == 2.0
        edges = first[(times == 2) & same_way]
        middles: Floats = 0.5 * (self.vertices[start[edges]] + self.vertices[end[edges]])
        return middles

    def _loop(self, chain: list[int]) -> Loop:
        points = self.vertices[chain]
        center = _rim_center(points)
        spokes = points - center
        normal = np.cross(spokes, np.roll(spokes, -1, axis=0)).sum(axis=0)
        length = float(np.linalg.norm(normal))
        unit = normal / length if length > 0.0 else normal
        radius = float(np.linalg.norm(spokes, axis=1).mean())
        return Loop(np.array(chain, np.int32), _triple(center), _triple(unit), radius)

    def capped(self, loops: Sequence[Loop]) -> Surface:
        """Return the surface with each of `loops` closed by a fan of triangles around its center, appended in order."""
        vertices, faces = [self.vertices], [self.faces]
        for number, loop in enumerate(loops):
            hub = np.full(len(loop.vertices), len(self.vertices) + number, np.int32)
            vertices.append(np.array([loop.center]))
            faces.append(np.stack([loop.vertices, np.roll(loop.vertices, -1), hub], axis=1))
        return Surface(np.concatenate(vertices), np.concatenate(faces))

    def clipped(self, center: Sequence[float], normal: Sequence[float], reach: float) -> Surface:
        """Cut away what lies behind the plane through `center` with `normal`, within `reach` (metres) of `center`.

        Triangles that straddle the plane are cut exactly on it, which leaves a rim in the plane.
        """
        height = (self.vertices - np.asarray(center)) @ np.asarray(normal)
        height[np.abs(height) < 1e-12 * reach] = 0.0
        near = np.linalg.norm(self.vertices - np.asarray(center), axis=1) <= reach
        behind = height[self.faces] < 0.0
        affected = near[self.faces].all(axis=1) & behind.any(axis=1)
        pieces = [self.faces[~affected]]
        edges: dict[tuple[int, int], int] = {}
        extra: list[Floats] = []

        def crossing(inner: int, outer: int) -> int:
            key = (min(inner, outer), max(inner, outer))
            if key not in edges:
                share = height[inner] / (height[inner] - height[outer])
                extra.append(self.vertices[inner] + share * (self.vertices[outer] - self.vertices[inner]))
                edges[key] = len(self.vertices) + len(extra) - 1
            return edges[key]

        for face, gone in zip(self.faces[affected].tolist(), behind[affected].tolist(), strict=True):
            polygon: list[int] = []
            for i in range(3):
                j = (i + 1) % 3
                if not gone[i]:
                    polygon.append(face[i])
                if gone[i] != gone[j] and height[face[i]] != 0.0 and height[face[j]] != 0.0:
                    polygon.append(crossing(*((face[j], face[i]) if gone[i] else (face[i], face[j]))))
            pieces.extend(np.array([[polygon[0], polygon[i], polygon[i + 1]]]) for i in range(1, len(polygon) - 1))
        vertices = np.concatenate([self.vertices, np.array(extra).reshape(-1, 3)])
        return Surface.from_triangles(vertices[np.concatenate(pieces)])


def subdivided(corners: Floats, longest: float) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Halve the longest edge of triangles (f, 3, 3) until none exceeds `longest`.

    Returns the pieces (p, 3, 3) and the triangle (p,) that each is a part of.
    """
    done, owners = [], []
    parent = np.arange(len(corners))
    while len(corners):
        edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        small = edges.max(axis=1) <= longest
        done.append(corners[small])
        owners.append(parent[small])
        corners, parent = corners[~small], parent[~small]
        turn = (edges[~small].argmax(axis=1)[:, None] + np.arange(3)) % 3  # the longest edge becomes the first
        a, b, c = np.moveaxis(np.take_along_axis(corners, turn[:, :, None], axis=1), 1, 0)
        middle = 0.5 * (a + b)
        corners = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
        parent = np.concatenate([parent, parent])
    if not done:
        return corners, parent
    return np.concatenate(done), np.concatenate(owners)


def _without_slivers(faces: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    distinct = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    kept: npt.NDArray[np.int32] = faces[distinct].astype(np.int32)
    return kept


def _rim_center(points: Floats) -> Floats:
    """Return the mean of a closed chain of points (k, 3), each weighed by the edges that meet there."""
    edge = np.linalg.norm(np.roll(points, -1, axis=0) - points, axis=1)
    weight = edge + np.roll(edge, 1)
    center: Floats = np.average(points, axis=0, weights=weight) if weight.sum() > 0.0 else points.mean(axis=0)
    return center


def _triple(values: Floats) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
