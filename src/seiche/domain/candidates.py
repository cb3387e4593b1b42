# SPDX-License-Identifier: BSD-3-Clause
"""Candidate fluid nodes of a vessel, and their intersections with its wall and with the discs of its openings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.domain.site_rows import Coords, Indices, SiteRows, Triple
from seiche.domain.sites import LINK_VECTORS, IoletPlane

Floats = npt.NDArray[np.float64]
#: Tolerance in spacings: a node within it of a plane or wall is solid.
TOUCH_TOLERANCE = 1e-9
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


@dataclass(frozen=True, eq=False)
class CandidateNodes:
    """Candidate fluid nodes: `rows` of them in a box, whose node (0, 0, 0) is at `origin` (metres)."""

    rows: SiteRows
    spacing: float
    origin: tuple[float, float, float]

    @staticmethod
    def of(
        shape: Triple,
        coords: Coords,
        spacing: float,
        origin: tuple[float, float, float],
        periodic: tuple[bool, bool, bool] = (False, False, False),
    ) -> CandidateNodes:
        """Return the nodes at `coords` (n, 3), ascending inside `shape`."""
        return CandidateNodes(SiteRows.of_coords(shape, periodic, coords), spacing, origin)

    @property
    def shape(self) -> Triple:
        """Return the extents of the box."""
        return self.rows.shape

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return along which axes links wrap."""
        return self.rows.periodic

    @cached_property
    def coords(self) -> Coords:
        """Return the coordinates (n, 3) of all nodes."""
        return self.rows.coords()

    def coords_at(self, nodes: Indices) -> tuple[Coords, Indices]:
        """Return the coordinates (m, 3) of the distinct ones of the ascending `nodes` (p,), and their rows (p,)."""
        is_first = np.diff(nodes, prepend=-1) > 0
        coords = self.rows.coords_of(nodes[is_first]).astype(np.int32)
        return coords, np.cumsum(is_first) - 1

    def positions(self, nodes: Indices) -> Floats:
        """Return the positions (p, 3) in metres of the `nodes` (p,)."""
        return self.positions_of(self.rows.coords_of(nodes))

    def positions_of(self, coords: npt.NDArray[np.integer]) -> Floats:
        """Return the positions (p, 3) in metres of the coordinates (p, 3)."""
        return np.asarray(np.asarray(self.origin) + self.spacing * coords)

    def trimmed(self) -> CandidateNodes:
        """Return the same nodes in their bounding box, with the origin shifted; periodic axes are unchanged."""
        if not len(self.rows):
            return self
        lowest, highest = self.rows.bounds()
        low = [0 if p else first for p, first in zip(self.periodic, lowest, strict=True)]
        sizes = zip(self.periodic, self.shape, lowest, highest, strict=True)
        nx, ny, nz = (extent if p else last - first + 1 for p, extent, first, last in sizes)
        x, y, z = (np.asarray(self.origin) + self.spacing * np.array(low)).tolist()
        return replace(self, rows=self.rows.moved((low[0], low[1], low[2]), (nx, ny, nz)), origin=(x, y, z))


#: Function of the lattice, the nodes (p,) at the start of links, and the directions (p,) of the links.
WallFinder = Callable[[CandidateNodes, Indices, Indices], WallHits]


@dataclass(frozen=True)
class Crossings:
    """Links cut by a disc: node, direction, fraction, iolet, and whether the node is on the fluid side."""

    node: Indices
    direction: Indices
    fraction: Floats
    iolet: Indices
    front: npt.NDArray[np.bool_]

    def between(self, first: int, end: int) -> Crossings:
        """Return the links from the nodes `first` ... `end` - 1."""
        is_in_range = (self.node >= first) & (self.node < end)
        return Crossings(
            self.node[is_in_range],
            self.direction[is_in_range],
            self.fraction[is_in_range],
            self.iolet[is_in_range],
            self.front[is_in_range],
        )


def nodes_on_disc(lattice: CandidateNodes, plane: IoletPlane) -> Indices:
    """Return the nodes on the disc of an opening, which are not fluid."""
    nodes, height, offset = _signed_and_radial(lattice, plane)
    return np.asarray(nodes[(height == 0.0) & (np.linalg.norm(offset, axis=1) <= _disc_radius(lattice, plane))])


def disc_crossings(lattice: CandidateNodes, iolets: Sequence[IoletPlane]) -> Crossings:
    """Find every link through the disc of an iolet; if two discs cut one link, both are listed."""
    cuts: list[tuple[Indices, Floats, npt.NDArray[np.bool_], int, int]] = []
    for index, plane in enumerate(iolets):
        near_nodes, height, offset = _signed_and_radial(lattice, plane)
        for k, vector in enumerate(LINK_VECTORS):
            end = height + float(np.dot(plane.normal, vector))
            end[np.abs(end) < TOUCH_TOLERANCE * max(lattice.shape)] = 0.0
            rows = np.flatnonzero(((height > 0.0) & (end <= 0.0)) | ((height < 0.0) & (end > 0.0)))
            fraction = height[rows] / (height[rows] - end[rows])
            hit = offset[rows] + fraction[:, None] * vector
            inside = np.linalg.norm(hit, axis=1) <= _disc_radius(lattice, plane)
            rows, fraction = rows[inside], fraction[inside]
            cuts.append((near_nodes[rows], fraction, height[rows] > 0.0, k, index))
    if not cuts:
        empty = np.zeros(0, np.int64)
        return Crossings(empty, empty, np.zeros(0), empty, np.zeros(0, bool))
    nodes, fractions, fronts, directions, numbers = zip(*cuts, strict=True)
    node, fraction, front = np.concatenate(nodes), np.concatenate(fractions), np.concatenate(fronts)
    direction, number = (np.repeat(values, [len(rows) for rows in nodes]) for values in (directions, numbers))
    return Crossings(node, direction, fraction, number, front)


def _signed_and_radial(lattice: CandidateNodes, plane: IoletPlane) -> tuple[Indices, Floats, Floats]:
    """Return the nodes near the disc of `plane`, their height over it and offset (p, 3) from its center in spacings."""
    normal, reach = np.asarray(plane.normal), _disc_radius(lattice, plane) + 2.0
    origin_height = float(np.dot(np.asarray(lattice.origin) - plane.center, normal)) / lattice.spacing
    nodes, coords = lattice.rows.in_box(*_box_around(lattice, plane, reach))
    heights = coords @ normal + origin_height
    rows = np.flatnonzero(np.abs(heights) <= np.sqrt(3.0) + TOUCH_TOLERANCE)
    height = heights[rows]
    height[np.abs(height) < TOUCH_TOLERANCE * max(lattice.shape)] = 0.0
    offset = (lattice.positions_of(coords[rows]) - plane.center) / lattice.spacing
    is_close = np.linalg.norm(offset, axis=1) <= reach
    return nodes[rows[is_close]], height[is_close], offset[is_close]


def _box_around(lattice: CandidateNodes, plane: IoletPlane, reach: float) -> tuple[Indices, Indices]:
    """Return the corners (3,) of a box of nodes that contains those within 2 of the plane and `reach` of its center."""
    shape, normal = np.array(lattice.shape), np.asarray(plane.normal)
    if not np.isfinite(reach):
        return np.zeros(3, np.int64), shape - 1
    center = (np.asarray(plane.center) - lattice.origin) / lattice.spacing
    half = np.sqrt(np.maximum(1.0 - normal**2, 0.0)) * reach + 2.0 * np.abs(normal) + 1.0
    low, high = np.clip(center - half, 0.0, shape), np.clip(center + half, -1.0, shape - 1.0)
    return np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)


def _disc_radius(lattice: CandidateNodes, plane: IoletPlane) -> float:
    return np.inf if plane.radius is None else plane.radius / lattice.spacing + RIM_MARGIN
