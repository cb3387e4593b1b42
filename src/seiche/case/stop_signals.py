# SPDX-License-Identifier: BSD-3-Clause
"""SIGTERM and SIGINT: outside a run they end a command at once, during a run they request its end.

Any first signal requests a checkpoint. Only a second SIGINT (Ctrl-C) ends a run without one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from weakref import ref

from seiche.domain.world import World
from seiche.start import signals_handled_by


class InterruptError(BaseException):
    """A signal `number` ends a command before its work is complete; `status` is the exit status, 128 + `number`."""

    def __init__(self, number: int, text: str = "interrupted by signal {}") -> None:
        """Store the message `text`, in which {} stands for the name of the signal."""
        super().__init__(text.format(signal.Signals(number).name))
        self.number, self.status = number, 128 + number


@dataclass(eq=False)
class StopRequest:
    """Number of the first received stop signal, 0 if none."""

    number: int = 0
    _interrupted: bool = False

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        """Receive a signal; the second SIGINT raises KeyboardInterrupt."""
        if number == signal.SIGINT and self._interrupted:
            raise KeyboardInterrupt
        self._interrupted |= number == signal.SIGINT
        self.number = self.number or number

    def clear(self) -> None:
        """Forget all signals, after the end of a run."""
        self.number, self._interrupted = 0, False


class _CommandSignals:
    """Handler of the signals of a command; as long as a request exists, they no longer end it."""

    def __init__(self) -> None:
        self.request: Callable[[], StopRequest | None] = lambda: None
        self.number = 0

    def receive(self, number: int, frame: FrameType | None) -> None:
        if (request := self.request()) is not None:
            request.receive(number)
        else:
            self.number = number  # an exception in a finalizer would be lost
            raise InterruptError(number)


@contextmanager
def command_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT raise InterruptError inside the block (only in the main thread)."""
    with signals_handled_by(_CommandSignals().receive):
        yield


def defer_signals(request: StopRequest, world: World) -> None:
    """Let signals inside a `command_signals` block become a `request` to stop, as long as it exists (collective).

    All ranks do so together: no signal ends one of them while another locks the folder.

    Raises:
        InterruptError: a signal has ended the set-up on any rank.
    """
    if (handler := _command_handler()) is not None:
        handler.request, request.number = ref(request), handler.number
    number = max(world.allgather(request.number))
    if number:
        raise InterruptError(number)


def end_deferral(request: StopRequest) -> None:
    """Let signals end the command again, after `defer_signals` with the same `request`."""
    handler = _command_handler()
    if handler is not None and handler.request() is request:
        handler.request, handler.number = lambda: None, 0


def _command_handler() -> _CommandSignals | None:
    handler = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return handler if isinstance(handler, _CommandSignals) else None


@contextmanager
def stop_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Convert SIGTERM and SIGINT into a `request` to stop inside the block (only in the main thread)."""
    request = request or StopRequest()
    with signals_handled_by(request.receive):
        yield request
