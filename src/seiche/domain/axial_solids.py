# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies that are round about an axis of any direction: cylinder, cone, capsule and torus."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from seiche.domain.solids import Floats, Place, SolidBody, place_of
from seiche.domain.surface import along_axis


@dataclass(frozen=True)
class SolidTorus(SolidBody):
    """A ring of circular section around `axis` (any length)."""

    center: Place
    axis: Place
    radius: float
    section: float

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        direction = np.array(self.axis) / np.linalg.norm(self.axis)
        offset = points - np.array(self.center)
        along = along_axis(offset, direction)
        across = np.linalg.norm(offset - along[:, None] * direction, axis=1)
        return np.asarray(self.section - np.hypot(across - self.radius, along))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the ring."""
        direction = np.array(self.axis) / np.linalg.norm(self.axis)
        half = self.radius * np.sqrt(np.maximum(1.0 - direction**2, 0.0)) + self.section
        return np.array(self.center) - half, np.array(self.center) + half

    def measure(self) -> tuple[float, float]:
        """Return volume and surface (Pappus)."""
        return 2.0 * (math.pi * self.section) ** 2 * self.radius, 4.0 * math.pi**2 * self.radius * self.section


@dataclass(frozen=True)
class SolidAlongAxis(SolidBody):
    """A round body between two points of its axis."""

    start: Place
    end: Place

    def _axis(self) -> tuple[Floats, float]:
        vector = np.subtract(self.end, self.start)
        length = float(np.linalg.norm(vector))
        return vector / length, length

    def _along_and_across(self, points: Floats) -> tuple[Floats, Floats]:
        axis, _ = self._axis()
        offset = points - np.array(self.start)
        along = along_axis(offset, axis)
        return along, np.linalg.norm(offset - along[:, None] * axis, axis=1)

    def _moved_ends(self, low: Floats, high: Floats, spacing: float) -> tuple[float, float]:
        """Return the lengths by which the start and the end are moved outwards: two spacings outside the box."""
        return (
            0.0 if _is_inside(np.array(self.start), low, high, spacing) else 2.0 * spacing,
            0.0 if _is_inside(np.array(self.end), low, high, spacing) else 2.0 * spacing,
        )

    def _moved(self, before: float, after: float, **changes: Any) -> Self:
        axis, _ = self._axis()
        start = place_of(np.array(self.start) - before * axis) if before else self.start
        end = place_of(np.array(self.end) + after * axis) if after else self.end
        return replace(self, start=start, end=end, **changes)


@dataclass(frozen=True)
class SolidCylinder(SolidAlongAxis):
    """A round cylinder with flat ends."""

    radius: float

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        along, across = self._along_and_across(points)
        return np.asarray(np.minimum(self.radius - across, np.minimum(along, self._axis()[1] - along)))

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
        return self._moved(*self._moved_ends(low, high, spacing))


@dataclass(frozen=True)
class SolidCone(SolidAlongAxis):
    """A cone, truncated if both of its `radii`, at the start and at the end, are positive."""

    radii: tuple[float, float]

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        along, across = self._along_and_across(points)
        length, slope = self._axis()[1], self._slope()
        side = (self.radii[0] + slope * along - across) / math.hypot(1.0, slope)
        return np.asarray(np.minimum(side, np.minimum(along, length - along)))

    def _slope(self) -> float:
        return (self.radii[1] - self.radii[0]) / self._axis()[1]

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the cone."""
        share = np.sqrt(np.maximum(1.0 - self._axis()[0] ** 2, 0.0))
        first, last = (radius * share for radius in self.radii)
        start, end = np.array(self.start), np.array(self.end)
        return np.minimum(start - first, end - last), np.maximum(start + first, end + last)

    def measure(self) -> tuple[float, float]:
        """Return volume and surface, the latter without the ends."""
        (first, last), length = self.radii, self._axis()[1]
        side = math.pi * (first + last) * math.hypot(length, first - last)
        return math.pi * length * (first**2 + first * last + last**2) / 3.0, side

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidCone:
        """Return the cone, continued with the same slope where it ends at or outside the box."""
        before, after = self._moved_ends(low, high, spacing)
        slope = self._slope()
        first, last = max(0.0, self.radii[0] - slope * before), max(0.0, self.radii[1] + slope * after)
        return self._moved(before, after, radii=(first, last))


@dataclass(frozen=True)
class SolidCapsule(SolidAlongAxis):
    """A round cylinder with hemispheres at its ends, whose centres are `start` and `end`."""

    radius: float

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        along, across = self._along_and_across(points)
        beyond = along - np.clip(along, 0.0, self._axis()[1])
        return np.asarray(self.radius - np.hypot(across, beyond))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the capsule."""
        return np.minimum(self.start, self.end) - self.radius, np.maximum(self.start, self.end) + self.radius

    def measure(self) -> tuple[float, float]:
        """Return volume and surface."""
        length, radius = self._axis()[1], self.radius
        return math.pi * radius**2 * (length + 4.0 / 3.0 * radius), 2.0 * math.pi * radius * (length + 2.0 * radius)


def _is_inside(point: Floats, low: Floats, high: Floats, spacing: float) -> bool:
    margin = 1e-6 * spacing
    return bool(np.all((point > low + margin) & (point < high - margin)))
