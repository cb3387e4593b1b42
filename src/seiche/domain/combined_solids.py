# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies from surfaces and images, and combinations of bodies: union, intersection, difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from seiche.domain.solids import Floats, SolidBody
from seiche.domain.surface import Surface
from seiche.domain.voxels import VoxelImage, VoxelRegion, field_of_region


@dataclass(frozen=True)
class SolidUnion(SolidBody):
    """All points of any of the parts."""

    parts: tuple[SolidBody, ...]

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return reduce(np.maximum, (part.depth(points) for part in self.parts))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around all parts."""
        lows, highs = zip(*(part.bounds() for part in self.parts), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidUnion:
        """Return the union of the extended parts."""
        return SolidUnion(tuple(part.extended(low, high, spacing) for part in self.parts))

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the plane surfaces of all parts."""
        return tuple(plane for part in self.parts for plane in part.planes(axis, dim))

    def boxes(self, dim: int) -> tuple[Floats, Floats]:
        """Return the boxes of all parts."""
        lows, highs = zip(*(part.boxes(dim) for part in self.parts), strict=True)
        return np.concatenate(lows), np.concatenate(highs)


@dataclass(frozen=True)
class SolidIntersection(SolidBody):
    """The points that all parts have in common."""

    parts: tuple[SolidBody, ...]

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return reduce(np.minimum, (part.depth(points) for part in self.parts))

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the intersection of the boxes around the parts."""
        lows, highs = zip(*(part.bounds() for part in self.parts), strict=True)
        low = np.max(lows, axis=0)
        return low, np.maximum(low, np.min(highs, axis=0))

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidIntersection:
        """Return the intersection of the extended parts."""
        return SolidIntersection(tuple(part.extended(low, high, spacing) for part in self.parts))

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the plane surfaces of all parts."""
        return tuple(plane for part in self.parts for plane in part.planes(axis, dim))


@dataclass(frozen=True)
class SolidDifference(SolidBody):
    """The points of the first part that no other part contains."""

    parts: tuple[SolidBody, ...]

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        first, *others = (part.depth(points) for part in self.parts)
        return reduce(np.minimum, [first, *(-other for other in others)])

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the first part."""
        return self.parts[0].bounds()

    def extended(self, low: Floats, high: Floats, spacing: float) -> SolidDifference:
        """Return the difference of the extended parts."""
        return SolidDifference(tuple(part.extended(low, high, spacing) for part in self.parts))

    def planes(self, axis: int, dim: int) -> tuple[float, ...]:
        """Return the plane surfaces of all parts."""
        return tuple(plane for part in self.parts for plane in part.planes(axis, dim))

    def boxes(self, dim: int) -> tuple[Floats, Floats]:
        """Return the boxes of the first part."""
        return self.parts[0].boxes(dim)


@dataclass(frozen=True, eq=False)
class SolidOfSurface(SolidBody):
    """The inside of a triangulated surface (metres); open rims are closed by flat caps."""

    surface: Surface

    @cached_property
    def _distances(self) -> Callable[[Floats], Floats]:
        import igl

        closed = self.surface.outward()
        closed = closed.capped(closed.boundary_loops())
        faces, scale = closed.faces.astype(np.int64), float(np.ptp(closed.vertices, axis=0).max())
        vertices = closed.vertices / scale
        tree: Any = igl.AABB()
        tree.init(vertices, faces)
        winding: Any = igl.FastWindingNumberBVH()
        winding.init(vertices, faces)

        def depth(points: Floats) -> Floats:
            scaled = np.ascontiguousarray(points / scale)
            distance = np.sqrt(tree.squared_distance(vertices, faces, scaled)[0]) * scale
            return np.asarray(np.where(winding.winding_number(scaled) > 0.5, distance, -distance))

        return depth

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        return self._distances(points) if len(points) else np.zeros(0)

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the surface."""
        return self.surface.vertices.min(axis=0), self.surface.vertices.max(axis=0)

    def measure(self) -> tuple[float, float]:
        """Return volume and surface."""
        return abs(self.surface.volume), self.surface.area


@dataclass(frozen=True, eq=False)
class SolidOfImage(SolidBody):
    """A region of an image; it ends half a voxel beyond the outermost centres of the image."""

    image: VoxelImage
    region: VoxelRegion

    @cached_property
    def _field(self) -> VoxelImage:
        """Return a field that is a lower bound of the distance from the surface."""
        field = field_of_region(self.image, self.region)
        slopes = [np.diff(field.values, axis=axis) / size for axis, size in enumerate(field.voxel)]
        steepest = np.sqrt(sum(float(np.abs(slope).max(initial=0.0)) ** 2 for slope in slopes))
        scale = 1.0 / steepest if self.region.has_limits else min(float(field.voxel.min()), 1.0 / steepest)
        return VoxelImage(field.values * scale, field.matrix, field.origin)

    def depth(self, points: Floats) -> Floats:
        """Return the depth of `points`."""
        index = self.image.indices(points)
        extent = np.array(self.image.values.shape) - 0.5
        edge = (np.minimum(index + 0.5, extent - index) * self.image.voxel).min(axis=1)
        return np.asarray(np.minimum(self._field.at(points), edge * self._narrowest))

    @cached_property
    def _narrowest(self) -> float:
        """Return the distance of opposite sides of a sheared voxel relative to its edges, 1 for right angles."""
        rows = np.linalg.norm(np.linalg.inv(self.image.matrix), axis=1)
        return float((1.0 / (rows * self.image.voxel)).min())

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the corners of the box around the region."""
        corners = self._field.corners()
        return corners.min(axis=0), corners.max(axis=0)
