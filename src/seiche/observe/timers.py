# SPDX-License-Identifier: BSD-3-Clause
"""Time each stage of a step, on any clock, at a cost below one percent of the step.

Only every `every`-th step is timed, and marks are turned into seconds late, so that a device is never made to wait for
its own stopwatch. The parallel efficiencies follow the POP model (https://pop-coe.eu/node/69).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.observe.stage import Stage

#: Marks kept before they are turned into seconds: the oldest is then long past, so that reading it does not wait.
_PENDING_LIMIT = 512


class Clock(Protocol):
    """What gives the time; a GPU backend hands in one whose marks are events on its stream."""

    def record(self) -> Any:
        """Return a mark for now (a device: for the moment its stream gets there) without waiting."""

    def elapsed(self, begin: Any, end: Any) -> float:
        """Return the seconds between two marks, waiting for the device to reach `end` if it has not."""


class WallClock:
    """The host's monotonic clock; marks are nanoseconds."""

    def record(self) -> int:
        """Return the time in nanoseconds."""
        return time.perf_counter_ns()

    def elapsed(self, begin: int, end: int) -> float:
        """Return the seconds from `begin` to `end`."""
        return (end - begin) * 1e-9


@dataclass(frozen=True)
class StageTime:
    """Seconds that one stage took in the steps that were timed."""

    name: str
    samples: int = 0
    total: float = 0.0
    minimum: float = float("inf")
    maximum: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean seconds a step, 0 before the first sample."""
        return self.total / self.samples if self.samples else 0.0

    def with_sample(self, seconds: float) -> StageTime:
        """Return this time with one more sample."""
        return StageTime(
            self.name,
            self.samples + 1,
            self.total + seconds,
            min(self.minimum, seconds),
            max(self.maximum, seconds),
        )


class StageTimers:
    """Seconds a stage, sampled; and the steps and wall seconds of the run as a whole, complete.

    `timers.step(stages)` runs one step and times it when its turn comes. A driver that does not run stages one by one
    (a captured graph, a loop in native code) calls `timers.count(n)` for the steps it did.

    Args:
        clock: what gives the time; the host's clock when left out.
        every: one step in `every` is timed. The first `skip` steps (compilation, first touch) never are.
        clocks: clocks of single stages, by name, where they differ (a host stage among device stages).
        skip: steps at the start that are not timed.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        every: int = 16,
        clocks: Mapping[str, Clock] | None = None,
        skip: int = 1,
    ) -> None:
        """Start with no steps and no samples."""
        if every < 1 or skip < 0:
            raise ValueError(f"every = {every} and skip = {skip}: need every >= 1 and skip >= 0")
        self.every, self.skip = every, skip
        self.steps = 0
        self._clock: Clock = clock if clock is not None else WallClock()
        self._clocks = dict(clocks or {})
        self._open: dict[str, Any] = {}
        self._pending: list[tuple[str, Any, Any]] = []
        self._times: dict[str, StageTime] = {}
        self._wall = WallClock()
        self._seconds = 0.0

    @property
    def due(self) -> bool:
        """Return whether the step about to be done is one that is timed."""
        return self.steps >= self.skip and (self.steps - self.skip) % self.every == 0

    @property
    def seconds(self) -> float:
        """Return the wall seconds inside `running()` blocks so far (all steps, timed or not)."""
        return self._seconds

    def step(self, stages: Sequence[Stage]) -> None:
        """Do the actions of one step in order, timing each if this step is due."""
        if self.due:
            for stage in stages:
                self.start(stage.name)
                stage.action()
                self.stop(stage.name)
        else:
            for stage in stages:
                stage.action()
        self.steps += 1

    def count(self, steps: int) -> None:
        """Add steps that were done without `step` (a replayed graph, a native loop)."""
        self.steps += steps

    def start(self, name: str) -> None:
        """Mark the beginning of stage `name`; stages may overlap."""
        self._open[name] = self._clock_of(name).record()

    def stop(self, name: str) -> None:
        """Mark the end of stage `name`.

        Raises:
            KeyError: `name` was not started.
        """
        begin = self._open.pop(name)
        self._pending.append((name, begin, self._clock_of(name).record()))
        if len(self._pending) >= _PENDING_LIMIT:
            self._resolve(self._pending[: _PENDING_LIMIT // 2])
            del self._pending[: _PENDING_LIMIT // 2]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the wall time of the block to `seconds`; the block must end with the device idle to be honest."""
        begin = self._wall.record()
        try:
            yield
        finally:
            self._seconds += self._wall.elapsed(begin, self._wall.record())

    def times(self) -> dict[str, StageTime]:
        """Return the time of every stage seen, in the order first seen; waits for the marks still open on a device."""
        self._resolve(self._pending)
        self._pending.clear()
        return dict(self._times)

    def reset(self) -> None:
        """Forget samples, steps and seconds (after a warm-up)."""
        self._pending.clear()
        self._open.clear()
        self._times.clear()
        self.steps, self._seconds = 0, 0.0

    def _clock_of(self, name: str) -> Clock:
        return self._clocks.get(name, self._clock)

    def _resolve(self, marks: Iterable[tuple[str, Any, Any]]) -> None:
        for name, begin, end in marks:
            before = self._times.get(name, StageTime(name))
            self._times[name] = before.with_sample(self._clock_of(name).elapsed(begin, end))


@dataclass(frozen=True)
class Efficiency:
    """POP efficiencies, each in 0..1; `parallel = load_balance * communication`."""

    load_balance: float
    communication: float
    parallel: float


def efficiency(useful: npt.ArrayLike, elapsed: float) -> Efficiency:
    """Return the POP efficiencies of ranks that computed `useful` seconds (n_ranks,) out of `elapsed` wall seconds.

    load balance = mean(useful) / max(useful), communication efficiency = max(useful) / elapsed.

    Raises:
        ValueError: no rank, no useful time, or a negative time.
    """
    seconds = np.asarray(useful, np.float64)
    if not seconds.size or seconds.min() < 0 or seconds.max() <= 0 or elapsed <= 0:
        raise ValueError(f"efficiency needs positive seconds: useful {seconds.tolist()}, elapsed {elapsed}")
    longest = float(seconds.max())
    balance, communication = float(seconds.mean()) / longest, min(1.0, longest / elapsed)
    return Efficiency(balance, communication, balance * communication)


def mean_over_ranks(ranks: Sequence[Mapping[str, StageTime]]) -> dict[str, StageTime]:
    """Return for every stage the mean over ranks of samples and total, the least minimum and the greatest maximum."""
    names = dict.fromkeys(name for times in ranks for name in times)
    result: dict[str, StageTime] = {}
    for name in names:
        rows = [times[name] for times in ranks if name in times]
        samples = max(row.samples for row in rows)
        mean = sum(row.mean for row in rows) / len(ranks)
        result[name] = StageTime(
            name, samples, mean * samples, min(row.minimum for row in rows), max(row.maximum for row in rows)
        )
    return result
