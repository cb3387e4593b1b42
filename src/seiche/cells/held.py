# SPDX-License-Identifier: BSD-3-Clause
"""Kernels over the cells that a rank holds, whose number and whose roles change (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry.held import HERE, MANY, held, held_groups, held_items, held_list

Launch = Callable[[], None]
Numbers = npt.NDArray[np.integer[Any]]


class Room(Protocol):
    """The room for cells of one type: how many, their vertices, and where both begin in the arrays."""

    @property
    def cells(self) -> int:
        """Return for how many cells there is room."""

    @property
    def vertices(self) -> int:
        """Return the vertices of one cell."""

    @property
    def first_cell(self) -> int:
        """Return the first of them among those of all types."""

    @property
    def first_vertex(self) -> int:
        """Return its first vertex."""


class Held:
    """The roles of cells on a rank: `role` (cells,) on the device, of whatever there is room for.

    A launch made here runs over all the room, and does only items of cells in the roles that it names; or over `many`,
    the lists of the cells of each type that other ranks hold, too, of which there is room for so many.
    """

    def __init__(self, backend: Backend, rooms: Sequence[Room], many: Sequence[int]) -> None:
        """Make the roles of `rooms`; nothing is here yet."""
        self.backend, self.rooms, self.room_for_many = backend, tuple(rooms), tuple(many)
        #: How many are listed, how many of them are this rank's own, and they, own ones first.
        self._many = [backend.zeros(2 + count, np.int32) for count in many]
        self.role: Array = backend.zeros(sum(room.cells for room in rooms), np.int32)

    def over_vertices(self, spec: KernelSpec, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices."""
        launches = [
            self._bound(spec, roles, room, members, first=room.first_vertex, each=room.vertices) for room in self.rooms
        ]
        return together(launches)

    def over_many(self, spec: KernelSpec, group: int, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices, `group` by a team: one that rarely has work."""
        return self.over_groups(held_groups(spec, group), group, roles, inner=members)

    def over_groups(self, spec: KernelSpec, group: int, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are `group` vertices each, of one type."""
        kernel, launches = self.backend.load(spec), []
        for room in self.rooms:
            count, first = room.cells * room.vertices, room.first_vertex
            chosen = self._chosen(roles, room, first, room.vertices)
            arguments = self.backend.pack(kernel, **members, chosen=chosen, end=first + count)
            launches.append(kernel.bind(arguments, 0, -(-count // group)))
        return together(launches)

    def list_many(self, shared: Sequence[Numbers], ghosts: Sequence[Numbers]) -> None:
        """List for each type the cells, counted from its first one, that other ranks hold, too: own ones and copies."""
        for array, room, own, others in zip(self._many, self.room_for_many, shared, ghosts, strict=True):
            host, chosen = np.zeros(2 + room, np.int32), np.concatenate([own, others])
            host[0], host[1], host[2 : 2 + len(chosen)] = len(chosen), len(own), chosen
            self.backend.assign(array, host)

    def over_listed(self, spec: KernelSpec, roles: int = MANY, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices, of listed cells in these roles."""
        kernel, launches = self.backend.load(held_items(spec)), []
        for number, room in enumerate(self.rooms):
            chosen = self._chosen(roles, room, room.first_vertex, room.vertices)
            arguments = self.backend.pack(kernel, inner=members, listed=self._listed(number), chosen=chosen)
            launches.append(kernel.bind(arguments, 0, self.room_for_many[number] * room.vertices))
        return together(launches)

    def over_listed_groups(self, spec: KernelSpec, group: int, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are `group` vertices each, of one listed cell."""
        kernel, launches = self.backend.load(spec), []
        for number, room in enumerate(self.rooms):
            arguments = self.backend.pack(kernel, **members, listed=self._listed(number))
            launches.append(kernel.bind(arguments, 0, self.room_for_many[number] * -(-room.vertices // group)))
        return together(launches)

    def over_listed_cells(self, spec: KernelSpec, room: Room, *, own: bool = False, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are listed cells of a type, or `own` ones, from its first one."""
        kernel, number = self.backend.load(held_list(spec)), self.rooms.index(room)
        arguments = self.backend.pack(kernel, inner=members, listed=self._listed(number, own=own))
        return kernel.bind(arguments, 0, self.room_for_many[number])

    def _listed(self, number: int, *, own: bool = False) -> dict[str, int]:
        room, address, size = self.rooms[number], self.backend.pointer(self._many[number]), np.dtype(np.int32).itemsize
        each = {"first": room.first_vertex, "each": room.vertices}
        return {"cells": address + 2 * size, "count": address + size * own, **each}

    def over_cells(self, spec: KernelSpec, room: Room, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are the cells of a type, counted from its first one."""
        return self._bound(spec, roles, room, members, first=0, each=1)

    def _bound(
        self, spec: KernelSpec, roles: int, room: Room, members: dict[str, Any], *, first: int, each: int
    ) -> Launch:
        kernel = self.backend.load(held(spec))
        arguments = self.backend.pack(kernel, inner=members, chosen=self._chosen(roles, room, first, each))
        return kernel.bind(arguments, first, first + room.cells * each)

    def _chosen(self, roles: int, room: Room, first: int, each: int) -> dict[str, int]:
        role = self.backend.pointer(self.role) + room.first_cell * np.dtype(np.int32).itemsize
        return {"role": role, "first": first, "each": each, "roles": roles}


def together(launches: Sequence[Launch]) -> Launch:
    """Return one call for several."""
    if len(launches) == 1:
        return launches[0]

    def run() -> None:
        for launch in launches:
            launch()

    return run
