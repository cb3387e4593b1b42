# SPDX-License-Identifier: BSD-3-Clause
"""Host time in which steps are prepared: transfers of source signals and records, values of openings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

_NAME = "prepare steps"


class Preparation:
    """Host time of the preparation of steps.

    Attributes:
        times: nanoseconds by activity; they add up to the whole preparation.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self.times = {_NAME: 0}

    def add(self, nanoseconds: int) -> None:
        """Add host time."""
        self.times[_NAME] += nanoseconds

    @contextmanager
    def activity(self, name: str) -> Iterator[None]:
        """Count the block, whose time is also added by `add`, under a name of its own."""
        begin = perf_counter_ns()
        yield
        elapsed = perf_counter_ns() - begin
        self.times[name] = self.times.get(name, 0) + elapsed
        self.times[_NAME] -= elapsed
