# SPDX-License-Identifier: BSD-3-Clause
"""Run loop: steps up to the next event, outputs, then a common decision of all ranks to continue or stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from seiche.case.kind import CaseRun
from seiche.case.live import LiveView
from seiche.case.outputs import Outputs
from seiche.case.stop_signals import StopRequest
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS

#: Interval between decisions, s.
CHUNK_SECONDS = 0.25
#: Wait for a device after which the host has time for imports, s.
IDLE_SECONDS = 0.05
#: Interval between transport reviews, s.
REVIEW_SECONDS = 600.0


class RunLoop:
    """Loop that advances a solver and its outputs; all ranks stop after the same step.

    The device of a solver with `lookahead` runs one chunk of steps ahead of the host.
    """

    def __init__(
        self,
        run: CaseRun,
        outputs: Outputs,
        last_checkpoint: Callable[[], str],
        deadline: tuple[float, float] | None,
        *,
        view: LiveView | None = None,
    ) -> None:
        """Create the loop of `run` with its `outputs`.

        `last_checkpoint` returns a description of the last checkpoint, for messages. `deadline` is a wall-clock limit
        (s) and the value of `time.monotonic()` at which it expires. `view` is that of a status page.
        """
        self._view = view
        self._run, self._solver, self._outputs = run, run.solver, outputs
        self._last_checkpoint, self._deadline = last_checkpoint, deadline
        self._reviewed = time.monotonic()

    def advance(self, target: int, last: int, progress: Callable[[int], None], request: StopRequest) -> str | None:
        """Run until step `target`; return None, or the reason for an earlier stop.

        Args:
            target: step at which to return.
            last: last step of the case.
            progress: function called after each chunk with the number of completed steps.
            request: the received stop signal.

        Raises:
            UnstableError: the state is not finite; the message names the last good checkpoint.
        """
        solver, outputs = self._solver, self._outputs
        outputs.begin(last)
        self._begin, self._first = time.monotonic(), solver.step
        chunk, chunk_end, stopped, waited, imported = 1, None, None, 0.0, False
        with self._with_last_checkpoint(), outputs.counters.counting():
            while solver.step < target:
                reached = solver.step
                with outputs.timed("run control"):
                    event = outputs.next_event(reached, target)
                # Launch the next steps before waiting for the previous ones.
                solver.start(min(target, event, reached + chunk) - reached)
                if waited > IDLE_SECONDS and not imported:
                    imported = True
                    with outputs.timed("run control"):
                        outputs.import_modules()
                done = solver.step
                if not solver.lookahead:
                    solver.finish()
                elif reached > self._first:
                    begin = time.monotonic()
                    solver.finish(chunk_end)
                    done, waited = reached, time.monotonic() - begin
                outputs.settle()
                chunk_end = solver.record_event()
                outputs.take_scheduled()
                with outputs.timed("run control"):
                    progress(done)
                    outputs.poll()
                    chunk, reason, review, watched = self._decide(request, done)
                if review:
                    solver.finish()
                    solver.reconsider()
                    self._reviewed = time.monotonic()
                if watched and self._view is not None:
                    solver.finish()
                    with outputs.timed("status page"):
                        self._view.take()
                stopped = reason if solver.step < max(target, last) else None
                if stopped is not None:
                    break
            solver.finish()
            outputs.settle()
            outputs.check()
            with outputs.timed("run control"):
                progress(solver.step)
        if stopped is None:
            outputs.drain()
        return stopped

    def _decide(self, request: StopRequest, done: int) -> tuple[int, str | None, bool, bool]:
        """Return the length of the next chunk, the reason to stop or None, whether to review transports and to view."""
        time_now, reason = time.monotonic(), self._run.stop_reason
        limit, end = self._deadline or (0.0, np.inf)
        step_seconds = (time_now - self._begin) / max(1, done - self._first)
        outdated = time_now - self._reviewed >= REVIEW_SECONDS
        watched = self._view is not None and self._view.is_due()
        flags = (time_now >= end, outdated, reason is not None, watched)
        local = np.array([request.number, step_seconds, *flags], np.float64)
        number, max_seconds, time_expired, review, requested, watched = self._solver.world.allreduce_max(local)
        chunk = max(1, int(CHUNK_SECONDS / max(max_seconds, 1e-9)))
        if chunk > GRAPH_STEPS:  # a whole number of graphs, because single steps take more host time
            chunk -= chunk % GRAPH_STEPS
        if number:
            reason = f"signal {signal.Signals(int(number)).name}"
        elif requested:
            reason = next(text for text in self._solver.world.allgather(reason) if text is not None)
        elif time_expired:
            reason = f"wall-clock limit of {limit:g} s"
        return chunk, reason, bool(review), bool(watched)

    @contextmanager
    def _with_last_checkpoint(self) -> Iterator[None]:
        """After an UnstableError, complete earlier outputs and mention the last checkpoint in the message."""
        try:
            yield
        except UnstableError as error:
            with suppress(OSError):  # a disk error must not hide the original failure
                self._outputs.discard()
            raise UnstableError(f"{error}; {self._last_checkpoint()}") from None
