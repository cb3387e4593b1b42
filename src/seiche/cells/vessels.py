# SPDX-License-Identifier: BSD-3-Clause
"""Spaces for packing cells: boxes, tubes and closed surfaces, with lengths in the unit of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from seiche.cells.mesh import checked
from seiche.domain.surface import Surface
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: Distance returned if there is no wall.
_FAR = 1e30


class Vessel(Protocol):
    """A space in which cells are packed: its bounding box, periodic axes, volume and wall."""

    @property
    def low(self) -> Floats:
        """Return the lower corner (3,) of the bounding box."""

    @property
    def high(self) -> Floats:
        """Return the upper corner (3,) of the bounding box."""

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return, for each axis, whether the space is periodic."""

    @property
    def volume(self) -> float:
        """Return the volume of the space."""

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) from the wall, negative inside."""

    def may_fit(self, half_axes: Floats) -> bool:
        """Return whether a body with the ascending `half_axes` may fit into the space (a necessary condition)."""


class Box:
    """A box from the origin to `lengths`, with walls along axes that are not periodic."""

    def __init__(self, lengths: Sequence[float], periodic: tuple[bool, bool, bool] = (True, True, True)) -> None:
        """Set the side lengths; raise CaseError unless they are three positive numbers."""
        if len(lengths) != 3 or not all(np.isfinite(length) and length > 0 for length in lengths):
            raise CaseError(f"box of {tuple(lengths)}: expected three positive lengths")
        self.low, self.high = np.zeros(3), np.asarray(lengths, np.float64)
        self.periodic, self.volume = periodic, float(np.prod(self.high))

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) from the nearest wall, negative inside."""
        distance_outside = np.maximum(-points, points - self.high)
        distance_outside[:, list(self.periodic)] = -_FAR
        return np.asarray(distance_outside.max(axis=1))

    def may_fit(self, half_axes: Floats) -> bool:
        """Compare `half_axes` with half the sides, also along periodic axes, where images must not overlap."""
        return bool((np.sort(0.5 * self.high) >= half_axes).all())


class Tube:
    """A round tube around the x axis that begins at the origin; with `repeats` it is periodic, otherwise closed."""

    def __init__(self, radius: float, length: float, repeats: bool = True) -> None:
        """Set radius and length; raise CaseError unless they are positive."""
        if not all(np.isfinite(value) and value > 0 for value in (radius, length)):
            raise CaseError(f"tube of radius {radius:g} and length {length:g}: expected positive lengths")
        self.radius, self.length = radius, length
        self.low, self.high = np.array([0.0, -radius, -radius]), np.array([length, radius, radius])
        self.periodic, self.volume = (repeats, False, False), float(np.pi * radius**2 * length)

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) from the lateral wall or the ends, negative inside."""
        radial = np.hypot(points[:, 1], points[:, 2]) - self.radius
        if self.periodic[0]:
            return np.asarray(radial)
        return np.maximum(radial, np.maximum(-points[:, 0], points[:, 0] - self.length))

    def may_fit(self, half_axes: Floats) -> bool:
        """Compare two of the `half_axes` with the radius and the third one with half the length."""
        axial_half_axis = half_axes[2] if self.periodic[0] else half_axes[0]
        return bool(half_axes[1] <= self.radius and axial_half_axis <= 0.5 * self.length)


@dataclass(frozen=True, eq=False)
class SurfaceInterior:
    """The interior of a closed surface, such as a vessel with capped ends; its triangles may face inwards."""

    surface: Surface

    def __post_init__(self) -> None:
        """Reverse triangles that face inwards; raise CaseError if the surface is open or encloses no volume."""
        if self.surface.boundary_loops():
            raise CaseError("vessel: the surface is open; close its ends")
        if self.surface.volume == 0:
            raise CaseError("vessel: the surface is flat: it encloses no volume")
        object.__setattr__(self, "surface", self.surface.outward())

    periodic = (False, False, False)

    @property
    def low(self) -> Floats:
        """Return the lower corner (3,) of the bounding box."""
        return np.asarray(self.surface.vertices.min(axis=0))

    @property
    def high(self) -> Floats:
        """Return the upper corner (3,) of the bounding box."""
        return np.asarray(self.surface.vertices.max(axis=0))

    @property
    def volume(self) -> float:
        """Return the enclosed volume."""
        return self.surface.volume

    def distance(self, points: Floats) -> Floats:
        """Return the signed distances (n,) of points (n, 3), whose signs follow from the generalised winding number."""
        return signed_distance(self.surface, points)

    def may_fit(self, half_axes: Floats) -> bool:
        """Compare the smallest of the `half_axes` with an upper bound of the radius of the largest sphere inside."""
        return bool(half_axes[0] <= self._largest_sphere)

    @cached_property
    def _largest_sphere(self) -> float:
        axes = [np.linspace(a, b, 25) for a, b in zip(self.low, self.high, strict=True)]
        lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        node_distance = float(np.linalg.norm((self.high - self.low) / 24))
        bound = 0.5 * node_distance - float(self.distance(lattice).min())
        return min(bound, 0.5 * float((self.high - self.low).min()))


def signed_distance(surface: Surface, points: Floats) -> Floats:
    """Return the distances (n,) of points (n, 3) from a closed surface, negative inside."""
    import igl

    kind = igl.SIGNED_DISTANCE_TYPE_FAST_WINDING_NUMBER
    result = igl.signed_distance(points, surface.vertices, surface.faces.astype(np.int64), kind)
    return np.asarray(result[0], np.float64)


def check_sizes(vessel: Vessel, surfaces: Sequence[Surface]) -> None:
    """Check that undeformed cells may fit into the vessel.

    Raises:
        CaseError: a cell is larger than the vessel, or its mesh is open or inverted.
    """
    for number, surface in enumerate(surfaces):
        checked(surface, f"cell type {number}: mesh")
        half = np.sort(0.5 * np.ptp(surface.vertices, axis=0))
        if not vessel.may_fit(half):
            size = " x ".join(f"{2 * axis:.4g}" for axis in half)
            extent = " x ".join(f"{length:.4g}" for length in vessel.high - vessel.low)
            raise CaseError(f"cell type {number}: a cell of {size} is larger than the vessel (bounding box {extent})")
