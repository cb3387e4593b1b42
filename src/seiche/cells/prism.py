# SPDX-License-Identifier: BSD-3-Clause
"""Tube of a reservoir: the cross-section of an opening, extended along the inflow."""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.cells.space import FluidSpace
from seiche.domain.shapes import sites_from_distance
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: Height of the cross-section behind the opening, and range of heights in which its sites are counted, both in
#: spacings.
_DEPTH, _SLAB = 2.0, (1.0, 3.0)


class Prism:
    """A straight tube with the cross-section of the opening `plane`, periodic along the inflow; lengths in spacings.

    `area` is that of the cross-section. The local coordinates are x along the inflow, measured from the opening, and y
    and z perpendicular to it, measured from its center. `center` and the axes, the rows of `frame` (3, 3), are in the
    coordinates of the sites.
    """

    def __init__(self, sites: SiteSet, plane: IoletPlane, length: int, walls: FluidSpace | None = None) -> None:
        """Find the cross-section; `walls` is the space of the sites with open openings, if it already exists.

        Raises:
            CaseError: there is no site behind the opening.
        """
        self._vessel, self._open_space = sites, walls
        self.length = length
        self.center = (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
        normal = np.asarray(plane.normal, np.float64)
        normal = normal / np.linalg.norm(normal)
        transverse = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        transverse /= np.linalg.norm(transverse)
        self.frame = np.stack([normal, transverse, np.cross(normal, transverse)])
        local = (sites.coords - self.center) @ self.frame.T
        reach = np.inf if plane.radius is None else plane.radius / sites.spacing + 1.5
        slab = local[
            (local[:, 0] >= _SLAB[0]) & (local[:, 0] < _SLAB[1]) & (np.hypot(local[:, 1], local[:, 2]) <= reach)
        ]
        if not len(slab):
            raise CaseError(f'iolet["{plane.name}"]: no fluid site lies behind it, so no cell can enter')
        self.low = np.concatenate([[0.0], slab[:, 1:].min(axis=0) - 1.0])
        self.high = np.concatenate([[float(length)], slab[:, 1:].max(axis=0) + 1.0])
        self.area = len(slab) / (_SLAB[1] - _SLAB[0])

    @cached_property
    def _walls(self) -> FluidSpace:
        return self._open_space or FluidSpace(self._vessel, closed=False)

    def with_length(self, length: int) -> Prism:
        """Return the same tube with another length."""
        result = copy(self)
        result.length = length
        result.high = np.array([float(length), *self.high[1:]])
        return result

    def sites(self) -> SiteSet:
        """Return the sites of a separate lattice in the tube, in local coordinates."""
        periodic = (True, False, False)
        return sites_from_distance(self.distance, self.low, self.high, 1.0, periodic=periodic)

    def world(self, points: Floats) -> Floats:
        """Return local points (..., 3) in the coordinates of the sites."""
        return np.asarray(self.center + points @ self.frame)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the heights of points (..., 3) behind the opening, and their distances from its axis."""
        local = (points - self.center) @ self.frame.T
        return local[..., 0], np.hypot(local[..., 1], local[..., 2])

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of local points (n, 3) from the wall, negative inside."""
        # The cross-section is constant, so the distance of each of its points is computed once.
        transverse = np.ascontiguousarray(points[:, 1:], np.float64)
        _, first, inverse = np.unique(transverse.view(np.complex128).ravel(), return_index=True, return_inverse=True)
        section = np.column_stack([np.full(len(first), _DEPTH), transverse[first]])
        distance = self._walls.distance(self.world(section))[inverse]
        distance_outside = np.maximum(self.low[1:] - points[:, 1:], points[:, 1:] - self.high[1:]).max(axis=1)
        return np.asarray(np.maximum(distance, distance_outside))
