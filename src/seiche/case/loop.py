# SPDX-License-Identifier: BSD-3-Clause
"""The run loop: steps between events, outputs, then one decision of all ranks whether to go on."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

import numpy as np

from seiche.case.kind import CaseRun
from seiche.case.outputs import Outputs
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS

#: Seconds of stepping between two decisions.
CHUNK_SECONDS = 0.25
#: Seconds between two reviews of the transports.
REVIEW_SECONDS = 600.0


@dataclass
class StopRequest:
    """The signal that asked for an end, 0 while none did."""

    number: int = 0

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C: the user does not want to wait for the checkpoint
        self.number = number


@contextmanager
def stop_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Turn SIGTERM and SIGINT into a `request` to stop while the block runs (only in the main thread)."""
    request = request if request is not None else StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request._receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class RunLoop:
    """Advances a solver to a step, with its outputs; all ranks stop after the same step.

    A solver with `lookahead` is kept one chunk of steps ahead of the host; the others are waited for.
    """

    def __init__(
        self, run: CaseRun, outputs: Outputs, last_checkpoint: Callable[[], str], deadline: tuple[float, float] | None
    ) -> None:
        """Prepare.

        Args:
            run: the solver, and whoever may ask for an end.
            outputs: what takes the state.
            last_checkpoint: says for messages from where a run can continue.
            deadline: limit of the wall clock in s, and when it ends (a `time.monotonic()`); None without.
        """
        self._run, self._solver, self._outputs = run, run.solver, outputs
        self._last_checkpoint, self._deadline = last_checkpoint, deadline
        self._reviewed = time.monotonic()

    def advance(self, target: int, last: int, progress: Callable[[int], None], request: StopRequest) -> str | None:
        """Run until step `target` of a case that ends at `last`; return None, or why to stop before that end.

        Args:
            target: number of steps after which to return.
            last: number of steps of the case.
            progress: called after every chunk with the number of steps completed.
            request: the signal that asks for an end.

        Raises:
            UnstableError: a state is not finite; with the last good checkpoint.
        """
        solver, outputs = self._solver, self._outputs
        outputs.begin(last)
        self._begin, self._first = time.monotonic(), solver.step
        chunk, mark = 1, None
        with self._naming_the_last_checkpoint():
            while solver.step < target:
                reached = solver.step
                event = outputs.next_event(reached, target)
                # The device gets its next steps before the host waits for what came before them.
                solver.start(min(target, event, reached + chunk) - reached)
                done = solver.step
                if not solver.lookahead:
                    solver.finish()
                elif reached > self._first:
                    solver.finish(mark)
                    done = reached
                outputs.settle()
                mark = solver.mark()
                outputs.take_due()
                progress(done)
                outputs.poll()
                chunk, reason, stale = self._decide(request, done)
                if stale:
                    solver.finish()
                    solver.reconsider()
                    self._reviewed = time.monotonic()
                if reason is not None and solver.step < max(target, last):
                    solver.finish()
                    outputs.settle()
                    outputs.check()
                    progress(solver.step)
                    return reason
            solver.finish()
            outputs.settle()
            outputs.check()
            progress(solver.step)
        outputs.drain()
        return None

    def _decide(self, request: StopRequest, done: int) -> tuple[int, str | None, bool]:
        """Return the steps of the next chunk, why to stop, if so, and whether transports are to be reviewed."""
        now, reason = time.monotonic(), self._run.stop_reason
        late = self._deadline is not None and now >= self._deadline[1]
        pace = (now - self._begin) / max(1, done - self._first)
        stale = now - self._reviewed >= REVIEW_SECONDS
        mine = np.array([request.number, pace, late, stale, reason is not None], np.float64)
        number, slowest, over, any_stale, any_asked = self._solver.world.allreduce_max(mine)
        chunk = max(1, int(CHUNK_SECONDS / max(slowest, 1e-9)))
        if chunk > GRAPH_STEPS:  # whole graphs: steps one by one take the host longer
            chunk -= chunk % GRAPH_STEPS
        if number:
            return chunk, f"signal {signal.Signals(int(number)).name}", bool(any_stale)
        if any_asked:
            return chunk, reason or "a callback of another rank", bool(any_stale)
        limit = self._deadline[0] if self._deadline is not None else 0.0
        return chunk, f"wall-clock limit of {limit:g} s" if over else None, bool(any_stale)

    @contextmanager
    def _naming_the_last_checkpoint(self) -> Iterator[None]:
        """Complete what is sound when a state is not, and add to the message from where the run can continue."""
        try:
            yield
        except UnstableError as error:
            with suppress(OSError):  # the disk may have refused as well: the state is what failed first
                self._outputs.give_up()
            raise UnstableError(f"{error}; {self._last_checkpoint()}") from None
