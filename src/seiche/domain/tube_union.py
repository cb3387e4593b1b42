# SPDX-License-Identifier: BSD-3-Clause
"""Smooth unions of tubes, the walls of generated vessels: signed distances and openings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seiche.domain.sites import IoletPlane
from seiche.domain.surface import Floats, Loop


@dataclass(frozen=True)
class CenterlineTube:
    """A tube of `radius` around the polyline `points` (k, 3)."""

    points: Floats
    radius: float

    def distance(self, positions: Floats) -> Floats:
        """Return the signed distance of `positions` (p, 3), negative inside."""
        nearest = np.full(len(positions), np.inf)
        for start, end in zip(self.points[:-1], self.points[1:], strict=True):
            segment = end - start
            offset = positions - start
            fraction = np.clip(offset @ segment / (segment @ segment), 0.0, 1.0)
            offset -= fraction[:, None] * segment
            np.minimum(nearest, np.einsum("ij,ij->i", offset, offset), out=nearest)
        return np.asarray(np.sqrt(nearest) - self.radius)


def smooth_union(tubes: Sequence[CenterlineTube], widths: Sequence[float], positions: Floats) -> Floats:
    """Return the signed distance of `positions` (p, 3) from the smooth union of `tubes`."""
    field = tubes[0].distance(positions)
    for tube, width in zip(tubes[1:], widths[1:], strict=True):
        field = smooth_minimum(field, tube.distance(positions), width)
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
