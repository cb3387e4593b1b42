# SPDX-License-Identifier: BSD-3-Clause
"""The outputs of a run: when something is due, in which order it is taken, checked and written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seiche.case.kind import CaseRun
from seiche.case.output import Output
from seiche.io.background import BackgroundWriter, Job


class Outputs:
    """Takes and writes what is due at a step; every method but `close` is collective over the ranks.

    What is taken is written only after the state was found to be sound, by a thread beside the steps.
    """

    def __init__(self, run: CaseRun, outputs: Sequence[Output], limit: int) -> None:
        """Plan the `outputs` of `run`; nothing is written yet. At most `limit` states are on their way to the disk."""
        self._solver, self._monitor, self._limit = run.solver, run.monitor, limit
        self.items = list(outputs)
        self.writer = BackgroundWriter(run.solver.world, limit)
        #: Seconds of the host between steps, by what it did.
        self.seconds: dict[str, float] = {"monitor": 0.0}
        self.seconds |= {output.label: 0.0 for output in self.items}
        #: Completes the check of the state that was taken last.
        self._pending: Callable[[], None] | None = None
        #: What was taken of that state.
        self._held: list[Job] = []

    def begin(self, last: int) -> None:
        """Prepare for the steps up to `last`: that takes time which no step should wait for."""
        for output in self.items:
            output.open(self._solver.step, last)

    def next_event(self, step: int, last: int) -> int:
        """Return the first step after `step` at which something is due, `last` without."""
        events = [self._monitor.next_after(step), *(output.next_after(step) for output in self.items)]
        return min((event for event in events if event is not None), default=last)

    def take_due(self) -> None:
        """Take what is due at the solver's step. `settle` completes it."""
        step = self._solver.step
        for output in self.items:
            if output.early and output.due(step):
                self._solver.finish()
                self._take(output)
        due = [output for output in self.items if not output.early and output.due(step)]
        with self._counted("monitor"):
            self._pending = self._monitor.look(any(output.checked for output in due))
        for output in due:
            self._take(output)

    def _take(self, output: Output) -> None:
        if output.writes:
            self.make_room()
        with self._counted(output.label):
            job = output.take()
        if job is not None:
            self._held.append(job)

    def make_room(self) -> None:
        """Wait until one more state may be under way."""
        if self._held and self.writer.unfinished + len(self._held) >= self._limit:
            self.settle()
        self.writer.make_room()

    def settle(self) -> None:
        """Complete the check of the state at which something was last taken, and only then have that written.

        Raises:
            UnstableError: before anything false is written. By then the device may be at later steps.
        """
        if self._pending is not None:
            complete, self._pending = self._pending, None
            with self._counted("monitor"):
                complete()
        held, self._held = self._held, []
        for job in held:
            self.writer.submit(job)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            end = time.perf_counter_ns()
            self.seconds[name] = self.seconds.get(name, 0.0) + (end - begin) * 1e-9
            self._solver.timers.note(name, begin, end)

    def poll(self) -> None:
        """Commit what all ranks have stored, without waiting; OSError on every rank if a disk refused."""
        self.writer.look()

    def drain(self) -> None:
        """Wait until everything taken so far is complete; OSError on every rank if a disk refused."""
        self.settle()
        self.writer.drain()

    def give_up(self) -> None:
        """Complete what was taken of earlier states, and discard what was taken of one that is not sound."""
        self._pending, held, self._held = None, self._held, []
        for job in held:
            job.finish(False)
        self.writer.drain()

    def check(self) -> None:
        """Check the present state, unless that was done.

        Raises:
            UnstableError: it is not finite, or not physical.
        """
        with self._counted("monitor"):
            self._monitor.check_last()

    def add(self, output: Output) -> None:
        """Add an output, before the checkpoint, which is the last one."""
        self.items.insert(len(self.items) - 1, output)
        self.seconds.setdefault(output.label, 0.0)

    def submit(self, output: Output) -> None:
        """Have the present state, which was checked, written by an output."""
        self._take(output)

    def finish(self) -> list[Path]:
        """Complete every file; return what was written."""
        self.drain()
        self.close()
        return [path for output in self.items for path in output.finish()]

    def close(self) -> None:
        """Close every file; states that are not complete are given up (not collective)."""
        self.writer.stop()
        for output in self.items:
            output.close()
