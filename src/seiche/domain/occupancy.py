# SPDX-License-Identifier: BSD-3-Clause
"""Tiles that contain fluid sites: counted, or estimated for a vessel whose sites are not generated.

Boxes of sides a, b, c at all positions, in all orientations, meet a body of volume V and surface S in the measure
V + S (a + b + c)/4 + ... (Blaschke's kinematic formula). Curvature terms are neglected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seiche.domain.sites import SiteSet


@dataclass(frozen=True, eq=False, kw_only=True)
class SizedSites(SiteSet):
    """A vessel of which only sizes are known: `count` sites, and the area of its walls and openings in spacings^2.

    It stands for the sites where costs are predicted; it has no coordinates and no links. `fills` means that the vessel
    fills its box, so walls are along the lattice.
    """

    count: int
    area: float
    fills: bool = False

    def __len__(self) -> int:
        """Return the estimated number of fluid sites."""
        return self.count


@dataclass(frozen=True)
class Occupancy:
    """Tiles that contain sites, those of them with boundaries or solid sites, and lanes of runs that contain sites."""

    tiles: int
    walled: int
    lanes: int


def occupancy(sites: SiteSet, edge: int, run: int = 1) -> Occupancy:
    """Return the tiles of `edge`^3 sites that contain fluid, and their lanes in runs of `run` adjacent ones."""
    if isinstance(sites, SizedSites):
        return _estimate(sites, edge, run)
    extent = [-(-length // edge) for length in sites.shape]
    tile = sites.coords.astype(np.int64) // edge
    key = (tile[:, 0] * extent[1] + tile[:, 1]) * extent[2] + tile[:, 2]
    tiles, counts = np.unique(key, return_counts=True)
    walled = np.zeros(len(tiles), bool)
    walled[np.searchsorted(tiles, key[sites.boundary])] = True
    walled |= counts < edge**3
    inside = sites.coords % edge
    lane = inside[:, 0] + edge * (inside[:, 1].astype(np.int64) + edge * inside[:, 2])
    lanes = len(np.unique(key * (edge**3 // run) + lane // run)) * run if len(tiles) < len(sites) else len(sites)
    return Occupancy(len(tiles), int(np.count_nonzero(walled)), lanes)


def _estimate(sites: SizedSites, edge: int, run: int) -> Occupancy:
    if sites.fills:
        extent = np.array([-(-length // edge) for length in sites.shape])
        inner = np.where(sites.periodic, extent, np.maximum(extent - 2, 0))
        runs = np.array([min(run, edge), max(1, run // edge), 1])  # the first axis is the fastest of a tile
        filled = int(np.prod(-(-np.array(sites.shape) // runs) * runs))
        return Occupancy(int(np.prod(extent)), int(np.prod(extent) - np.prod(inner)), filled)
    volume, area = float(sites.count), sites.area
    tiles = (volume + 0.75 * (edge - 1) * area) / edge**3
    inside = max(0.0, volume - 0.75 * (edge + 1) * area) / edge**3
    lanes = volume + 0.25 * (run - 1) * area
    return Occupancy(round(tiles), round(tiles - inside), round(lanes))
