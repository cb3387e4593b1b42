# SPDX-License-Identifier: BSD-3-Clause
"""The view of waves in progress: the motion in a plane, seismograms, the largest velocity."""

from __future__ import annotations

import numpy as np

from seiche.case.output import History
from seiche.case.waves.setup import AXES, WaveSetup
from seiche.report.display_units import display
from seiche.report.live_page import LiveCurves, LiveSlice
from seiche.waves.planes import PlaneGrid
from seiche.waves.solver import WaveSolver

#: Largest number of samples of a seismogram.
_SAMPLES = 300


class WaveView:
    """Motion in the middle plane across y, and seismograms of some receivers."""

    def __init__(self, setup: WaveSetup, solver: WaveSolver) -> None:
        self._setup, self._solver = setup, solver
        self._grid: PlaneGrid | None = None

    def slice(self, points: int) -> LiveSlice | None:
        """Return the pressure of a fluid, or the last component of the velocity of a solid (collective)."""
        setup, solver = self._setup, self._solver
        if self._grid is None:
            self._grid = PlaneGrid(setup.mesh, setup.case.mesh.nodes, points, box=setup.box)
        grid, dim = self._grid, setup.mesh.dim
        name = "pressure" if solver.medium == "acoustic" else "velocity"
        values = solver.device_fields((name,))[name]
        values = values[:, None] if name == "pressure" else values[:, dim - 1 : dim]
        rows = values[solver.backend.upload(grid.elements)]
        gathered = grid.gather_from(np.asarray(solver.backend.download(rows)), solver.world)
        if gathered is None:
            return None
        title = name if name == "pressure" else f"velocity {AXES[dim - 1]}"
        if dim == 3:
            (normal,) = set(range(3)) - set(grid.axes)
            title += f" at {AXES[normal]} = {display(float(grid.points[0, normal]), 'm')}"
        (left, bottom), (right, top) = grid.points[[0, -1]][:, list(grid.axes)]
        axes = (AXES[grid.axes[0]], AXES[grid.axes[1]])
        return LiveSlice(title, "Pa" if name == "pressure" else "m/s", gathered[0], axes, (left, right, bottom, top))

    def curves(self, history: History, count: int) -> list[LiveCurves]:
        """Return the seismograms of at most `count` receivers, and the largest velocities (collective)."""
        setup, solver, curves = self._setup, self._solver, []
        if (receivers := solver.receivers) is not None:
            names = solver.unknowns
            field = names.index("p") if "p" in names else max(k for k, name in enumerate(names) if name[0] == "v")
            chosen = np.unique(
                np.linspace(0, receivers.count - 1, min(count, receivers.count)).round().astype(np.int64)
            )
            samples, step = receivers.traces(chosen, field, _SAMPLES)
            times = solver.dt * receivers.every * (receivers.first + 1 + step * np.arange(len(samples)))
            series = {setup.names[receiver]: samples[:, k].tolist() for k, receiver in enumerate(chosen)}
            unit = "Pa" if names[field] == "p" else "m/s"
            title = "pressure at receivers" if unit == "Pa" else f"velocity {names[field][1:]} at receivers"
            curves.append(LiveCurves(title, unit, times.tolist(), series))
        peaks = history.values.get("largest_velocity", [])
        return [*curves, LiveCurves("largest velocity", "m/s", list(history.times), {"": list(peaks)})]
