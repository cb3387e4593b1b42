# SPDX-License-Identifier: BSD-3-Clause
"""Solid bodies in built-in geometries: spheres, round cylinders and boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
Position = tuple[float, float, float]

#: Distance (p,) of points (p, 3) from a wall, negative in the fluid.
_Distance = Callable[[Floats], Floats]


class Obstacle(Protocol):
    """A solid body; lengths are in metres."""

    def depth(self, points: Floats) -> Floats:
        """Return the depth (p,) of `points` (p, 3) in the body, negative outside."""

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest corner of a box around the body."""

    def measure(self) -> tuple[float, float]:
        """Return volume and surface."""

    def extended(self, low: Floats, high: Floats, spacing: float) -> Self:
        """Return the body with the ends that are not inside the box from `low` to `high` moved out by two spacings.

        A body that ends in a wall or in a periodic plane thus has no surface there.
        """


@dataclass(frozen=True)
class SolidSphere:
    """A sphere."""

    center: Position
    radius: float

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return np.asarray(self.radius - np.linalg.norm(points - np.array(self.center), axis=1))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the sphere."""
        return np.array(self.center) - self.radius, np.array(self.center) + self.radius

    def measure(self) -> tuple[float, float]:
        """Return volume and surface."""
        return 4.0 / 3.0 * math.pi * self.radius**3, 4.0 * math.pi * self.radius**2

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidSphere:
        """Return the sphere itself, which has no ends."""
        return self


@dataclass(frozen=True)
class SolidCylinder:
    """A round cylinder with flat ends."""

    start: Position
    end: Position
    radius: float

    def _axis(self) -> tuple[Floats, float]:
        vector = np.subtract(self.end, self.start)
        length = float(np.linalg.norm(vector))
        return vector / length, length

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        axis, length = self._axis()
        offset = points - np.array(self.start)
        axial = offset @ axis
        radial = np.linalg.norm(offset - axial[:, None] * axis, axis=1)
        return np.asarray(np.minimum(self.radius - radial, np.minimum(axial, length - axial)))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the cylinder."""
        axis, _ = self._axis()
        half_extent = self.radius * np.sqrt(np.maximum(1.0 - axis**2, 0.0))
        return np.minimum(self.start, self.end) - half_extent, np.maximum(self.start, self.end) + half_extent

    def measure(self) -> tuple[float, float]:
        """Return volume and surface, the latter without the ends."""
        length = self._axis()[1]
        return math.pi * self.radius**2 * length, 2.0 * math.pi * self.radius * length

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidCylinder:
        """Return the cylinder, longer where it ends at or outside the box."""
        axis, _ = self._axis()
        body, shift = self, 2.0 * spacing * axis
        if not _is_inside(np.array(self.start), low, high, spacing):
            body = replace(body, start=_as_position(np.array(self.start) - shift))
        if not _is_inside(np.array(self.end), low, high, spacing):
            body = replace(body, end=_as_position(np.array(self.end) + shift))
        return body


@dataclass(frozen=True)
class SolidBox:
    """A box along the axes."""

    low: Position
    high: Position

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return np.asarray(np.minimum(points - np.array(self.low), np.array(self.high) - points).min(axis=1))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners."""
        return np.array(self.low), np.array(self.high)

    def measure(self) -> tuple[float, float]:
        """Return volume and surface."""
        x, y, z = np.subtract(self.high, self.low).tolist()
        return x * y * z, 2.0 * (x * y + y * z + z * x)

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidBox:
        """Return the box, larger where it ends at or outside the other box."""
        below, above = np.array(self.low), np.array(self.high)
        below[below <= low + 1e-6 * spacing] -= 2.0 * spacing
        above[above >= high - 1e-6 * spacing] += 2.0 * spacing
        return SolidBox(_as_position(below), _as_position(above))


def with_obstacles(
    distance: _Distance,
    obstacles: Sequence[Obstacle],
    box: tuple[Floats, Floats],
    spacing: float,
    periodic: tuple[bool, bool, bool],
) -> _Distance:
    """Return the `distance` from the wall or the nearest obstacle, which repeat along the `periodic` axes of the box.

    Raises CaseError for an obstacle without a lattice node.
    """
    if not obstacles:
        return distance
    low, high = box
    for number, obstacle in enumerate(obstacles, start=1):
        _check_not_empty(obstacle, number, box, spacing)
    bodies = [obstacle.extended(low, high, spacing) for obstacle in obstacles]
    steps = [(-1, 0, 1) if is_periodic else (0,) for is_periodic in periodic]
    shifts = [np.array(step) * (high - low) for step in itertools.product(*steps)]

    def nearest(points: Floats) -> Floats:
        result = distance(points)
        for body, shift in itertools.product(bodies, shifts):
            result = np.maximum(result, body.depth(points - shift))
        return np.asarray(result)

    return nearest


def _check_not_empty(obstacle: Obstacle, number: int, box: tuple[Floats, Floats], spacing: float) -> None:
    """Reject an obstacle that contains no node of the box, and so has no effect."""
    lower_corner, upper_corner = obstacle.bounds()
    first = np.ceil(np.maximum(lower_corner, box[0]) / spacing - 0.5).astype(np.int64)
    last = np.floor(np.minimum(upper_corner, box[1]) / spacing - 0.5).astype(np.int64)
    for x in range(int(first[0]), int(last[0]) + 1):
        y, z = (np.arange(first[k], last[k] + 1) for k in (1, 2))
        nodes = np.stack(np.meshgrid([x], y, z, indexing="ij"), axis=-1).reshape(-1, 3)
        if len(nodes) and bool((obstacle.depth((nodes + 0.5) * spacing) > 0.0).any()):
            return
    raise CaseError(
        f"obstacle {number} contains no lattice node; move it into the shape, or make it larger than a spacing of "
        f"{spacing:g} m"
    )


def _is_inside(point: Floats, low: Floats, high: Floats, spacing: float) -> bool:
    margin = 1e-6 * spacing
    return bool(np.all((point > low + margin) & (point < high - margin)))


def _as_position(point: npt.NDArray[Any]) -> Position:
    x, y, z = point.tolist()
    return x, y, z
