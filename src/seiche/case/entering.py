# SPDX-License-Identifier: BSD-3-Clause
"""Whether there is room in a vessel for a cell that enters: within the wall, and free of the cells that are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from seiche.cells.mesh import mean_edge
from seiche.cells.overlap import meet
from seiche.cells.space import FluidSpace
from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]

#: How far a vertex may be beyond the wall, in sites: as far as the wall lets it come.
_BEYOND_WALL = 0.5
#: Closer than this, in edges of the meshes, vertices are in the way of a surface, and of another vertex.
_CLOSE, _NEXT = 0.05, 0.3


def deep_inside(body: Surface, points: Floats) -> bool:
    """Tell whether one of the points (n, 3) is an edge's length or more inside, by the vertex next to it.

    That is known a hundred times sooner than a distance, and true of most places that are taken.
    """
    if not len(points):
        return False
    normals = np.zeros_like(body.vertices)
    np.add.at(normals, body.faces, body.vector_areas()[:, None])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    _, nearest = cKDTree(body.vertices).query(points)
    return bool((np.einsum("ij,ij->i", points - body.vertices[nearest], normals[nearest]) < -mean_edge(body)).any())


class Room:
    """The cells of a part of a vessel, in whose way another may be."""

    def __init__(self, walls: FluidSpace, surfaces: Sequence[Surface]) -> None:
        """Begin without cells; `surfaces` are those of each type, undeformed, `walls` the vessel with open openings."""
        self._walls, self._surfaces = walls, surfaces
        edge = min(mean_edge(surface) for surface in surfaces)
        self._close, self._next = _CLOSE * edge, _NEXT * edge
        self._bodies: list[tuple[Surface, Floats, Floats]] = []
        self._tree: cKDTree | None = None

    def add(self, kind: int, vertices: Floats) -> None:
        """Let a cell with the vertices (v, 3) be there."""
        body = Surface(vertices, self._surfaces[kind].faces)
        self._bodies.append((body, vertices.min(axis=0), vertices.max(axis=0)))
        self._tree = None

    def has(self, kind: int, vertices: Floats, clear: bool = True) -> bool:
        """Tell whether a cell with the vertices (v, 3) is inside the vessel, and meets none that is there.

        It must be `clear` of the others by a part of an edge, too, or may touch them.
        """
        close, beside = (self._close, self._next) if clear else (0.0, 0.0)
        if self._tree is None and self._bodies:
            self._tree = cKDTree(np.concatenate([body.vertices for body, _, _ in self._bodies]))
        # What most places fail is looked at first: vertices next to each other.
        if self._tree is not None and np.isfinite(self._tree.query(vertices, distance_upper_bound=beside)[0]).any():
            return False
        low, high = vertices.min(axis=0) - close, vertices.max(axis=0) + close
        near = [body for body, least, most in self._bodies if (least <= high).all() and (most >= low).all()]
        mine = Surface(vertices, self._surfaces[kind].faces)
        if near:
            points = np.concatenate([body.vertices for body in near])
            if deep_inside(mine, points[((points >= low) & (points <= high)).all(axis=1)]):
                return False
        if not (self._walls.distance(vertices) < _BEYOND_WALL).all():
            return False
        return not any(meet(mine, body, close) for body in near)
