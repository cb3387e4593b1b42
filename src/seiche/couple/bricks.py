# SPDX-License-Identifier: BSD-3-Clause
"""Bricks of 8^3 sites, by which coordinates are mapped to the sites of a rank (theory/coupling, section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.cells.contact_lists import OtherLists
from seiche.couple.territory import Territory
from seiche.domain.site_rows import distinct_numbers
from seiche.errors import CaseError
from seiche.flow.layout import Layout
from seiche.flow.region import Region
from seiche.flow.tile_layout import TileLayout, items_in_tiles, tile_keys, tiles_of
from seiche.kernels.registry.ibm import BRICK, Space

_VOLUME = BRICK**3
#: Number of values that CPU kernels can address with 32-bit offsets.
_MAX_CPU_VALUES = 1 << 31


class Bricks:
    """Bricks that contain sites of a rank, on its device.

    There are `count` rows, and one row without fluid for all other bricks. `slots` (n_owned,) are the slots of the
    owned sites, 512 row + x + 8 (y + 8 z). `members` are the kernel arguments; `corner` (count, 4), on the device, are
    the coordinates of the first site of each brick. Tiles of 8^3 sites are bricks, and their items are the slots.

    On several ranks, the first `owned_rows` rows contain sites of this rank; the other rows contain only sites of other
    ranks. One additional row, full of fluid, represents all bricks farther away; `rows` is the total.
    """

    def __init__(self, backend: Backend, region: Region, layout: Layout, territory: Territory | None = None) -> None:
        """Number the bricks.

        Raises:
            CaseError: a periodic direction is shorter than a brick, or there are more sites than CPU kernels can
                address.
        """
        sites = region.sites
        for axis, name in enumerate("xyz"):
            if sites.periodic[axis] and sites.shape[axis] < BRICK:
                raise CaseError(
                    f"cells: the periodic extent of {sites.shape[axis]} sites along {name} is below {BRICK}, so the "
                    "support of a vertex would overlap itself; use a longer domain"
                )
        extents = [-(-extent // BRICK) for extent in sites.shape]
        self.items_are_slots = isinstance(layout, TileLayout) and layout.edge == BRICK
        if isinstance(layout, TileLayout) and self.items_are_slots:
            bricks, self.slots = layout.tile_coordinates, layout.item
        else:
            keys = distinct_numbers(tile_keys(region.own_rows.segments(BRICK)[0], extents))
            bricks = tiles_of(keys, extents)
            self.slots = items_in_tiles(region.own_rows, BRICK, extents, keys, np.arange(len(keys)))
        self.count = self.owned_rows = len(bricks)
        self.corner = backend.upload(np.pad(BRICK * bricks, ((0, 0), (0, 1))).astype(np.int32))
        brick_rows = np.full([extent + 1 for extent in extents[::-1]], -1, np.int32)
        brick_rows[tuple(bricks.T[::-1])] = np.arange(self.count)
        fluid, brick_rows = self._fluid(brick_rows, territory)
        self.rows = len(fluid)
        if not backend.is_gpu and 4 * _VOLUME * self.rows > _MAX_CPU_VALUES:
            raise CaseError(
                f"cells in flow: {self.count} bricks of {BRICK}^3 sites on one rank are too many for the CPU; use "
                "more ranks"
            )
        full = np.asarray(fluid.min(axis=1))
        masks = np.packbits(fluid.reshape(-1, 8, 64), axis=2, bitorder="little").view(np.uint64)
        rows = np.asarray(2 * brick_rows + full[brick_rows], np.int32)
        fills_box = all(sites.periodic) and len(sites) == np.prod(sites.shape)
        self._arrays = backend.upload(rows), backend.upload(masks.reshape(-1))
        self.members: dict[str, Any] = {
            "rows": self._arrays[0],
            "fluid": self._arrays[1],
            "shape": sites.shape,
            "periodic": tuple(map(int, sites.periodic)),
            "inverse_shape": tuple(1.0 / extent for extent in sites.shape),
        }
        has_remainder = any(sites.periodic[axis] and sites.shape[axis] % BRICK for axis in range(3))
        #: The simplest addressing that is possible for this lattice.
        self.space: Space = "odd" if has_remainder else ("open" if fills_box else "walled")
        self._table: Array | None = None
        self._layout, self._backend = layout, backend

    def _fluid(
        self, brick_rows: npt.NDArray[np.int32], territory: Territory | None
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        """Return the fluid mask (rows, 512) and the row of each brick in the box.

        `brick_rows` (box) are the rows of bricks with owned sites, -1 for other bricks.
        """
        if territory is None:
            fluid = np.zeros((self.count + 1, _VOLUME), np.uint8)
            fluid.reshape(-1)[self.slots] = 1
            return fluid, np.where(brick_rows < 0, np.int32(self.count), brick_rows)
        flat = brick_rows.reshape(-1)
        remote = territory.needed[flat[territory.needed] < 0]
        flat[remote] = np.arange(self.count, self.count + len(remote))
        self.count += len(remote)
        fluid = np.zeros((self.count + 2, _VOLUME), np.uint8)
        fluid[: self.count], fluid[self.count + 1] = territory.fluid(flat, self.count), 1
        default_row = np.where(territory.sets >= 0, np.int32(self.count + 1), np.int32(self.count))
        return fluid, np.where(flat < 0, default_row, flat).reshape(brick_rows.shape)

    def slots_of(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the slots of sites (n, 3) in the bricks of this rank."""
        brick, inside = np.divmod(coords, BRICK)
        rows = self._backend.download(self._arrays[0])[brick[:, 2], brick[:, 1], brick[:, 0]] >> 1
        lane = inside[:, 0] + BRICK * (inside[:, 1] + BRICK * inside[:, 2])
        return np.asarray(rows.astype(np.int64) * _VOLUME + lane)

    def slot_members(self) -> tuple[str, dict[str, Any]]:
        """Return the registry name of the force policy for these slots, and its members."""
        if self.items_are_slots:
            return "immersed-own", {}
        if self._table is None:
            table = np.full(self._layout.items, self.count * _VOLUME, np.uint32)
            table[self._layout.item] = self.slots
            self._table = self._backend.upload(table)
        return "immersed-table", {"slots": self._table}

    def entries(self, support: int, vertices: int) -> OtherLists:
        """Return the expected and the maximum number of entries of the lists of this number of vertices."""
        return list_entries(self.members["shape"], self.members["periodic"], support, vertices)


def list_entries(shape: Sequence[int], periodic: Sequence[int], support: int, vertices: int) -> OtherLists:
    """Return the expected and the maximum number of entries in the lists of bricks of a box of sites.

    A vertex is in the lists of all bricks with one of the support + 1 sites along each axis. These are in two or three
    bricks at most. If the vertex is equally likely everywhere, they are in 1 + support / 8 bricks on average, and in
    one more if the last brick is incomplete.
    """
    most, mean = 1, 1.0
    for extent, wraps in zip(shape, periodic, strict=True):
        most *= 3 if wraps and 0 < extent % BRICK < support else 2
        mean *= 1 + support * (-(-extent // BRICK)) / extent if wraps else 1 + support / BRICK
    return OtherLists(math.ceil(min(mean, most) * vertices), most * vertices)
