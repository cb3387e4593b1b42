# SPDX-License-Identifier: BSD-3-Clause
"""Sites of one rank, their cut links, and neighbours owned by other ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.flow.velocity_set import D3Q19, VelocitySet

#: Number of sites processed per pass.
_CHUNK = 1 << 19


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

    @cached_property
    def _row_table(self) -> tuple[int, npt.NDArray[np.int32]]:
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
        first, table = self._row_table
        offset = sites.astype(np.int64) - first
        inside = (offset >= 0) & (offset < len(table))
        return np.where(inside, table[np.where(inside, offset, 0)], np.int32(-1))

    @cached_property
    def coords(self) -> npt.NDArray[np.int64]:
        """Return the coordinates of the owned sites, shape (n, 3)."""
        return np.asarray(self.sites.coords[self.owned], np.int64)

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
        vector, chosen = self.velocity_set.vectors[q], slice(None) if rows is None else rows
        if self._padded is not None:
            neighbours = self._padded[self._padded_keys[chosen] + int(vector @ self._box[2])]
        else:
            neighbours = self._find(self.coords[chosen] + vector).astype(np.int32)
        cut = self.cut_sites(q)
        neighbours[cut if rows is None else np.isin(rows, cut)] = -1
        return np.asarray(neighbours)

    @cached_property
    def _find(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        return self.sites.finder()

    @cached_property
    def _box(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return lowest corner, extent and strides of the box around the owned sites and their neighbours."""
        if not len(self.owned):
            return np.zeros(3, np.int64), np.ones(3, np.int64), np.ones(3, np.int64)
        low = self.coords.min(axis=0) - 1
        extent = self.coords.max(axis=0) + 2 - low
        return low, extent, np.array([extent[1] * extent[2], extent[2], 1])

    @cached_property
    def _padded_keys(self) -> npt.NDArray[np.int64]:
        return np.asarray((self.coords - self._box[0]) @ self._box[2])

    @cached_property
    def _padded(self) -> npt.NDArray[np.int32] | None:
        """Return the site index at each point of the rank's box, with periodic images; None if the box is too large."""
        low, extent, strides = self._box
        size = math.prod(int(n) for n in extent)
        if size > max(32 * len(self.owned), 1 << 22):
            return None
        table = np.full(size, -1, np.int32)
        axes = zip(self.sites.shape, self.sites.periodic, strict=True)
        images = [(0, -n, n) if periodic else (0,) for n, periodic in axes]
        along_x = self.sites.coords[:, 0]  # ascending
        for shift in images[0]:
            first, end = np.searchsorted(along_x, [low[0] - shift, low[0] + extent[0] - shift])
            for begin in range(int(first), int(end), _CHUNK):
                coords = self.sites.coords[begin : min(begin + _CHUNK, int(end))]
                offset = (coords[:, 0] + (shift - low[0])) * strides[0]
                for shift_y, shift_z in product(*images[1:]):
                    y = coords[:, 1] + (shift_y - low[1])
                    inside = np.flatnonzero((y >= 0) & (y < extent[1]))
                    if len(inside):
                        z = coords[inside, 2] + (shift_z - low[2])
                        in_range = (z >= 0) & (z < extent[2])
                        inside, z = inside[in_range], z[in_range]
                        table[offset[inside] + y[inside] * strides[1] + z] = begin + inside
        return table
