# SPDX-License-Identifier: BSD-3-Clause
"""Intersections of lattice links with the triangles of a surface.

A link from x along c meets the triangle (a, b, d) at x + t c. Let e = b - a, g = d - a, s = x - a and N = e x g.
Cramer's rule gives t = -(s.N)/(c.N), u = -(c.(g x s))/(c.N), v = -(c.(s x e))/(c.N). Hits have u, v and 1 - u - v not
negative. The cross products do not depend on the link, so all 13 pairs of opposite directions need three matrix
products per pair of node and triangle. Edges have a tolerance, since lattice links often meet them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.assemble import CandidateNodes, Floats, WallHits
from seiche.domain.inside import ON_SURFACE
from seiche.domain.sites import LINK_VECTORS
from seiche.domain.surface import Surface, subdivided

#: Tolerance of hits outside a triangle, in its coordinates u and v.
EDGE_TOLERANCE = 1e-6
#: Pairs of nodes and pieces per pass.
CHUNK = 1 << 20
_MAX_EDGE = 2.0
_FORWARD = LINK_VECTORS[13:].astype(np.float64)


@dataclass(frozen=True)
class SurfaceWall:
    """A triangulated wall for `assemble`; `labels` (f,) are the iolets closed by triangles, else -1."""

    surface: Surface
    labels: npt.NDArray[np.int16]

    def find(self, lattice: CandidateNodes, node: npt.NDArray[np.int64], direction: npt.NDArray[np.int64]) -> WallHits:
        """Return the first hits of the links from the nodes `node` (p,) along `direction` (p,)."""
        corners = (self.surface.corners() - np.asarray(lattice.origin)) / lattice.spacing
        rows = np.unique(node)
        fraction, face = _first_hits(corners, lattice.coords[rows].astype(np.int64), np.array(lattice.shape, np.int64))
        position = np.searchsorted(rows, node)
        fraction, face = fraction[position, direction], face[position, direction]
        area = self.surface.vector_areas()
        unit = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), np.finfo(float).tiny)
        is_hit = face >= 0
        normal = np.where(is_hit[:, None], unit[face], 0.0)
        label = np.where(is_hit, self.labels[face], -1).astype(np.int16)
        return WallHits(np.where(is_hit, np.minimum(fraction, 1.0), np.nan), normal, label)


def _first_hits(
    corners: Floats, nodes: npt.NDArray[np.int64], shape: npt.NDArray[np.int64]
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return fraction (m, 26) and triangle (m, 26) of the first hit from `nodes` (m, 3); inf and -1 for none."""
    strides = np.array([(shape[1] + 2) * (shape[2] + 2), shape[2] + 2, 1], np.int64)
    keys = (nodes + 1) @ strides
    fraction = np.full((len(nodes), 26), np.inf)
    triangle = np.full((len(nodes), 26), -1, np.int64)
    pieces, parent = subdivided(corners, _MAX_EDGE)
    order = np.argsort(parent, kind="stable")
    pieces, parent = pieces[order], parent[order]
    window_size = int(_MAX_EDGE) + 3
    window = np.indices((window_size,) * 3).reshape(3, -1).T
    step = max(1, CHUNK // len(window))
    for start in range(0, len(pieces), step):
        chunk = pieces[start : start + step]
        low, high = np.ceil(chunk.min(axis=1) - 1.001), np.floor(chunk.max(axis=1) + 1.001)
        window_nodes = low[:, None, :].astype(np.int64) + window
        candidates = np.all((window_nodes <= high[:, None, :]) & (window_nodes >= 0) & (window_nodes < shape), axis=2)
        piece, offset = np.nonzero(candidates)
        key = (window_nodes[piece, offset] + 1) @ strides
        row = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        is_node = keys[row] == key
        pair = np.unique(parent[start + piece[is_node]] * len(nodes) + row[is_node])
        _update_hits(corners, nodes, pair // len(nodes), pair % len(nodes), fraction=fraction, triangle=triangle)
    return fraction, triangle


def _update_hits(
    corners: Floats,
    nodes: npt.NDArray[np.int64],
    face: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    *,
    fraction: Floats,
    triangle: npt.NDArray[np.int64],
) -> None:
    """Lower `fraction` and set `triangle` where a link of node `row` (q,) meets the triangle `face` (q,)."""
    a, b, d = np.moveaxis(corners[face], 1, 0)
    e, g, s = b - a, d - a, nodes[row] - a
    normal = np.cross(e, g)
    height = np.einsum("ij,ij->i", s, normal)
    close = np.abs(height) <= np.sqrt(3.0) * (1.0 + 3.0 * ON_SURFACE) * np.linalg.norm(normal, axis=1)
    face, row, e, g, s, normal, height = (values[close] for values in (face, row, e, g, s, normal, height))
    denominator = -(normal @ _FORWARD.T)
    size = np.linalg.norm(normal, axis=1, keepdims=True)
    denominator = np.where(np.abs(denominator) > 1e-12 * size, denominator, np.nan)
    u, v = (np.cross(g, s) @ _FORWARD.T) / denominator, (np.cross(s, e) @ _FORWARD.T) / denominator
    t = height[:, None] / denominator
    hit = (u >= -EDGE_TOLERANCE) & (v >= -EDGE_TOLERANCE) & (u + v <= 1.0 + EDGE_TOLERANCE)
    hit &= (np.abs(t) <= 1.0 + 3.0 * ON_SURFACE) & (t != 0.0)
    pair, k = np.nonzero(hit)
    distance = t[pair, k]
    direction = np.where(distance > 0.0, 13 + k, 12 - k)
    distance = np.abs(distance)
    nearer = distance < fraction[row[pair], direction]
    pair, direction, distance = pair[nearer], direction[nearer], distance[nearer]
    last = np.argsort(-distance, kind="stable")  # the nearest overwrites the others
    links = (row[pair[last]], direction[last])
    fraction[links], triangle[links] = distance[last], face[pair[last]]
