# SPDX-License-Identifier: BSD-3-Clause
"""Work of the host on all threads that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")


def host_threads(sharers: int = 1) -> int:
    """Return how many threads this process may use: OMP_NUM_THREADS, of several levels the outermost.

    Without it they are the cores that the process may run on, shared with other processes, `sharers` in all.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (int(asked) if asked.isdecimal() else 0) or max(1, cores // sharers)


def on_threads(work: Callable[[Piece], None], pieces: Iterable[Piece]) -> None:
    """Do the work of all pieces; it should release the interpreter's lock.

    An error, or Ctrl-C, is raised when the pieces that had begun are done: none goes on with arrays that are no more.
    """
    pool = ThreadPoolExecutor(host_threads())
    try:
        for _ in pool.map(work, pieces):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
