# SPDX-License-Identifier: BSD-3-Clause
"""What takes the state of a run at some of its steps: files, records, checks, functions of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seiche.case.schedule import Schedule
from seiche.io.background import Job
from seiche.solver import SolverBase


@dataclass(frozen=True)
class Place:
    """Where an output goes: the key of the case that names it, the file, and its kind (`seiche.case.places`).

    `series` says that states have names of their own beside the file's.
    """

    key: str
    path: Path
    kind: str = ""
    series: bool = False


class Output(ABC):
    """Something with a schedule that takes the present state; the methods are collective over the ranks.

    Attributes:
        label: name of its time on the host in the table of stages.
        early: whether it is taken before all others, with the device idle, because it changes the state.
        checked: whether the state is checked before what was taken counts.
        writes: whether a state that was taken is on its way to the disk for a while.
    """

    label = "snapshots"
    early = False
    checked = True
    writes = False

    @property
    def places(self) -> Sequence[Place]:
        """Return where it writes (not collective)."""
        return ()

    def open(self, first: int, last: int) -> None:  # noqa: B027  (nothing to do for most)
        """Prepare for the steps after `first` and up to `last`, so that no step has to wait for it."""

    @abstractmethod
    def next_after(self, step: int) -> int | None:
        """Return the first step after `step` at which it is due, None for never."""

    @abstractmethod
    def due(self, step: int) -> bool:
        """Return whether it is due at `step`; called once for each step at which something is due."""

    @abstractmethod
    def take(self) -> Job | None:
        """Take the present state; return the job that writes it, None if there is nothing to write."""

    def finish(self) -> Sequence[Path]:
        """Complete the files at the end of the run; return those that were written."""
        return ()

    def close(self) -> None:  # noqa: B027  (nothing to do for most)
        """Close the files; what is not complete is given up (not collective)."""


class Scheduled(Output):
    """An output with a schedule of equal intervals, None for one that is taken at the end only."""

    schedule: Schedule | None

    def next_after(self, step: int) -> int | None:
        """Return the next step of the schedule."""
        return self.schedule.next_after(step) if self.schedule is not None else None

    def due(self, step: int) -> bool:
        """Return whether the schedule has `step`."""
        return self.schedule is not None and self.schedule.due(step)


class Final(Scheduled):
    """An output of the end of a run: a record, a picture."""

    schedule = None

    def take(self) -> None:
        """Take nothing on the way."""


class Monitor(ABC):
    """Checks the state, at steps of its own and whenever something is taken (collective)."""

    def next_after(self, step: int) -> int | None:
        """Return the first step after `step` at which it is due; None where it is due after every chunk of steps."""
        return None

    @abstractmethod
    def look(self, taking: bool) -> Callable[[], None] | None:
        """Begin to check the present state if it is due, or if something is `taking` it.

        The function that is returned waits for the result.

        Raises:
            UnstableError: here or from that function: the state is not finite, or not physical.
        """

    def check_last(self) -> None:
        """Check the present state unless that was done."""
        complete = self.look(True)
        if complete is not None:
            complete()


class ChunkMonitor(Monitor):
    """Checks the state after every chunk of steps: for solvers that the host does not run ahead of."""

    def __init__(self, solver: SolverBase) -> None:
        """Check the state of `solver`."""
        self._solver = solver

    def look(self, taking: bool) -> None:
        """Check the present state."""
        self._solver.check()


class Callback(Scheduled):
    """A function of the user."""

    label = "callbacks"

    def __init__(self, schedule: Schedule, function: Callable[[], object]) -> None:
        """Call `function` by `schedule`."""
        self.schedule, self._function = schedule, function

    def take(self) -> None:
        """Call it."""
        self._function()


def written(outputs: Sequence[Output]) -> Mapping[str, Place]:
    """Return the places of all outputs by the names of their files (not collective)."""
    return {str(place.path): place for output in outputs for place in output.places}
