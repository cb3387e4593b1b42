# SPDX-License-Identifier: BSD-3-Clause
"""Wall seconds of the stages of a set-up: all work from reading a case to its first step.

Functions of any layer name their stage by `set_up_stage`, which costs nothing unless `record_set_up` is active in the
same thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

#: Context of a stage by its name, such as a range of a profiler.
Label = Callable[[str], AbstractContextManager[Any]]

#: Stages in the order of a set-up, and the name of the remaining time.
STAGES = (
    *("import", "read", "check", "voxelise", "partition", "link", "model", "pack", "solver", "compile", "upload"),
    "outputs",
)
OTHER = "other"


class SetUpTimes:
    """Seconds of the stages so far; a stage inside another one is counted only as itself.

    Attributes:
        total: seconds of the whole set-up, set at its end.
    """

    def __init__(self, show: Callable[[str], None] | None = None, label: Label = nullcontext) -> None:
        """Call `show` with the name of each stage that begins or continues; `label` is a context of each stage."""
        self.total = 0.0
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self._open: list[str] = []
        self._label, self._ranges = label, list[AbstractContextManager[Any]]()
        self._show = show or (lambda name: None)
        self._since = time.perf_counter()

    def enter(self, name: str) -> None:
        """Begin a stage, which interrupts the present one."""
        self._add()
        self._open.append(name)
        self._show(name)
        self._ranges.append(self._label(name))
        self._ranges[-1].__enter__()

    def leave(self) -> None:
        """End the present stage and continue the interrupted one."""
        self._ranges.pop().__exit__(None, None, None)
        self._add()
        self._open.pop()
        self._show(self._open[-1] if self._open else OTHER)

    def _add(self) -> None:
        now = time.perf_counter()
        if self._open:
            self._seconds[self._open[-1]] += now - self._since
        self._since = now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of the stages that took time, and of all other work."""
        result = {name: value for name, value in self._seconds.items() if value > 0.0}
        return {**result, OTHER: max(0.0, self.total - sum(result.values()))}


_current: ContextVar[SetUpTimes | None] = ContextVar("set_up", default=None)


@contextmanager
def record_set_up(show: Callable[[str], None] | None = None, label: Label = nullcontext) -> Iterator[SetUpTimes]:
    """Record the stages inside this block of this thread; inside another such block, return its record."""
    active = _current.get()
    if active is not None:
        yield active
        return
    times, begin = SetUpTimes(show, label), time.perf_counter()
    token = _current.set(times)
    try:
        yield times
    finally:
        _current.reset(token)
        times.total = time.perf_counter() - begin


@contextmanager
def set_up_stage(name: str) -> Iterator[None]:
    """Count this block, or this function as a decorator, as the stage `name`, if a set-up is recorded."""
    times = _current.get()
    if times is None:
        yield
        return
    times.enter(name)
    try:
        yield
    finally:
        times.leave()
