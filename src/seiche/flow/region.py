# SPDX-License-Identifier: BSD-3-Clause
"""Sites of one rank, their cut links, and neighbours owned by other ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.site_rows import SiteRows
from seiche.domain.sites import SiteSet
from seiche.flow.velocity_set import D3Q19, VelocitySet

#: Maximum number of sites of a vessel: tables of neighbours store their numbers in 31 bits.
MAX_SITES = (1 << 31) - 1


@dataclass(frozen=True)
class Region:
    """The subdomain of rank `rank`; `owner` (n_global,) is the rank of every site."""

    sites: SiteSet
    owner: npt.NDArray[np.int32]
    rank: int
    velocity_set: VelocitySet = D3Q19

    @cached_property
    def owned(self) -> npt.NDArray[np.int64]:
        """Return the global indices of this rank's sites."""
        return np.flatnonzero(self.owner == self.rank)

    @property
    def is_whole(self) -> bool:
        """Return whether this rank owns all sites."""
        return len(self.owned) == len(self.sites)

    @cached_property
    def row_table(self) -> tuple[int, npt.NDArray[np.int32]]:
        """Return the first owned site, and the rows in `owned` of all sites from it to the last one.

        -1 on other ranks.
        """
        if not len(self.owned):
            return 0, np.full(1, -1, np.int32)
        first = int(self.owned[0])
        table = np.full(int(self.owned[-1]) - first + 1, -1, np.int32)
        table[self.owned - first] = np.arange(len(self.owned), dtype=np.int32)
        return first, table

    def rows_of(self, sites: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Return the rows in `owned` of the global `sites`; -1 for sites of other ranks and for the site -1."""
        if self.is_whole:
            return sites.astype(np.int32)
        first, table = self.row_table
        offset = sites.astype(np.int64) - first
        inside = (offset >= 0) & (offset < len(table))
        return np.where(inside, table[np.where(inside, offset, 0)], np.int32(-1))

    @cached_property
    def coords(self) -> npt.NDArray[np.int64]:
        """Return the coordinates of the owned sites, shape (n, 3)."""
        return np.asarray(self.sites.coords[self.owned], np.int64)

    def coords_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the coordinates of the owned sites `rows` (m,), shape (m, 3)."""
        return np.asarray(self.sites.coords[self.owned[rows]], np.int64)

    @cached_property
    def boundary_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of the site set's boundary arrays that belong to owned sites."""
        return np.flatnonzero(self.owner[self.sites.boundary] == self.rank)

    @cached_property
    def boundary_sites(self) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites of `boundary_rows`."""
        return self.rows_of(self.sites.boundary[self.boundary_rows]).astype(np.int64)

    def cut_sites(self, q: int) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites whose link along c_q (q = 1 ... Q - 1) is cut by a wall or iolet."""
        row = self.velocity_set.link_rows[q - 1]
        cut: npt.NDArray[np.bool_] = self.sites.link_kind[self.boundary_rows, row] != 0
        return np.asarray(self.boundary_sites[cut])

    def neighbour(self, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int32]:
        """Return the global sites at x + c_q for the owned sites `rows` (m,) or all.

        -1 if the link is cut or there is none.
        """
        vector = self.velocity_set.vectors[q]
        if rows is None:
            neighbours = self.sites.rows.neighbours(vector, self.own_rows)
        else:
            neighbours = self.sites.rows.find(self.coords_of(rows) + vector, wrap=True).astype(np.int32)
        cut = self.cut_sites(q)
        if rows is not None and len(cut):
            cut = np.flatnonzero(cut[np.minimum(np.searchsorted(cut, rows), len(cut) - 1)] == rows)
        neighbours[cut] = -1
        return np.asarray(neighbours)

    @cached_property
    def own_rows(self) -> SiteRows:
        """Return the owned sites as runs along z."""
        if self.is_whole:
            return self.sites.rows
        return SiteRows.of_coords(self.sites.shape, self.sites.periodic, self.sites.coords[self.owned])
