# SPDX-License-Identifier: BSD-3-Clause
"""Monitor of a flow: checks of mass and Mach number, records of flow rates and forces, detection of a steady state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seiche.case.flow.forces import in_si
from seiche.case.flow.setup import FlowSetup
from seiche.case.output import Scheduled, StateMonitor
from seiche.case.schedule import Schedule
from seiche.errors import UnstableError
from seiche.flow.monitor import PendingMonitor
from seiche.flow.solver import FlowSolver

#: Default number of samples of the flow rates in a run.
RECORDS = 200
#: Mach number above which a run is unstable and cannot be continued.
UNSTABLE_MACH = 1.0


@dataclass
class Record:
    """Records of a run: volume flow rates (m^3/s, positive into the fluid) through each iolet at `times` (s).

    `forces` are the force (N) and torque (N m) on each body, (6,), at the same times. `masses` (kg) are the masses of
    the fluid at `mass_times` (s). `mach` is the latest Mach number, `largest_mach` the largest so far.
    """

    times: list[float] = field(default_factory=list)
    flows: list[npt.NDArray[np.float64]] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    mass_times: list[float] = field(default_factory=list)
    forces: dict[str, list[npt.NDArray[np.float64]]] = field(default_factory=dict)
    largest_mach: float = 0.0
    mach: float | None = None


class FlowMonitor(StateMonitor):
    """Monitor that checks mass and Mach number and records flow rates while the next steps are running."""

    def __init__(self, setup: FlowSetup, solver: FlowSolver) -> None:
        self._setup, self._solver = setup, solver
        self.record = Record()
        every = setup.case.output.record_every
        self._checks = Schedule(setup.case.run.monitor_every)
        self.records = Schedule(max(1.0, setup.steps / RECORDS if every is None else setup.steps_of(every)))
        self._checked: int | None = None

    def next_after(self, step: int) -> int:
        """Return the step of the next check or sample."""
        return min(self._checks.next_after(step), self.records.next_after(step))

    def start_check(self, taking: bool) -> Callable[[], None] | None:
        """Start copying the totals or the flow rates of the current state to the host."""
        step = self._solver.step
        checking, recording = taking or self._checks.due(step), self.records.due(step)
        if not (checking or recording):
            return None
        if checking:
            self.check_immersed()
        pending = self._solver.start_monitor(totals=checking)
        forces = self._solver.measures.start_wall_forces() if recording else None

        def complete() -> None:
            self._store(pending, checking=checking, recording=recording)
            for name, values in in_si(self._setup.units, forces.result() if forces else {}).items():
                self.record.forces.setdefault(name, []).append(values)

        return complete

    def check_immersed(self) -> None:
        """Check the immersed objects; there are none in a flow case."""

    def check_last(self) -> None:
        """Check the current state unless it has already been checked."""
        if self._checked != self._solver.step:
            self.check_immersed()
            self._store(self._solver.start_monitor(), checking=True, recording=False)

    def _store(self, pending: PendingMonitor, *, checking: bool, recording: bool) -> None:
        """Record totals and flow rates.

        UnstableError if the Mach number exceeds `UNSTABLE_MACH` or a value is not finite.
        """
        units, record = self._setup.units, self.record
        if checking:
            self._checked = pending.step
            monitor = pending.monitor()
            if monitor.mach > UNSTABLE_MACH:
                location = self._location_of_maximum_speed()
                expected = self._setup.invariants.mach
                hint = f"; {expected:.3g} was expected: check forces, pressures and their units" if expected else ""
                raise UnstableError(
                    f"Mach number {monitor.mach:.3g} at step {pending.step}; the maximum velocity is {location}{hint}"
                )
            record.mach = float(monitor.mach)
            record.largest_mach = max(record.largest_mach, record.mach)
            record.masses.append(units.to_si("mass", float(monitor.mass)))
            record.mass_times.append(pending.step * units.step)
        if recording:
            flow = monitor.flow if checking else pending.flow()
            record.times.append(pending.step * units.step)
            record.flows.append(units.to_si("flow_rate", np.asarray(flow, np.float64)))

    def _location_of_maximum_speed(self) -> str:
        """Return the site, rank and step of the maximum speed, for messages (collective)."""
        solver = self._solver
        speed = np.linalg.norm(solver.fields(("velocity",))["velocity"], axis=1)
        row = int(speed.argmax())
        coords = solver.sites.coords[solver.owned[row]].tolist()
        _, rank, site = max(solver.world.allgather((float(speed[row]), solver.world.rank, coords)))
        return f"at site {site}, rank {rank}, step {solver.step}"


class SteadyState(Scheduled):
    """Output that ends a run when the velocity no longer changes."""

    label = "monitor"
    checked = False

    def __init__(self, setup: FlowSetup, solver: FlowSolver, stop: Callable[[str], None]) -> None:
        table = setup.case.time
        self.schedule: Schedule = Schedule(setup.steps_of(table.steady_interval))
        self._solver, self._tolerance, self._stop = solver, table.steady or 0.0, stop

    def take(self) -> None:
        """Compare the velocity with that at the end of the previous interval."""
        change = self._solver.measures.velocity_change()
        if change < self._tolerance:
            interval = self.schedule.interval
            self._stop(f"a steady flow (relative change of the velocity {change:.2g} in {interval:.0f} steps)")
