# SPDX-License-Identifier: BSD-3-Clause
"""The tube before an opening of a vessel: the cross-section there, repeated along the inflow."""

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

#: Where the cross-section is taken, in spacings behind the opening, and between which heights its sites are counted.
_DEPTH, _SLAB = 2.0, (1.0, 3.0)


class Prism:
    """A straight tube before the opening `plane`, periodic along the inflow; lengths in spacings.

    `area` is that of the cross-section. Its own coordinates are x along the inflow, from the opening on, and y and z
    across from the center of the opening: `center` and the rows of `frame` (3, 3) say where that is among the sites.
    """

    def __init__(self, sites: SiteSet, plane: IoletPlane, length: int, walls: FluidSpace | None = None) -> None:
        """Take the cross-section; `walls` is the space of the sites with open openings, if it is there already.

        Raises:
            CaseError: no site lies behind the opening.
        """
        self._vessel, self._given = sites, walls
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
        self.high = np.concatenate([[float(length)], slab[:, 1:].max(axis=0) + 1.0])
        self.area = len(slab) / (_SLAB[1] - _SLAB[0])

    @cached_property
    def _walls(self) -> FluidSpace:
        return self._given or FluidSpace(self._vessel, closed=False)

    def longer(self, length: int) -> Prism:
        """Return the same tube with another length."""
        other = copy(self)
        other.length = length
        other.high = np.array([float(length), *self.high[1:]])
        return other

    def sites(self) -> SiteSet:
        """Return the sites of a lattice of its own in the tube; positions are its own coordinates."""
        periodic = (True, False, False)
        return sites_from_distance(self.distance, self.low, self.high, 1.0, periodic=periodic)

    def world(self, points: Floats) -> Floats:
        """Return the coordinates among the sites of points (..., 3) in its own."""
        return np.asarray(self.center + points @ self.frame)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how far points (..., 3) among the sites are behind the opening, and how far from its axis."""
        local = (points - self.center) @ self.frame.T
        return local[..., 0], np.hypot(local[..., 1], local[..., 2])

    def distance(self, points: Floats) -> Floats:
        """Return the distances (n,) of points (n, 3) in its own coordinates from the wall, negative inside."""
        # The section is the same all along: each of its points is looked at once.
        across = np.ascontiguousarray(points[:, 1:], np.float64)
        _, first, again = np.unique(across.view(np.complex128).ravel(), return_index=True, return_inverse=True)
        section = np.column_stack([np.full(len(first), _DEPTH), across[first]])
        distance = self._walls.distance(self.world(section))[again]
        beside = np.maximum(self.low[1:] - points[:, 1:], points[:, 1:] - self.high[1:]).max(axis=1)
        return np.asarray(np.maximum(distance, beside))
