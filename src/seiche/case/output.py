# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of outputs, monitors and callbacks: objects that receive the state of a run at scheduled steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seiche.case.schedule import Schedule
from seiche.io.background import Job
from seiche.solver import Health, SolverBase


@dataclass(frozen=True)
class OutputTarget:
    """A file of an output: its key in the case, its path, and its kind (`seiche.case.output_targets`).

    For a `series`, each state has a separate file, whose name is derived from `path`.
    """

    key: str
    path: Path
    kind: str = ""
    series: bool = False


class Output(ABC):
    """An object that receives the state at scheduled steps; the methods are collective.

    Attributes:
        label: name of its host time in the table of stages.
        early: whether it receives the state before all other outputs, with the device idle, because it changes the
            state.
        checked: whether the state must be checked when it is received.
        writes: whether the state is still being written after `take` has returned.
        modules: modules that rank 0 needs to complete the files, such as those of figures. They may be imported while
            a GPU computes steps.
    """

    label = "snapshots"
    early = False
    checked = True
    writes = False
    modules: Sequence[str] = ()

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the files that the output writes (not collective)."""
        return ()

    def open(self, first: int, last: int) -> None:  # noqa: B027  (empty by default)
        """Prepare for the steps after `first` up to `last`, before the first of these steps."""

    @abstractmethod
    def next_after(self, step: int) -> int | None:
        """Return the first scheduled step after `step`, or None."""

    @abstractmethod
    def due(self, step: int) -> bool:
        """Return whether `step` is scheduled; called once for each step at which some output is scheduled."""

    @abstractmethod
    def take(self) -> Job | None:
        """Receive the current state; return the job that writes it, or None."""

    def finish(self) -> Sequence[Path]:
        """Complete the files at the end of the run and return them."""
        return ()

    def close(self) -> None:  # noqa: B027  (empty by default)
        """Close the files; incomplete states are discarded (not collective)."""


class Scheduled(Output):
    """An output at equal intervals, or only at the end if `schedule` is None."""

    schedule: Schedule | None

    def next_after(self, step: int) -> int | None:
        """Return the next step of the schedule."""
        return self.schedule.next_after(step) if self.schedule is not None else None

    def due(self, step: int) -> bool:
        """Return whether the schedule contains `step`."""
        return self.schedule is not None and self.schedule.due(step)


class Final(Scheduled):
    """An output at the end of a run, such as a picture."""

    schedule = None

    def take(self) -> None:
        """Do nothing."""


class StateMonitor(ABC):
    """Monitor that checks the state at scheduled steps and when an output receives the state (collective)."""

    def next_after(self, step: int) -> int | None:
        """Return the first scheduled step after `step`; None if the state is checked after each chunk of steps."""
        return None

    @abstractmethod
    def start_check(self, taking: bool) -> Callable[[], None] | None:
        """Start a check of the current state if one is scheduled or if an output is `taking` the state.

        The returned function waits for the result. Both raise UnstableError if the state is not finite or not physical.
        """

    def check_last(self) -> None:
        """Check the current state unless it has already been checked."""
        complete = self.start_check(True)
        if complete is not None:
            complete()


class History:
    """Values over time, thinned out to a limited number: for the curves of a run in progress.

    Attributes:
        times: times, s.
        values: values at these times by name.
    """

    def __init__(self, limit: int = 400) -> None:
        """Store at most `limit` times."""
        self._limit, self._interval, self._count = limit, 1, 0
        self.times: list[float] = []
        self.values: dict[str, list[float]] = {}

    def add(self, time: float, values: Mapping[str, float]) -> None:
        """Add values unless they are skipped; at the limit, every second time is removed."""
        self._count += 1
        if self._count % self._interval or (self.times and time <= self.times[-1]):
            return
        self.times.append(time)
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)
        if len(self.times) >= self._limit:
            self._interval *= 2
            del self.times[::2]
            for series in self.values.values():
                del series[::2]


class ChunkMonitor(StateMonitor):
    """Monitor that checks the state after each chunk of steps, for solvers without `lookahead`."""

    def __init__(self, solver: SolverBase) -> None:
        """Check the state of `solver`."""
        self._solver = solver
        #: Result of the last check.
        self.health: Health | None = None
        #: Values of all checks so far.
        self.history = History()

    def start_check(self, taking: bool) -> None:
        """Check the current state."""
        self.health = self._solver.check()
        self.history.add(self.health.step * self._solver.dt, self.health.values)


class Callback(Scheduled):
    """A user function that is called at scheduled steps."""

    label = "callbacks"

    def __init__(self, schedule: Schedule, function: Callable[[], object]) -> None:
        """Call `function` at the steps of `schedule`."""
        self.schedule, self._function = schedule, function

    def take(self) -> None:
        """Call the function."""
        self._function()
