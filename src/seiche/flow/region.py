# SPDX-License-Identifier: BSD-3-Clause
"""The sites of one rank, the cut links among those of its velocity set, and the neighbours that other ranks own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.flow.velocity_set import D3Q19, VelocitySet

#: Sites looked at together.
_CHUNK = 1 << 19


@dataclass(frozen=True)
class Region:
    """What rank `rank` computes: `owned` (n,) are its sites by global index, `owner` (n_global,) every site's rank."""

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
        """Return the first owned site and, from it to the last, the row in `owned`, -1 for sites of other ranks."""
        if not len(self.owned):
            return 0, np.full(1, -1, np.int32)
        first = int(self.owned[0])
        table = np.full(int(self.owned[-1]) - first + 1, -1, np.int32)
        table[self.owned - first] = np.arange(len(self.owned), dtype=np.int32)
        return first, table

    def rows_of(self, sites: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Return the rows in `owned` of global sites, -1 for those of other ranks and for -1."""
        first, table = self._row_table
        place = sites.astype(np.int64) - first
        inside = (place >= 0) & (place < len(table))
        return np.where(inside, table[np.where(inside, place, 0)], np.int32(-1))

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
        """Return the rows in `owned` of those boundary sites."""
        return self.rows_of(self.sites.boundary[self.boundary_rows]).astype(np.int64)

    def cut_sites(self, q: int) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites whose link along c_q (q = 1 ... Q - 1) is cut by a wall or iolet."""
        row = self.velocity_set.link_rows[q - 1]
        cut: npt.NDArray[np.bool_] = self.sites.link_kind[self.boundary_rows, row] != 0
        return np.asarray(self.boundary_sites[cut])

    def neighbour(self, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int32]:
        """Return the global site at x + c_q of the owned sites `rows` (m,), or of all; -1 where there is none.

        There is none where the link is cut, or leaves the set.
        """
        vector, chosen = self.velocity_set.vectors[q], slice(None) if rows is None else rows
        if self._padded is not None:
            found = self._padded[self._padded_keys[chosen] + int(vector @ self._padded_strides)]
        else:
            linear = self.sites.linear(self.coords[chosen] + vector)
            place = np.minimum(np.searchsorted(self._keys, linear), len(self._keys) - 1)
            found = np.where(self._keys[place] == linear, place, -1).astype(np.int32)
        if rows is None:
            found[self.cut_sites(q)] = -1
        else:
            found[np.isin(rows, self.cut_sites(q))] = -1
        return np.asarray(found)

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.sites.keys()

    @cached_property
    def _box(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the lowest corner and the extent of the box around the owned sites and their neighbours."""
        if not len(self.owned):
            return np.zeros(3, np.int64), np.ones(3, np.int64)
        low = self.coords.min(axis=0) - 1
        return low, self.coords.max(axis=0) + 2 - low

    @cached_property
    def _padded_strides(self) -> npt.NDArray[np.int64]:
        _, ny, nz = self._box[1]
        return np.array([ny * nz, nz, 1])

    @cached_property
    def _padded_keys(self) -> npt.NDArray[np.int64]:
        return np.asarray((self.coords - self._box[0]) @ self._padded_strides)

    @cached_property
    def _padded(self) -> npt.NDArray[np.int32] | None:
        """Return the site index of every cell of the rank's box, if that is small enough.

        What lies beyond a periodic side is the far side, so that a neighbour is one look-up away.
        """
        low, extent = self._box
        if math.prod(int(n) for n in extent) > max(32 * len(self.owned), 1 << 22):
            return None
        table = np.full(math.prod(int(n) for n in extent), -1, np.int32)
        images = [
            [step * n for step in ((0, -1, 1) if periodic else (0,))]
            for n, periodic in zip(self.sites.shape, self.sites.periodic, strict=True)
        ]
        along_x = self.sites.coords[:, 0]  # ascending
        for shift in images[0]:
            first, end = np.searchsorted(along_x, [low[0] - shift, low[0] + extent[0] - shift])
            for begin in range(int(first), int(end), _CHUNK):
                coords = self.sites.coords[begin : min(begin + _CHUNK, int(end))]
                place = (coords[:, 0] + (shift - low[0])) * self._padded_strides[0]
                for aside, beyond in product(*images[1:]):
                    y = coords[:, 1] + (aside - low[1])
                    inside = np.flatnonzero((y >= 0) & (y < extent[1]))
                    if len(inside):
                        z = coords[inside, 2] + (beyond - low[2])
                        there = (z >= 0) & (z < extent[2])
                        inside, z = inside[there], z[there]
                        table[place[inside] + y[inside] * self._padded_strides[1] + z] = begin + inside
        return table
