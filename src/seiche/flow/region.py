# SPDX-License-Identifier: BSD-3-Clause
"""The sites of one rank, the cut links among those of its velocity set, and the neighbours that other ranks own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.flow.velocity_set import D3Q19, VelocitySet


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
    def local(self) -> npt.NDArray[np.int64]:
        """Return for every global site its row in `owned`, -1 for sites of other ranks."""
        table: npt.NDArray[np.int64] = np.full(len(self.sites), -1, np.int64)
        table[self.owned] = np.arange(len(self.owned))
        return table

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
        return np.asarray(self.local[self.sites.boundary[self.boundary_rows]])

    def cut_sites(self, q: int) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites whose link along c_q (q = 1 ... Q - 1) is cut by a wall or iolet."""
        row = self.velocity_set.link_rows[q - 1]
        cut: npt.NDArray[np.bool_] = self.sites.link_kind[self.boundary_rows, row] != 0
        return np.asarray(self.boundary_sites[cut])

    def neighbour(self, q: int) -> npt.NDArray[np.int32]:
        """Return the global site at x + c_q of every owned site, -1 where the link is cut or leaves the set, (n,)."""
        vector = self.velocity_set.vectors[q]
        if self._padded is not None:
            found = self._padded[self._padded_keys + int(vector @ self._padded_strides)]
        else:
            linear = self.sites.linear(self.coords + vector)
            place = np.minimum(np.searchsorted(self._keys, linear), len(self._keys) - 1)
            found = np.where(self._keys[place] == linear, place, -1).astype(np.int32)
        found[self.cut_sites(q)] = -1
        return np.asarray(found)

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.sites.keys()

    @cached_property
    def _padded_strides(self) -> npt.NDArray[np.int64]:
        _, ny, nz = self.sites.shape
        return np.array([(ny + 2) * (nz + 2), nz + 2, 1])

    @cached_property
    def _padded_keys(self) -> npt.NDArray[np.int64]:
        return np.asarray((self.coords + 1) @ self._padded_strides)

    @cached_property
    def _padded(self) -> npt.NDArray[np.int32] | None:
        """Return the site index of every cell of the box and of a layer around it, if that is small enough.

        The layer holds the far side of periodic directions, so that a neighbour is one look-up away.
        """
        padded = tuple(extent + 2 for extent in self.sites.shape)
        if math.prod(padded) > max(32 * len(self.sites), 1 << 22):
            return None
        table = np.full(padded, -1, np.int32)
        x, y, z = (self.sites.coords[:, axis] + 1 for axis in range(3))
        table[x, y, z] = np.arange(len(self.sites), dtype=np.int32)
        for axis in range(3):
            if self.sites.periodic[axis]:
                layers = np.moveaxis(table, axis, 0)
                layers[0], layers[-1] = layers[-2], layers[1]
        return table.reshape(-1)
