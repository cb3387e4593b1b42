# SPDX-License-Identifier: BSD-3-Clause
"""The view of ultrasound in progress: the pressure in a plane, at some sensors, and its largest value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.case.output import History
from seiche.case.ultrasound.planes import every_nth, shortest_axis
from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.case.ultrasound.snapshots import gathered_pressure
from seiche.report.display_units import display
from seiche.report.live_page import LiveCurves, LiveSlice
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.solver import UltrasoundSolver

#: Largest number of samples of a curve.
_SAMPLES = 300


def pressure_slice(setup: UltrasoundSetup, solver: UltrasoundSolver, points: int) -> LiveSlice | None:
    """Return the pressure in the middle plane across the shortest axis, on rank 0 (collective).

    Each rank sends its points in the plane, at most `points` along a side of the grid.
    """
    grid = setup.grid
    chosen, normal = every_nth(grid.shape, points), shortest_axis(grid.shape) if len(grid.shape) == 3 else None
    if normal is not None:
        middle = grid.shape[normal] // 2
        chosen[normal] = range(middle, middle + 1)
    whole = gathered_pressure(setup, solver, chosen)
    return None if whole is None else _slice_of(grid, whole, normal)


def _slice_of(grid: Grid, whole: npt.NDArray[np.float32], normal: int | None) -> LiveSlice:
    """Return the slice of values (x, y[, z]) with the coordinates of the grid."""
    names = grid.axes
    positions = [np.asarray(grid.positions(axis)) for axis in names]
    shown = [axis for axis in range(len(names)) if axis != normal]
    title = "pressure"
    if normal is not None:
        whole = np.take(whole, 0, axis=normal)
        title += f" at {names[normal]} = {display(float(positions[normal][len(positions[normal]) // 2]), 'm')}"
    bounds = [(float(positions[axis][0]), float(positions[axis][-1])) for axis in shown]
    if len(shown) == 1:
        return LiveSlice(title, "Pa", whole, (names[0], ""), (*bounds[0], 0.0, 0.0))
    # The longer side is vertical: a phone is narrow.
    first, second = shown if np.ptp(bounds[0]) <= np.ptp(bounds[1]) else reversed(shown)
    values = whole.T if (first, second) == tuple(shown) else whole
    across, along = (bounds[shown.index(axis)] for axis in (first, second))
    return LiveSlice(title, "Pa", values, (names[first], names[second]), (*across, *along))


def pressure_curves(setup: UltrasoundSetup, solver: UltrasoundSolver, history: History, count: int) -> list[LiveCurves]:
    """Return the pressure at at most `count` sensors, and the largest pressure of the grid (collective)."""
    curves, records = [], solver.recorder
    if "p" in records.series_names() and records.sensors:
        chosen = np.unique(np.linspace(0, records.sensors - 1, min(count, records.sensors)).round().astype(np.int64))
        samples, step = records.traces("p", chosen, _SAMPLES)
        times = setup.dt * (setup.sensor.first + step * np.arange(len(samples)))
        series = {f"sensor {sensor}": samples[:, k].tolist() for k, sensor in enumerate(chosen)}
        curves.append(LiveCurves("pressure at sensors", "Pa", times.tolist(), series))
    peaks = history.values.get("largest_pressure", [])
    return [*curves, LiveCurves("largest pressure", "Pa", list(history.times), {"": list(peaks)})]
