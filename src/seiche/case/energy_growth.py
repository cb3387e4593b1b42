# SPDX-License-Identifier: BSD-3-Clause
"""Growth of the energy of waves beyond the energy that their sources can supply.

The square root of the energy is a norm of the state, and without sources a stable scheme does not increase it. With
sources it grows in a step by at most the norm of the increments that they add (theory/waves, eq. 40).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from seiche.case.output import ChunkMonitor
from seiche.report.display_units import display
from seiche.solver import SolverBase

#: Largest fraction of the run time for the computation of energies, and seconds before the first of them.
_TIME_SHARE, _FIRST = 0.01, 1.0


class EnergyGrowth:
    """Comparison of energies of a run with an upper limit; methods are collective.

    Attributes:
        energy: energy at the last comparison.
        latest: growth beyond the limit at the last comparison, relative to the larger of this limit and the largest
            energy before; None before the first comparison.
        largest: largest growth so far.
    """

    def __init__(
        self,
        solver: SolverBase,
        energy: Callable[[], float],
        supply: Callable[[int, int], float],
        start: float | None = 0.0,
    ) -> None:
        """Start at the present state.

        Args:
            solver: the solver.
            energy: function that returns the energy of the present state.
            supply: function that returns the largest growth of the square root of the energy due to sources in the
                steps a + 1 ... b; infinite if it is unknown.
            start: energy of the present state; None if it does not limit later ones.
        """
        self._solver, self._energy, self._supply = solver, energy, supply
        self._begin, self._spent = time.monotonic(), 0.0
        self._step = self._compared = solver.step
        self.energy = start or 0.0
        self._root, self._peak = math.inf if start is None else math.sqrt(start), self.energy
        self.latest: float | None = None
        self.largest: float | None = None

    def follow(self) -> None:
        """Add the supply of the sources since the last call; compare if this does not slow down the run."""
        self._accumulate()
        elapsed = time.monotonic() - self._begin
        must_wait = np.array([elapsed < _FIRST or self._spent > _TIME_SHARE * elapsed], np.float64)
        if not self._solver.world.allreduce_max(must_wait)[0]:
            self.compare()

    def compare(self) -> None:
        """Compare the energy of the present state with its limit, unless this has been done."""
        self._accumulate()
        if self._compared == self._solver.step:
            return
        begin = time.monotonic()
        self.energy, self._compared = self._energy(), self._solver.step
        limit = self._root**2
        scale = max(limit, self._peak)
        if math.isfinite(limit) and scale > 0.0:
            self.latest = (self.energy - limit) / scale
            self.largest = self.latest if self.largest is None else max(self.largest, self.latest)
        if math.isfinite(self.energy):
            self._root, self._peak = min(self._root, math.sqrt(self.energy)), max(self._peak, self.energy)
        self._spent += time.monotonic() - begin

    def _accumulate(self) -> None:
        step = self._solver.step
        if step > self._step:
            self._root += self._supply(self._step, step)
            self._step = step


def chunk_physics(monitor: ChunkMonitor, name: str, unit: str, growth: EnergyGrowth | None) -> dict[str, str]:
    """Return the value `name` of the last check in a readable unit, and the latest growth of the energy, as text."""
    values = {}
    if monitor.health is not None:
        values[name.replace("largest_", "peak ")] = display(monitor.health.values[name], unit)
    if growth is not None and growth.latest is not None:
        values["energy beyond the sources"] = f"{100 * growth.latest:+.2g} %"
    return values


class EnergyMonitor(ChunkMonitor):
    """Monitor that checks the state and follows its energy."""

    def __init__(self, solver: SolverBase, growth: EnergyGrowth) -> None:
        """Check the state of `solver` and compare its energy by `growth`."""
        super().__init__(solver)
        self._growth = growth

    def start_check(self, taking: bool) -> None:
        """Check the current state and follow the energy."""
        super().start_check(taking)
        self._growth.follow()

    def check_last(self) -> None:
        """Check the last state and its energy."""
        self.start_check(True)
        self._growth.compare()
