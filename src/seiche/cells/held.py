# SPDX-License-Identifier: BSD-3-Clause
"""Kernels over the cells that a rank holds, whose number and whose roles change (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from seiche.backend import Array, Backend
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry.held import HERE, held

Launch = Callable[[], None]


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

    A launch made here runs over all the room, and does only items of cells in the roles that it names.
    """

    def __init__(self, backend: Backend, rooms: Sequence[Room]) -> None:
        """Make the roles of `rooms`; nothing is here yet."""
        self.backend, self.rooms = backend, tuple(rooms)
        self.role: Array = backend.zeros(sum(room.cells for room in rooms), np.int32)

    def over_vertices(self, spec: KernelSpec, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices."""
        launches = [self._bound(spec, roles, room, room.first_vertex, room.vertices, members) for room in self.rooms]
        return together(launches)

    def over_groups(self, spec: KernelSpec, group: int, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are `group` vertices each, of one type."""
        kernel, launches = self.backend.load(spec), []
        for room in self.rooms:
            count, first = room.cells * room.vertices, room.first_vertex
            chosen = self._chosen(roles, room, first, room.vertices)
            arguments = self.backend.pack(kernel, **members, chosen=chosen, end=first + count)
            launches.append(kernel.bind(arguments, 0, -(-count // group)))
        return together(launches)

    def over_cells(self, spec: KernelSpec, room: Room, roles: int = HERE, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are the cells of a type, counted from its first one."""
        return self._bound(spec, roles, room, 0, 1, members)

    def _bound(
        self, spec: KernelSpec, roles: int, room: Room, first: int, each: int, members: dict[str, Any]
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
