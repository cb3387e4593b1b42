# SPDX-License-Identifier: BSD-3-Clause
"""Requests to stop a run: SIGTERM and SIGINT."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Number of the received stop signal, 0 if none."""

    number: int = 0

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C ends the run without a checkpoint
        self.number = number


@contextmanager
def stop_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Convert SIGTERM and SIGINT into a `request` to stop inside the block (only in the main thread)."""
    request = request or StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    handlers = {number: signal.signal(number, request._receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
