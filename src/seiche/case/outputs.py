# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a run: their schedule, order, checks, and writing in the background."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from seiche.case.kind import CaseRun
from seiche.case.output import Output
from seiche.io.background import BackgroundWriter, Job
from seiche.observe.counters import ProcessCounters
from seiche.report.page_size import PageSize, page


class Outputs:
    """Scheduled outputs, which receive states and write them; every method but `close` is collective.

    A state is written by a background thread, and only after its check has succeeded.
    """

    def __init__(self, run: CaseRun, outputs: Sequence[Output], limit: int) -> None:
        """Schedule the `outputs` of `run`, with at most `limit` states in flight to the disk."""
        self._solver, self._monitor, self._limit = run.solver, run.monitor, limit
        self.items = list(outputs)
        self.counters = ProcessCounters()
        self.writer = BackgroundWriter(run.solver.world, limit, label=run.solver.backend.annotate)
        #: Host time between steps by activity, s.
        self.seconds: dict[str, float] = {"monitor": 0.0, **{output.label: 0.0 for output in self.items}}
        #: Time to complete the files after the last step, s.
        self._ending = 0.0
        #: Function that completes the check of the last taken state.
        self._pending: Callable[[], None] | None = None
        #: Jobs of that state.
        self._unchecked: list[Job] = []

    def measured(self) -> dict[str, dict[str, Any]]:
        """Return host time outside timed steps and time of writing by activity, s, and counts of the processor."""
        overhead = {**self._solver.timers.host_seconds(), **self.seconds, "wait for output": self.writer.waited}
        ending = {"after the last step": self._ending} if self._ending else {}
        writing = {**self.writer.seconds, **ending}
        return {"host_overhead": overhead, "writing": writing, "counters": self.counters.as_dict()}

    def begin(self, last: int) -> None:
        """Prepare all outputs for the steps up to `last`."""
        with self.timed("open files"):
            for output in self.items:
                output.open(self._solver.step, last)

    def import_modules(self) -> None:
        """Import the modules that complete the files on rank 0 (not collective)."""
        if self._solver.world.rank == 0:
            for name in dict.fromkeys(name for output in self.items for name in output.modules):
                import_module(name)

    def next_event(self, step: int, last: int) -> int:
        """Return the first scheduled step after `step`, or `last`."""
        events = [self._monitor.next_after(step), *(output.next_after(step) for output in self.items)]
        return min((event for event in events if event is not None), default=last)

    def take_scheduled(self) -> None:
        """Take the state for the outputs scheduled at the current step; `settle` completes them."""
        step = self._solver.step
        for output in self.items:
            if output.early and output.due(step):
                self._solver.finish()
                self._take(output)
        due = [output for output in self.items if not output.early and output.due(step)]
        with self.timed("monitor"):
            self._pending = self._monitor.start_check(any(output.checked for output in due))
        for output in due:
            self._take(output)

    def _take(self, output: Output) -> None:
        if output.writes:
            self.wait_for_capacity()
        with self.timed(output.label):
            job = output.take()
        if job is not None:
            job.label = output.label
            self._unchecked.append(job)

    def wait_for_capacity(self) -> None:
        """Wait until one more state may be in flight."""
        if self._unchecked and self.writer.unfinished + len(self._unchecked) >= self._limit:
            self.settle()
        self.writer.wait_for_capacity()

    def settle(self) -> None:
        """Complete the check of the last taken state, then submit its jobs.

        After an UnstableError the state is not written. The device may then be at later steps.
        """
        if self._pending is not None:
            complete, self._pending = self._pending, None
            with self.timed("monitor"):
                complete()
        jobs, self._unchecked = self._unchecked, []
        for job in jobs:
            self.writer.submit(job)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the host time of the block to that of the activity `name`."""
        begin = time.perf_counter_ns()
        try:
            with self._solver.backend.annotate(name):
                yield
        finally:
            end = time.perf_counter_ns()
            self.seconds[name] = self.seconds.get(name, 0.0) + (end - begin) * 1e-9
            self._solver.timers.note(name, begin, end)

    def poll(self) -> None:
        """Commit states stored by all ranks, without waiting; OSError on every rank after a disk error."""
        self.writer.poll()

    def drain(self) -> None:
        """Wait until all taken states are complete; OSError on every rank after a disk error."""
        self.settle()
        self.writer.drain()

    def discard(self) -> None:
        """Discard the unchecked state and complete the earlier ones."""
        self._pending = None
        self._finish_unchecked()
        self.writer.drain()

    def check(self) -> None:
        """Check the current state unless this has been done; UnstableError if it is not finite or not physical."""
        with self.timed("monitor"):
            self._monitor.check_last()

    def add(self, output: Output) -> None:
        """Insert an output before the checkpoint, which comes last."""
        self.items.insert(len(self.items) - 1, output)
        self.seconds.setdefault(output.label, 0.0)

    def submit(self, output: Output) -> None:
        """Take the current state, which has been checked, for an output."""
        self._take(output)

    def finish(self, requested: PageSize) -> list[Path]:
        """Complete all files and return them; pictures have the `requested` resolution and size."""
        begin = time.perf_counter()
        self.drain()
        self.close()
        with page(requested), self._solver.backend.annotate("complete files"):
            paths = [path for output in self.items for path in output.finish()]
        self._ending += time.perf_counter() - begin
        return paths

    def close(self) -> None:
        """Close all files; incomplete states are discarded (not collective).

        Raises the error of the first file that cannot be closed, after all others are closed.
        """
        self._finish_unchecked()
        self.writer.stop()
        with ExitStack() as stack:
            for output in reversed(self.items):
                stack.callback(output.close)

    def _finish_unchecked(self) -> None:
        """Discard states that were taken but not submitted (not collective)."""
        jobs, self._unchecked = self._unchecked, []
        for job in jobs:
            job.finish(False)

    def abandon(self) -> None:
        """Close all files after an error, which another one of the disk must not hide."""
        with suppress(OSError):
            self.close()
