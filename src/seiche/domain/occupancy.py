# SPDX-License-Identifier: BSD-3-Clause
"""Tiles that contain fluid sites: counted, or estimated for a vessel whose sites are not generated.

Boxes of sides a, b, c at all positions, in all orientations, meet a body of volume V and surface S in the measure
V + S (a + b + c)/4 + ... (Blaschke's kinematic formula). Curvature terms are neglected.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from seiche.domain.block_graph import cubes_of, cuboids_of
from seiche.domain.site_rows import Triple
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


#: Results for the site sets that exist, which do not change.
_counted: WeakKeyDictionary[SiteSet, dict[tuple[int, int], Occupancy]] = WeakKeyDictionary()


def occupancy(sites: SiteSet, edge: int, run: int = 1) -> Occupancy:
    """Return the tiles of `edge`^3 sites that contain fluid, and their lanes in runs of `run` adjacent ones."""
    if isinstance(sites, SizedSites):
        return _estimate(sites, edge, run)
    counted = _counted.setdefault(sites, {})
    if (edge, run) not in counted:
        counted[edge, run] = _count(sites, edge, run)
    return counted[edge, run]


def _count(sites: SiteSet, edge: int, run: int) -> Occupancy:
    rows, tiles = sites.rows, cubes_of(sites.rows, edge)
    cube, first = rows.segments(edge)
    tile = tiles.find(cube)
    walled = np.bincount(tile, np.diff(first, append=len(rows)), len(tiles)) < edge**3
    walled[tile[np.searchsorted(first, sites.boundary, side="right") - 1]] = True
    lanes = len(cuboids_of(rows, _lanes_of_run(edge, run))) * run if edge > 1 else len(sites)
    return Occupancy(len(tiles), int(np.count_nonzero(walled)), lanes)


def _lanes_of_run(edge: int, run: int) -> Triple:
    """Return the extent along each axis of `run` adjacent lanes of a tile, of which the first axis is the fastest."""
    return min(run, edge), max(1, run // edge), 1


def _estimate(sites: SizedSites, edge: int, run: int) -> Occupancy:
    if sites.fills:
        extent = np.array([-(-length // edge) for length in sites.shape])
        inner = np.where(sites.periodic, extent, np.maximum(extent - 2, 0))
        runs = np.array(_lanes_of_run(edge, run))
        filled = int(np.prod(-(-np.array(sites.shape) // runs) * runs))
        return Occupancy(int(np.prod(extent)), int(np.prod(extent) - np.prod(inner)), filled)
    volume, area = float(sites.count), sites.area
    tiles = (volume + 0.75 * (edge - 1) * area) / edge**3
    inside = max(0.0, volume - 0.75 * (edge + 1) * area) / edge**3
    lanes = volume + 0.25 * (run - 1) * area
    return Occupancy(round(tiles), round(tiles - inside), round(lanes))
