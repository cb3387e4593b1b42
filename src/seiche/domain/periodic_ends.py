# SPDX-License-Identifier: BSD-3-Clause
"""The ends of surfaces that are periodic along lattice axes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Floats, Loop, Surface
from seiche.errors import CaseError

#: Special values of an iolet number: no iolet, and a rim in a periodic end.
NO_IOLET, PERIODIC = -1, -2
#: Tolerance in spacings of a point in the plane of an end; STL has seven digits.
END_TOLERANCE = 1e-3


@dataclass(frozen=True)
class PeriodicEnds:
    """End planes of a surface: `low` and `high` (3,) along the `periodic` axes, with a `tolerance`, in metres."""

    periodic: tuple[bool, bool, bool]
    low: Floats
    high: Floats
    tolerance: float

    @staticmethod
    def of(surface: Surface, spacing: float, periodic: tuple[bool, bool, bool]) -> PeriodicEnds:
        """Return the ends of `surface`; CaseError if its length is not a whole number of spacings."""
        low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
        for axis in np.flatnonzero(periodic):
            length = float(high[axis] - low[axis])
            if round(length / spacing) < 1 or abs(length / spacing - round(length / spacing)) > END_TOLERANCE:
                raise CaseError(
                    f"the surface is {length:.6g} m long along the periodic axis {'xyz'[axis]}, not a whole number of "
                    f"spacings of {spacing:g} m"
                )
        return PeriodicEnds(periodic, low, high, END_TOLERANCE * spacing)

    def _in_end_plane(self, points: Floats) -> npt.NDArray[np.bool_]:
        """Return flags of the polygons (..., n, 3) that lie in one end plane."""
        in_end = np.zeros(points.shape[:-2], bool)
        for axis in np.flatnonzero(self.periodic):
            for end in (self.low[axis], self.high[axis]):
                in_end |= np.all(np.abs(points[..., axis] - end) <= self.tolerance, axis=-1)
        return in_end

    def contain(self, loop: Loop) -> bool:
        """Return whether the rim lies in an end plane: its center is in the plane and its normal is along the axis."""
        center, normal = np.asarray(loop.center), np.abs(loop.normal)
        return bool(self._in_end_plane(center[None])) and bool(np.any(normal[np.array(self.periodic)] > 0.999))

    def repeated(self, surface: Surface, labels: npt.NDArray[np.int16]) -> tuple[Surface, npt.NDArray[np.int16]]:
        """Return `surface` without triangles in its ends and with its images on all sides, and their labels."""
        if not any(self.periodic):
            return surface, labels
        inside_faces = ~self._in_end_plane(surface.corners())
        corners, length = surface.corners()[inside_faces], self.high - self.low
        shifts = product(*((0.0, -1.0, 1.0) if axis else (0.0,) for axis in self.periodic))
        images = [corners + np.array(shift) * length for shift in shifts]
        faces = np.arange(3 * len(corners) * len(images), dtype=np.int32).reshape(-1, 3)
        return Surface(np.concatenate(images).reshape(-1, 3), faces), np.tile(labels[inside_faces], len(images))
