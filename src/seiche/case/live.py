# SPDX-License-Identifier: BSD-3-Clause
"""The view of a run in progress for its status page: a field in a plane, curves, stages.

A view is taken only while a browser shows the page, between two steps, and takes at most 1 % of the run. Rank 0
receives the points of one plane, never a whole field. The figures are drawn in the thread that answers the browser.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from seiche.case.kind import CaseRun
from seiche.case.outputs import Outputs
from seiche.observe.status import Figures
from seiche.report.live_page import LiveCurves, LiveSlice, figures_html

#: Seconds between two views, at least; largest fraction of the run time for views; seconds after which nobody watches.
_INTERVAL, _TIME_SHARE, _WATCHED = 2.0, 0.01, 10.0
#: Longest side of a slice, in points.
SLICE_POINTS = 300


@dataclass(frozen=True, eq=False)
class _View:
    """The parts of a view, on rank 0, and its number."""

    number: int
    time: float
    plane: LiveSlice | None
    curves: Sequence[LiveCurves]
    shares: Mapping[str, float]


class LiveView:
    """Latest view of a run.

    Attributes:
        world: the ranks.
        unwatched_seconds: function that returns the seconds since a browser last asked for the page, on rank 0.
    """

    def __init__(self, run: CaseRun, dt: float, outputs: Outputs) -> None:
        """View the state of `run`, whose steps have a duration of `dt` s; add outputs that collect records for it."""
        self._run, self._dt, self.world = run, dt, run.solver.world
        self._parts = run.live_parts()
        for output in self._parts.outputs:
            outputs.add(output)
        self.unwatched_seconds: Callable[[], float] = lambda: math.inf
        self._view: _View | None = None
        self._figures, self._drawing = Figures(), Lock()
        self._next = -math.inf

    def is_due(self) -> bool:
        """Return whether a view should be taken: only on rank 0, for a browser, and not too often (not collective)."""
        return time.monotonic() >= self._next and self.unwatched_seconds() < _WATCHED

    def take(self) -> None:
        """Take a view of the current state; the device must be idle (collective)."""
        begin, solver = time.monotonic(), self._run.solver
        plane, curves = self._parts.slice(SLICE_POINTS), self._parts.curves()
        if self.world.rank == 0:
            shares = {name: stage.mean for name, stage in solver.timers.times().items()}
            number = 1 if self._view is None else self._view.number + 1
            self._view = _View(number, solver.step * self._dt, plane, curves, shares)
        now = time.monotonic()
        self._next = now + max(_INTERVAL, (now - begin) / _TIME_SHARE)

    def figures(self) -> Figures:
        """Return the figures of the latest view; called by threads of the server (not collective)."""
        with self._drawing:
            view = self._view
            if view is not None and view.number != self._figures.number:
                self._figures = Figures(view.number, figures_html(view.time, view.plane, view.curves, view.shares))
            return self._figures
