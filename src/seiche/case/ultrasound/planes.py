# SPDX-License-Identifier: BSD-3-Clause
"""The points of the grid that snapshots and the view of a run in progress show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.case.ultrasound.output_schema import PressureSnapshots
from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid


def shortest_axis(sizes: Sequence[int]) -> int:
    """Return the number of the axis with the fewest points, the last one of several."""
    return min(range(len(sizes)), key=lambda axis: (sizes[axis], -axis))


def every_nth(sizes: Sequence[int], points: int) -> list[range]:
    """Return evenly spaced points along each axis, at most `points` of them."""
    return [range(0, size, max(1, -(-size // points))) for size in sizes]


def plane_of(table: PressureSnapshots, grid: Grid) -> tuple[int | None, list[range]]:
    """Return the axis across the plane of a table, None without one, and the stored points along each axis.

    Raises:
        CaseError: the grid has no such plane.
    """
    key, dim = f'output.snapshots["{table.file}"]', len(grid.shape)
    normal = None
    if dim < 3 and (table.normal is not None or table.at is not None or table.volume):
        raise CaseError(f"{key}: normal, at and volume need a grid of three axes; it has {dim}")
    if dim == 3 and not table.volume:
        normal = shortest_axis(grid.shape) if table.normal is None else grid.axes.index(table.normal)
    longest = max(size for axis, size in enumerate(grid.shape) if axis != normal)
    stride = max(1, -(-longest // table.points))
    chosen = [range(0, size, stride) for size in grid.shape]
    if normal is not None:
        row = _row_at(key, table.at, grid, normal)
        chosen[normal] = range(row, row + 1)
    return normal, chosen


def _row_at(key: str, at: float | None, grid: Grid, normal: int) -> int:
    """Return the index of the point at the position `at` (m) of an axis, by default the middle one."""
    if at is None:
        return grid.shape[normal] // 2
    positions, margin = np.asarray(grid.positions(grid.axes[normal])), 0.5 * grid.spacings[normal]
    if not positions[0] - margin <= at <= positions[-1] + margin:
        raise CaseError(
            f"{key}.at: {at:g} m is outside the grid, {positions[0]:g} m to {positions[-1]:g} m along"
            f" {grid.axes[normal]}"
        )
    return int(np.argmin(np.abs(positions - at)))
