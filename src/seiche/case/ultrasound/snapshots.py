# SPDX-License-Identifier: BSD-3-Clause
"""The pressure at selected points of the grid: for snapshots and for the view of a run in progress."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.case.snapshots import SnapshotSource
from seiche.case.ultrasound.output_schema import PressureSnapshots
from seiche.case.ultrasound.planes import plane_of
from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.ultrasound.solver import UltrasoundSolver

Floats32 = npt.NDArray[np.float32]


def gathered_pressure(setup: UltrasoundSetup, solver: UltrasoundSolver, chosen: Sequence[range]) -> Floats32 | None:
    """Return the pressure (x[, y[, z]]) at the points `chosen` along each axis, on rank 0 (collective).

    Each rank sends those that it owns. Points are counted from the first one of the grid inside the absorbing layer.
    """
    inside = setup.layers.grid_slices(setup.problem.shape)
    starts = [region.indices(size)[0] for region, size in zip(inside, setup.problem.shape, strict=True)]
    local, target = [], []
    for start, points, owned in zip(starts, chosen, solver.part.grid_slices, strict=True):
        indices = np.asarray(points) + start - owned.start
        rows = np.flatnonzero((indices >= 0) & (indices < owned.stop - owned.start))
        first, last = (int(indices[rows[0]]), int(indices[rows[-1]]) + 1) if len(rows) else (0, 0)
        local.append(slice(first, last, points.step))
        target.append(rows)
    view = solver.device_fields(("pressure",))["pressure"][tuple(local)]
    gathered = solver.world.gather((target, np.asarray(solver.backend.download(view), np.float32)))
    if gathered is None:
        return None
    whole = np.full([len(points) for points in chosen], np.nan, np.float32)
    for rows_of_rank, values in gathered:
        whole[np.ix_(*rows_of_rank)] = values
    return whole


class PressurePoints(SnapshotSource):
    """The pressure along a line, in a plane or in a volume of the grid, the axis x last."""

    def __init__(self, table: PressureSnapshots, setup: UltrasoundSetup, solver: UltrasoundSolver) -> None:
        self._setup, self._solver, grid = setup, solver, setup.grid
        self._normal, self._chosen = plane_of(table, grid)
        axes = [axis for axis in range(len(grid.shape)) if axis != self._normal]
        ends = np.array([np.asarray(grid.positions(grid.axes[a]))[[0, self._chosen[a][-1]]] for a in axes])
        self.shapes = {"pressure": tuple(len(self._chosen[axis]) for axis in reversed(axes))}
        self.attributes = {
            "axes": [grid.axes[axis] for axis in axes],
            "medium": "acoustic",
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }

    def values(self) -> dict[str, Floats32] | None:
        """Return the pressure on rank 0 (collective)."""
        whole = gathered_pressure(self._setup, self._solver, self._chosen)
        if whole is None:
            return None
        plane = whole if self._normal is None else np.take(whole, 0, self._normal)
        return {"pressure": np.asarray(plane).T}

    def time(self, step: int) -> float:
        """Return the time of the state after `step` steps: the first step computes the state at time zero."""
        return (step - 1) * self._solver.dt
