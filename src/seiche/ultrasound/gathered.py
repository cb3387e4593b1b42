# SPDX-License-Identifier: BSD-3-Clause
"""Rows of series that several ranks record, each for the sensors in its part, put together on the first one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.ultrasound.records import Sink


class GatheredRows:
    """A sink of one rank; `hand_on` gives what all ranks took to another sink, on rank 0.

    Args:
        world: the ranks (making one is collective).
        chosen: which of all sensors are those of this rank, (n,).
        sensors: how many there are.
        sink: takes whole rows on rank 0.
    """

    def __init__(self, world: World, chosen: npt.NDArray[np.int64], sensors: int, sink: Sink) -> None:
        """Tell all ranks which sensors are whose."""
        self._world, self._sensors, self._sink = world, sensors, sink
        self._owners = world.allgather(chosen)
        self._blocks: dict[str, list[tuple[int, npt.NDArray[Any]]]] = {}

    def __call__(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        """Keep rows until they are handed on."""
        self._blocks.setdefault(name, []).append((row, values))

    def hand_on(self) -> None:
        """Give all rows so far to the sink; collective, when all ranks have taken the same steps."""
        mine = {name: (blocks[0][0], np.concatenate([b for _, b in blocks])) for name, blocks in self._blocks.items()}
        self._blocks = {}
        found = self._world.gather(mine)
        for name in dict.fromkeys(name for rank in found or () for name in rank):
            parts = [
                (chosen, *rank[name]) for chosen, rank in zip(self._owners, found or (), strict=True) if name in rank
            ]
            row, first = parts[0][1], parts[0][2]
            whole = np.zeros((len(first), self._sensors), first.dtype)
            for chosen, _, values in parts:
                whole[:, chosen] = values
            self._sink(name, row, whole)
