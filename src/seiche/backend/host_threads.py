# SPDX-License-Identifier: BSD-3-Clause
"""Host work on all threads that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import numpy.typing as npt

#: Bytes up to which one thread copies an array.
_SMALL_COPY = 1 << 20

Piece = TypeVar("Piece")


def allowed_cpus() -> frozenset[int]:
    """Return the CPUs on which this process may run."""
    return frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))


def restrict_cpus(cpus: frozenset[int]) -> bool:
    """Let all threads of this process run on `cpus` only; return whether the system permits it."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        return False
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # one that has ended
            os.sched_setaffinity(int(thread), cpus)
    return True


def host_threads(sharers: int = 1) -> int:
    """Return the number of threads that this process may use: OMP_NUM_THREADS, or its outermost level.

    If it is not set: the cores available to the process, divided among `sharers` processes.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(setting) if setting.isdecimal() else 0) or max(1, len(allowed_cpus()) // sharers)


def pieces_of(count: int) -> list[slice]:
    """Return `count` items in a few contiguous pieces for each thread."""
    size = max(1, -(-count // (4 * host_threads())))
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def copy_on_threads(target: npt.NDArray[Any], source: npt.NDArray[Any], axis: int = 0) -> None:
    """Copy `source` to `target`, of the same shape, in pieces along an axis."""

    def copy(part: slice) -> None:
        where = (*(slice(None),) * axis, part)
        target[where] = source[where]

    on_threads(copy, pieces_of(target.shape[axis]) if target.nbytes > _SMALL_COPY else [slice(None)])


def on_threads(work: Callable[[Piece], None], pieces: Iterable[Piece]) -> None:
    """Apply `work` to all pieces in threads; it should release the interpreter's lock.

    An error, or Ctrl-C, is raised after the pieces in progress are done, because they may use arrays of the caller.
    """
    items = list(pieces)
    if len(items) == 1:
        work(items[0])
        return
    pool = ThreadPoolExecutor(host_threads())
    try:
        for _ in pool.map(work, items):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
