# SPDX-License-Identifier: BSD-3-Clause
"""Smooth unions of tubes, the walls of generated vessels: signed distances and openings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.site_rows import expanded
from seiche.domain.sites import IoletPlane
from seiche.domain.surface import Floats, Loop

Indices = npt.NDArray[np.int64]

#: Factor for rounding errors in the bound on distances within a block.
_MARGIN = 1.0 + 1e-6


@dataclass(frozen=True)
class CenterlineTube:
    """A tube of `radius` around the polyline `points` (k, 3)."""

    points: Floats
    radius: float

    def distance(self, positions: Floats) -> Floats:
        """Return the signed distance of `positions` (p, 3), negative inside."""
        return np.asarray(np.sqrt(self._squares(positions).min(axis=0)) - self.radius)

    def distance_in_blocks(self, positions: Floats, first: Indices, centers: Floats, reach: float) -> Floats:
        """Return the same for positions ordered by blocks, each of which needs only the segments near its block.

        Positions `first[b]` to `first[b + 1]` (blocks + 1,) are at most `reach` from the point `centers[b]`.
        """
        from_center = np.sqrt(self._squares(centers))
        # By the triangle inequality, no other segment can be the nearest one of a position.
        needed = from_center <= from_center.min(axis=0) + _MARGIN * 2.0 * reach
        nearest = np.full(len(positions), np.inf)
        for number, near in enumerate(needed):
            blocks = np.flatnonzero(near)
            rows = expanded(first[blocks], first[blocks + 1])
            nearest[rows] = np.minimum(nearest[rows], self._square(number, positions[rows]))
        return np.asarray(np.sqrt(nearest) - self.radius)

    def _squares(self, positions: Floats) -> Floats:
        """Return the squared distances (k - 1, p) of `positions` (p, 3) from all segments."""
        return np.stack([self._square(number, positions) for number in range(len(self.points) - 1)])

    def _square(self, number: int, positions: Floats) -> Floats:
        """Return the squared distances (p,) of `positions` (p, 3) from a segment."""
        start, end = self.points[number : number + 2]
        segment = end - start
        offset = positions - start
        fraction = np.clip(offset @ segment / (segment @ segment), 0.0, 1.0)
        offset -= fraction[:, None] * segment
        return np.asarray(np.einsum("ij,ij->i", offset, offset))


def smooth_union(distances: Sequence[Floats], widths: Sequence[float]) -> Floats:
    """Return the signed distance (p,) from the smooth union of tubes, of which `distances` are those of each (p,)."""
    field = distances[0]
    for distance, width in zip(distances[1:], widths[1:], strict=True):
        field = smooth_minimum(field, distance, width)
    return field


def smooth_minimum(a: Floats, b: Floats, width: float) -> Floats:
    """Return the cubic smooth minimum of Quilez: min(a, b) if they differ by more than `width`, else lower."""
    overlap = np.maximum(width - np.abs(a - b), 0.0) / width
    return np.asarray(np.minimum(a, b) - overlap**3 * width / 6.0)


def is_rim_of(plane: IoletPlane, loop: Loop) -> bool:
    """Return whether `loop` is the circular rim of `plane` within 5 % of its radius."""
    radius = plane.radius or 0.0
    distance = float(np.linalg.norm(np.subtract(loop.center, plane.center)))
    return distance < 0.05 * radius and abs(loop.radius - radius) < 0.05 * radius


def triple(values: Floats) -> tuple[float, float, float]:
    """Return three numbers without negative zeros."""
    return float(values[0]) + 0.0, float(values[1]) + 0.0, float(values[2]) + 0.0
