# SPDX-License-Identifier: BSD-3-Clause
"""Time each stage of a step, on any clock, at a cost below one percent of the step.

Only some steps are timed, and marks are turned into seconds late, so that a device is never made to wait for its own
stopwatch. Steps that are replayed as a graph show their time as a whole; now and then one step goes stage by stage.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from seiche.observe.sample import Activity, Replayed, Sample, Span
from seiche.observe.stage import Stage

#: Timed steps kept before their marks are turned into seconds: the oldest is then long past, so that no one waits.
_PENDING_LIMIT = 256
#: Samples kept for looks at the run as a whole; older ones are forgotten unless `keep` says otherwise.
SAMPLES_KEPT = 128
#: Between graphs a step by stages costs several times one in a graph: it comes after twice as many steps as the last
#: time, up to so many.
_SELDOM = 2048
#: One of so many replays of a graph is timed.
_REPLAYS = 8
#: How often the clocks of host and device are read one after the other, to find when nothing came between.
_ALIGNMENTS = 5


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
    """Seconds that one stage took in the timed steps that had it, as often as it came in one of them together."""

    name: str
    samples: int = 0
    total: float = 0.0
    minimum: float = float("inf")
    maximum: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean seconds a step, 0 before the first sample."""
        return self.total / self.samples if self.samples else 0.0


class _Timed:
    """Marks of a step on its way: one before and one after every stage, and pairs on other streams."""

    def __init__(self, step: int, stages: Sequence[Stage]) -> None:
        self.step, self.stages = step, stages
        self.marks: list[Any] = []
        self.beside: list[tuple[str, Any, Any, bool]] = []
        #: Host seconds in stages that are not useful; a device does them while the host is elsewhere, or waits.
        self.host = 0.0


class StageTimers:
    """Seconds a stage, sampled; and the steps and wall seconds of the run as a whole, complete.

    `timers.step(stages)` runs one step and times it when its turn comes, `timers.replay(n, launch)` many as a graph. A
    driver that does steps in another way calls `timers.count(n)`.

    Args:
        clock: what gives the time; the host's clock when left out.
        every: one step in `every` is timed. The first `skip` steps (compilation, first touch) never are.
        skip: steps at the start that are not timed.

    Attributes:
        steps: steps so far, of which `replayed` in graphs.
        waited: seconds that the host waited for the device.
        samples: the last timed steps.
        replays: the last timed graphs.
        notes: what the host did last (name, begin, end), seconds on the time line of the samples (for a trace).
    """

    def __init__(self, clock: Clock | None = None, *, every: int = 16, skip: int = 1) -> None:
        """Start with no steps and no samples."""
        if every < 1 or skip < 0:
            raise ValueError(f"every = {every} and skip = {skip}: need every >= 1 and skip >= 0")
        self.every, self.skip = every, skip
        self._clock: Clock = clock if clock is not None else WallClock()
        self._wall = WallClock()
        #: The mark that later ones are told from, and the seconds of the common time line at which it was.
        self._origin: tuple[Any, float] | None = None
        self._epoch: int | None = None
        self.notes: deque[tuple[str, float, float]] = deque(maxlen=0)
        self.reset()

    def reset(self) -> None:
        """Forget samples, steps and seconds (after a warm-up)."""
        self.steps = self.replayed = 0
        self.waited = 0.0
        self.samples: deque[Sample] = deque(maxlen=SAMPLES_KEPT)
        self.replays: deque[Replayed] = deque(maxlen=SAMPLES_KEPT)
        self._pending: list[_Timed | tuple[int, int, Any, Any]] = []
        self._past = 0
        self._now: _Timed | None = None
        #: Samples, sum, least and greatest seconds of every stage.
        self._times: dict[str, tuple[int, float, float, float]] = {}
        self._useful, self._active, self._host, self._sampled = 0.0, 0.0, 0.0, 0
        self._replay_seconds, self._replay_steps, self._launched = 0.0, 0, 0
        self._due, self._pause = self.skip, self.every
        self._seconds = 0.0

    @property
    def due(self) -> bool:
        """Return whether the step about to be done is one that is timed."""
        return self.steps >= self._due

    @property
    def by_stages(self) -> bool:
        """Return whether the step under way is timed stage by stage."""
        return self._now is not None

    @property
    def seconds(self) -> float:
        """Return the wall seconds inside `running()` blocks so far (all steps, timed or not)."""
        return self._seconds

    def keep(self, limit: int) -> None:
        """Keep the last `limit` samples instead of SAMPLES_KEPT, and as many notes of the host (for a trace)."""
        self.samples, self.replays = deque(self.samples, maxlen=limit), deque(self.replays, maxlen=limit)
        self.notes = deque(self.notes, maxlen=limit)

    def align(self, epoch: int) -> None:
        """Tell samples and notes from `epoch` (nanoseconds of the host's clock) on; now, while the device is idle.

        A second call leaves the first epoch, and sees to it that the clocks of host and device agree again.
        """
        self._resolve(len(self._pending))
        self._epoch = epoch if self._epoch is None else self._epoch
        tries = []
        for _ in range(_ALIGNMENTS):  # a process that is set aside between two readings would be off by so long
            before, mark, after = self._wall.record(), self._clock.record(), self._wall.record()
            tries.append((self._wall.elapsed(before, after), mark, after))
        _, mark, after = min(tries, key=lambda one: one[0])
        self._origin = (mark, self._wall.elapsed(self._epoch, after))

    def note(self, name: str, begin: int, end: int) -> None:
        """Keep what the host did from `begin` to `end`, nanoseconds of its clock, if a trace is wanted."""
        if self.notes.maxlen and self._epoch is not None:
            self.notes.append((name, self._wall.elapsed(self._epoch, begin), self._wall.elapsed(self._epoch, end)))

    def step(self, stages: Sequence[Stage]) -> None:
        """Do the actions of one step in order, timing each if this step is due."""
        if self.due:
            now = self._now = _Timed(self.steps, stages)
            now.marks.append(self._clock.record())
            for stage in stages:
                begin = self._wall.record()
                stage.action()
                if not stage.useful:
                    now.host += self._wall.elapsed(begin, self._wall.record())
                now.marks.append(self._clock.record())
            self._now = None
            self._add(now)
            self._due = self.steps + self.every
        else:
            for stage in stages:
                stage.action()
        self.steps += 1

    def replay(self, steps: int, launch: Callable[[], None]) -> None:
        """Do `steps` steps by `launch`, a graph of them, and time one such launch now and then."""
        # The first one captures what it launches.
        if self._launched % _REPLAYS == 1:
            begin = self._clock.record()
            launch()
            self._add((self.steps, steps, begin, self._clock.record()))
        else:
            launch()
        self._launched += 1
        self.replayed += steps
        self.count(steps)

    def count(self, steps: int) -> None:
        """Add steps that were done without `step` (a native loop)."""
        if self.steps + steps > self._due:
            self._pause = min(2 * self._pause, max(_SELDOM, self.every))
            self._due = self.steps + max(self._pause, self.every)
        self.steps += steps

    @contextmanager
    def beside(self, name: str, *, useful: bool = False) -> Iterator[None]:
        """Time the block, work of another stream that is current in it, as part of the step if that is timed.

        `useful` says that it computes.
        """
        now = self._now
        if now is None:
            yield
            return
        begin = self._clock.record()
        yield
        now.beside.append((name, begin, self._clock.record(), useful))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the wall time of the block to `seconds`; the block must end with the device idle to be honest."""
        begin = self._wall.record()
        try:
            yield
        finally:
            end = self._wall.record()
            self._seconds += self._wall.elapsed(begin, end)
            self.note("steps", begin, end)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Add the wall time of the block to `waited`."""
        begin = self._wall.record()
        try:
            yield
        finally:
            end = self._wall.record()
            self.waited += self._wall.elapsed(begin, end)
            self.note("wait for device", begin, end)

    def times(self) -> dict[str, StageTime]:
        """Return the time of every stage seen, in the order first seen; waits for the marks still open on a device."""
        self._resolve(len(self._pending))
        return {name: StageTime(name, *numbers) for name, numbers in self._times.items()}

    def activity(self) -> Activity:
        """Return how long this rank was useful and active in all its steps, as the samples tell.

        Steps in graphs take the time of the timed graphs, of which the same part is useful as of the steps that were
        timed by stages.
        """
        self._resolve(len(self._pending))
        if not self._sampled:
            return Activity()
        mean = self._active / self._sampled
        graph = self._replay_seconds / self._replay_steps if self._replay_steps else mean
        single = self.steps - self.replayed
        active = single * mean + self.replayed * graph
        share = self._useful / self._active if self._active > 0 else 0.0
        return Activity(active * share, active, single * self._host / self._sampled)

    def useful_so_far(self) -> float:
        """Return the mean useful seconds of a timed step, of those before the last call: it waits for no device."""
        self._resolve(min(self._past, len(self._pending)))
        self._past = len(self._pending)
        return self._useful / self._sampled if self._sampled else 0.0

    def _add(self, timed: _Timed | tuple[int, int, Any, Any]) -> None:
        self._pending.append(timed)
        if len(self._pending) >= _PENDING_LIMIT:
            self._resolve(_PENDING_LIMIT // 2)

    def _resolve(self, count: int) -> None:
        """Turn the oldest marks into seconds."""
        for timed in self._pending[:count]:
            if isinstance(timed, _Timed):
                self._take(timed)
            else:
                step, steps, begin, end = timed
                seconds = self._clock.elapsed(begin, end)
                self._replay_seconds += seconds
                self._replay_steps += steps
                self.replays.append(Replayed(step, steps, self._at(begin), seconds))
        del self._pending[:count]
        self._past = max(0, self._past - count)

    def _take(self, timed: _Timed) -> None:
        first = timed.marks[0]
        ends = [self._clock.elapsed(first, mark) for mark in timed.marks[1:]]
        spans, sums = [], dict[str, float]()
        for stage, begin, end in zip(timed.stages, [0.0, *ends[:-1]], ends, strict=True):
            sums[stage.name] = sums.get(stage.name, 0.0) + end - begin
            spans.append(Span(stage.name, begin, end, stage.useful, stage.messages))
        for name, seconds in sums.items():
            samples, total, least, most = self._times.get(name, (0, 0.0, seconds, seconds))
            self._times[name] = (samples + 1, total + seconds, min(least, seconds), max(most, seconds))
        for name, begin_mark, end_mark, useful in timed.beside:
            begin, end = self._clock.elapsed(first, begin_mark), self._clock.elapsed(first, end_mark)
            spans.append(Span(name, begin, end, useful, None, beside=True))
        sample = Sample(timed.step, self._at(first), tuple(spans))
        self.samples.append(sample)
        self._sampled += 1
        self._useful += sample.useful
        self._active += sample.active
        self._host += timed.host

    def _at(self, mark: Any) -> float:
        """Return the place of a mark on the common time line, told from the mark before: clocks lose digits far off."""
        if self._origin is None:
            self._origin = (mark, 0.0)
        before, seconds = self._origin
        seconds += self._clock.elapsed(before, mark)
        self._origin = (mark, seconds)
        return seconds


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
