# SPDX-License-Identifier: BSD-3-Clause
"""The memory of absorbing layers in an elastic medium: its points on a part of the grid, and in checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.local_basis import Part
from seiche.ultrasound.problem import Problem, Window


@dataclass(frozen=True)
class LayerPoints:
    """The points of an axis with memory: `before` of them from `begin` on, and `after` of them up to `end`."""

    begin: int
    before: int
    after: int
    end: int

    @property
    def stored(self) -> int:
        """Return the number of points with memory."""
        return self.before + self.after

    @classmethod
    def of(cls, window: Window, size: int) -> LayerPoints:
        """Return the owned points of a window in layers of `size` points at both ends of its axis."""
        first, end = window.start, window.start + window.core
        before, after = max(0, min(size, end) - first), max(0, end - max(first, window.total - size))
        return cls(window.overlap, before, after, window.overlap + window.core)

    def members(self) -> dict[str, int]:
        """Return the members of kernels."""
        return {"begin": self.begin, "before": self.before, "after": self.after, "end": self.end}


def is_cut(window: Window) -> bool:
    """Return whether a part has a piece of an axis only."""
    return window.core != window.total


@dataclass(frozen=True, eq=False)
class StoredLayers:
    """The memory of the layers along one axis, in the part of a rank and in the whole grid.

    Attributes:
        shape: of a memory on the part, overlaps of the other axes included.
        owned: its owned numbers.
        whole_shape: of a memory on the whole grid.
        keys: the indices of the owned numbers there, in C order.
    """

    shape: tuple[int, ...]
    owned: tuple[slice, ...]
    whole_shape: tuple[int, ...]
    keys: npt.NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem, part: Part, axis: int) -> StoredLayers:
        """Return the memory along an axis for the problem on a part."""
        size, window = problem.pml[axis].size, part.windows[axis]
        points = LayerPoints.of(window, size)
        shape, owned, whole_shape = list(part.shape), list(part.core), [window.total for window in part.windows]
        shape[axis], owned[axis], whole_shape[axis] = points.stored, slice(0, points.stored), 2 * size
        numbers = [np.arange(part_slice.start, part_slice.stop) for part_slice in part.grid_slices]
        first = numbers[axis]
        low, high = first[first < size], first[first >= window.total - size]
        numbers[axis] = np.concatenate([low, high - window.total + 2 * size])
        keys = np.ravel_multi_index(np.ix_(*numbers), tuple(whole_shape)).reshape(-1)
        return cls(tuple(shape), tuple(owned), tuple(whole_shape), np.asarray(keys, np.int64))

    @property
    def total(self) -> int:
        """Return the numbers of a memory on the whole grid."""
        return int(np.prod(self.whole_shape))

    def values(self, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the owned numbers of a memory on the part."""
        return np.ascontiguousarray(memory.reshape(self.shape)[self.owned]).reshape(-1)

    def memory(self, values: npt.NDArray[Any], real: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return a memory on the part from its owned numbers; others are zero, as no owned point depends on them."""
        memory = np.zeros(self.shape, real)
        block = memory[self.owned]
        block[...] = np.reshape(values, block.shape)
        return memory.reshape(-1)
