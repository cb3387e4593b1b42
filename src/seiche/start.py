# SPDX-License-Identifier: BSD-3-Clause
"""Signals and memory while a command imports its modules, which takes seconds on slow file systems."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Variables in which launchers give a process its rank.
_RANK_VARIABLES = (
    *("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK"),
    "SLURM_PROCID",
)
#: New objects after which Python searches for cycles during imports; 700 by default.
_OBJECTS = 100_000
#: Seconds in which a launcher can forward the message: it stops forwarding when a rank ends.
_FORWARD_SECONDS = 0.2


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search rarely for unused cycles of objects inside the block: imports create many objects and few cycles."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def signals_during_start(program: str) -> Iterator[None]:
    """Let SIGTERM and SIGINT end the process with one line of `program`, until the block sets other handlers.

    The exit status is 130 (SIGINT) or 143 (SIGTERM); with a launcher it is that of the launcher.
    """

    def end(number: int, frame: FrameType | None) -> None:
        _end_start(program, number)

    with signals_handled_by(end):
        yield


@contextmanager
def signals_handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGTERM and SIGINT by a function inside the block (only in the main thread)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handlers = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, previous_handler in previous_handlers.items():
            signal.signal(number, previous_handler)


def _end_start(program: str, number: int) -> None:
    """End the process at once; the message is printed by one rank."""
    rank = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), None)
    if rank in (None, "0"):
        name = signal.Signals(number).name
        os.write(2, f"{program}: stopped by signal {name} during start-up; nothing was written\n".encode())
    if rank is not None:  # only an end by a signal makes a launcher end the ranks that wait for this one
        time.sleep(_FORWARD_SECONDS if rank == "0" else 3 * _FORWARD_SECONDS)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    os._exit(128 + number)
