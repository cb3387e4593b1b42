# SPDX-License-Identifier: BSD-3-Clause
"""Moment storage: tiles that store ten coefficients per site instead of populations, for the regularised collision.

After this collision the outgoing populations are a quadratic polynomial in the lattice vector (theory/flow, eq. 41).
The populations that return from an iolet or an interpolated wall are not. They are stored in a side table
(`moment_links.py`); the wall mask of a site flags the links whose values the sweep reads from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.flow.layout import HALF_SCALE, StoredColumns, Use, check_slots
from seiche.flow.list_layout import Requests
from seiche.flow.moment_links import MomentLinks
from seiche.flow.moment_state import (
    COEFFICIENTS,
    CONSERVED,
    GROUPS,
    PopulationsOfMoments,
    coefficients,
    sites_per_sector,
    values_per_site,
)
from seiche.flow.region import Region
from seiche.flow.tile_layout import TileLayout
from seiche.halo.plan import narrowed
from seiche.kernels.registry.flow import MOMENT_EDGE, outgoing_populations, rebuilt_populations
from seiche.solver.state import Rows

#: Tiles along the edge of a brick; tiles are ordered brick by brick for cache locality.
_BRICK = 4
#: Sites processed per pass.
_CHUNK = 1 << 20
#: Bits of a wall mask: the point is not fluid; a link of the site has a value in the side table. `_EMPTY` is the mask
#: of sectors that are not stored.
_NOT_FLUID, _HAS_LINK_VALUES, _EMPTY = np.uint32(1), np.uint32(1 << 31), np.uint32((1 << 32) - 1)

Floats = npt.NDArray[np.float64]


class MomentLayout(TileLayout):
    """Tiles of 8^3 sites with two copies of ten coefficients per site."""

    def __init__(self, backend: Backend, world: World, region: Region, store: str, *, compute: str) -> None:
        """Number the tiles and set up the side table; `store` is the storage precision, `compute` that of the kernels.

        May raise CaseError.
        """
        self._compute = compute
        self.sites_per_item = MOMENT_EDGE**3
        super().__init__(backend, world, region, store, edge=MOMENT_EDGE)
        self._links = MomentLinks(self.velocity_set)
        self._links.reserve(Use.IOLET, *_iolet_links(region))
        self._tables: dict[str, Array] = {}
        self._state_masks: Array | None = None
        self._arrays: list[dict[str, Array]] = []  # referenced by bound kernels
        self._rebuild_calls: dict[tuple[int, str], Callable[[], None] | None] = {}

    @property
    def name(self) -> str:
        """Return the name by which a user chooses the layout."""
        return "moments"

    def _values_per_site(self) -> int:
        return values_per_site(self.store)

    def _check_size(self, tiles: int) -> None:
        """Accept 2^32 / 14 tiles: the table stores slots divided by the volume of a tile."""
        check_slots(tiles * self.values_per_site)

    def _table_entries(self) -> npt.NDArray[np.int64]:
        """Return the first slots of the 27 neighbours of each owned tile, divided by the volume of a tile."""
        return self._neighbours * self.values_per_site

    def _order(
        self, tile_coordinates: npt.NDArray[np.int64], at_boundary: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Return the order of the owned tiles: by brick; x is the fastest index within a brick and among bricks."""
        brick, inside = np.divmod(tile_coordinates, _BRICK)
        return np.lexsort((*inside.T, *brick.T, at_boundary))

    def _walls(self, region: Region) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return wall masks and rows as in `TileLayout`, with sectors without fluid marked as empty."""
        masks, self._mask_rows = super()._walls(region)
        by_sector = masks.reshape(-1, sites_per_sector(self.store))
        by_sector[((by_sector & _NOT_FLUID) != 0).all(axis=1)] = _EMPTY
        return masks, self._mask_rows

    def reserve(self, use: Use, rows: npt.NDArray[np.int64], q: npt.NDArray[Any]) -> None:
        """Reserve slots in the side table, before the table is built."""
        assert not self._tables
        self._links.reserve(use, rows, q)

    def _link_tables(self) -> dict[str, Array]:
        """Return the side table and its row index; the first call builds them and flags the sites that have values."""
        if not self._tables:
            backend, links = self.backend, self._links
            masks = backend.download(self._walls_array).reshape(-1)
            has_link_values = links.read_links != 0
            item = self.item[links.sites[has_link_values]]
            position = self._mask_rows[item // self.volume] * self.volume + item % self.volume
            masks[position] |= _HAS_LINK_VALUES
            backend.assign(self._walls_array, masks.reshape(self._walls_array.shape))
            row_of_site = np.zeros(masks.size, np.uint32)
            row_of_site[position] = np.flatnonzero(has_link_values)
            read_links, state = (
                mask if len(links.sites) else np.zeros(1, np.uint32) for mask in (links.read_links, links.state)
            )
            check_slots(links.slots)
            self._tables = {
                "link_rows": backend.upload(row_of_site),
                "link_masks": backend.upload(read_links),
                "link_values": backend.zeros(max(links.slots, self.velocity_set.Q), self.boundary_precision),
            }
            self._state_masks, self._no_links = backend.upload(state), backend.upload(np.zeros_like(state))
        return self._tables

    def _requests(self, region: Region) -> Requests:
        """Return, by peer, the keys of the coefficients of its sites next to owned sites, and their local slots."""
        requests: Requests = {}
        if self.interior == self.items:
            return requests
        remote = np.unique(np.concatenate([region.remote_neighbour(q)[1] for q in range(1, self.velocity_set.Q)]))
        coords, owner = region.sites.rows.coords_of(remote), region.owner[remote]
        items = self._tile_rows(coords) * self.volume + self._lane(coords)
        for peer in np.unique(owner):
            from_peer = owner == peer
            value_index = np.arange(self.values_per_site)[:, None]
            keys = remote[from_peer] * self.values_per_site + value_index
            slots = self._slot(value_index, items[from_peer])
            requests[int(peer)] = [(keys.reshape(-1), slots.reshape(-1))]
        return requests

    @property
    def boundary_precision(self) -> str:
        """Return the precision of link values, which is float32 if the coefficients are float16."""
        return "float32" if self.store == "float16" else self.store

    def boundary(self, phase: int) -> Array:
        """Return the side table."""
        return self._link_tables()["link_values"]

    def outgoing_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint32]:
        """Return the slots in the side table; `NO_SLOT` for sites without a row."""
        return self._links.outgoing_slots(q, np.arange(len(self.item)) if rows is None else rows)

    def incoming_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the slots of reserved populations in the side table."""
        return self._links.incoming_slots(q, rows)

    def rebuild_call(self, phase: int, part: Literal["interior", "edge", "after iolets"]) -> Callable[[], None] | None:
        """Return the call that fills a part of the side table (see `Layout`); None if there is nothing to fill."""
        if (phase, part) not in self._rebuild_calls:
            self._rebuild_calls[phase, part] = self._new_rebuild_call(phase, part)
        return self._rebuild_calls[phase, part]

    def _new_rebuild_call(
        self, phase: int, part: Literal["interior", "edge", "after iolets"]
    ) -> Callable[[], None] | None:
        links, zeros = self._links, np.zeros(len(self._links.sites), np.uint32)
        edge = self.item[links.sites] >= self.interior
        if part == "interior":
            outgoing, incoming = links.rebuilt, np.where(edge, zeros, links.incoming)
        elif part == "edge":
            outgoing, incoming = zeros, np.where(edge, links.incoming, zeros)
        else:
            # All outgoing populations are rebuilt: the iolet values have already been read and are replaced afterwards.
            all_directions = np.uint32((1 << self.velocity_set.Q) - 1)
            outgoing, incoming = np.where(links.after_iolets != 0, all_directions, zeros), zeros
        rows = np.flatnonzero(outgoing | incoming)
        if not len(rows):
            return None
        rows = rows[np.argsort(self.item[links.sites[rows]], kind="stable")]
        upload = self.backend.upload
        spec = rebuilt_populations(self._compute, self.store, velocity_set=self.velocity_set.name)  # type: ignore[arg-type]
        kernel = self.backend.load(spec)
        arrays = {
            "sites": upload(self.item[links.sites[rows]]),
            "outgoing": upload(outgoing[rows]),
            "first_outgoing": upload(links.first_outgoing[rows]),
            "incoming": upload(incoming[rows]),
            "first_incoming": upload(links.first_incoming[rows]),
        }
        self._arrays.append(arrays)
        return kernel.bind(self.backend.pack(kernel, layout=self.members(phase), **arrays), 0, len(rows))

    def _slot(self, value_index: int | npt.NDArray[np.int64], item: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the slot of the stored value `value_index`; the two halves of a float32 are adjacent."""
        widths = np.array(GROUPS[self.store])
        group_starts = np.cumsum(widths) - widths
        index = np.asarray(value_index)
        group = np.searchsorted(group_starts, index, side="right") - 1
        width, first = widths[group], group_starts[group]
        tile = item // self.volume
        offset = first * self.volume + (item - tile * self.volume) * width + index - first
        return np.asarray(tile * (self.values_per_site * self.volume) + offset)

    def _groups(self, item: npt.NDArray[np.int64]) -> Iterator[tuple[Array, range]]:
        """Yield the slots (n,), on the device, of the first value of each group of the sites `item` (n,).

        Also yield the numbers of the values of this group, which are adjacent.
        """
        first = 0
        for width in GROUPS[self.store]:
            yield self.backend.upload(narrowed(self._slot(first, item))), range(first, first + width)
            first += width

    def _stored(self, phase: int) -> list[npt.NDArray[Any]]:
        """Return the stored values of the owned sites, one array (n_owned,) for each value of a site."""
        columns = [np.empty(len(self.item), self.store) for _ in range(self.values_per_site)]
        buffer = self.backend.zeros(min(len(self.item), _CHUNK), self.store)
        for begin in range(0, len(self.item), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            for slots, values in self._groups(self.item[part]):
                for k in values:
                    self._move("Pack", phase, slots, buffer, k - values[0])
                    columns[k][part] = self.backend.download(buffer)[: slots.size]
        return columns

    def _store(self, column: Callable[[int, slice], npt.NDArray[Any]]) -> None:
        """Overwrite the stored values; `column(k, rows)` returns value k of a slice of the sites.

        The next phase must be 0.
        """
        for begin in range(0, len(self.item), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            for slots, values in self._groups(self.item[part]):
                for k in values:
                    buffer = self.backend.upload(np.ascontiguousarray(column(k, part), self.store))
                    self._move("Unpack", 0, slots, buffer, k - values[0])

    def members(self, phase: int) -> dict[str, Any]:
        """Return the arrays, the tile table, the wall masks and the side table of links."""
        return {**super().members(phase), **self._link_tables()}

    derived = frozenset({"populations"})

    def state(self, phase: int) -> dict[str, Rows]:
        """Return the stored `moments` (n_owned, 10) and, like every layout, the outgoing `populations` (n_owned, Q).

        The latter are computed from the moments on access, except where they belong to links with own values.
        """
        columns = self._stored(phase)
        if self.store == "float16":
            halves, others = columns[: 2 * CONSERVED], columns[2 * CONSERVED :]
            pairs = (np.stack(halves[2 * k : 2 * k + 2], axis=1) for k in range(CONSERVED))
            columns = [*(pair.view(np.float32)[:, 0] for pair in pairs), *others]
        rows, moments = self._links.sites[self._links.state != 0], StoredColumns(columns)
        own_values = rows, self.outgoing(phase, rows)
        return {
            "populations": PopulationsOfMoments(moments, own_values, self.velocity_set, self._compute),
            "moments": moments,
        }

    def outgoing(
        self, phase: int, rows: npt.NDArray[np.int64] | None = None, *, with_link_values: bool = True
    ) -> npt.NDArray[Any]:
        """Return the outgoing populations (n, Q) of `rows` (n,), or all, before a step of this phase.

        Without link values they are those that the moments represent.
        """
        Q, backend, item = self.velocity_set.Q, self.backend, self.item if rows is None else self.item[rows]
        name, lattice = self.kernel_name(phase), self.velocity_set.name
        kernel = backend.load(outgoing_populations(name, self._compute, self.store, velocity_set=lattice))  # type: ignore[arg-type]
        # Values that walls return are not outgoing populations, so only those that belong to the state are read.
        members = {**self.members(phase), "link_masks": self._state_masks if with_link_values else self._no_links}
        stride = min(max(len(item), 1), _CHUNK)
        populations = backend.zeros(Q * stride, self._compute)
        state = np.empty((len(item), Q), self._compute)
        for begin in range(0, len(item), stride):
            items = item[begin : begin + stride]
            sites = backend.upload(items)
            arguments = backend.pack(kernel, layout=members, sites=sites, out=populations, stride=stride)
            kernel.bind(arguments, 0, len(items))()
            state[begin : begin + stride] = backend.download(populations).reshape(Q, stride)[:, : len(items)].T
        return state

    def set_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Restore the state of any layout: exactly from `moments`, otherwise the regularised part of `populations`."""
        populations = np.asarray(state["populations"], np.float64)
        moments = state.get("moments")
        if moments is None:
            unknown = np.zeros(len(populations), np.uint32)
            unknown[self._links.sites] = self._links.state
            moments = coefficients(populations, self.velocity_set, unknown)
        self._set(moments, populations[self._links.sites])

    def set_moments(self, moments: npt.NDArray[Any], rows: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        """Restore the state from `moments` (n_owned, 10) and from the populations `values` (m, Q) of `rows` (m,).

        The rows are ascending and include all sites with links through openings.
        """
        self._set(moments, np.zeros((0, self.velocity_set.Q)))
        links = self.outgoing(0, self._links.sites, with_link_values=False)
        position = np.searchsorted(rows, self._links.sites)
        given = np.flatnonzero(self._links.state != 0)
        links[given] = values[position[given]]
        self._set_links(links)

    def fill(self, populations: Floats) -> None:
        """Set all sites to the same `populations` (Q,)."""
        moments = coefficients(populations[None], self.velocity_set, np.zeros(1, np.uint32))
        shape = (len(self._links.sites), len(populations))
        self._set(np.broadcast_to(moments, (len(self.item), COEFFICIENTS)), np.broadcast_to(populations, shape))

    def _set(self, moments: Floats, links: Floats) -> None:
        """Store the coefficients (n_owned, 10), and the link values (n, Q) of the sites that are in the side table."""

        def column(k: int, rows: slice) -> npt.NDArray[Any]:
            if self.store != "float16":
                return moments[rows, k]
            if k >= 2 * CONSERVED:
                return moments[rows, k - CONSERVED] * HALF_SCALE
            # A float32 number is stored as two halves.
            return np.ascontiguousarray(moments[rows, k // 2], np.float32).view(np.float16).reshape(-1, 2)[:, k % 2]

        self._store(column)
        self._set_links(links)

    def _set_links(self, links: npt.NDArray[Any]) -> None:
        """Store the link values (n, Q) of the sites that are in the side table."""
        if len(links):
            values = np.zeros(self.boundary(0).size, self.boundary_precision)
            values[: links.size] = links.reshape(-1)
            self.backend.assign(self.boundary(0), values)


def _iolet_links(region: Region) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the links through iolets: the row of the site (n,), and the direction (n,)."""
    kinds = region.sites.link_kind[region.boundary_rows][:, region.velocity_set.link_rows]
    boundary_row, direction = np.nonzero((kinds == LinkKind.INLET) | (kinds == LinkKind.OUTLET))
    return region.boundary_sites[boundary_row], direction + 1
