# SPDX-License-Identifier: BSD-3-Clause
"""Distribution of cells among ranks: owners, ghosts, migration, and the message plans of a step (decision 19)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.couple.bricks import Bricks
from seiche.couple.markers import Placement
from seiche.couple.messages import HEADROOM, CellMessages, move_cells
from seiche.couple.placement import owned_cells
from seiche.couple.territory import Territory
from seiche.domain.world import World
from seiche.halo.transports import TransportName
from seiche.kernels.registry import resident as registry
from seiche.kernels.registry.resident import GHOST, OWNED, OWNED_ONLY, OWNED_SHARED

Numbers = npt.NDArray[np.int64]

#: Minimum capacity for cells of a type.
_MIN_CAPACITY = 4


@dataclass(frozen=True, eq=False)
class OwnerTable:
    """Cells on a rank: `kind`, `number` and `owner` (n,), and bits of the ranks with copies, `holders` (n, words)."""

    kind: Numbers
    number: Numbers
    owner: Numbers
    holders: npt.NDArray[np.uint32]

    @staticmethod
    def of(rows: Numbers, words: int) -> OwnerTable:
        """Return the table of rows (n, 3 + words)."""
        return OwnerTable(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3 : 3 + words].astype(np.uint32))

    def is_on(self, rank: int) -> npt.NDArray[np.bool_]:
        """Return flags (n,) of the cells that are on a rank."""
        return (self.holders[:, rank // 32] >> np.uint32(rank % 32) & 1).astype(bool)

    def rows(self) -> Numbers:
        """Return the cells as rows (n, 3 + words)."""
        return np.column_stack([self.kind, self.number, self.owner, self.holders]).astype(np.int64)


class CellSharing:
    """Cells of a rank and their exchange with other ranks.

    The `velocity` (3, stride) of the vertices migrates with their positions. In a step, `messages.velocities` adds
    velocities at the owners of cells (scatter_add) and sends forces to the ghosts (gather), and `messages.positions`
    sends positions to the ghosts.
    """

    def __init__(
        self,
        world: World,
        cells: Cells,
        bricks: Bricks,
        territory: Territory,
        *,
        totals: Sequence[int],
        margins: tuple[int, int, int],
        transport: TransportName,
        before_closing: Callable[[], None],
    ) -> None:
        """Allocate the minimum capacity; `place_all` sets the cells, `totals` of each type on all ranks.

        `before_closing` must discard graphs that use the messages.
        """
        self.world, self.cells, self.bricks, self.territory = world, cells, bricks, territory
        self.margins = margins
        self.backend, self._real = cells.backend, cells.precision
        self.total = list(totals)
        self._block_vertices = np.array([block.vertices for block in cells.blocks])
        upload = self.backend.upload
        self._sets = {name: upload(getattr(territory, name)) for name in ("sets", "ranks", "homes")}
        self._result, self._host_result = self.backend.zeros(3, np.int32), self.backend.pinned(3, np.int32)
        self._result_event: Any = None
        self.table = OwnerTable.of(np.zeros((0, 3 + territory.words), np.int64), territory.words)
        self.messages = CellMessages(self.backend, world, self._real, transport, before_closing)
        self.reserve(*[[_MIN_CAPACITY] * len(self.total)] * 2)

    def reserve(self, capacities: Sequence[int], replicated: Sequence[int]) -> None:
        """Allocate cell slots, up to `replicated` for cells that are also on other ranks.

        Contents of arrays are lost.
        """
        self.resident = self.cells.reserve(capacities, replicated)
        zeros, slots, words = self.backend.zeros, self.cells.count, self.territory.words
        self.velocity = zeros((3, self.cells.stride), self._real)
        self._holders, self._needed_by = zeros((slots, words), np.uint32), zeros((slots, words), np.uint32)
        self._home = zeros(slots, np.int32)
        by_cell = (("holders", self._holders, words), ("needed", self._needed_by, words), ("home", self._home, 1))
        pointer, spec = self.backend.pointer, registry.find_holders(self._real)
        common = dict(
            bricks=self.bricks.members, positions=self.cells.positions, velocity=self.velocity, result=self._result
        )
        common |= dict(stride=self.cells.stride, words=words, margins=self.margins, **self._sets)
        self._queries = [
            self.resident.over_cells(
                spec,
                block,
                OWNED,
                **common,
                **{name: pointer(array) + 4 * width * block.first_cell for name, array, width in by_cell},
                first=block.first_vertex,
                vertices=block.vertices,
            )
            for block in self.cells.blocks
        ]

    @property
    def capacities(self) -> list[int]:
        """Return the number of cell slots of each type."""
        return [block.cells for block in self.cells.blocks]

    def query(self) -> None:
        """Launch the search for the ranks that need each cell; `reply` waits for the result."""
        self.backend.assign(self._result, np.zeros(3, np.int32))
        for launch in self._queries:
            launch()
        self.backend.copy_to_host(self._result, self._host_result)
        self._result_event = self.backend.current().record()

    def reply(self) -> tuple[bool, bool, float]:
        """Return the result of the last `query` (collective).

        It contains whether a rank lacked a cell, whether a rank may soon lack one, and the maximum displacement of a
        vertex along an axis in a step.
        """
        self.backend.await_event(self._result_event)
        reduced = np.min(np.stack(self.world.allgather(self._host_result * [-1, -1, 1])), axis=0)
        return bool(reduced[0]), bool(reduced[1]), float(np.array(-reduced[2], np.int32).view(np.float32))

    def place_all(self, placement: Placement) -> None:
        """Set all cells of all ranks (collective).

        Arrays (3, n) are the same on every rank, or with `placement.numbers` those of the cells that the rank passes.
        Cells are ordered by type, then by number.
        """
        rank, words, kinds = self.world.rank, self.territory.words, len(self.total)
        owned = owned_cells(self.world, self.territory, self._block_vertices.tolist(), self.total, placement)
        kind = np.repeat(np.arange(kinds), [len(cells.numbers) for cells in owned])
        holders = np.zeros((len(kind), words), np.int64)
        holders[:, rank // 32] = 1 << rank % 32
        numbers = np.concatenate([cells.numbers for cells in owned])
        table = OwnerTable.of(np.column_stack([kind, numbers, np.full(len(kind), rank), holders]), words)
        counts = np.bincount(table.kind, minlength=kinds).tolist()
        capacities = [max(old, _with_headroom(count)) for old, count in zip(self.capacities, counts, strict=True)]
        self.reserve(capacities, self.resident.replicated_capacities)
        memory = [] if placement.relaxed is None else self.cells.planes[: len(placement.relaxed)]
        velocity = [] if placement.velocity is None else [self.velocity]
        for index, array in enumerate((self.cells.positions, *velocity, *memory)):
            host = np.zeros((3, self.cells.stride), array.dtype)
            for block, cells in zip(self.cells.blocks, owned, strict=True):
                host[:, block.first_vertex : block.first_vertex + cells.values.shape[2]] = cells.values[index]
            self.backend.assign(array, host)
        self.messages.prepare(self.cells.positions, self.velocity)
        self._set_roles(table)
        if not memory:
            self.cells.relax()
        self.query()

    def cell_slots(self, table: OwnerTable) -> Numbers:
        """Return the slots of the cells in a table, which is sorted by type and number."""
        begin = np.searchsorted(table.kind, np.arange(len(self.total)))
        first = np.array([block.first_cell for block in self.cells.blocks])
        return np.asarray(first[table.kind] + np.arange(len(table.kind)) - begin[table.kind], np.int64)

    def _vertices(self, table: OwnerTable) -> tuple[Numbers, Numbers]:
        """Return the first vertex and the number of vertices of each cell in a table, (n,)."""
        first_cell = np.array([block.first_cell for block in self.cells.blocks])
        first_vertex = np.array([block.first_vertex for block in self.cells.blocks])
        vertices, slots = self._block_vertices[table.kind], self.cell_slots(table)
        return first_vertex[table.kind] + (slots - first_cell[table.kind]) * vertices, vertices

    def redistribute(self) -> bool:
        """Copy each cell to all ranks that need it, after `query` (collective); return whether arrays are new."""
        world, old, rank = self.world, self.table, self.world.rank
        owned_cells = np.flatnonzero(old.owner == rank)
        slots = self.cell_slots(old)[owned_cells]
        home = self.backend.download(self._home)[slots].astype(np.int64)
        home = np.where(home >= 0, home, rank)
        holders = self.backend.download(self._needed_by)[slots]
        holders[np.arange(len(owned_cells)), home // 32] |= np.uint32(1) << (home % 32).astype(np.uint32)
        outgoing = OwnerTable(old.kind[owned_cells], old.number[owned_cells], home, holders)
        by_peer = [np.flatnonzero(outgoing.is_on(peer)) for peer in range(world.size)]
        rows = outgoing.rows()
        received_rows = world.alltoall([rows[k] if peer != rank else rows[:0] for peer, k in enumerate(by_peer)])
        received_rows[rank] = rows[by_peer[rank]]  # most rows stay on this rank and need no message
        source = np.repeat(np.arange(world.size), [len(peer_rows) for peer_rows in received_rows])
        table_rows = np.concatenate(received_rows)
        order = np.lexsort((table_rows[:, 1], table_rows[:, 0]))
        table, source = OwnerTable.of(table_rows[order], self.territory.words), source[order]

        old_vertices, vertices = self._block_vertices[outgoing.kind], self._block_vertices[table.kind]
        owned, ghosts = self._lists(table)
        sent = np.maximum(_values(old_vertices, by_peer), _values(vertices, owned))
        sources = [np.flatnonzero(source == peer) for peer in range(world.size)]
        received = np.maximum(_values(vertices, sources), _values(vertices, ghosts))
        sent[rank] = received[rank] = 0
        grown = self._grow(old, table, sent, received)
        self._move(old, owned_cells, by_peer, table, source)
        self._set_roles(table)
        table_vertices, stride, messages = self._vertices(table), self.cells.stride, self.messages
        messages.write(messages.positions, "gather", stride, (*table_vertices, owned), (*table_vertices, ghosts))
        messages.write(messages.velocities, "gather", stride, (*table_vertices, owned), (*table_vertices, ghosts))
        messages.write(messages.velocities, "scatter_add", stride, (*table_vertices, ghosts), (*table_vertices, owned))
        return grown

    def _lists(self, table: OwnerTable) -> tuple[list[Numbers], list[Numbers]]:
        """Return, for each rank, the owned cells that are its ghosts, and its cells that are ghosts on this rank."""
        rank, is_owned = self.world.rank, table.owner == self.world.rank
        owned, ghosts = [], []
        for peer in range(self.world.size):
            remote = peer != rank
            owned.append(np.flatnonzero(is_owned & table.is_on(peer) & remote))
            ghosts.append(np.flatnonzero((table.owner == peer) & remote))
        return owned, ghosts

    def _replicated(self, table: OwnerTable) -> npt.NDArray[np.bool_]:
        """Return flags (n,) of the cells in a table that are also on other ranks."""
        other_holders = table.holders.copy()
        other_holders[:, self.world.rank // 32] &= ~np.uint32(1 << self.world.rank % 32)
        return np.asarray(other_holders.any(axis=1) | (table.owner != self.world.rank))

    def _roles(self, table: OwnerTable) -> npt.NDArray[np.int32]:
        """Return the roles (n,) of the cells in a table on this rank."""
        owned_roles = np.where(self._replicated(table), OWNED_SHARED, OWNED_ONLY)
        return np.where(table.owner == self.world.rank, owned_roles, GHOST).astype(np.int32)

    def vertices(self, roles: int, *, divided: bool = False) -> int:
        """Return the number of vertices of the cells on this rank whose roles are in the bit mask `roles`.

        With `divided`, the vertices of a replicated cell are divided equally among its ranks.
        """
        table = self.table
        counts = self._block_vertices[table.kind]
        holders = np.unpackbits(np.ascontiguousarray(table.holders).view(np.uint8), axis=1).sum(axis=1)
        chosen = (roles >> self._roles(table) & 1).astype(bool)
        return int(np.rint((counts / holders.clip(1) if divided else counts)[chosen].sum()))

    def _grow(self, table: OwnerTable, new: OwnerTable, sent: Numbers, received: Numbers) -> bool:
        """Increase the capacities for the cells of `new` and their messages if any rank needs it; return whether."""
        kinds = len(self.total)
        counts = [np.bincount(kind, minlength=kinds) for kind in (new.kind, new.kind[self._replicated(new)])]
        requirements = list(zip(counts, (self.capacities, self.resident.replicated_capacities), strict=True))
        too_small = any((count > capacity).any() for count, capacity in requirements)
        if not any(self.world.allgather(too_small or not self.messages.fits(sent, received))):
            return False
        if too_small:
            (first, vertices), stride = self._vertices(table), self.cells.stride
            former_arrays = self.cells.positions, self.velocity, *self.cells.planes
            capacities = (
                [_with_headroom(n) if n > old else old for n, old in zip(count.tolist(), capacity, strict=True)]
                for count, capacity in requirements
            )
            self.reserve(*capacities)
            entries = np.column_stack([first, self._vertices(table)[0], vertices])
            for source, target in zip(
                former_arrays, (self.cells.positions, self.velocity, *self.cells.planes), strict=True
            ):
                move_cells(self.backend, source, target, entries, (stride, self.cells.stride))
        self.messages.grow(sent, received)
        self.messages.prepare(self.cells.positions, self.velocity)
        return True

    def _move(
        self, old_table: OwnerTable, owned_cells: Numbers, by_peer: list[Numbers], table: OwnerTable, source: Numbers
    ) -> None:
        """Copy the state of the owned cells, rows `owned_cells` of `old_table`, to their new ranks."""
        rank, stride, (first_new, vertices) = self.world.rank, self.cells.stride, self._vertices(table)
        first_old, old_vertices = (column[owned_cells] for column in self._vertices(old_table))
        empty = np.zeros(0, np.int64)
        outgoing = [empty if peer == rank else rows for peer, rows in enumerate(by_peer)]
        incoming = [empty if peer == rank else np.flatnonzero(source == peer) for peer in range(self.world.size)]
        kept_rows, messages = np.flatnonzero(source == rank), self.messages
        outgoing_entries = np.column_stack(
            [first_old[by_peer[rank]], first_new[kept_rows], old_vertices[by_peer[rank]]]
        )
        returned_entries = np.column_stack([first_new[kept_rows], first_new[kept_rows], vertices[kept_rows]])
        planes = [(messages.positions, plane) for plane in self.cells.planes]
        for exchange, array in (
            (messages.positions, self.cells.positions),
            (messages.velocities, self.velocity),
            *planes,
        ):
            buffer = self.backend.zeros((3, stride), array.dtype)
            move_cells(self.backend, array, buffer, outgoing_entries, (stride, stride))
            messages.write(
                exchange, "gather", stride, (first_old, old_vertices, outgoing), (first_new, vertices, incoming)
            )
            exchange.start(array, "gather")
            exchange.finish(array, "gather")
            move_cells(self.backend, buffer, array, returned_entries, (stride, stride))

    def _set_roles(self, table: OwnerTable) -> None:
        """Copy the roles of the cells in a table to the device."""
        self.table = table
        slots = self.cell_slots(table)
        role, replicated = np.zeros(self.cells.count, np.int32), self._replicated(table)
        role[slots] = self._roles(table)
        self.backend.assign(self.resident.role, role)
        owned_numbers = table.owner == self.world.rank
        of_kind = [(table.kind == kind, block.first_cell) for kind, block in enumerate(self.cells.blocks)]
        owned, ghosts = (
            [slots[rows & kind] - first for kind, first in of_kind]
            for rows in (replicated & owned_numbers, replicated & ~owned_numbers)
        )
        self.resident.list_replicated(owned, ghosts)
        holders = np.zeros((self.cells.count, self.territory.words), np.uint32)
        holders[slots] = table.holders
        self.backend.assign(self._holders, holders)

    def owned_slots(self) -> Numbers:
        """Return the slots of the owned cells, (n,)."""
        return np.asarray(self.cell_slots(self.table)[self.table.owner == self.world.rank])

    def number(self, slot: int) -> int:
        """Return the number, within its type, of the cell in a slot."""
        return int(self.table.number[self.cell_slots(self.table) == slot][0])

    def owned_columns(self) -> list[tuple[Numbers, Numbers]]:
        """Return, for each type, the numbers of the owned cells and the columns of their vertices."""
        owned, own_by_kind = self.table.owner == self.world.rank, []
        first, _ = self._vertices(self.table)
        for kind, block in enumerate(self.cells.blocks):
            is_selected = owned & (self.table.kind == kind)
            columns = first[is_selected][:, None] + np.arange(block.vertices)
            own_by_kind.append((self.table.number[is_selected], columns.reshape(-1)))
        return own_by_kind

    def gathered(self, by_cell: Array) -> npt.NDArray[Any]:
        """Return values (n, ...) of the cells of all ranks, by type and number, on every rank (collective)."""
        owned_rows = np.flatnonzero(self.table.owner == self.world.rank)
        total = np.array(self.total)
        row = (np.cumsum(total) - total)[self.table.kind[owned_rows]] + self.table.number[owned_rows]
        rows, values = zip(
            *self.world.allgather((row, self.backend.download(by_cell)[self.owned_slots()])), strict=True
        )
        return np.asarray(np.concatenate(values)[np.argsort(np.concatenate(rows))])


def _values(vertices: Numbers, rows_by_peer: Sequence[Numbers]) -> Numbers:
    """Return the number of values in the message to or from each rank."""
    return np.array([3 * int(vertices[rows].sum()) for rows in rows_by_peer], np.int64)


def _with_headroom(count: int) -> int:
    return max(int(count * HEADROOM) + 1, _MIN_CAPACITY)
