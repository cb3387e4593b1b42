# SPDX-License-Identifier: BSD-3-Clause
"""The view of a flow in progress: the speed in a plane, flow rates and pressures of the openings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.case.flow.monitor import Record
from seiche.case.flow.picture import middle_plane
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.values import to_si
from seiche.case.output import Scheduled
from seiche.case.schedule import Schedule
from seiche.flow.snapshot import Snapshot, Snapshots
from seiche.flow.solver import FlowSolver
from seiche.report.display_units import display
from seiche.report.live_page import LiveCurves, LiveSlice

Floats = npt.NDArray[np.float64]


class FlowView:
    """The speed in the middle plane across the shortest side of a vessel; each rank sends its sites in the plane.

    Attributes:
        normal: axis across the plane.
        height: position of the plane along this axis, m.
    """

    def __init__(self, setup: FlowSetup, solver: FlowSolver) -> None:
        self._setup, self._solver = setup, solver
        sites = setup.vessel.sites
        self.normal, self._index = middle_plane(sites)
        self.height = float(sites.origin[self.normal] + sites.spacing * self._index)
        low, high = sites.coords.min(axis=0), sites.coords.max(axis=0)
        first, second = (axis for axis in range(3) if axis != self.normal)
        # The longer side is vertical: a phone is narrow.
        self.axes = (first, second) if high[first] - low[first] <= high[second] - low[second] else (second, first)
        self._low, self._high = low[list(self.axes)], high[list(self.axes)]
        self._snapshots: Snapshots | None = None

    def slice(self, points: int, lines: Floats | None = None) -> LiveSlice | None:
        """Return the speed at at most `points` sites along a side, on rank 0, with `lines` (n, 2, 2) (collective)."""
        setup, solver, sites = self._setup, self._solver, self._setup.vessel.sites
        step = max(1, -(-int((self._high - self._low).max() + 1) // points))
        if self._snapshots is None:
            coords = sites.coords[solver.owned]
            on_grid = ((coords[:, self.axes] - self._low) % step == 0).all(axis=1)
            rows = np.flatnonzero((coords[:, self.normal] == self._index) & on_grid)
            self._places = (coords[rows][:, self.axes] - self._low) // step
            self._snapshots = solver.measures.snapshots(("velocity",), rows)
        lattice = solver.measures.snapshot(self._snapshots).fields()
        speed = np.linalg.norm(to_si(lattice, setup.units, ("velocity",))["velocity"], axis=1)
        gathered = solver.world.gather((self._places, speed.astype(np.float32)))
        if gathered is None:
            return None
        columns, rows_of_grid = (int(size) for size in (self._high - self._low) // step + 1)
        values = np.full((rows_of_grid, columns), np.nan, np.float32)
        for places, part in gathered:
            values[places[:, 1], places[:, 0]] = part
        origin, spacing = np.asarray(sites.origin)[list(self.axes)], sites.spacing
        lower = origin + spacing * (self._low - 0.5 * step)
        upper = lower + spacing * step * np.array([columns, rows_of_grid])
        title = f"speed at {'xyz'[self.normal]} = {display(self.height, 'm')}"
        extent = (float(lower[0]), float(upper[0]), float(lower[1]), float(upper[1]))
        names = ("xyz"[self.axes[0]], "xyz"[self.axes[1]])
        return LiveSlice(title, "m/s", values, names, extent, np.zeros((0, 2, 2)) if lines is None else lines)


class OpeningPressures(Scheduled):
    """Mean pressures at the sites of the openings, for the curves of the status page.

    Attributes:
        times: times of the samples, s.
        pressures: pressure at each opening (Pa), a list for each time; nan for an opening without sites.
    """

    label = "status page"
    checked = False

    def __init__(self, setup: FlowSetup, solver: FlowSolver, schedule: Schedule) -> None:
        self.schedule: Schedule = schedule
        self._setup, self._solver = setup, solver
        self.times: list[float] = []
        self.pressures: list[Floats] = []
        rows, iolets = solver.iolets.sites
        order = np.argsort(rows, kind="stable")
        self._iolets, count = iolets[order], len(setup.vessel.sites.iolets)
        self._snapshots = solver.measures.snapshots(("density",), rows[order])
        self._sites = solver.world.allreduce_sum(np.bincount(self._iolets, minlength=count).astype(np.float64))
        self._pending: tuple[float, Snapshot] | None = None

    def take(self) -> None:
        """Start copying the densities; complete the previous sample."""
        self.complete()
        time = self._solver.step * self._setup.dt
        self._pending = time, self._solver.measures.snapshot(self._snapshots)

    def complete(self) -> None:
        """Complete the sample that is in transfer (collective)."""
        if self._pending is None:
            return
        (time, snapshot), self._pending = self._pending, None
        density = np.asarray(snapshot.fields()["density"], np.float64)
        sums = np.bincount(self._iolets, density, minlength=len(self._sites))
        with np.errstate(invalid="ignore"):
            mean = self._solver.world.allreduce_sum(sums) / self._sites
        self.times.append(time)
        self.pressures.append(np.asarray(self._setup.units.pressure_of_density(mean)))


def flow_curves(setup: FlowSetup, record: Record, pressures: OpeningPressures | None) -> list[LiveCurves]:
    """Return flow rates and pressures of the openings, and the mass of a vessel without openings (collective)."""
    names = [plane.name for plane in setup.vessel.sites.iolets]
    curves = []
    if names and record.flows:
        curves.append(_by_opening("flow rate into the vessel", "m^3/s", (record.times, record.flows), names))
    if pressures is not None:
        pressures.complete()
        if pressures.times:
            curves.append(_by_opening("pressure at openings", "Pa", (pressures.times, pressures.pressures), names))
    if not names and record.masses:
        drift = [mass / record.masses[0] - 1.0 for mass in record.masses]
        curves.append(LiveCurves("relative drift of mass", "1", list(record.mass_times), {"": drift}))
    return curves


def _by_opening(
    title: str, unit: str, samples: tuple[Sequence[float], Sequence[Floats]], names: Sequence[str]
) -> LiveCurves:
    times, values = samples
    table = np.stack(list(values))
    return LiveCurves(title, unit, list(times), {name: table[:, k].tolist() for k, name in enumerate(names)})
