# SPDX-License-Identifier: BSD-3-Clause
"""Shapes of sources between the points of a grid: arc, bowl, disc, rectangle, line (theory/ultrasound, section 8).

Positions are in metres, in the coordinates of `Grid.positions`. Every shape has a quadrature rule: points, weights that
sum to its length or area, and normal directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
Vector = tuple[float, ...]


@dataclass(frozen=True)
class Quadrature:
    """Quadrature points (n, D) in m, weights (n,) in m^dimension, and unit normals (n, D) or None."""

    points: Floats
    weights: Floats
    normals: Floats | None
    dimension: int


class Shape(Protocol):
    """A curve or surface on which a source acts."""

    def size(self) -> float:
        """Return the extent of the shape, m."""

    def quadrature(self, spacing: float) -> Quadrature:
        """Return points at distances of about `spacing` (m); raise CaseError for an invalid shape."""


@dataclass(frozen=True)
class _Curved:
    """A part of a circle or sphere, facing its centre.

    Attributes:
        position: its midpoint.
        focus: a point on its axis; the centre is at distance `radius` in this direction.
        radius: radius of curvature, m.
        diameter: chord between its ends, or its aperture, m.
    """

    position: Vector
    focus: Vector
    radius: float
    diameter: float

    def size(self) -> float:
        """Return the diameter, m."""
        return float(self.diameter)


@dataclass(frozen=True)
class Arc(_Curved):
    """A circular arc in two dimensions."""

    def quadrature(self, spacing: float) -> Quadrature:
        """Return Gauss points in the angle."""
        half_angle = _half_angle("arc", self.radius, self.diameter)
        axis = _direction("arc", self.position, self.focus, 2)
        side = np.array([-axis[1], axis[0]])
        angles, weights = _gauss(-half_angle, half_angle, self.radius, spacing)
        normals = np.cos(angles)[:, None] * axis - np.sin(angles)[:, None] * side
        points = np.asarray(self.position) + self.radius * (axis - normals)
        return Quadrature(points, self.radius * weights, normals, 1)


@dataclass(frozen=True)
class Bowl(_Curved):
    """A spherical cap in three dimensions."""

    def quadrature(self, spacing: float) -> Quadrature:
        """Return rings at Gauss points of the polar angle."""
        half_angle = _half_angle("bowl", self.radius, self.diameter)
        axis = _direction("bowl", self.position, self.focus, 3)
        return _cap(np.asarray(self.position, np.float64), axis, self.radius, (0.0, half_angle), spacing)

    def meridian(self, spacing: float) -> Quadrature:
        """Return Gauss points in the polar angle of the arc whose surface of revolution is the bowl, (x, radius).

        Position and focus are (x, 0), on the axis of symmetry.
        """
        half_angle = _half_angle("bowl", self.radius, self.diameter)
        axis = _axial_direction("bowl", self.position, self.focus)
        angles, weights = _gauss(0.0, half_angle, self.radius, spacing)
        normals = np.cos(angles)[:, None] * axis - np.sin(angles)[:, None] * np.array([0.0, 1.0])
        points = np.asarray(self.position) + self.radius * (axis - normals)
        return Quadrature(points, self.radius * weights, normals, 1)


@dataclass(frozen=True)
class Annulus:
    """A part of a sphere between two circles about its axis.

    Attributes:
        position: the point of the sphere on its axis.
        focus: a point on its axis; the centre is at distance `radius` in this direction.
        radius: radius of curvature, m.
        inner_diameter, outer_diameter: diameters of the two circles, m.
    """

    position: Vector
    focus: Vector
    radius: float
    inner_diameter: float
    outer_diameter: float

    def size(self) -> float:
        """Return the outer diameter, m."""
        return float(self.outer_diameter)

    def quadrature(self, spacing: float) -> Quadrature:
        """Return rings at Gauss points of the polar angle."""
        outer = _half_angle("annulus", self.radius, self.outer_diameter)
        if not 0 <= self.inner_diameter < self.outer_diameter:
            raise CaseError(
                f"annulus: inner diameter {self.inner_diameter:g} m is not between 0 and the outer one,"
                f" {self.outer_diameter:g} m"
            )
        inner = float(np.arcsin(self.inner_diameter / (2 * self.radius)))
        axis = _direction("annulus", self.position, self.focus, 3)
        return _cap(np.asarray(self.position, np.float64), axis, self.radius, (inner, outer), spacing)


@dataclass(frozen=True, eq=False)
class PointSet:
    """A curve or surface given by points.

    Attributes:
        points: (n, D), m.
        measure: its length (m) or area (m^2), of which every point has an equal share.
        dimension: 1 for a curve, 2 for a surface.
    """

    points: npt.NDArray[np.float64]
    measure: float
    dimension: int

    def size(self) -> float:
        """Return the diagonal of the box around the points, m."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))

    def quadrature(self, spacing: float) -> Quadrature:
        """Return the points, whatever their distances."""
        points = np.asarray(self.points, np.float64)
        if points.ndim != 2 or not len(points) or not (np.isfinite(points).all() and self.measure > 0):
            raise CaseError(f"point set: {points.shape} points and measure {self.measure:g} are not usable")
        return Quadrature(points, np.full(len(points), self.measure / len(points)), None, self.dimension)


@dataclass(frozen=True)
class Disc:
    """A flat disc in three dimensions.

    Attributes:
        position: its centre.
        focus: a point on its axis, on the side that it faces.
        diameter: m.
    """

    position: Vector
    focus: Vector
    diameter: float

    def size(self) -> float:
        """Return the diameter, m."""
        return float(self.diameter)

    def quadrature(self, spacing: float) -> Quadrature:
        """Return rings at Gauss points of the radius."""
        if not self.diameter > 0:
            raise CaseError(f"disc: diameter {self.diameter:g} m is not positive")
        axis = _direction("disc", self.position, self.focus, 3)
        radii, weights = _gauss(0.0, self.diameter / 2, 1.0, spacing)
        ring, azimuth = _rings(radii, spacing)
        first, second = _perpendicular(axis)
        points = np.asarray(self.position) + radii[ring, None] * (
            np.cos(azimuth)[:, None] * first + np.sin(azimuth)[:, None] * second
        )
        point_weights = (2 * np.pi * radii * weights / np.bincount(ring))[ring]
        return Quadrature(points, point_weights, np.broadcast_to(axis, points.shape), 2)

    def meridian(self, spacing: float) -> Quadrature:
        """Return Gauss points of the radius whose surface of revolution is the disc; position and focus are (x, 0)."""
        if not self.diameter > 0:
            raise CaseError(f"disc: diameter {self.diameter:g} m is not positive")
        axis = _axial_direction("disc", self.position, self.focus)
        radii, weights = _gauss(0.0, self.diameter / 2, 1.0, spacing)
        points = np.asarray(self.position) + radii[:, None] * np.array([0.0, 1.0])
        return Quadrature(points, weights, np.broadcast_to(axis, points.shape), 1)


@dataclass(frozen=True)
class Rectangle:
    """A flat rectangle in three dimensions, facing along the cross product of its sides.

    Attributes:
        position: its centre.
        first, second: its sides as vectors, m, at a right angle.
    """

    position: Vector
    first: Vector
    second: Vector

    def size(self) -> float:
        """Return the diagonal, m."""
        return float(np.hypot(np.linalg.norm(self.first), np.linalg.norm(self.second)))

    def quadrature(self, spacing: float) -> Quadrature:
        """Return Gauss points along both sides."""
        sides = [np.asarray(side, np.float64) for side in (self.first, self.second)]
        lengths = [float(np.linalg.norm(side)) for side in sides]
        if any(side.shape != (3,) for side in sides) or min(lengths) <= 0:
            raise CaseError(f"rectangle: sides {self.first} and {self.second} are not two nonzero vectors (x, y, z)")
        if abs(sides[0] @ sides[1]) > 1e-6 * lengths[0] * lengths[1]:
            raise CaseError(f"rectangle: sides {self.first} and {self.second} are not at a right angle")
        (a, wa), (b, wb) = (_gauss(-0.5, 0.5, length, spacing) for length in lengths)
        points = np.asarray(self.position) + (a[:, None, None] * sides[0] + b[None, :, None] * sides[1]).reshape(-1, 3)
        normal = np.cross(sides[0], sides[1]) / (lengths[0] * lengths[1])
        point_weights = (wa[:, None] * wb[None, :]).ravel() * lengths[0] * lengths[1]
        return Quadrature(points, point_weights, np.broadcast_to(normal, points.shape), 2)


@dataclass(frozen=True)
class Line:
    """A straight line from `start` to `end`; in two dimensions it faces to the left of that direction."""

    start: Vector
    end: Vector

    def size(self) -> float:
        """Return the length, m."""
        return float(np.linalg.norm(np.subtract(self.end, self.start)))

    def quadrature(self, spacing: float) -> Quadrature:
        """Return Gauss points."""
        start = np.asarray(self.start, np.float64)
        segment = np.asarray(self.end, np.float64) - start
        length = float(np.linalg.norm(segment))
        if not length > 0:
            raise CaseError(f"line: start and end are the same point, {self.start}")
        fraction, weights = _gauss(0.0, 1.0, length, spacing)
        points = start + fraction[:, None] * segment
        normals = None
        if len(start) == 2:
            normals = np.broadcast_to(np.array([-segment[1], segment[0]]) / length, points.shape)
        return Quadrature(points, weights * length, normals, 1)


def _cap(
    position: Floats, axis: Floats, radius: float, polar_angles: tuple[float, float], spacing: float
) -> Quadrature:
    """Return the points of a part of a sphere between two polar angles."""
    angles, weights = _gauss(*polar_angles, radius, spacing)
    ring, azimuth = _rings(radius * np.sin(angles), spacing)
    perpendicular = np.stack(_perpendicular(axis))
    outward = np.cos(azimuth)[:, None] * perpendicular[0] + np.sin(azimuth)[:, None] * perpendicular[1]
    polar = angles[ring]
    normals = np.cos(polar)[:, None] * axis - np.sin(polar)[:, None] * outward
    counts = np.bincount(ring)
    point_weights = (2 * np.pi * radius**2 * np.sin(angles) * weights / counts)[ring]
    return Quadrature(position + radius * (axis - normals), point_weights, normals, 2)


def _gauss(low: float, high: float, scale: float, spacing: float) -> tuple[Floats, Floats]:
    """Return Gauss points and weights of an interval whose length times `scale` is in m."""
    from scipy.special import roots_legendre

    # In the middle of the interval, the distance of Gauss points is 1.57 times the mean.
    count = max(4, int(np.ceil(1.6 * (high - low) * scale / spacing)))
    nodes, weights = roots_legendre(count)
    return low + (high - low) / 2 * (np.asarray(nodes) + 1), np.asarray(weights) * (high - low) / 2


def _rings(radii: Floats, spacing: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the ring and the angle of every point; each ring is rotated relative to the previous one."""
    counts = np.maximum(6, np.ceil(2 * np.pi * radii / spacing)).astype(np.int64)
    ring = np.repeat(np.arange(len(radii)), counts)
    index_in_ring = np.arange(len(ring)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ring, 2 * np.pi * (index_in_ring / counts[ring] + ring * 0.6180339887498949)


def _perpendicular(axis: Floats) -> tuple[Floats, Floats]:
    """Return two orthonormal vectors perpendicular to an axis in three dimensions."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _direction(name: str, position: Vector, focus: Vector, dimensions: int) -> Floats:
    direction = (
        np.asarray(focus, np.float64) - np.asarray(position, np.float64) if len(focus) == len(position) else None
    )
    if direction is None or direction.shape != (dimensions,):
        raise CaseError(f"{name}: position {position} and focus {focus} are not points in {dimensions} dimensions")
    length = float(np.linalg.norm(direction))
    if not length > 0:
        raise CaseError(f"{name}: position and focus are the same point, {position}")
    return np.asarray(direction / length)


def _axial_direction(name: str, position: Vector, focus: Vector) -> Floats:
    """Return the unit vector from a position to a focus, both (x, 0) on the axis of an axisymmetric grid."""
    direction = _direction(name, position, focus, 2)
    if position[1] != 0 or focus[1] != 0:
        raise CaseError(f"{name}: position {position} and focus {focus} are not on the axis of symmetry, (x, 0)")
    return direction


def _half_angle(name: str, radius: float, diameter: float) -> float:
    if not (0 < radius < np.inf and 0 < diameter <= 2 * radius):
        raise CaseError(f"{name}: diameter {diameter:g} m is not between 0 and twice the radius {radius:g} m")
    return float(np.arcsin(diameter / (2 * radius)))
