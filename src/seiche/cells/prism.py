# SPDX-License-Identifier: BSD-3-Clause
"""The space before an opening of a vessel: the cross-section there, repeated without end along the inflow."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.cells.space import FluidSpace
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: Where the cross-section is taken, in spacings behind the opening, and between which heights its sites are counted.
_DEPTH, _SLAB = 2.0, (1.0, 3.0)
#: Distance of the points at which the widest place is looked for.
_STEP = 0.5


class Prism:
    """A periodic reservoir of cells before the opening `plane`; lengths in spacings.

    Its own coordinates are x along the inflow, from the opening on, and y and z across from the center of the opening:
    `center` and the rows of `frame` (3, 3) say where that is among the sites.
    """

    periodic = (True, False, False)

    def __init__(self, sites: SiteSet, plane: IoletPlane, length: float, walls: FluidSpace | None = None) -> None:
        """Take the cross-section; `walls` is the space of the sites with open openings, if it is there already.

        Raises:
            CaseError: no site lies behind the opening.
        """
        self._walls = walls or FluidSpace(sites, closed=False)
        self.length = length
        self.center = (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
        normal = np.asarray(plane.normal, np.float64)
        normal = normal / np.linalg.norm(normal)
        across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        across /= np.linalg.norm(across)
        self.frame = np.stack([normal, across, np.cross(normal, across)])
        local = (sites.coords - self.center) @ self.frame.T
        reach = np.inf if plane.radius is None else plane.radius / sites.spacing + 1.5
        slab = local[
            (local[:, 0] >= _SLAB[0]) & (local[:, 0] < _SLAB[1]) & (np.hypot(local[:, 1], local[:, 2]) <= reach)
        ]
        if not len(slab):
            raise CaseError(f'iolet["{plane.name}"]: no site is behind it: no cell can enter')
        self.low = np.concatenate([[0.0], slab[:, 1:].min(axis=0) - 1.0])
        self.high = np.concatenate([[length], slab[:, 1:].max(axis=0) + 1.0])
        self.area = len(slab) / (_SLAB[1] - _SLAB[0])

    @property
    def volume(self) -> float:
        """Return area times length."""
        return self.area * self.length

    def world(self, points: Floats) -> Floats:
        """Return the coordinates among the sites of points (..., 3) in its own."""
        return np.asarray(self.center + points @ self.frame)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how far points (..., 3) among the sites are behind the opening, and how far from its axis."""
        local = (points - self.center) @ self.frame.T
        return local[..., 0], np.hypot(local[..., 1], local[..., 2])

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) in its own coordinates from the wall, negative inside."""
        section = np.array(points, np.float64)
        section[:, 0] = _DEPTH
        distance = self._walls.distance(self.world(section))
        beside = np.maximum(self.low[1:] - points[:, 1:], points[:, 1:] - self.high[1:]).max(axis=1)
        return np.asarray(np.maximum(distance, beside))

    def has_room(self, half_axes: Floats) -> bool:
        """Compare with the box around the cross-section and with the largest circle in it."""
        extent = np.sort(0.5 * (self.high - self.low))
        return bool((extent >= half_axes).all() and half_axes[0] <= self._largest_circle)

    @cached_property
    def _largest_circle(self) -> float:
        y, z = (np.arange(a, b, _STEP) for a, b in zip(self.low[1:], self.high[1:], strict=True))
        grid = np.stack(np.meshgrid([0.0], y, z, indexing="ij"), axis=-1).reshape(-1, 3)
        return _STEP - float(self.distance(grid).min())
