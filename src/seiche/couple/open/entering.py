# SPDX-License-Identifier: BSD-3-Clause
"""Whether there is room in a vessel for a cell that enters: within the wall, and free of the cells that are there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from seiche.cells.mesh import mean_edge
from seiche.cells.overlap import meet
from seiche.cells.space import FluidSpace
from seiche.domain.surface import Surface, bounds

Floats = npt.NDArray[np.float64]

#: How far a vertex may be beyond the wall, in sites: as far as the wall lets it come.
_BEYOND_WALL = 0.5
#: Closer than this, in edges of the meshes, vertices are in the way of a surface, and of another vertex.
_CLOSE, _NEXT = 0.05, 0.3
#: One of so many vertices is compared with those of other cells before all are.
_FEW = 16


class _Body:
    """A cell that is there, the box around it and its vertices by place."""

    def __init__(self, surface: Surface, group: str | None) -> None:
        self.surface, self.group = surface, group
        self.low, self.high = bounds(surface.vertices)

    @cached_property
    def tree(self) -> cKDTree:
        return cKDTree(self.surface.vertices)

    def beside(self, points: Floats, distance: float) -> bool:
        """Tell whether a point is closer to a vertex."""
        return bool(np.isfinite(self.tree.query(points, distance_upper_bound=distance)[0]).any())


class Room:
    """The cells of a part of a vessel, in whose way another may be."""

    def __init__(self, walls: FluidSpace, surfaces: Sequence[Surface]) -> None:
        """Begin without cells; `surfaces` are those of each type, undeformed, `walls` the vessel with open openings."""
        self._walls, self._surfaces = walls, surfaces
        edge = min(mean_edge(surface) for surface in surfaces)
        self._close, self._next = _CLOSE * edge, _NEXT * edge
        self._bodies: list[_Body] = []
        #: Lower and upper corners of their boxes, (2, n, 3), once they have been asked for since the last was added.
        self._boxes: Floats | None = None

    def add(self, kind: int, vertices: Floats, group: str | None = None) -> None:
        """Let a cell with the vertices (v, 3) be there, one of a group or of none."""
        self._bodies.append(_Body(Surface(vertices, self._surfaces[kind].faces), group))
        self._boxes = None

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self._bodies)

    def _near(self, low: Floats, high: Floats, since: int) -> list[_Body]:
        """Return the cells whose boxes meet another, but for the first `since`."""
        if self._boxes is None:
            corners = [(each.low, each.high) for each in self._bodies]
            self._boxes = np.array(corners, np.float64).reshape(-1, 2, 3).swapaxes(0, 1)
        lowest, highest = self._boxes[:, since:]
        return [self._bodies[since + i] for i in np.flatnonzero(((lowest <= high) & (highest >= low)).all(axis=1))]

    def has(self, kind: int, vertices: Floats, clear: bool = True, group: str | None = None, since: int = 0) -> bool:
        """Tell whether a cell with the vertices (v, 3) is inside the vessel, and meets none that is there.

        It must be `clear` of the others by a part of an edge, too, or may touch them. Those of its own `group` are in
        nobody's way: they are side by side as they flow. The first `since` cells, and the wall, are known not to be.
        """
        close, beside = (self._close, self._next) if clear else (0.0, 0.0)
        low, high = bounds(vertices)
        low, high = low - beside, high + beside
        near = [body for body in self._near(low, high, since) if group is None or body.group != group]
        # What most places fail is looked at first: vertices next to each other, and of these a few.
        for some in (vertices[::_FEW], vertices) if clear else ():
            if any(body.beside(some, beside) for body in near):
                return False
        mine = Surface(vertices, self._surfaces[kind].faces)
        if not since and self._walls.beyond(vertices, _BEYOND_WALL).any():
            return False
        return not any(meet(mine, body.surface, close) for body in near)
