# SPDX-License-Identifier: BSD-3-Clause
"""The [output.averages] table: samples of the wall shear stress and their means at the end of each time window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.case.flow.openings import steps_of
from seiche.case.flow.schema_output import AveragesOutput
from seiche.case.flow.setup import FlowSetup
from seiche.case.schedule import Schedule
from seiche.flow.solver import FlowSolver
from seiche.flow.state import SITES
from seiche.solver import RowSet, State

#: Default number of samples per window.
SAMPLES = 200
#: Number of components and SI unit of the output fields, by name.
FIELDS = {
    "time_averaged_wall_shear_stress": (1, "Pa"),
    "mean_wall_shear_stress": (3, "Pa"),
    "oscillatory_shear_index": (1, "1"),
    "relative_residence_time": (1, "1/Pa"),
}
_SAMPLES_KEY, _WINDOW_KEY = "averages.samples", "averages.window"


def window_of(table: AveragesOutput, setup: FlowSetup) -> tuple[int, float, float]:
    """Return the first step, the length of a window and the sampling interval, in steps."""
    start = round(steps_of(table.start, setup.units))
    if table.window is not None:
        window = steps_of(table.window, setup.units)
    elif setup.period is not None:
        window = setup.units.to_lattice("time", setup.period)
    else:
        window = float(setup.steps - start)
    every = max(1.0, window / SAMPLES) if table.every is None else steps_of(table.every, setup.units)
    return start, window, every


class WindowAverages:
    """Averages over time windows; the caller writes `fields` at the end of each window."""

    def __init__(self, table: AveragesOutput, setup: FlowSetup, solver: FlowSolver) -> None:
        from seiche.flow.averages import WallAverages

        self.table = table
        self._start, window, every = window_of(table, setup)
        self._windows, self._samples = Schedule(window), Schedule(every)
        self._units, self._sums, self._solver = setup.units, WallAverages(solver), solver
        self._window = f"{self._start} {window!r} {every!r}"

    def next_after(self, step: int) -> int:
        """Return the first step after `step` with a sample or the end of a window."""
        elapsed = max(step - self._start, 0)
        return self._start + min(self._windows.next_after(elapsed), self._samples.next_after(elapsed))

    def sample(self, step: int) -> bool:
        """Take a sample if one is due at `step`; return whether a window ends (collective)."""
        elapsed = step - self._start
        if elapsed <= 0:
            return False
        if self._samples.due(elapsed):
            self._sums.sample()
        return self._windows.due(elapsed) and self._sums.samples > 0

    def windows(self, first: int, last: int) -> int:
        """Return the number of windows that end after step `first` and not after `last`."""
        return self._windows.count(max(first - self._start, 0), max(last - self._start, 0))

    def fields(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return `FIELDS` at the sites of this rank, zero off the wall, and begin the next window."""
        from seiche.flow.averages import oscillatory_shear_index, relative_residence_time

        magnitude, vector = (self._units.to_si("stress", values) for values in self._sums.means())
        self._sums.clear()
        index, time = oscillatory_shear_index(magnitude, vector), relative_residence_time(vector)
        return dict(zip(FIELDS, (magnitude, vector, index, time), strict=True))

    def state(self) -> State:
        """Return the sums of the current window, for a restart."""
        sums = dict(self._sums.state())
        rows = {SITES: RowSet(self._solver.owned, self._solver.total_items, sums)} if sums else {}
        return State(self._solver.step, rows, attributes={_SAMPLES_KEY: self._sums.samples, _WINDOW_KEY: self._window})

    def resume(self, state: State) -> None:
        """Continue the window of `state`; if it has none or other windows or samples, begin a new one."""
        if _SAMPLES_KEY in state.attributes and state.attributes.get(_WINDOW_KEY, self._window) == self._window:
            arrays = {name: rows[:] for name, rows in state.rows[SITES].arrays.items()}
            self._sums.load_state(arrays, int(state.attributes[_SAMPLES_KEY]))
