# SPDX-License-Identifier: BSD-3-Clause
"""Ranks at openings, constructed on a planned device from the sites near the openings only.

Stages of openings depend on the sites near them. A rank that needs no such site has the same stages as every other rank
of this kind. One of these represents them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.backend.base import Kernel
from seiche.domain.host_passes import offsets
from seiche.domain.site_owners import SiteOwners
from seiche.domain.site_rows import expanded
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.choice import LayoutName, tile_edge
from seiche.flow.depths import MAX_VECTORS
from seiche.flow.region import Region
from seiche.flow.solver import FlowSolver
from seiche.flow.tile_counts import SiteTiles
from seiche.flow.tile_layout import TileLayout
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.halo.plan import HaloPlan

#: Arrays of a site set with one row for each boundary site.
_LINKS = ("link_kind", "link_iolet", "link_fraction", "wall_normal")


@dataclass(frozen=True, eq=False)
class OpeningSites:
    """The sites near openings.

    Attributes:
        sites: these sites and their links.
        owner: their owners, as indices of `ranks`; the index `len(ranks)` stands for all other ranks.
        ranks: the ascending ranks whose stages of openings depend on these sites.
        others: whether there are other ranks.
    """

    sites: SiteSet
    owner: SiteOwners
    ranks: npt.NDArray[np.int64]
    others: bool

    @staticmethod
    def of(sites: SiteSet, tiles: SiteTiles, ranks: int) -> OpeningSites:
        """Return the sites near the openings of `sites`, which `ranks` ranks share."""
        at_openings = np.unique(tiles.boundary[sites.opening_rows])
        reach = -(-MAX_VECTORS // tiles.edge)
        own = np.unique(tiles.owner[tiles.around(at_openings, reach)]).astype(np.int64)
        chosen = np.zeros(len(tiles.tiles), bool)
        # One more tile in each direction determines which tiles are next to those of other ranks.
        chosen[tiles.around(at_openings, reach + 1)] = True
        index = np.full(ranks, len(own), np.int64)
        index[own] = np.arange(len(own))
        others = len(own) < ranks
        if others:
            chosen[np.argmax(index[tiles.owner] == len(own))] = True  # so that they have a site
        part = np.flatnonzero(chosen[tiles.tile])
        begin, end = tiles.first[part], np.append(tiles.first, len(sites))[part + 1]
        selected, boundary = expanded(begin, end), np.flatnonzero(chosen[tiles.boundary])
        links = {name: getattr(sites, name)[boundary] for name in _LINKS}
        rows = np.searchsorted(selected, sites.boundary[boundary])
        near = replace(sites, coords=sites.coords[selected], boundary=rows, **links)
        owner = SiteOwners.merged(offsets(end - begin)[:-1], index[tiles.owner[tiles.tile[part]]], len(selected))
        return OpeningSites(near, owner, own, others)


class OpeningTiles(TileLayout):
    """The tiles near openings, an empty tile in the interior and one at the edge, and one value sent to this rank.

    These make every stage exist. `own_tiles`, `stored_tiles` (with copies) and `walled` tiles exclude empty ones.
    """

    def __init__(self, backend: Backend, world: World, region: Region, store: str, *, edge: int) -> None:
        """Number the tiles of the region and add the empty ones (collective)."""
        super().__init__(backend, world, region, store, edge=edge)
        own, interior = self.items // self.volume, self.interior // self.volume
        self.own_tiles, self.stored_tiles = own, len(self._keys)
        self.walled = self._walls_array.size // self.volume
        before, inside = np.split(self._neighbours, [interior])
        empty = np.zeros((1, 27), np.int64)
        self._neighbours = np.concatenate([before, empty, inside, empty])
        self.item = self.item + np.where(self.item >= self.interior, self.volume, 0)
        self.interior, self.items = (interior + 1) * self.volume, (own + 2) * self.volume
        slot = np.arange(2, dtype=np.uint32)
        self.plan = HaloPlan((world.rank,), (slot[:1],), (slot[1:],))


class OpeningSolver(FlowSolver):
    """The solver of a rank at openings, or of one that represents all others, on a planned device."""

    def __init__(self, near: OpeningSites, model: Any, **options: Any) -> None:
        """Take the owners from `near`; `options` are those of `FlowSolver`."""
        self._near = near
        super().__init__(near.sites, model, **options)

    def _divide(self, layout: LayoutName, **options: Any) -> None:
        lattice = VELOCITY_SETS[self.model.velocity_set]
        self.region = Region(self.sites, self._near.owner, self.world.rank, lattice)
        self.populations = OpeningTiles(
            self.backend, self.world, self.region, self.precision.storage, edge=tile_edge(layout)
        )

    def sweep_kernel(self, phase: int) -> Kernel:
        """Return the kernel of streaming and collision in a step of this phase."""
        return self._steps.sweep_kernel(phase)

    @property
    def rate_bytes(self) -> int:
        """Return the size of the relaxation rate of a lattice point, 0 if it is uniform."""
        return int(np.dtype(self.precision.compute).itemsize) if self._physics.has_rates else 0
