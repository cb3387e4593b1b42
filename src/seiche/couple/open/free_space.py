# SPDX-License-Identifier: BSD-3-Clause
"""Free space in a vessel for entering cells: inside the wall and clear of the present cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.cells.mesh import mean_edge
from seiche.cells.overlap import overlap_or_near
from seiche.cells.space import FluidSpace
from seiche.domain.surface import Surface, bounds

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Floats = npt.NDArray[np.float64]

#: Maximum distance of a vertex beyond the wall, in sites, which is permitted by the contact force of the wall.
_BEYOND_WALL = 0.5
#: Minimum distance of a vertex from another surface and from another vertex, in edge lengths of the meshes.
_FROM_SURFACE, _FROM_VERTEX = 0.05, 0.3
#: Stride of the sample of vertices that is tested against other cells before all vertices are.
_STRIDE = 16


class _Body:
    """A present cell with its bounding box and a search tree of its vertices."""

    def __init__(self, surface: Surface, group: str | None) -> None:
        self.surface, self.group = surface, group
        self.low, self.high = bounds(surface.vertices)

    @cached_property
    def tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(self.surface.vertices)

    def is_close(self, points: Floats, distance: float) -> bool:
        """Return whether one of the points is closer to a vertex than `distance`."""
        return bool(np.isfinite(self.tree.query(points, distance_upper_bound=distance)[0]).any())


class FreeSpace:
    """Cells in a region of a vessel, and the space between them."""

    def __init__(self, walls: FluidSpace, surfaces: Sequence[Surface]) -> None:
        """Start without cells; `surfaces` are undeformed cells by type, `walls` is the vessel with open openings."""
        self._walls, self._surfaces = walls, surfaces
        edge = min(mean_edge(surface) for surface in surfaces)
        self._from_surface, self._from_vertex = _FROM_SURFACE * edge, _FROM_VERTEX * edge
        self._bodies: list[_Body] = []
        #: Lower and upper corners of the bounding boxes of cells, (2, n, 3); None after a cell has been added.
        self._boxes: Floats | None = None

    def add(self, kind: int, vertices: Floats, group: str | None = None) -> None:
        """Add a cell with the vertices (v, 3), which may belong to a group."""
        self._bodies.append(_Body(Surface(vertices, self._surfaces[kind].faces), group))
        self._boxes = None

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self._bodies)

    def _near(self, low: Floats, high: Floats, since: int) -> list[_Body]:
        """Return the cells whose bounding boxes intersect a box, without the first `since` cells."""
        if self._boxes is None:
            corners = [(body.low, body.high) for body in self._bodies]
            self._boxes = np.array(corners, np.float64).reshape(-1, 2, 3).swapaxes(0, 1)
        lower_corners, upper_corners = self._boxes[:, since:]
        return [
            self._bodies[since + i]
            for i in np.flatnonzero(((lower_corners <= high) & (upper_corners >= low)).all(axis=1))
        ]

    def fits(self, kind: int, vertices: Floats, clear: bool = True, group: str | None = None, since: int = 0) -> bool:
        """Return whether a cell with the vertices (v, 3) is inside the vessel and overlaps no other cell.

        With `clear`, there must also be a gap of a fraction of an edge. Cells of the same `group` are not tested
        against each other, since their relative positions result from a flow. With `since` > 0, the wall and the first
        `since` cells are not tested.
        """
        gap, vertex_gap = (self._from_surface, self._from_vertex) if clear else (0.0, 0.0)
        low, high = bounds(vertices)
        low, high = low - vertex_gap, high + vertex_gap
        candidates = [body for body in self._near(low, high, since) if group is None or body.group != group]
        # The test that most positions fail comes first: distances between vertices, for a sample and then for all.
        for sample in (vertices[::_STRIDE], vertices) if clear else ():
            if any(body.is_close(sample, vertex_gap) for body in candidates):
                return False
        surface = Surface(vertices, self._surfaces[kind].faces)
        if not since and self._walls.beyond(vertices, _BEYOND_WALL).any():
            return False
        return not any(overlap_or_near(surface, body.surface, gap) for body in candidates)
