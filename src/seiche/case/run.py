# SPDX-License-Identifier: BSD-3-Clause
"""The run loop: steps between events, a look at signals and the clock after each, the same decision on every rank."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seiche.case.account import imbalance
from seiche.case.flow.outputs import Outputs
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.observe.progress import Progress

#: Seconds of stepping between two looks at signals, the clock and the progress bar.
LOOK_EVERY = 0.25
#: Seconds between two looks whether messages still take what they took when their way was chosen.
RECONSIDER_EVERY = 600.0


class Choice(Protocol):
    """An exchange whose way may be chosen anew (seiche.halo, seiche.machine.collectives)."""

    decisions: list[Any]

    def reconsider(self) -> bool:
        """Look at it again (collective)."""


def decisions_of(exchanges: Iterable[Choice]) -> list[str]:
    """Return in words what was chosen by a machine file, and why."""
    return list(dict.fromkeys(each.describe() for exchange in exchanges for each in exchange.decisions))


class Looks:
    """When the ways of messages were looked at last."""

    def __init__(self) -> None:
        """Begin now."""
        self._last = time.monotonic()

    @property
    def stale(self) -> bool:
        """Return whether they are due again on this rank."""
        return time.monotonic() - self._last >= RECONSIDER_EVERY

    def again(self, exchanges: Iterable[Choice]) -> None:
        """Look at all of them: collective, while the device is idle."""
        for exchange in exchanges:
            exchange.reconsider()
        self._last = time.monotonic()


@dataclass
class StopRequest:
    """The signal that asked for an end, 0 while none did."""

    number: int = 0

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C: the user does not want to wait for the checkpoint
        self.number = number


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Turn SIGTERM and SIGINT into a request to stop while the block runs (only in the main thread)."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request._ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def advance(
    solver: Solver,
    outputs: Outputs,
    world: World,
    target: int,
    progress: Progress,
    *,
    wall_clock: float | None = None,
    started: float | None = None,
    largest: int | None = None,
) -> str | None:
    """Run until step `target`; return None, or why it stopped before, in words, after a checkpoint was written.

    `wall_clock` (s) counts from `started` (a `time.monotonic()`). Collective: all ranks stop after the same step.
    A flow that no longer changes, where the case asks for that, stops too. The device is kept one chunk of steps, at
    most `largest`, ahead of the host.
    Raises UnstableError, with the last good checkpoint, when a field is no longer finite.
    """
    outputs.begin()
    begin, first = time.monotonic(), solver.step
    started = begin if started is None else started
    chunk, done, mark, considered = 1, first, None, begin
    with listening() as request, _telling_the_last_checkpoint(outputs):
        while solver.step < target:
            reached = solver.step
            last = min(target, outputs.next_event(reached), reached + min(chunk, largest or chunk))
            # The device gets its next steps before the host waits for what came before them.
            solver.start(last - reached)
            if reached > first:
                solver.finish(mark)
                done = reached
            outputs.settle()
            mark = solver.mark()
            outputs.take_due()
            progress.update(done, imbalance=imbalance(solver.timers, world), checkpoint=outputs.last_checkpoint)
            outputs.look()
            stale = time.monotonic() - considered >= RECONSIDER_EVERY
            chunk, reason, stale = _look(world, request, first, done, begin, started, wall_clock, stale)
            reason = outputs.settled or reason
            if stale:
                solver.finish()
                solver.reconsider()
                considered = time.monotonic()
            if reason is not None and solver.step < target:
                solver.finish()
                progress.update(solver.step)
                outputs.check()
                outputs.save()
                return reason
        solver.finish()
        progress.update(solver.step, checkpoint=outputs.last_checkpoint)
        outputs.settle()
        outputs.check_last()
    outputs.drain()
    return None


@contextmanager
def _telling_the_last_checkpoint(outputs: Outputs) -> Iterator[None]:
    """Complete what is sound when the flow is no longer so, and add to the message from where one can go on."""
    try:
        yield
    except UnstableError as error:
        with suppress(OSError):  # the disk may have refused, too: the flow is what failed first
            outputs.give_up()
        raise UnstableError(f"{error}; {_last_checkpoint(outputs)}") from None


def _look(
    world: World,
    request: StopRequest,
    first: int,
    done: int,
    begin: float,
    started: float,
    wall_clock: float | None,
    stale: bool,
) -> tuple[int, str | None, bool]:
    """Return the steps until the next look, why to stop, if so, and whether the choice of messages is `stale`."""
    now = time.monotonic()
    late = wall_clock is not None and now - started >= wall_clock
    pace = (now - begin) / max(1, done - first)
    seen, slowest, over, any_stale = world.allreduce_max(
        np.array([request.number, pace, float(late), float(stale)], np.float64)
    )
    chunk = max(1, int(LOOK_EVERY / max(slowest, 1e-9)))
    if chunk > GRAPH_STEPS:  # whole graphs: steps one by one take the host longer
        chunk -= chunk % GRAPH_STEPS
    if seen:
        return chunk, f"signal {signal.Signals(int(seen)).name}", bool(any_stale)
    return chunk, f"wall-clock limit of {wall_clock:g} s" if over else None, bool(any_stale)


def _last_checkpoint(outputs: Outputs) -> str:
    if outputs.last_checkpoint is None:
        return "no checkpoint was written"
    return f"last good checkpoint: {outputs.checkpoint_path} of step {outputs.last_checkpoint}"
