# SPDX-License-Identifier: BSD-3-Clause
"""Bricks of 8^3 sites: where the sites of a rank lie for whoever knows only their coordinates (theory/coupling, 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.backend import Array, Backend
from seiche.errors import CaseError
from seiche.flow.layout import Layout
from seiche.flow.region import Region
from seiche.flow.tile_layout import TileLayout
from seiche.kernels.registry.ibm import BRICK, Space

_VOLUME = BRICK**3


class Bricks:
    """The bricks that hold sites of a rank, on its device.

    `count` rows, and one more without fluid for all places where there is nothing; `slots` (n_owned,) is the place of
    each owned site, 512 row + x + 8 (y + 8 z); `members` what kernels are told; `corner` (count, 4) on the device are
    the coordinates of each brick's first site. Tiles of 8^3 sites are bricks: their items are the slots.
    """

    def __init__(self, backend: Backend, region: Region, layout: Layout) -> None:
        """Number the bricks.

        Raises:
            CaseError: a periodic direction that is shorter than a brick.
        """
        sites = region.sites
        for axis, name in enumerate("xyz"):
            if sites.periodic[axis] and sites.shape[axis] < BRICK:
                raise CaseError(
                    f"cells: the periodic extent of {sites.shape[axis]} sites along {name} is below {BRICK}: the sites"
                    " around a vertex would meet themselves"
                )
        self._extent = [-(-extent // BRICK) for extent in sites.shape]
        brick, inside = np.divmod(region.coords, BRICK)
        lane = inside[:, 0] + BRICK * (inside[:, 1] + BRICK * inside[:, 2])
        key = (brick[:, 2] * (self._extent[1] + 1) + brick[:, 1]) * (self._extent[0] + 1) + brick[:, 0]
        self.own_slots = isinstance(layout, TileLayout) and layout.edge == BRICK
        if self.own_slots:
            row, self.count = layout.item // _VOLUME, layout.items // _VOLUME
        else:
            row = np.unique(key, return_inverse=True)[1].reshape(-1)
            self.count = int(row.max()) + 1
        self.slots = row * _VOLUME + lane
        fluid = np.zeros((self.count + 1) * _VOLUME, np.uint8)
        fluid[self.slots] = 1
        masks = np.packbits(fluid.reshape(-1, 8, 64), axis=2, bitorder="little").view(np.uint64)
        full = np.asarray(fluid.reshape(-1, _VOLUME).min(axis=1))
        rows = np.full([extent + 1 for extent in self._extent[::-1]], 2 * self.count, np.int32)
        rows.reshape(-1)[key] = 2 * row + full[row]
        corner = np.zeros((self.count, 4), np.int32)
        corner[row, :3] = BRICK * brick
        self.corner = backend.upload(corner)
        everywhere = all(sites.periodic) and bool((rows[:-1, :-1, :-1] & 1).all())
        self._arrays = backend.upload(rows), backend.upload(masks.reshape(-1))
        self.members: dict[str, Any] = {
            "rows": self._arrays[0],
            "fluid": self._arrays[1],
            "shape": sites.shape,
            "periodic": tuple(int(each) for each in sites.periodic),
            "each": tuple(1.0 / extent for extent in sites.shape),
        }
        odd = any(sites.periodic[axis] and sites.shape[axis] % BRICK for axis in range(3))
        #: What kernels may take for granted.
        self.space: Space = "odd" if odd else ("open" if everywhere else "walled")
        self._table: Array | None = None
        self._layout, self._backend = layout, backend

    def slot_members(self) -> tuple[str, dict[str, Any]]:
        """Return the registry's name of the force policy that finds slots so, and the members of the finder."""
        if self.own_slots:
            return "immersed-own", {}
        if self._table is None:
            table = np.full(self._layout.items, self.count * _VOLUME, np.uint32)
            table[self._layout.item] = self.slots
            self._table = self._backend.upload(table)
        return "immersed-table", {"slots": self._table}

    def entries(self, support: int) -> int:
        """Return in how many bricks a vertex may be listed: the support + 1 sites of an axis lie in two or three."""
        members = self.members
        short = [
            bool(periodic) and 0 < extent % BRICK < support
            for extent, periodic in zip(members["shape"], members["periodic"], strict=True)
        ]
        return int(np.prod([3 if each else 2 for each in short]))
