# SPDX-License-Identifier: BSD-3-Clause
"""Kernel launches over the cells on a rank, whose number and roles change (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.cells.energy import RestState
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry.resident import (
    REPLICATED,
    RESIDENT,
    resident,
    resident_groups,
    resident_items,
    resident_list,
)
from seiche.observe.stage import in_order

Launch = Callable[[], None]
Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Block:
    """Cells of one type, or slots for cells: rest state, number of cells, first cell and first vertex in the arrays."""

    rest: RestState
    cells: int
    first_cell: int
    first_vertex: int

    @property
    def vertices(self) -> int:
        """Return the number of vertices of a cell."""
        return len(self.rest.control)

    @property
    def elements(self) -> int:
        """Return the number of elements of a cell."""
        return len(self.rest.elements.faces)

    @property
    def slice(self) -> slice:
        """Return the columns of the vertex arrays that belong to these cells."""
        return slice(self.first_vertex, self.first_vertex + self.cells * self.vertices)


class ResidentCells:
    """Roles of the cells on a rank, owned cells and ghosts: `role` (capacity,) on the device, one for each cell slot.

    A launch runs over all slots and skips cells whose role is not selected. Launches over replicated cells run over
    lists of the cells of each type that are also on other ranks.
    """

    def __init__(self, backend: Backend, blocks: Sequence[Block], replicated: Sequence[int]) -> None:
        """Allocate the roles of `blocks`, all empty, and lists for up to `replicated` cells of each type."""
        self.backend, self.blocks, self.replicated_capacities = backend, tuple(blocks), tuple(replicated)
        #: For each type: number of listed cells, number of owned cells among them, and the cells, owned cells first.
        self._lists = [backend.zeros(2 + count, np.int32) for count in replicated]
        self.role: Array = backend.zeros(sum(block.cells for block in blocks), np.int32)

    def over_vertices(self, spec: KernelSpec, roles: int = RESIDENT, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices."""
        return in_order([self._bound(spec, roles, block, members, by_cell=False) for block in self.blocks])

    def over_cells(self, spec: KernelSpec, block: Block, roles: int = RESIDENT, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are the cells of a type, counted from its first cell."""
        return self._bound(spec, roles, block, members, by_cell=True)

    def over_grouped_vertices(self, spec: KernelSpec, group: int, roles: int = RESIDENT, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices, `group` per team, for kernels with little work."""
        return self.over_groups(resident_groups(spec, group), group, roles, inner=members)

    def over_groups(self, spec: KernelSpec, group: int, roles: int = RESIDENT, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are `group` vertices each, of one type."""
        kernel, launches = self.backend.load(spec), []
        for block in self.blocks:
            chosen, end = self._chosen(roles, block), block.slice.stop
            arguments = self.backend.pack(kernel, **members, chosen=chosen, end=end)
            launches.append(kernel.bind(arguments, 0, -(-(end - block.first_vertex) // group)))
        return in_order(launches)

    def list_replicated(self, owned: Sequence[Numbers], ghosts: Sequence[Numbers]) -> None:
        """Store the owned cells and ghosts of each type that are also on other ranks, counted from its first cell."""
        for array, capacity, own, ghost_cells in zip(
            self._lists, self.replicated_capacities, owned, ghosts, strict=True
        ):
            host, listed = np.zeros(2 + capacity, np.int32), np.concatenate([own, ghost_cells])
            host[0], host[1], host[2 : 2 + len(listed)] = len(listed), len(own), listed
            self.backend.assign(array, host)

    def over_replicated(self, spec: KernelSpec, roles: int = REPLICATED, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are vertices of listed cells with these roles."""
        kernel, launches = self.backend.load(resident_items(spec)), []
        for kind, (block, capacity) in enumerate(zip(self.blocks, self.replicated_capacities, strict=True)):
            chosen, listed = self._chosen(roles, block), self._listed(kind)
            arguments = self.backend.pack(kernel, inner=members, listed=listed, chosen=chosen)
            launches.append(kernel.bind(arguments, 0, capacity * block.vertices))
        return in_order(launches)

    def over_replicated_groups(self, spec: KernelSpec, group: int, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are `group` vertices each of a listed cell."""
        kernel, launches = self.backend.load(spec), []
        for kind, (block, capacity) in enumerate(zip(self.blocks, self.replicated_capacities, strict=True)):
            arguments = self.backend.pack(kernel, **members, listed=self._listed(kind))
            launches.append(kernel.bind(arguments, 0, capacity * -(-block.vertices // group)))
        return in_order(launches)

    def over_replicated_cells(self, spec: KernelSpec, block: Block, *, owned: bool = False, **members: Any) -> Launch:
        """Return the launch of a kernel whose items are the listed cells of a type, or only its `owned` cells."""
        kernel, kind = self.backend.load(resident_list(spec)), self.blocks.index(block)
        arguments = self.backend.pack(kernel, inner=members, listed=self._listed(kind, owned=owned))
        return kernel.bind(arguments, 0, self.replicated_capacities[kind])

    def _listed(self, kind: int, *, owned: bool = False) -> dict[str, int]:
        block, address, size = self.blocks[kind], self.backend.pointer(self._lists[kind]), np.dtype(np.int32).itemsize
        vertices = {"first": block.first_vertex, "items_per_cell": block.vertices}
        return {"cells": address + 2 * size, "count": address + size * owned, **vertices}

    def _bound(self, spec: KernelSpec, roles: int, block: Block, members: dict[str, Any], *, by_cell: bool) -> Launch:
        kernel, chosen = self.backend.load(resident(spec)), self._chosen(roles, block, by_cell=by_cell)
        arguments = self.backend.pack(kernel, inner=members, chosen=chosen)
        return kernel.bind(arguments, chosen["first"], chosen["first"] + block.cells * chosen["items_per_cell"])

    def _chosen(self, roles: int, block: Block, *, by_cell: bool = False) -> dict[str, int]:
        role = self.backend.pointer(self.role) + block.first_cell * np.dtype(np.int32).itemsize
        first, items_per_cell = (0, 1) if by_cell else (block.first_vertex, block.vertices)
        return {"role": role, "first": first, "items_per_cell": items_per_cell, "roles": roles}
