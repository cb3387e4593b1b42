# SPDX-License-Identifier: BSD-3-Clause
"""What a timed step showed: spans of time on one rank, plain data that ranks can send each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from seiche.observe.stage import Messages


class Span(NamedTuple):
    """A stage, or work of another stream (`beside`), from `begin` to `end`, seconds since its step began."""

    name: str
    begin: float
    end: float
    useful: bool = True
    messages: Messages | None = None
    beside: bool = False


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of intervals (begin, end): what overlaps counts once (theory/movement, eq. 16)."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total


@dataclass(frozen=True)
class Sample:
    """Step number `step`, which began at `begin` seconds on the common time line, and its spans in order."""

    step: int
    begin: float
    spans: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        """Return the time from the first mark of the step to its last."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def useful(self) -> float:
        """Return the seconds in which at least one useful span was under way."""
        if not any(span.beside for span in self.spans):  # stages come one behind the other
            return sum(span.end - span.begin for span in self.spans if span.useful)
        return covered((span.begin, span.end) for span in self.spans if span.useful)

    @property
    def active(self) -> float:
        """Return the seconds in which at least one span was under way."""
        if not any(span.beside for span in self.spans):
            return self.seconds
        return covered((span.begin, span.end) for span in self.spans)


@dataclass(frozen=True)
class Replayed:
    """`steps` steps from number `step` on, done as one graph that began at `begin` and took `seconds`."""

    step: int
    steps: int
    begin: float
    seconds: float


@dataclass(frozen=True)
class Activity:
    """Seconds of one rank in all its steps: computing, in any stage, and of its host in stages of messages."""

    useful: float = 0.0
    active: float = 0.0
    host_messages: float = 0.0
