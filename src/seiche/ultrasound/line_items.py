# SPDX-License-Identifier: BSD-3-Clause
"""Lines of a pass: batches along an axis, and on a part with overlaps those that need no message.

Rows that belong to another rank along the first axis are never updated. If only the first axis is cut, all other rows
are complete at the start: their bell function is one. With other cuts every row contains points of a neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.errors import CaseError
from seiche.kernels.registry.kspace_lines import LineShape, fixed_pass, fixed_transform
from seiche.ultrasound.state import DeviceState


class Axis:
    """Lines along one of the three axes: their transform, and their layout in a spectrum."""

    def __init__(self, state: DeviceState, axis: int) -> None:
        """Find the transform; raise CaseError for a length with a prime factor above 7."""
        self.length = int(state.extents[axis])
        first = axis == 3 - state.problem.dimensions
        real = state.precision
        shape = fixed_pass(self.length, real) if first else fixed_transform(self.length, axis == 2, real)
        if shape is None:
            raise CaseError(f"transforms: the length {self.length} of an axis has a prime factor above 7")
        self.shape: LineShape = shape
        self.roots = state.upload(np.exp(-2j * np.pi * np.arange(self.length) / self.length))
        half, distance = state.extents[2] // 2 + 1, state.line_rows["half"]
        inner = int(np.prod((*state.extents[:2], distance)[axis + 1 :], dtype=np.int64))
        count = inner - distance + half  # without the end of the last half row
        self.batches = -(-count // shape.lanes)
        self.lines = {"inner": inner, "count": count, "batches": self.batches}


@dataclass(frozen=True)
class ItemSpan:
    """The items `first` to `first + count` of `whole` in each field, modulo `whole`."""

    first: int
    count: int
    total: int

    @property
    def complement(self) -> ItemSpan:
        """Return the complement."""
        return ItemSpan((self.first + self.count) % self.total, self.total - self.count, self.total)

    def around(self, inside: ItemSpan) -> tuple[ItemSpan, ItemSpan]:
        """Return the items before and after a span inside this one."""
        end, last = self.first + self.count, inside.first + inside.count
        return ItemSpan(self.first, inside.first - self.first, self.total), ItemSpan(last, end - last, self.total)

    def times(self, count: int) -> ItemSpan:
        """Return the span for `count` times as many items."""
        return ItemSpan(self.first * count, self.count * count, self.total * count)

    @property
    def members(self) -> dict[str, Any]:
        """Return the members of a kernel's `Range`."""
        return {"first": self.first, "count": self.count, "all": self.total}


class LineRows:
    """Rows of a state in batches of two per complex line, and their planes.

    Attributes:
        owned, owned_planes: batches with rows that this rank updates, and their planes.
        cut: whether there are overlaps.
        slabs: whether overlaps consist of whole rows, along the first axis only.
    """

    def __init__(self, state: DeviceState, line_axis: Axis) -> None:
        problem = state.problem
        self._batch = 2 * line_axis.shape.lanes
        self._rows, self._planes = state.row_count, state.extents[0] if problem.dimensions == 3 else state.row_count
        self._plane = self._rows // self._planes  # rows of a plane, in two dimensions one
        overlaps = None if state.local is None else state.local.overlaps
        windows = None if overlaps is None else problem.window
        self._max_overlap = 0 if overlaps is None else overlaps.max_overlap
        self.cut = windows is not None and any(window.overlap for window in windows)
        self.slabs = windows is None or not any(window.overlap for window in windows[1:])
        self._begin, self._end = 0, self._planes
        if windows is not None:
            self._begin, self._end = windows[0].overlap, windows[0].overlap + windows[0].core
        self.owned = self._batches_of(self._begin, self._end)
        last = min(self._rows, (self.owned.first + self.owned.count) * self._batch)
        begin, end = self.owned.first * self._batch // self._plane, -(-last // self._plane)
        self.owned_planes = ItemSpan(begin, end - begin, self._planes)

    @property
    def all(self) -> ItemSpan:
        """Return all batches."""
        return self._batches_of(0, self._planes)

    @property
    def all_planes(self) -> ItemSpan:
        """Return all planes."""
        return ItemSpan(0, self._planes, self._planes)

    def complete(self, *, behind_sent: bool = False) -> ItemSpan:
        """Return the batches of complete rows; with `behind_sent` without those sent to neighbours."""
        if not self.slabs:
            return ItemSpan(0, 0, self.all.total)
        margin = self._max_overlap if behind_sent else 0
        begin, total = -(-(self._begin + margin) * self._plane // self._batch), self.all.total
        rows = (self._end - margin) * self._plane
        end = total if rows == self._rows else rows // self._batch
        return ItemSpan(begin, max(0, end - begin), total) if end > begin else ItemSpan(0, 0, total)

    def planes(self, batches: ItemSpan) -> ItemSpan:
        """Return the planes all of whose rows are in `batches`."""
        begin = -(-batches.first * self._batch // self._plane)
        end = min(self._rows, (batches.first + batches.count) * self._batch) // self._plane
        return ItemSpan(begin, end - begin, self._planes) if end > begin else ItemSpan(0, 0, self._planes)

    def _batches_of(self, begin: int, end: int) -> ItemSpan:
        """Return the batches with rows in these planes."""
        first, total = begin * self._plane // self._batch, -(-self._rows // self._batch)
        return ItemSpan(first, -(-end * self._plane // self._batch) - first, total)
