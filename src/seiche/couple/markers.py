# SPDX-License-Identifier: BSD-3-Clause
"""Interface of immersed bodies: vertices with forces, and the closed surfaces formed by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.observe.stage import Stage


@dataclass(frozen=True)
class Surfaces:
    """A number `cells` of closed surfaces of one kind with outward `faces` (m, 3); vertices are ordered by cell."""

    faces: npt.NDArray[np.integer]
    cells: int
    vertices: int
    first_vertex: int = 0


class Placement(NamedTuple):
    """Positions of all vertices, their previous velocities, and the memory of the cells.

    Attributes:
        positions: positions, (3, n).
        velocity: velocities in the previous step, (3, n); None in the first step.
        relaxed: memory of the surface viscosity of cells, (planes, 3, n); None for that of cells at rest.
        numbers: on several ranks, the numbers (cells,) of the cells of each type that this rank passes, in the order of
            their vertices; None if every rank passes all cells.
    """

    positions: npt.NDArray[np.float64]
    velocity: npt.NDArray[Any] | None = None
    relaxed: npt.NDArray[np.float64] | None = None
    numbers: Sequence[npt.NDArray[np.int64]] | None = None

    def arrays(self) -> list[npt.NDArray[Any] | None]:
        """Return positions, velocities, and the memory of each plane."""
        return [self.positions, self.velocity, *(() if self.relaxed is None else self.relaxed)]


class InitialCells(NamedTuple):
    """Cells that no rank has all of: the number of each type on all ranks, and those that this rank passes."""

    totals: Sequence[int]
    placement: Placement


class Markers(Protocol):
    """Vertices on a device: `positions` (3, stride) float64 in lattice units, and the `force` (3, stride) on them.

    `slip` (3, stride), or None, is their displacement in a step relative to the fluid.
    """

    positions: Array
    force: Array
    slip: Array | None
    stride: int
    vertex_count: int

    def stage(self) -> Stage:
        """Return the stage that computes `force` from `positions`."""
