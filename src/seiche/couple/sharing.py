# SPDX-License-Identifier: BSD-3-Clause
"""Which rank holds which cells: who needs them, how they travel, and the plans of a step's messages (decision 19)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.couple.bricks import Bricks
from seiche.couple.messages import GROWTH, CellMessages, move_cells
from seiche.couple.territory import Territory
from seiche.domain.world import World
from seiche.halo.transports import TransportName
from seiche.kernels.registry import held as registry
from seiche.kernels.registry.held import ALONE, GHOST, OWN, SHARED

Numbers = npt.NDArray[np.int64]

#: Cells for which there is always room.
_LEAST = 4


@dataclass(frozen=True, eq=False)
class Table:
    """Cells that a rank holds, by type and number: `kind`, `number`, `owner` (n,), and `holders` (n, words) as bits."""

    kind: Numbers
    number: Numbers
    owner: Numbers
    holders: npt.NDArray[np.uint32]

    @staticmethod
    def of(rows: Numbers, words: int) -> Table:
        """Return the table of rows (n, 3 + words)."""
        return Table(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3 : 3 + words].astype(np.uint32))

    def held_by(self, rank: int) -> npt.NDArray[np.bool_]:
        """Return which cells (n,) a rank holds."""
        return (self.holders[:, rank // 32] >> np.uint32(rank % 32) & 1).astype(bool)

    def rows(self) -> Numbers:
        """Return the cells as rows (n, 3 + words)."""
        return np.column_stack([self.kind, self.number, self.owner, self.holders]).astype(np.int64)


class Sharing:
    """The cells of a rank among those of all ranks.

    `velocity` (3, stride) of the vertices is what travels with their places. In a step `messages.speeds` adds up
    velocities at the cells' owners (scatter_add) and brings forces to the ghosts (gather), to which `messages.places`
    brings places.
    """

    def __init__(
        self,
        world: World,
        cells: Cells,
        bricks: Bricks,
        territory: Territory,
        *,
        margins: tuple[int, int, int],
        transport: TransportName,
        before_closing: Callable[[], None],
    ) -> None:
        """Remember what to share; `adopt` puts cells here. `before_closing` forgets graphs that use the messages."""
        self.world, self.cells, self.bricks, self.territory = world, cells, bricks, territory
        self.margins = margins
        self.backend, self._real = cells.backend, cells.precision
        self.total = [block.cells for block in cells.blocks]
        upload = self.backend.upload
        self._sets = {name: upload(getattr(territory, name)) for name in ("sets", "ranks", "homes")}
        self._told, self._heard = self.backend.zeros(3, np.int32), self.backend.pinned(3, np.int32)
        self._come: Any = None
        self.table = Table.of(np.zeros((0, 3 + territory.words), np.int64), territory.words)
        self.messages = CellMessages(self.backend, world, self._real, transport, before_closing)
        least = [_LEAST for _ in self.total]
        self.reserve(least, least)

    def reserve(self, capacities: Sequence[int], many: Sequence[int]) -> None:
        """Make room for cells, `many` of them held by other ranks, too; what was in the arrays is gone."""
        self.held = self.cells.reserve(capacities, many)
        zeros, room, words = self.backend.zeros, self.cells.count, self.territory.words
        self.velocity = zeros((3, self.cells.stride), self._real)
        self._holders, self._wanted = zeros((room, words), np.uint32), zeros((room, words), np.uint32)
        self._home = zeros(room, np.int32)
        self._looks = []
        for block in self.cells.blocks:
            by_cell = {
                name: self.backend.pointer(array) + 4 * width * block.first_cell
                for name, array, width in (
                    ("holders", self._holders, words),
                    ("wanted", self._wanted, words),
                    ("home", self._home, 1),
                )
            }
            look = self.held.over_cells(
                registry.find_holders(self._real),
                block,
                OWN,
                bricks=self.bricks.members,
                **self._sets,
                **by_cell,
                place=self.cells.place,
                velocity=self.velocity,
                told=self._told,
                stride=self.cells.stride,
                first=block.first_vertex,
                vertices=block.vertices,
                words=words,
                margins=self.margins,
            )
            self._looks.append(look)

    @property
    def capacities(self) -> list[int]:
        """Return for how many cells of each type there is room."""
        return [block.cells for block in self.cells.blocks]

    def ask(self) -> None:
        """Look who needs the cells as they are now; the device does it in its turn, and `answer` tells."""
        self.backend.assign(self._told, np.zeros(3, np.int32))
        for look in self._looks:
            look()
        self.backend.copy_to_host(self._told, self._heard)
        self._come = self.backend.current().record()

    def answer(self) -> tuple[bool, bool, float]:
        """Return what the last `ask` was for (collective).

        Whether a rank lacked a cell, whether one soon may, and how far a vertex moves in a step along an axis.
        """
        self.backend.await_event(self._come)
        told = np.min(np.stack(self.world.allgather(self._heard * [-1, -1, 1])), axis=0)
        return bool(told[0]), bool(told[1]), float(np.array(-told[2], np.int32).view(np.float32))

    def adopt(self, place: npt.NDArray[np.float64], velocity: npt.NDArray[Any] | None) -> None:
        """Take all cells of all ranks from arrays (3, n) that are the same on every rank (collective).

        Cells of a type follow each other by their numbers, types as in the cells.
        """
        rows, columns, begin = [], [], 0
        for kind, (block, total) in enumerate(zip(self.cells.blocks, self.total, strict=True)):
            vertices = block.vertices
            here = place[:, begin : begin + total * vertices].reshape(3, total, vertices)
            home = self.territory.home(np.asarray(here.mean(axis=2).T)).astype(np.int64)
            number = np.arange(total)
            mine = np.flatnonzero(np.where(home >= 0, home, number % self.world.size) == self.world.rank)
            rows.append(np.column_stack([np.full(len(mine), kind), mine]))
            columns.append((begin + mine[:, None] * vertices + np.arange(vertices)).reshape(-1))
            begin += total * vertices
        mine = np.concatenate(rows).astype(np.int64)
        holders = np.zeros((len(mine), self.territory.words), np.int64)
        holders[:, self.world.rank // 32] = 1 << self.world.rank % 32
        owner = np.full(len(mine), self.world.rank)
        table = Table.of(np.column_stack([mine, owner, holders]), self.territory.words)
        room = [max(have, _room(count)) for have, count in zip(self.capacities, self._counts(table), strict=True)]
        self.reserve(room, self.held.room_for_many)
        for array, source in ((self.cells.place, place), (self.velocity, velocity)):
            if source is None:
                continue
            host = np.zeros((3, self.cells.stride), array.dtype)
            for block, part in zip(self.cells.blocks, columns, strict=True):
                host[:, block.first_vertex : block.first_vertex + len(part)] = source[:, part]
            self.backend.assign(array, host)
        self.messages.prepare(self.cells.place, self.velocity)
        self._settle_roles(table)
        self.ask()

    def _counts(self, table: Table) -> list[int]:
        return [int(count) for count in np.bincount(table.kind, minlength=len(self.total))]

    def cell_slots(self, table: Table) -> Numbers:
        """Return where cells of a table, sorted by type and number, are among the cells of which there is room."""
        begin = np.searchsorted(table.kind, np.arange(len(self.total)))
        first = np.array([block.first_cell for block in self.cells.blocks])
        return np.asarray(first[table.kind] + np.arange(len(table.kind)) - begin[table.kind], np.int64)

    def _vertices(self, table: Table) -> tuple[Numbers, Numbers]:
        """Return the first vertex and the number of vertices of each cell of a table, (n,)."""
        first_cell = np.array([block.first_cell for block in self.cells.blocks])
        first_vertex = np.array([block.first_vertex for block in self.cells.blocks])
        vertices = np.array([block.vertices for block in self.cells.blocks])[table.kind]
        slots = self.cell_slots(table)
        return first_vertex[table.kind] + (slots - first_cell[table.kind]) * vertices, vertices

    def share(self) -> bool:
        """Bring every cell to all ranks that need it, after `ask` (collective); return whether arrays are new."""
        world, old, rank = self.world, self.table, self.world.rank
        mine = np.flatnonzero(old.owner == rank)
        slots = self.cell_slots(old)[mine]
        home = self.backend.download(self._home)[slots].astype(np.int64)
        home = np.where(home >= 0, home, rank)
        holders = self.backend.download(self._wanted)[slots]
        holders[np.arange(len(mine)), home // 32] |= np.uint32(1) << (home % 32).astype(np.uint32)
        leaving = Table(old.kind[mine], old.number[mine], home, holders)
        going = [np.flatnonzero(leaving.held_by(peer)) for peer in range(world.size)]
        rows = leaving.rows()
        parts = world.alltoall([rows[part] if peer != rank else rows[:0] for peer, part in enumerate(going)])
        parts[rank] = rows[going[rank]]  # most of them: they need no message
        source = np.repeat(np.arange(world.size), [len(part) for part in parts])
        every = np.concatenate(parts)
        order = np.lexsort((every[:, 1], every[:, 0]))
        table, source = Table.of(every[order], self.territory.words), source[order]

        vertices = np.array([block.vertices for block in self.cells.blocks])
        sent = self._values(vertices[leaving.kind], [going[p] for p in range(world.size)])
        received = self._values(vertices[table.kind], [np.flatnonzero(source == p) for p in range(world.size)])
        owned, ghosts = self._lists(table)
        sent = np.maximum(sent, self._values(vertices[table.kind], owned))
        received = np.maximum(received, self._values(vertices[table.kind], ghosts))
        sent[rank] = received[rank] = 0
        grown = self._grow(old, table, sent, received)
        self._move(old, mine, going, table, source)
        self._settle_roles(table)
        at, stride, messages = self._vertices(table), self.cells.stride, self.messages
        messages.write(messages.places, "gather", stride, (*at, owned), (*at, ghosts))
        messages.write(messages.speeds, "gather", stride, (*at, owned), (*at, ghosts))
        messages.write(messages.speeds, "scatter_add", stride, (*at, ghosts), (*at, owned))
        return grown

    def _values(self, vertices: Numbers, parts: Sequence[Numbers]) -> Numbers:
        return np.array([3 * int(vertices[part].sum()) for part in parts], np.int64)

    def _lists(self, table: Table) -> tuple[list[Numbers], list[Numbers]]:
        """Return for each rank the cells of this rank that it holds, and those of it that are held here."""
        rank, own = self.world.rank, table.owner == self.world.rank
        owned, ghosts = [], []
        for peer in range(self.world.size):
            other = peer != rank
            owned.append(np.flatnonzero(own & table.held_by(peer) & other))
            ghosts.append(np.flatnonzero((table.owner == peer) & other))
        return owned, ghosts

    def _many(self, table: Table) -> npt.NDArray[np.bool_]:
        """Return which cells (n,) of a table other ranks hold, too."""
        others = table.holders.copy()
        others[:, self.world.rank // 32] &= ~np.uint32(1 << self.world.rank % 32)
        return np.asarray(others.any(axis=1) | (table.owner != self.world.rank))

    def _roles(self, table: Table) -> npt.NDArray[np.int32]:
        """Return what the cells (n,) of a table are on this rank."""
        mine = np.where(self._many(table), SHARED, ALONE)
        return np.where(table.owner == self.world.rank, mine, GHOST).astype(np.int32)

    def vertices(self, roles: int, *, divided: bool = False) -> int:
        """Return how many vertices the cells have that are in these roles here, bit by bit.

        `divided` counts those of a cell on each of the ranks that hold it for an equal part.
        """
        table = self.table
        every = np.array([block.vertices for block in self.cells.blocks])[table.kind]
        holders = np.unpackbits(np.ascontiguousarray(table.holders).view(np.uint8), axis=1).sum(axis=1)
        chosen = (roles >> self._roles(table) & 1).astype(bool)
        return int(np.rint((every / holders.clip(1) if divided else every)[chosen].sum()))

    def _grow(self, table: Table, new: Table, sent: Numbers, received: Numbers) -> bool:
        """Make room for the cells of the table `new` and messages on all ranks if one lacks it; return whether so."""
        counts = self._counts(new)
        of_many = [int(count) for count in np.bincount(new.kind[self._many(new)], minlength=len(self.total))]
        room_for_many = self.held.room_for_many
        lacks_room = any(count > room for count, room in zip(counts, self.capacities, strict=True))
        lacks_room = lacks_room or any(count > room for count, room in zip(of_many, room_for_many, strict=True))
        if not any(self.world.allgather(lacks_room or not self.messages.fits(sent, received))):
            return False
        if lacks_room:
            (first, many), stride = self._vertices(table), self.cells.stride
            before = self.cells.place, self.velocity
            rooms = zip(counts, self.capacities, strict=True)
            more = zip(of_many, room_for_many, strict=True)
            grown = ([_room(count) if count > room else room for count, room in each] for each in (rooms, more))
            self.reserve(*grown)
            entries = np.column_stack([first, self._vertices(table)[0], many])
            for old, new in zip(before, (self.cells.place, self.velocity), strict=True):
                move_cells(self.backend, old, new, entries, (stride, self.cells.stride))
        self.messages.grow(sent, received)
        self.messages.prepare(self.cells.place, self.velocity)
        return True

    def _move(self, old: Table, mine: Numbers, going: list[Numbers], table: Table, source: Numbers) -> None:
        """Bring places and velocities of this rank's cells, rows `mine` of `old`, to where they are held now."""
        rank, stride, (at, vertices) = self.world.rank, self.cells.stride, self._vertices(table)
        first, many = (part[mine] for part in self._vertices(old))
        nobody = np.zeros(0, np.int64)
        leaving = [nobody if peer == rank else part for peer, part in enumerate(going)]
        coming = [nobody if peer == rank else np.flatnonzero(source == peer) for peer in range(self.world.size)]
        kept, messages = np.flatnonzero(source == rank), self.messages
        out = np.column_stack([first[going[rank]], at[kept], many[going[rank]]])
        back = np.column_stack([at[kept], at[kept], vertices[kept]])
        for exchange, array in ((messages.places, self.cells.place), (messages.speeds, self.velocity)):
            aside = self.backend.zeros((3, stride), array.dtype)
            move_cells(self.backend, array, aside, out, (stride, stride))
            messages.write(exchange, "gather", stride, (first, many, leaving), (at, vertices, coming))
            exchange.start(array, "gather")
            exchange.finish(array, "gather")
            move_cells(self.backend, aside, array, back, (stride, stride))

    def _settle_roles(self, table: Table) -> None:
        """Tell the device what the cells of a table are here."""
        self.table = table
        slots = self.cell_slots(table)
        role, many = np.zeros(self.cells.count, np.int32), self._many(table)
        role[slots] = self._roles(table)
        self.backend.assign(self.held.role, role)
        blocks = enumerate(self.cells.blocks)
        own = table.owner == self.world.rank
        listed = [(table.kind == kind, block.first_cell) for kind, block in blocks]
        shared, ghosts = ([slots[part & kind] - first for kind, first in listed] for part in (many & own, many & ~own))
        self.held.list_many(shared, ghosts)
        holders = np.zeros((self.cells.count, self.territory.words), np.uint32)
        holders[slots] = table.holders
        self.backend.assign(self._holders, holders)

    def own_cells(self) -> Numbers:
        """Return where this rank's own cells are among those for which there is room, (n,)."""
        return np.asarray(self.cell_slots(self.table)[self.table.owner == self.world.rank])

    def number(self, slot: int) -> int:
        """Return the number, among those of its type, of the cell at a place here."""
        return int(self.table.number[self.cell_slots(self.table) == slot][0])

    def own(self) -> list[tuple[Numbers, Numbers]]:
        """Return for each type of cells the numbers of this rank's own cells and the columns of their vertices here."""
        owned, found = self.table.owner == self.world.rank, []
        first, _ = self._vertices(self.table)
        for kind, block in enumerate(self.cells.blocks):
            mine = owned & (self.table.kind == kind)
            columns = first[mine][:, None] + np.arange(block.vertices)
            found.append((self.table.number[mine], columns.reshape(-1)))
        return found

    def collected(self, by_cell: Array) -> npt.NDArray[Any]:
        """Return numbers of the cells (n, ...) of all ranks, types one after the other, on all of them (collective)."""
        own = np.flatnonzero(self.table.owner == self.world.rank)
        total = np.array(self.total)
        kind, number = self.table.kind[own], self.table.number[own]
        there = (np.cumsum(total) - total)[kind] + number
        parts = self.world.allgather((there, self.backend.download(by_cell)[self.own_cells()]))
        rows = np.concatenate([part[1] for part in parts])
        return rows[np.argsort(np.concatenate([part[0] for part in parts]))]


def _room(count: int) -> int:
    return max(int(count * GROWTH) + 1, _LEAST)
