# SPDX-License-Identifier: BSD-3-Clause
"""Tile layout: blocks of B^3 lattice points with contiguous populations, in two copies, and a table of neighbour tiles.

Each tile has one owner for all its points. The order is: interior tiles, tiles at rank boundaries, copies of tiles of
other ranks. Population q at lane s = x + B (y + B z) of tile t is in slot (t Q + q) B^3 + s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.host_passes import run_pass
from seiche.domain.site_rows import SiteRows, distinct_numbers, members_of_runs, runs_in_columns
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.layout import HaloMode, Layout, check_slots
from seiche.flow.list_layout import Requests, merged
from seiche.flow.region import Region
from seiche.halo.plan import Slots, build_plan, narrowed
from seiche.kernels.registry.sites import tile_items

_NEIGHBOUR_OFFSETS = [(dx, dy, dz) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
#: Mask row of a tile without walls.
_NO_WALLS = (1 << 32) - 1


def check_periods(sites: SiteSet, name: str, edge: int) -> None:
    """Raise CaseError if a periodic extent is not a multiple of `edge`; `name` is the layout in the message."""
    for axis, letter in enumerate("xyz"):
        if sites.periodic[axis] and sites.shape[axis] % edge:
            extent = f"the periodic extent of {sites.shape[axis]} sites along {letter}"
            raise CaseError(f"layout {name}: {extent} is not a multiple of {edge}; choose another layout or size")


def tile_keys(tile: npt.NDArray[np.int64], extent: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the number of each tile (..., 3) in a box of `extent` tiles, with x as the fastest index."""
    return np.asarray((tile[..., 2] * extent[1] + tile[..., 1]) * extent[0] + tile[..., 0])


def tiles_of(keys: npt.NDArray[np.int64], extent: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the tiles (n, 3) of their numbers `keys` (n,), see `tile_keys`."""
    return np.stack(np.unravel_index(keys, extent[::-1])[::-1], axis=1)


def items_in_tiles(
    rows: SiteRows, edge: int, extent: Sequence[int], keys: npt.NDArray[np.int64], number: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the item edge^3 t + x + edge (y + edge z) of each site of `rows`, (n,).

    t is the `number` (tiles,) of its tile, and `keys` (tiles,), ascending, are the numbers of the tiles in the box.
    """
    item = np.empty(len(rows), np.int64)
    tables = {"keys": keys, "tiles": len(keys), "number": number, "item": item}
    run_pass(tile_items(), len(rows.begin), rows=members_of_runs(rows), edge=edge, extent=tuple(extent), **tables)
    return item


class TileLayout(Layout):
    """Sites in tiles of `edge`^3 points (edge 4 or 8), with `values_per_site` stored values per site."""

    values_per_site: int

    def __init__(self, backend: Backend, world: World, region: Region, store: str, *, edge: int) -> None:
        """Number the tiles, build the wall masks and the table, and allocate.

        May raise CaseError, see `check_periods`.
        """
        super().__init__(backend, store, region.velocity_set)
        self.values_per_site = self._values_per_site()
        self.edge, self.volume = edge, edge**3
        check_periods(region.sites, self.name, edge)
        self._number_tiles(region)
        self._region = region
        self.item = self._items(region)
        walls, wall_rows = self._walls(region)
        tiles = len(self._keys)
        self._check_size(tiles)
        table = np.concatenate([self._table_entries(), wall_rows[:, None]], axis=1).astype(np.uint32)
        self._table, self._walls_array = backend.upload(table), backend.upload(walls)
        self.arrays = [backend.zeros(tiles * self.values_per_site * self.volume, store) for _ in range(2)]
        self.plan = build_plan(world, merged(self._requests(region)), lambda keys: self._locate(region, keys))
        self._table_bytes = self.table_bytes(len(table), walls.size // self.volume)

    @property
    def name(self) -> str:
        """Return the name by which a user chooses the layout."""
        return f"tiles-{self.edge}"

    def _values_per_site(self) -> int:
        return self.velocity_set.Q

    def table_bytes(self, tiles: int, walled: int) -> int:
        """Return the size of the table of `tiles` own tiles and of the masks of those with walls, in bytes."""
        return 4 * (28 * tiles + max(walled, 1) * self.volume)

    def _check_size(self, tiles: int) -> None:
        """Raise ValueError if the numbers in the tables of `tiles` tiles do not have enough bits."""
        check_slots(tiles * self.values_per_site * self.volume)

    def _table_entries(self) -> npt.NDArray[np.int64]:
        """Return what the table stores of the 27 neighbours of each owned tile: their first slots."""
        return self._neighbours * (self.values_per_site * self.volume)

    def _order(
        self, tile_coordinates: npt.NDArray[np.int64], at_boundary: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Return the order of the owned tiles: x is the fastest index; tiles at rank boundaries are last."""
        return np.argsort(at_boundary, kind="stable")

    def _key(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of the tile of each site in the box of all tiles, with x as the fastest index.

        Neighbouring tiles along x are then processed one after the other, so the memory sectors that both read stay in
        the cache.
        """
        return self._tile_key(coords // self.edge)

    def _tile_key(self, tile: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of each tile (..., 3) in the box of all tiles."""
        return tile_keys(tile, self._extent)

    def _lane(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        position_in_tile = coords % self.edge
        return np.asarray(
            position_in_tile[..., 0] + self.edge * (position_in_tile[..., 1] + self.edge * position_in_tile[..., 2])
        )

    def _number_tiles(self, region: Region) -> None:
        """Set the tile keys in local order and the 27 neighbours of each owned tile (itself where there is none)."""
        edge, shape, periodic = self.edge, region.sites.shape, region.sites.periodic
        self._extent = [-(-extent // edge) for extent in shape]
        owned = distinct_numbers(self._tile_key(region.own_rows.segments(edge)[0]))
        tile_coordinates = tiles_of(owned, self._extent)
        neighbour_keys = np.empty((len(owned), 27), np.int64)
        for column, step in enumerate(_NEIGHBOUR_OFFSETS):
            neighbour = tile_coordinates + step
            inside = np.ones(len(owned), bool)
            for axis in range(3):
                if periodic[axis]:
                    neighbour[:, axis] %= self._extent[axis]
                inside &= (neighbour[:, axis] >= 0) & (neighbour[:, axis] < self._extent[axis])
            neighbour[~inside] = 0
            neighbour_keys[:, column] = np.where(
                inside, np.ravel_multi_index(tuple(neighbour.T[::-1]), self._extent[::-1]), -1
            )
        tiles, first = self._tiles_with_sites(distinct_numbers(neighbour_keys[neighbour_keys >= 0]), region)
        tile_owner = region.owner[first]
        index = np.minimum(np.searchsorted(tiles, neighbour_keys), len(tiles) - 1)
        row = np.where(tiles[index] == neighbour_keys, index, -1)
        remote = (row >= 0) & (tile_owner[row] != region.rank)
        at_boundary = remote.any(axis=1)
        order = self._order(tile_coordinates, at_boundary)
        copies = np.unique(row[remote])
        self._keys = np.concatenate([owned[order], tiles[copies]])
        self._sorted = np.argsort(self._keys)
        local = np.full(len(tiles), -1, np.int64)
        local[np.searchsorted(tiles, self._keys)] = np.arange(len(self._keys))
        neighbours = np.where(row >= 0, local[row], -1)[order]
        self._neighbours = np.where(neighbours >= 0, neighbours, np.arange(len(owned))[:, None])
        self.items = len(owned) * self.volume
        self.interior = int(np.count_nonzero(~at_boundary)) * self.volume

    def _tiles_with_sites(self, candidates: npt.NDArray[np.int64], region: Region) -> tuple[Any, Any]:
        """Return those of the ascending keys `candidates` whose tiles contain sites, and the first site of each."""
        z_column = candidates % (self._extent[0] * self._extent[1])  # x is the fastest index, then y
        y, x = np.divmod(np.unique(z_column), self._extent[0])
        rows = region.sites.rows
        tiles, sites = rows.segments(self.edge, runs_in_columns(rows, np.stack([x, y], axis=1), self.edge))
        keys, index = np.unique(self._tile_key(tiles), return_index=True)
        position = np.minimum(np.searchsorted(keys, candidates), len(keys) - 1)
        used = keys[position] == candidates
        return candidates[used], sites[index[position[used]]]

    def _items(self, region: Region) -> npt.NDArray[np.int64]:
        """Return the item (n_owned,) of each site: its tile and its lane in it."""
        return items_in_tiles(region.own_rows, self.edge, self._extent, self._keys[self._sorted], self._sorted)

    @property
    def tile_coordinates(self) -> npt.NDArray[np.int64]:
        """Return the coordinates (tiles, 3) of the owned tiles, in tiles, in the order of the items."""
        return tiles_of(self._keys[: self.items // self.volume], self._extent)

    def _tile_rows(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the local number of the tile (owned or copied) of each site."""
        return np.asarray(self._sorted[np.searchsorted(self._keys, self._key(coords), sorter=self._sorted)])

    def _walls(self, region: Region) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the link masks (rows, B^3) of the tiles with walls, and the row of each owned tile or _NO_WALLS."""
        tiles = self.items // self.volume
        masks = np.full(self.items, (1 << self.velocity_set.Q) - 1, np.uint32)
        masks[self.item] = 0
        for q in range(1, self.velocity_set.Q):
            masks[self.item[region.cut_sites(q)]] |= np.uint32(1 << q)
        mask = masks.reshape(tiles, self.volume)
        has_walls = mask.any(axis=1)
        rows = np.where(has_walls, np.cumsum(has_walls) - 1, _NO_WALLS)
        return np.ascontiguousarray(mask[has_walls]) if has_walls.any() else np.zeros((1, self.volume), np.uint32), rows

    def _requests(self, region: Region) -> Requests:
        """Return, by peer, the keys of the populations that edge sites read from its tiles, and their local slots."""
        requests: Requests = {}
        if self.interior == self.items:
            return requests
        Q, opposite = self.velocity_set.Q, self.velocity_set.opposite
        for q in range(1, Q):
            # The population leaving a remote site y along q arrives at the owned site y + c_q.
            _, upwind = region.remote_neighbour(int(opposite[q]))
            coords, owner = region.sites.rows.coords_of(upwind), region.owner[upwind]
            slots = (self._tile_rows(coords) * Q + q) * self.volume + self._lane(coords)
            for peer in np.unique(owner):
                from_peer = owner == peer
                keys = upwind[from_peer] * Q + q
                requests.setdefault(int(peer), []).append((keys, slots[from_peer].astype(np.uint32)))
        return requests

    def _slot(self, q: int | npt.NDArray[np.int64], item: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (item // self.volume * self.values_per_site + q) * self.volume + item % self.volume

    def _locate(self, region: Region, keys: npt.NDArray[np.int64]) -> Slots:
        site, q = np.divmod(keys, self.values_per_site)
        return narrowed(self._slot(q, self.item[region.rows_of(site)]))

    def kernel_name(self, phase: int) -> str:
        """Return the name of the layout in the kernel registry."""
        return self.name

    def members(self, phase: int) -> dict[str, Any]:
        """Return the arrays, the tile table and the wall masks."""
        arrays = {"f_in": self.arrays[phase], "f_out": self.arrays[1 - phase]}
        return {**arrays, "table": self._table, "walls": self._walls_array}

    def source(self, phase: int) -> Array:
        """Return the copy that contains the current state."""
        return self.arrays[phase]

    def halo_mode(self, phase: int) -> HaloMode:
        """Return "gather": in every phase, sites read the populations of their neighbours."""
        return "gather"

    def outgoing_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint32]:
        """Return the slots of the sites themselves."""
        return self._slot(q, self.item if rows is None else self.item[rows]).astype(np.uint32)

    def outgoing_distance(self, phase: int, q: int) -> int | None:
        """Return the distance between the rest population and population q in a tile."""
        return q * self.volume

    def incoming_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the slots of the upwind sites, which are in the same tile or in a neighbour tile."""
        position = self._region.coords_of(rows) % self.edge - self.velocity_set.vectors[q]
        neighbour = 13 + position // self.edge @ np.array([1, 3, 9])
        tile = self._neighbours[self.item[rows] // self.volume, neighbour]
        return self._slot(q, tile * self.volume + self._lane(position)).astype(np.uint32)

    def addressing_bytes(self, phase: int) -> int:
        """Return the size of the tile table and the wall masks in bytes; they are read once per step."""
        return self._table_bytes
