# SPDX-License-Identifier: BSD-3-Clause
"""Placement of cells: arrays of their vertices, and the ranks that own them (decision 19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells, memory_planes
from seiche.couple.markers import Placement
from seiche.couple.territory import Territory
from seiche.domain.world import World

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Maximum bytes that a rank sends in one exchange.
_MAX_BYTES = 1 << 28


class OwnedCells(NamedTuple):
    """Cells of one type that a rank owns: sorted `numbers` (n,), and `values` (arrays, 3, n * vertices)."""

    numbers: Numbers
    values: Floats


def owned_cells(
    world: World, territory: Territory, vertices: Sequence[int], totals: Sequence[int], placement: Placement
) -> list[OwnedCells]:
    """Return the cells of each type whose centers are in the bricks of this rank (collective).

    Args:
        world: the ranks.
        territory: bricks of the ranks; cells outside them are distributed by their numbers.
        vertices: number of vertices of a cell of each type.
        totals: number of cells of each type on all ranks.
        placement: all cells on every rank, or with `numbers` those that this rank passes.
    """
    arrays = np.stack([array for array in placement.arrays() if array is not None])
    result, begin = [], 0
    for kind, (count, total) in enumerate(zip(vertices, totals, strict=True)):
        numbers = np.arange(total) if placement.numbers is None else np.asarray(placement.numbers[kind], np.int64)
        end = begin + len(numbers) * count
        cells = arrays[:, :, begin:end].reshape(len(arrays), 3, len(numbers), count)
        begin = end
        homes = territory.home(np.asarray(cells[0].mean(axis=2).T)).astype(np.int64)
        homes = np.where(homes >= 0, homes, numbers % world.size)
        if placement.numbers is None:
            own = np.flatnonzero(homes == world.rank)
            numbers, cells = numbers[own], cells[:, :, own]
        else:
            numbers, cells = sent_to(world, homes, numbers, cells)
        result.append(OwnedCells(numbers, cells.reshape(len(arrays), 3, -1)))
    return result


def placement_of(
    cells: Cells,
    vertices: Sequence[npt.NDArray[Any]],
    velocities: Sequence[npt.NDArray[Any]] | None,
    memory_metric: Sequence[Floats | None] | None,
) -> Placement:
    """Return the placement of cells from arrays (cells, n, 3) for each type of `cells`.

    `memory_metric` (cells, elements, 3) contains the internal variables of surface viscosity, None for types without
    it. If they are missing for a viscous type, the placement has none, which stands for cells at rest.
    """
    positions = np.concatenate([array.reshape(-1, 3) for array in vertices]).T
    velocity = None if velocities is None else np.concatenate([array.reshape(-1, 3) for array in velocities]).T
    counts = [len(array) for array in vertices]
    memory = None if memory_metric is None else _memory_by_vertex(cells, counts, memory_metric)
    return Placement(positions, velocity, memory)


def _memory_by_vertex(cells: Cells, counts: Sequence[int], memory: Sequence[Floats | None]) -> Floats | None:
    """Convert memory of all types to vertex storage (arrays, 3, n); None if it is missing for a viscous type."""
    array_count = max(memory_planes(block.rest.cell) for block in cells.blocks)
    if not array_count:
        return None
    arrays_per_type = []
    for block, total, values in zip(cells.blocks, counts, memory, strict=True):
        padded = np.zeros((total, array_count * block.vertices, 3))
        if memory_planes(block.rest.cell):
            if values is None:
                return None
            padded[:, : block.elements] = values
        values_per_array = padded.reshape(total, array_count, block.vertices, 3).transpose(1, 3, 0, 2)
        arrays_per_type.append(values_per_array.reshape(array_count, 3, total * block.vertices))
    return np.concatenate(arrays_per_type, axis=2)


def sent_to(world: World, homes: Numbers, numbers: Numbers, cells: Floats) -> tuple[Numbers, Floats]:
    """Send cells (arrays, 3, n, vertices) to their ranks `homes`; return those of this rank, sorted by number."""
    per_round = max(1, _MAX_BYTES // max(1, cells[:, :, :1].nbytes or 8))
    rounds = max(world.allgather(-(-len(numbers) // per_round)))
    received = [(numbers[:0], cells[:, :, :0])]
    for k in range(rounds):
        part = slice(k * per_round, (k + 1) * per_round)
        rows = [part.start + np.flatnonzero(homes[part] == peer) for peer in range(world.size)]
        received += world.alltoall([(numbers[own], np.ascontiguousarray(cells[:, :, own])) for own in rows])
    all_numbers = np.concatenate([entry[0] for entry in received])
    order = np.argsort(all_numbers, kind="stable")
    return all_numbers[order], np.concatenate([entry[1] for entry in received], axis=2)[:, :, order]
