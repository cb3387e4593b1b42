# SPDX-License-Identifier: BSD-3-Clause
"""Checks and records of a flow over time: mass, Mach number, flow rates, steady state."""

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

#: Default number of samples of the flow rates per run.
RECORDS = 200
#: A run with supersonic velocities is unstable and cannot be continued.
MACH_UNSTABLE = 1.0


@dataclass
class Record:
    """Volume flow (m^3/s, positive into the fluid) through every iolet at `times` (s).

    `forces` are those on bodies (6: N, N m) at the same times; `masses` of fluid (kg) are those at `mass_times` (s).
    """

    times: list[float] = field(default_factory=list)
    flows: list[npt.NDArray[np.float64]] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    mass_times: list[float] = field(default_factory=list)
    forces: dict[str, list[npt.NDArray[np.float64]]] = field(default_factory=dict)
    largest_mach: float = 0.0


class FlowMonitor(StateMonitor):
    """Checks mass and Mach number and records flow rates, while the following steps run."""

    def __init__(self, setup: FlowSetup, solver: FlowSolver) -> None:
        self._setup, self._solver = setup, solver
        self.record = Record()
        every = setup.case.output.record_every
        self._checks = Schedule(setup.case.run.monitor_every)
        self._records = Schedule(max(1.0, setup.steps / RECORDS if every is None else setup.steps_of(every)))
        self._checked: int | None = None

    def next_after(self, step: int) -> int:
        """Return the next check or sample."""
        return min(self._checks.next_after(step), self._records.next_after(step))

    def start_check(self, taking: bool) -> Callable[[], None] | None:
        """Start copying totals or flow rates of the current state to the host."""
        step = self._solver.step
        checking, recording = taking or self._checks.due(step), self._records.due(step)
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
        """Check immersed objects."""

    def check_last(self) -> None:
        """Check the current state unless already done."""
        if self._checked != self._solver.step:
            self.check_immersed()
            self._store(self._solver.start_monitor(), checking=True, recording=False)

    def _store(self, pending: PendingMonitor, *, checking: bool, recording: bool) -> None:
        """Record totals and flow rates; UnstableError if the flow is supersonic or not finite."""
        units, record = self._setup.units, self.record
        if checking:
            self._checked = pending.step
            monitor = pending.monitor()
            if monitor.mach > MACH_UNSTABLE:
                location = self._location_of_highest_speed()
                expected = self._setup.invariants.mach
                hint = f"; {expected:.3g} was expected: check forces, pressures and their units" if expected else ""
                raise UnstableError(
                    f"Mach number {monitor.mach:.3g} at step {pending.step}; the highest velocity is {location}{hint}"
                )
            record.largest_mach = max(record.largest_mach, float(monitor.mach))
            record.masses.append(units.to_si("mass", float(monitor.mass)))
            record.mass_times.append(pending.step * units.step)
        if recording:
            flow = monitor.flow if checking else pending.flow()
            record.times.append(pending.step * units.step)
            record.flows.append(units.to_si("flow_rate", np.asarray(flow, np.float64)))

    def _location_of_highest_speed(self) -> str:
        """Return the site, rank and step of the highest speed, for messages (collective)."""
        solver = self._solver
        speed = np.linalg.norm(solver.fields(("velocity",))["velocity"], axis=1)
        row = int(speed.argmax())
        coords = solver.sites.coords[solver.owned[row]].tolist()
        _, rank, site = max(solver.world.allgather((float(speed[row]), solver.world.rank, coords)))
        return f"at site {site}, rank {rank}, step {solver.step}"


class SteadyState(Scheduled):
    """Ends a run whose velocity no longer changes."""

    label = "monitor"
    checked = False

    def __init__(self, setup: FlowSetup, solver: FlowSolver, stop: Callable[[str], None]) -> None:
        table = setup.case.time
        self.schedule: Schedule = Schedule(setup.steps_of(table.steady_interval))
        self._solver, self._tolerance, self._stop = solver, table.steady or 0.0, stop

    def take(self) -> None:
        """Compare the velocity with that of the previous interval."""
        change = self._solver.measures.velocity_change()
        if change < self._tolerance:
            interval = self.schedule.interval
            self._stop(f"a steady flow (relative change of the velocity {change:.2g} in {interval:.0f} steps)")
