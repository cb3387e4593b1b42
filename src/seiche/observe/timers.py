# SPDX-License-Identifier: BSD-3-Clause
"""Timers of the stages of a step, for any clock, with an overhead below one percent of a step.

Only a sample of steps is timed. Marks are converted to seconds later, to avoid waiting for a device. Steps replayed
as a graph are timed as a whole; occasionally one step runs stage by stage.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from seiche.observe.alignment import Alignment
from seiche.observe.preparation import Preparation
from seiche.observe.sample import Activity, Replayed, Sample, Span
from seiche.observe.stage import Stage

#: Number of timed steps at which the oldest marks are converted to seconds; the device has passed these long before.
_PENDING_LIMIT = 256
#: Default number of stored samples; `set_sample_limit` changes it.
STORED_SAMPLES = 128
#: Among graphs a step by stages is slow; the interval between timed steps therefore doubles up to this number.
_MAX_SAMPLING_INTERVAL = 2048
#: One of this number of graph replays is timed.
_REPLAY_SAMPLING = 8
#: Readings of the host and device clocks, of which the fastest counts.
_ALIGNMENTS = 5


class Clock(Protocol):
    """A source of time; the clock of a GPU backend records events on its stream.

    The optional attribute `on_host` is true if the work of a step is complete when the step returns.
    """

    def record(self) -> Any:
        """Return a mark of the present time (on a device: when its stream reaches it) without waiting."""

    def elapsed(self, begin: Any, end: Any) -> float:
        """Return the seconds between two marks; wait until the device has reached `end`."""


class WallClock:
    """The host's monotonic clock; marks are nanoseconds."""

    on_host = True

    def record(self) -> int:
        """Return the time in nanoseconds."""
        return time.perf_counter_ns()

    def elapsed(self, begin: int, end: int) -> float:
        """Return the seconds from `begin` to `end`."""
        return (end - begin) * 1e-9


@dataclass(frozen=True)
class StageTime:
    """Seconds per step of one stage in the timed steps that have it; repeated occurrences in a step are added."""

    name: str
    samples: int = 0
    total: float = 0.0
    minimum: float = float("inf")
    maximum: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean seconds per step, 0 before the first sample."""
        return self.total / self.samples if self.samples else 0.0


class _StepMarks:
    """Marks of the present step: before and after every stage, and pairs on other streams."""

    def __init__(self, step: int, stages: Sequence[Stage]) -> None:
        self.step, self.stages = step, stages
        self.marks: list[Any] = []
        self.overlaps: list[tuple[str, Any, Any, bool]] = []
        #: Host seconds in stages that are not useful.
        self.host = 0.0


class StageTimers:
    """Sampled seconds of each stage, and the total steps and wall seconds of a run.

    `timers.step(stages)` runs one step and times it if it is due, `timers.replay(n, launch)` runs `n` steps as a graph.
    Drivers with another way of running steps call `timers.count(n)`.

    Args:
        clock: source of time; the host clock by default.
        every: one step in `every` is timed.
        skip: number of initial steps without timing (compilation, first touch).
        label: returns the context in which a stage of this name runs, such as a range of a profiler.

    Attributes:
        steps: number of steps, of which `replayed` in graphs.
        samples: the last timed steps.
        replays: the last timed graphs.
        preparation: host time in which steps were prepared.
        notes: last host activities (name, begin, end), seconds on the common time line (for a trace).
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        every: int = 16,
        skip: int = 1,
        label: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        if every < 1 or skip < 0:
            raise ValueError(f"every = {every}, skip = {skip}: expected every >= 1 and skip >= 0")
        self.every, self.skip, self._label = every, skip, label
        self._clock: Clock = clock if clock is not None else WallClock()
        self._on_host = bool(getattr(self._clock, "on_host", False))
        self._wall = WallClock()
        #: Reference mark, and its seconds on the common time line.
        self._origin: tuple[Any, float] | None = None
        self._epoch: int | None = None
        self._alignment = Alignment()
        self.notes: deque[tuple[str, float, float]] = deque(maxlen=0)
        self.reset()

    def reset(self) -> None:
        """Discard samples, steps and seconds (after a warm-up)."""
        self.steps = self.replayed = 0
        self.samples: deque[Sample] = deque(maxlen=STORED_SAMPLES)
        self.replays: deque[Replayed] = deque(maxlen=STORED_SAMPLES)
        self._pending: list[_StepMarks | tuple[int, int, Any, Any]] = []
        self._previous_pending = 0
        self._current: _StepMarks | None = None
        #: Samples, sum, minimum and maximum seconds of every stage.
        self._times: dict[str, tuple[int, float, float, float]] = {}
        self._useful, self._active, self._host_seconds, self._sampled_steps = 0.0, 0.0, 0.0, 0
        self._replay_seconds, self._replay_steps, self._launched_graphs = 0.0, 0, 0
        #: Host nanoseconds of the first `skip` steps, and of all others.
        self._first_time, self._step_time = 0, 0
        self.preparation = Preparation()
        self._next_sample, self._interval = self.skip, self.every
        #: Wall seconds of blocks by name.
        self._seconds = dict.fromkeys(("steps", "wait for device"), 0.0)

    @property
    def is_sample_due(self) -> bool:
        """Return whether the next step will be timed."""
        return self.steps >= self._next_sample

    @property
    def timing_stages(self) -> bool:
        """Return whether the present step is timed stage by stage."""
        return self._current is not None

    @property
    def seconds(self) -> float:
        """Return the wall seconds inside `running()` blocks (all steps, timed or not)."""
        return self._seconds["steps"]

    @property
    def device_wait(self) -> float:
        """Return the wall seconds inside `waiting()` blocks, in which the host waited for the device."""
        return self._seconds["wait for device"]

    def set_sample_limit(self, limit: int) -> None:
        """Store the last `limit` samples instead of STORED_SAMPLES, and as many notes (for a trace)."""
        self.samples, self.replays = deque(self.samples, maxlen=limit), deque(self.replays, maxlen=limit)
        self.notes = deque(self.notes, maxlen=limit)

    def align(self, epoch: int) -> None:
        """Set the zero of the time line to `epoch` (nanoseconds of the host clock); the device must be idle.

        A second call leaves the epoch unchanged and aligns the clocks of host and device again; `on_host_clock` then
        corrects the drift of the device in between.
        """
        self._resolve(len(self._pending))
        is_first, self._epoch = self._epoch is None, epoch if self._epoch is None else self._epoch
        readings = []
        for _ in range(_ALIGNMENTS):  # preemption between two readings would shift the clocks
            before, mark, after = self._wall.record(), self._clock.record(), self._wall.record()
            readings.append((self._wall.elapsed(before, after), mark, after))
        _, mark, after = min(readings, key=lambda reading: reading[0])
        host = self._wall.elapsed(self._epoch, after)
        device = host if is_first or self._on_host else self._at(mark)
        self._origin = (mark, device)
        self._alignment.add(device, host)

    def on_host_clock(self, seconds: float) -> float:
        """Return the time by the host clock, s, of a time of `samples` or `replays`, since the epoch."""
        return seconds if self._on_host else self._alignment.host_seconds(seconds)

    def note(self, name: str, begin: int, end: int) -> None:
        """Store a host activity from `begin` to `end` (nanoseconds of the host clock) if there is a trace."""
        if self.notes.maxlen and self._epoch is not None:
            self.notes.append((name, self._wall.elapsed(self._epoch, begin), self._wall.elapsed(self._epoch, end)))

    def step(self, stages: Sequence[Stage]) -> None:
        """Run the stages of one step in order; time each if the step is to be sampled."""
        begin = self._wall.record()
        self._run(stages)
        if self.steps < self.skip:
            self._first_time += self._wall.record() - begin
        else:
            self._step_time += self._wall.record() - begin
        self.steps += 1

    def _run(self, stages: Sequence[Stage]) -> None:
        if self.is_sample_due:
            marks = self._current = _StepMarks(self.steps, stages)
            marks.marks.append(self._clock.record())
            for stage in stages:
                begin = self._wall.record()
                with self._label(stage.name):
                    stage.action()
                if not stage.useful:
                    marks.host += self._wall.elapsed(begin, self._wall.record())
                marks.marks.append(self._clock.record())
            self._current = None
            self._add(marks)
            self._next_sample = self.steps + self.every
        else:
            for stage in stages:
                with self._label(stage.name):
                    stage.action()

    def replay(self, steps: int, launch: Callable[[], None]) -> None:
        """Run `steps` steps by `launch`, a graph of them; time one in `_REPLAY_SAMPLING` launches."""
        # The first launch includes the capture.
        if self._launched_graphs % _REPLAY_SAMPLING == 1:
            begin = self._clock.record()
            with self._label(f"graph of {steps} steps"):
                launch()
            self._add((self.steps, steps, begin, self._clock.record()))
        else:
            with self._label(f"graph of {steps} steps"):
                launch()
        self._launched_graphs += 1
        self.replayed += steps
        self.count(steps)

    def count(self, steps: int) -> None:
        """Add steps that ran without `step` (a native loop)."""
        if self.steps + steps > self._next_sample:
            self._interval = min(2 * self._interval, max(_MAX_SAMPLING_INTERVAL, self.every))
            self._next_sample = self.steps + max(self._interval, self.every)
        self.steps += steps

    @contextmanager
    def overlap(self, name: str, *, useful: bool = False) -> Iterator[None]:
        """Time the block, which submits work to another current stream, if the present step is timed.

        `useful`: the work computes.
        """
        marks = self._current
        if marks is None:
            yield
            return
        begin = self._clock.record()
        yield
        marks.overlaps.append((name, begin, self._clock.record(), useful))

    def host_seconds(self) -> dict[str, float]:
        """Return the seconds of the host outside sampled steps: the first steps, which allocate, and preparation."""
        times = {"first step": self._first_time, **self.preparation.times}
        return {name: time * 1e-9 for name, time in times.items()}

    def step_seconds(self) -> float:
        """Return the seconds of all steps after the first ones, estimated from samples on a device."""
        return self._step_time * 1e-9 if self._on_host else self.activity().active

    def running(self) -> AbstractContextManager[None]:
        """Add the wall time of the block to `seconds`; the device should be idle at its end."""
        return self._add_wall_time("steps")

    def waiting(self) -> AbstractContextManager[None]:
        """Add the wall time of the block to `device_wait`."""
        return self._add_wall_time("wait for device")

    @contextmanager
    def _add_wall_time(self, name: str) -> Iterator[None]:
        begin = self._wall.record()
        try:
            yield
        finally:
            end = self._wall.record()
            self.note(name, begin, end)
            self._seconds[name] += self._wall.elapsed(begin, end)

    def times(self) -> dict[str, StageTime]:
        """Return the time of every timed stage, in order of first occurrence; wait for pending marks of a device."""
        self._resolve(len(self._pending))
        return {name: StageTime(name, *values) for name, values in self._times.items()}

    def activity(self) -> Activity:
        """Return the useful and active seconds of this rank in all its steps, estimated from the samples.

        Steps in graphs count with the mean time of the timed graphs, and with the useful fraction of steps timed by
        stages.
        """
        self._resolve(len(self._pending))
        if not self._sampled_steps:
            return Activity()
        mean = self._active / self._sampled_steps
        if self._on_host:  # every step was timed as a whole
            mean = self._step_time * 1e-9 / max(1, self.steps - self.skip)
        graph = self._replay_seconds / self._replay_steps if self._replay_steps else mean
        single = self.steps - self.replayed
        active = single * mean + self.replayed * graph
        share = self._useful / self._active if self._active > 0 else 0.0
        return Activity(active * share, active, single * self._host_seconds / self._sampled_steps)

    def mean_useful_seconds(self) -> float:
        """Return the mean useful seconds of the timed steps before the last call, without waiting for a device."""
        self._resolve(min(self._previous_pending, len(self._pending)))
        self._previous_pending = len(self._pending)
        return self._useful / self._sampled_steps if self._sampled_steps else 0.0

    def _add(self, timed: _StepMarks | tuple[int, int, Any, Any]) -> None:
        self._pending.append(timed)
        if len(self._pending) >= _PENDING_LIMIT:
            self._resolve(_PENDING_LIMIT // 2)

    def _resolve(self, count: int) -> None:
        """Convert the oldest marks to seconds."""
        for timed in self._pending[:count]:
            if isinstance(timed, _StepMarks):
                self._resolve_step(timed)
            else:
                step, steps, begin, end = timed
                seconds = self._clock.elapsed(begin, end)
                self._replay_seconds += seconds
                self._replay_steps += steps
                self.replays.append(Replayed(step, steps, self._at(begin), seconds))
        del self._pending[:count]
        self._previous_pending = max(0, self._previous_pending - count)

    def _resolve_step(self, timed: _StepMarks) -> None:
        first = timed.marks[0]
        ends = [self._clock.elapsed(first, mark) for mark in timed.marks[1:]]
        spans, sums = [], dict[str, float]()
        for stage, begin, end in zip(timed.stages, [0.0, *ends[:-1]], ends, strict=True):
            sums[stage.name] = sums.get(stage.name, 0.0) + end - begin
            spans.append(Span(stage.name, begin, end, stage.useful, stage.messages))
        for name, seconds in sums.items():
            samples, total, minimum, maximum = self._times.get(name, (0, 0.0, seconds, seconds))
            self._times[name] = (samples + 1, total + seconds, min(minimum, seconds), max(maximum, seconds))
        for name, begin_mark, end_mark, useful in timed.overlaps:
            begin, end = self._clock.elapsed(first, begin_mark), self._clock.elapsed(first, end_mark)
            spans.append(Span(name, begin, end, useful, None, overlap=True))
        sample = Sample(timed.step, self._at(first), tuple(spans))
        self.samples.append(sample)
        self._sampled_steps += 1
        self._useful += sample.useful
        self._active += sample.active
        self._host_seconds += timed.host

    def _at(self, mark: Any) -> float:
        """Return the seconds of a mark on the common time line, relative to the previous mark to preserve digits."""
        if self._origin is None:
            self._origin = (mark, 0.0)
        before, seconds = self._origin
        seconds += self._clock.elapsed(before, mark)
        self._origin = (mark, seconds)
        return seconds


def mean_over_ranks(ranks: Sequence[Mapping[str, StageTime]]) -> dict[str, StageTime]:
    """Return for every stage the mean over ranks, the smallest minimum and the largest maximum."""
    result: dict[str, StageTime] = {}
    for name in dict.fromkeys(name for times in ranks for name in times):
        rows = [times[name] for times in ranks if name in times]
        samples = max(row.samples for row in rows)
        mean = sum(row.mean for row in rows) / len(ranks)
        minimum, maximum = min(row.minimum for row in rows), max(row.maximum for row in rows)
        result[name] = StageTime(name, samples, mean * samples, minimum, maximum)
    return result
