# SPDX-License-Identifier: BSD-3-Clause
"""Lines on the standard error output during long work of a command that has no steps to count."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds between two lines.
EVERY = 5.0


@contextmanager
def announced(task: str, every: float | None = None) -> Iterator[Callable[[str], None]]:
    """Write the present task and the elapsed seconds every `every` seconds, by default `EVERY`, during the block.

    The block receives a function that changes the task. Work that takes less time writes nothing.
    """
    current, ended, begin = [task], threading.Event(), time.monotonic()

    def write() -> None:
        while not ended.wait(EVERY if every is None else every):
            sys.stderr.write(f"seiche: {current[0]}, {time.monotonic() - begin:.0f} s\n")
            sys.stderr.flush()

    def change(task: str) -> None:
        current[0] = task

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield change
    finally:
        ended.set()
        thread.join()
