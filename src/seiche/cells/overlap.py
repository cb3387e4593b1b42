# SPDX-License-Identifier: BSD-3-Clause
"""Packings, overlaps of surfaces that intersect or contain each other, and self-intersections of surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads, pieces_of
from seiche.cells.neighbors import neighbor_pairs
from seiche.cells.vessels import signed_distance
from seiche.domain.surface import Surface, bounds, in_box

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Number of bodies up to which one thread places their points.
_FEW_COPIES = 2048


@dataclass(frozen=True, eq=False)
class Packing:
    """Positions of cells: `centers` (n, 3), `rotations` (n, 3, 3) relative to their meshes, and types `kinds` (n,).

    A center is the mean of the vertices. `hematocrit` is computed from the volumes of the meshes.
    """

    centers: Floats
    rotations: Floats
    kinds: Integers
    hematocrit: float

    def of_kind(self, kind: int) -> tuple[Floats, Floats]:
        """Return centers and rotations of the cells of one type."""
        is_of_kind = self.kinds == kind
        return self.centers[is_of_kind], self.rotations[is_of_kind]

    def subset(self, rows: npt.NDArray[Any], hematocrit: float) -> Packing:
        """Return the packing of the cells in `rows`."""
        return Packing(self.centers[rows], self.rotations[rows], self.kinds[rows], hematocrit)


def placed(points: Floats, centers: Floats, rotations: Floats) -> Floats:
    """Return copies (n, p, 3) of `points` (p, 3), rotated by `rotations` (n, 3, 3) and moved to `centers` (n, 3)."""
    copies = np.empty((len(centers), *points.shape))

    def place(part: slice) -> None:
        np.add(np.einsum("nij,pj->npi", rotations[part], points), centers[part, None], out=copies[part])

    on_threads(place, pieces_of(len(copies)) if len(copies) > _FEW_COPIES else [slice(None)])
    return copies


def overlapping_pairs(surfaces: Sequence[Surface], packing: Packing, lengths: Floats, margin: float = 0.0) -> Integers:
    """Return the ascending pairs (p, 2) of cells that overlap or are closer than `margin`.

    `lengths` (3,) are the periods of the space, 0 along axes that are not periodic. The margin is tested for vertices
    only; without a margin, the test is exact up to rounding. A cell that overlaps its own image is a pair with itself.
    """
    bodies = [Surface(surface.vertices - surface.vertices.mean(axis=0), surface.faces) for surface in surfaces]
    radii = np.array([np.linalg.norm(body.vertices, axis=1).max() for body in bodies])
    if not len(packing.centers):
        return np.zeros((0, 2), np.int64)
    pairs, shifts = neighbor_pairs(packing.centers, lengths, 2 * float(radii.max()) + margin)
    is_ordered = pairs[:, 0] <= pairs[:, 1]
    pairs, shifts = pairs[is_ordered], shifts[is_ordered]
    kinds, centers, rotations = packing.kinds, packing.centers, packing.rotations
    offsets = centers[pairs[:, 1]] + shifts - centers[pairs[:, 0]]
    in_reach = np.linalg.norm(offsets, axis=1) <= radii[kinds[pairs[:, 0]]] + radii[kinds[pairs[:, 1]]] + margin
    overlapping = []
    for (i, j), shift in zip(pairs[in_reach].tolist(), offsets[in_reach], strict=True):
        first, second = bodies[kinds[i]], bodies[kinds[j]]
        # The second cell is transformed to the frame of the first.
        second_in_first = Surface((second.vertices @ rotations[j].T + shift) @ rotations[i], second.faces)
        if overlap_or_near(first, second_in_first, margin):
            overlapping.append((min(i, j), max(i, j)))
    return np.unique(np.array(overlapping, np.int64).reshape(-1, 2), axis=0)


def overlap_or_near(first_surface: Surface, second_surface: Surface, margin: float) -> bool:
    """Return whether two closed surfaces overlap, or a vertex of one is closer than `margin` to the other."""
    (low, high), (other_low, other_high) = bounds(first_surface.vertices), bounds(second_surface.vertices)
    low, high = np.maximum(low, other_low) - margin, np.minimum(high, other_high) + margin
    if (low > high).any():
        return False
    ordered = ((first_surface, second_surface), (second_surface, first_surface))
    if _surfaces_intersect(first_surface, second_surface, low, high) or any(
        _contains(other, surface) for surface, other in ordered
    ):
        return True
    return margin > 0 and any(_close(surface, other, margin) for surface, other in ordered)


def _contains(outer: Surface, inner: Surface) -> bool:
    """Return whether the surface `outer` contains `inner`; the surfaces must not intersect."""
    if not in_box(np.array(bounds(inner.vertices)), *bounds(outer.vertices)).all():
        return False
    return bool(signed_distance(outer, inner.vertices[:1])[0] < 0)


def _close(surface: Surface, other: Surface, margin: float) -> bool:
    """Return whether a vertex of one surface is closer than `margin` to the other; they must not intersect."""
    from scipy.spatial import cKDTree

    corners = other.corners()
    max_edge = float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max())
    # The distance of a point of a triangle from its vertices is at most the longest edge.
    distances, _ = cKDTree(other.vertices).query(surface.vertices, distance_upper_bound=max_edge + margin)
    candidates = surface.vertices[np.isfinite(distances)]
    return bool(len(candidates) and (signed_distance(other, candidates) < margin).any())


def _surfaces_intersect(first_surface: Surface, second_surface: Surface, low: Floats, high: Floats) -> bool:
    """Return whether triangles of the two surfaces intersect or touch inside a box."""
    from igl.predicates import find_intersections

    bodies = [_in_box(surface, low, high) for surface in (first_surface, second_surface)]
    if not all(len(body.faces) for body in bodies):
        return False
    return bool(find_intersections(*_as_igl(bodies[0]), *_as_igl(bodies[1]), first_only=True)[0])


def self_intersection(surface: Surface) -> tuple[int, int] | None:
    """Return two triangles of a surface that intersect other than at common vertices, or None."""
    from igl.predicates import find_self_intersections

    has_crossing, pairs, _ = find_self_intersections(*_as_igl(surface))
    return min(map(tuple, np.sort(pairs, axis=1).tolist())) if has_crossing else None


def _as_igl(surface: Surface) -> tuple[Floats, Integers]:
    """Return the vertices and triangles in the types of libigl."""
    return np.ascontiguousarray(surface.vertices, np.float64), surface.faces.astype(np.int64)


def _in_box(surface: Surface, low: Floats, high: Floats) -> Surface:
    """Return the triangles of a surface whose bounding boxes intersect a box."""
    a, b, c = (surface.vertices[surface.faces[:, corner]] for corner in range(3))
    is_outside = (np.maximum(np.maximum(a, b), c) < low) | (np.minimum(np.minimum(a, b), c) > high)
    return Surface(surface.vertices, surface.faces[~(is_outside[:, 0] | is_outside[:, 1] | is_outside[:, 2])])
