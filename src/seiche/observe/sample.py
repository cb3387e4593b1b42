# SPDX-License-Identifier: BSD-3-Clause
"""Samples of timed steps: time spans of one rank, as plain data that can be sent to other ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from seiche.observe.stage import Messages


class Span(NamedTuple):
    """A stage, or work of another stream (`overlap`), from `begin` to `end`, seconds since the start of the step."""

    name: str
    begin: float
    end: float
    useful: bool = True
    messages: Messages | None = None
    overlap: bool = False


def union_length(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of intervals (begin, end) (theory/movement, eq. 16)."""
    total, last_end = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end > last_end:
            total += end - max(begin, last_end)
            last_end = end
    return total


@dataclass(frozen=True)
class Sample:
    """Step number `step`, which started at `begin` seconds on the common time line, and its spans in order."""

    step: int
    begin: float
    spans: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        """Return the seconds between the first and last mark of the step."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def useful(self) -> float:
        """Return the seconds with at least one active useful span."""
        if not any(span.overlap for span in self.spans):  # stages do not overlap
            return sum(span.end - span.begin for span in self.spans if span.useful)
        return union_length((span.begin, span.end) for span in self.spans if span.useful)

    @property
    def active(self) -> float:
        """Return the seconds with at least one active span."""
        if not any(span.overlap for span in self.spans):
            return self.seconds
        return union_length((span.begin, span.end) for span in self.spans)


@dataclass(frozen=True)
class Replayed:
    """One graph of `steps` steps from number `step` on, started at `begin`, with its duration in seconds."""

    step: int
    steps: int
    begin: float
    seconds: float


@dataclass(frozen=True)
class Activity:
    """Total seconds of one rank: in computation, in any stage, and spent by its host in message stages."""

    useful: float = 0.0
    active: float = 0.0
    host_messages: float = 0.0
