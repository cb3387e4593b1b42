# SPDX-License-Identifier: BSD-3-Clause
"""Edges that go through triangles: of two surfaces that overlap, or of one that crosses itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


#: Ends of a segment so near the plane of a triangle, in lengths of either, are in it: rounding of places far away.
_IN_PLANE = 1e-12


def goes_through(start: Floats, along: Floats, corners: tuple[Floats, Floats, Floats]) -> npt.NDArray[np.bool_]:
    """Return whether segments from `start` to `start + along` (..., 3) meet triangles, by signs of tetrahedra.

    What only touches counts.
    """
    a, b, c = corners
    normal = np.cross(b - a, c - a)
    before = np.einsum("...i,...i->...", start - a, normal)
    after = np.einsum("...i,...i->...", start + along - a, normal)
    sides = [np.einsum("...i,...i->...", np.cross(along, q - start), p - start) for p, q in ((a, b), (b, c), (c, a))]
    same = ((sides[0] >= 0) & (sides[1] >= 0) & (sides[2] >= 0)) | ((sides[0] <= 0) & (sides[1] <= 0) & (sides[2] <= 0))
    met: npt.NDArray[Any] = (before * after <= 0) & same
    size = sum(np.abs(each).max(axis=-1) for each in (along, b - a, c - a, start - a))
    flat = np.maximum(np.abs(before), np.abs(after)) <= _IN_PLANE * size * np.linalg.norm(normal, axis=-1)
    if flat.any():
        p, d, *each, n = (np.broadcast_to(x, (*flat.shape, 3))[flat] for x in (start, along, a, b, c, normal))
        met[flat] = _meets_in_plane(p, d, (each[0], each[1], each[2]), n)
    return met


def _meets_in_plane(
    start: Floats, along: Floats, corners: tuple[Floats, Floats, Floats], normal: Floats
) -> npt.NDArray[np.bool_]:
    """Return whether segments (n, 3) meet triangles in one plane with them: an end is inside, or they cut an edge."""
    kept = np.array([[1, 2], [2, 0], [0, 1]])[np.abs(normal).argmax(axis=1)]
    p, q, a, b, c = (np.take_along_axis(each, kept, axis=1) for each in (start, start + along, *corners))

    def side(one: Floats, two: Floats, point: Floats) -> Floats:
        there, here = two - one, point - one
        return np.asarray(there[:, 0] * here[:, 1] - there[:, 1] * here[:, 0])

    edges = ((a, b), (b, c), (c, a))
    sides = [side(one, two, p) for one, two in edges]
    met = np.minimum.reduce(sides) * np.maximum.reduce(sides) >= 0
    for one, two in edges:
        apart = (np.maximum(p, q) < np.minimum(one, two)) | (np.minimum(p, q) > np.maximum(one, two))
        crossed = (side(p, q, one) * side(p, q, two) <= 0) & (side(one, two, p) * side(one, two, q) <= 0)
        met |= crossed & ~apart.any(axis=1)
    return np.asarray(met)


def edges_of(surface: Surface) -> Integers:
    """Return the edges (n, 2) of a closed surface, once each."""
    faces = surface.faces.astype(np.int64)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return edges[edges[:, 0] < edges[:, 1]]


def near_pairs(starts: Floats, ends: Floats, corners: Floats) -> tuple[Integers, Integers]:
    """Return pairs of a segment (n, 3) to (n, 3) and a triangle (m, 3, 3), by number, so near that they may meet."""
    from scipy.spatial import cKDTree

    if not len(starts) or not len(corners):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    middles = corners.mean(axis=1)
    reach = np.linalg.norm(corners - middles[:, None], axis=2).max() + 0.5 * np.linalg.norm(ends - starts, axis=1)
    tree, between = cKDTree(middles), 0.5 * (starts + ends)
    nearest, _ = tree.query(between, distance_upper_bound=1.001 * reach.max())
    some = np.flatnonzero(nearest <= reach)  # of two surfaces side by side, few
    if not len(some):
        return some, some
    near = tree.query_ball_point(between[some], reach[some])
    segment = np.repeat(some, [len(each) for each in near])
    return segment, np.concatenate([np.asarray(each, np.int64) for each in near])


def own_crossing(surface: Surface) -> tuple[tuple[int, int], int] | None:
    """Return an edge, by its vertices, and a triangle that meet and share no vertex, None if there are none."""
    edges, corners = edges_of(surface), surface.corners()
    starts, ends = surface.vertices[edges[:, 0]], surface.vertices[edges[:, 1]]
    edge, face = near_pairs(starts, ends, corners)
    apart = (surface.faces[face][:, :, None] != edges[edge][:, None, :]).all(axis=(1, 2))
    edge, face = edge[apart], face[apart]
    met = goes_through(starts[edge], (ends - starts)[edge], (corners[face, 0], corners[face, 1], corners[face, 2]))
    found = np.flatnonzero(met)
    if not len(found):
        return None
    first, second = edges[edge[found[0]]].tolist()
    return (first, second), int(face[found[0]])
