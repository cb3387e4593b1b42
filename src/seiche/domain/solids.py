# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies: the one set of primitives for vessels, obstacles and media, in one to three dimensions.

A body is the set of points with `depth` >= 0. The depth is a lower bound of the distance from the surface (its rate of
change is at most one), and its zero level is exactly the surface.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Place = tuple[float, ...]
#: Distance of a boundary from the side of a cell, relative to the cell size, below which it is taken to be on the side.
_ON_SIDE = 1e-9
#: Samples along each axis of the box around a body without a formula for its volume and surface.
_SAMPLES = 48
#: Number of points whose depth is computed at a time.
_CHUNK = 1 << 18
#: Number of boxes along the last axis that approximate a round body.
_PARTS = 8


class SolidBody(ABC):
    """A solid body; lengths are in metres. Coordinates are lists with one array for each axis, which broadcast."""

    @abstractmethod
    def depth(self, points: Floats) -> Floats:
        """Return the depth (p,) of `points` (p, dim) in the body, negative outside."""

    @abstractmethod
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest corner (dim,) of a box around the body."""

    def measure(self) -> tuple[float, float]:
        """Return volume and surface, by default estimated from samples of the depth."""
        low, high = self.bounds()
        if not np.isfinite(high - low).all():
            return 0.0, 0.0
        step = (high - low) / _SAMPLES
        axes = [a + d * (np.arange(_SAMPLES) + 0.5) for a, d in zip(low, step, strict=True)]
        depth = self.depth(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(low)))
        cell, width = float(np.prod(step)), float(step.max())
        near_points = float(np.count_nonzero(np.abs(depth) < width))
        return float(np.count_nonzero(depth >= 0.0)) * cell, near_points * cell / (2.0 * width)

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidBody:
        """Return the body with the ends that are not inside the box from `low` to `high` moved out by two spacings.

        A body that ends in a wall or in a periodic plane thus has no surface there. Bodies without ends are unchanged.
        """
        return self

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the body contains points."""
        return np.asarray(self._depths(coordinates) >= 0.0)

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether the surface may be inside cells with the ends `low` and `high` along each axis.

        It is exact for spheres, shells, ellipsoids, boxes and layers. For others it is true in a few cells more.
        """
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        half = np.sqrt(reduce(np.add, [((b - a) / 2) ** 2 for a, b in zip(low, high, strict=True)]))
        return np.asarray(np.abs(self._depths(middle)) <= half * (1 + _ON_SIDE))

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the coordinates, along an axis of `dim`, of the plane surfaces that are normal to it."""
        return ()

    def boxes(self, dim: int) -> tuple[Floats, Floats]:
        """Return lower and upper corners (k, dim) of boxes that together enclose the body."""
        low, high = self.bounds()
        return low[None], high[None]

    def _depths(self, coordinates: Sequence[Floats]) -> Floats:
        broadcast = np.broadcast_arrays(*coordinates)
        flat = [np.asarray(axis).reshape(-1) for axis in broadcast]
        result = np.empty(len(flat[0]))
        for first in range(0, len(result), _CHUNK):
            rows = slice(first, first + _CHUNK)
            result[rows] = self.depth(np.stack([axis[rows] for axis in flat], axis=1))
        return result.reshape(broadcast[0].shape)


@dataclass(frozen=True)
class SolidSphere(SolidBody):
    """A sphere, or a disc in two dimensions."""

    center: Place
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

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the sphere contains points."""
        return np.asarray(_distance(coordinates, self.center) <= self.radius)

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether the surface is inside cells."""
        return _spheres_cut(self.center, (self.radius,), low, high)

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the ends of an interval, if there is one axis only."""
        return (self.center[0] - self.radius, self.center[0] + self.radius) if dim == 1 else ()


@dataclass(frozen=True)
class SolidShell(SolidBody):
    """The space between two spheres, or circles in two dimensions."""

    center: Place
    inner: float
    outer: float

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        radius = np.linalg.norm(points - np.array(self.center), axis=1)
        return np.asarray(np.minimum(self.outer - radius, radius - self.inner))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the shell."""
        return np.array(self.center) - self.outer, np.array(self.center) + self.outer

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the shell contains points."""
        radius = _distance(coordinates, self.center)
        return np.asarray((radius >= self.inner) & (radius <= self.outer))

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether a surface is inside cells."""
        return _spheres_cut(self.center, (self.inner, self.outer), low, high)

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the ends of two intervals, if there is one axis only."""
        radii = (self.inner, self.outer) if dim == 1 else ()
        return tuple(self.center[0] + sign * radius for radius in radii for sign in (-1, 1))


@dataclass(frozen=True)
class SolidEllipsoid(SolidBody):
    """An ellipsoid along the axes, or an ellipse in two dimensions."""

    center: Place
    radii: Place

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        scaled = np.linalg.norm((points - np.array(self.center)) / np.array(self.radii), axis=1)
        return np.asarray((1.0 - scaled) * min(self.radii))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the ellipsoid."""
        return np.array(self.center) - np.array(self.radii), np.array(self.center) + np.array(self.radii)

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the ellipsoid contains points."""
        scaled = [((x - c) / r) ** 2 for x, c, r in zip(coordinates, self.center, self.radii, strict=True)]
        return np.asarray(reduce(np.add, scaled) <= 1)

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether the surface is inside cells."""
        inner = _shrunk(low, high)
        terms = list(zip(inner, self.center, self.radii, strict=True))
        nearest = reduce(np.add, [((np.clip(c, a, b) - c) / r) ** 2 for (a, b), c, r in terms])
        farthest = reduce(np.add, [(np.maximum(abs(a - c), abs(b - c)) / r) ** 2 for (a, b), c, r in terms])
        return np.asarray((nearest < 1) & (farthest > 1))

    def boxes(self, dim: int) -> tuple[Floats, Floats]:
        """Return boxes that together enclose the ellipsoid."""
        center, radii = np.array(self.center), np.array(self.radii)
        ends = np.linspace(-1.0, 1.0, _PARTS + 1)
        widest = np.where((ends[:-1] < 0) & (ends[1:] > 0), 0.0, np.minimum(abs(ends[:-1]), abs(ends[1:])))
        across = np.sqrt(1 - widest**2)[:, None] * radii
        lower, upper = center - across, center + across
        lower[:, -1], upper[:, -1] = center[-1] + radii[-1] * ends[:-1], center[-1] + radii[-1] * ends[1:]
        return lower, upper


@dataclass(frozen=True)
class SolidBox(SolidBody):
    """A box along the axes."""

    low: Place
    high: Place

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
        return SolidBox(place_of(below), place_of(above))

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the box contains points."""
        intervals = [(x >= a) & (x <= b) for x, a, b in zip(coordinates, self.low, self.high, strict=True)]
        return np.asarray(reduce(np.logical_and, intervals))

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether a side is inside cells."""
        margins = [_ON_SIDE * (b - a) for a, b in zip(low, high, strict=True)]
        sides = list(zip(low, high, self.low, self.high, margins, strict=True))
        touched = reduce(np.logical_and, [(b - m > first) & (a + m < last) for a, b, first, last, m in sides])
        within = reduce(np.logical_and, [(a >= first - m) & (b <= last + m) for a, b, first, last, m in sides])
        return np.asarray(touched & ~within)

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the sides."""
        return self.low[axis], self.high[axis]


@dataclass(frozen=True)
class SolidLayer(SolidBody):
    """The space between two planes normal to the last axis of `dim`."""

    bottom: float
    top: float
    dim: int = 3

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return np.asarray(np.minimum(points[:, -1] - self.bottom, self.top - points[:, -1]))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners, infinite along all axes but the last."""
        low, high = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
        low[-1], high[-1] = self.bottom, self.top
        return low, high

    def contains(self, coordinates: Sequence[Floats]) -> Flags:
        """Return whether the layer contains points."""
        height = np.broadcast_arrays(*coordinates)[-1]
        return np.asarray((height >= self.bottom) & (height <= self.top))

    def cuts(self, low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
        """Return whether a plane is inside cells."""
        a, b = _shrunk(low, high)[-1]
        cut = ((self.bottom > a) & (self.bottom < b)) | ((self.top > a) & (self.top < b))
        return np.asarray(np.broadcast_to(cut, np.broadcast_shapes(*(np.shape(x) for x in low))))

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return both planes, normal to the last axis."""
        return (self.bottom, self.top) if axis == dim - 1 else ()

    def measure(self) -> tuple[float, float]:
        """Return zero: the volume within a vessel is not known."""
        return 0.0, 0.0


def _distance(coordinates: Sequence[Floats], center: Place) -> Floats:
    return np.asarray(np.sqrt(reduce(np.add, [(x - c) ** 2 for x, c in zip(coordinates, center, strict=True)])))


def _shrunk(low: Sequence[Floats], high: Sequence[Floats]) -> list[tuple[Floats, Floats]]:
    """Return the ends of cells along each axis, without a margin in which a surface counts as on the side."""
    margins = [_ON_SIDE * (b - a) for a, b in zip(low, high, strict=True)]
    return [(a + m, b - m) for a, b, m in zip(low, high, margins, strict=True)]


def _spheres_cut(center: Place, radii: Sequence[float], low: Sequence[Floats], high: Sequence[Floats]) -> Flags:
    """Return whether one of the spheres around a center is inside cells."""
    ends = [(a, b, c) for (a, b), c in zip(_shrunk(low, high), center, strict=True)]
    nearest = reduce(np.add, [(np.clip(c, a, b) - c) ** 2 for a, b, c in ends])
    farthest = reduce(np.add, [np.maximum(abs(a - c), abs(b - c)) ** 2 for a, b, c in ends])
    return np.asarray(reduce(np.logical_or, [(nearest < radius**2) & (farthest > radius**2) for radius in radii]))


def place_of(point: npt.NDArray[Any]) -> Place:
    """Return a point as a tuple."""
    return tuple(float(value) for value in point)
