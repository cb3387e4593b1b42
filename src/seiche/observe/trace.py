# SPDX-License-Identifier: BSD-3-Clause
"""Time line of a run as JSON for Perfetto (https://ui.perfetto.dev) and chrome://tracing.

One process per rank, one track per stream: stages of the timed steps, work in the stream of the exchange, graphs, and
host activities. Arrows are messages. A trace stores samples of the timers; it needs no further measurements.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seiche.domain.clocks import CommonClock
from seiche.domain.world import World
from seiche.io import files
from seiche.observe.sample import Replayed, Sample
from seiche.observe.timers import STORED_SAMPLES, StageTimers

#: First key of the file; only files that begin with it are replaced.
SCHEMA = "seiche-trace-1"
_FIRST_CHARACTERS = f'{{"schema": "{SCHEMA}"'
#: Stored samples of each kind per rank, about 3 MB of JSON.
MAX_STORED_SAMPLES = 2000
#: Minimum number of written samples, and maximum fraction of the run time spent on writing additional samples.
_MIN_SAMPLES, _MAX_COST = STORED_SAMPLES, 0.01
#: Samples and repetitions in the measurement of the cost of writing.
_COST_SAMPLES, _COST_TRIALS = 8, 3

_STAGES, _OVERLAP, _HOST = 0, 1, 2
_TRACKS = {_STAGES: "stages", _OVERLAP: "exchange", _HOST: "host"}

Event = dict[str, Any]
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class RankTrace:
    """Samples of one rank; `host_activities` are (name, begin, end) in seconds on the common time line.

    `rate` is the measured rate of that line relative to the clock of the rank, for which the times are corrected.
    """

    host: str
    samples: tuple[Sample, ...]
    replays: tuple[Replayed, ...] = ()
    host_activities: tuple[tuple[str, float, float], ...] = ()
    rate: float = 1.0


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Reject a path with a file that is not a trace.

    Raises:
        CaseError: there is such a file.
    """
    message = f"output.trace: {path} exists and is not a trace; choose another name"
    files.check_replaceable(path, _FIRST_CHARACTERS, f"output.trace: cannot write {path}", message)


def gather_trace(
    timers: StageTimers, world: World, elapsed: float, clock: CommonClock | None = None
) -> list[RankTrace] | None:
    """Return the samples of all ranks on the common time line on rank 0, None elsewhere (collective).

    The number of samples is limited, so that writing them on one rank takes at most a hundredth of the `elapsed`
    seconds. `clock` is the measured time line; by default all ranks have one clock.
    """
    timers.times()  # convert recorded events to times
    cost, max_elapsed = world.allreduce_sum(np.array([_cost(timers.samples)])), world.allreduce_max(np.array([elapsed]))
    count = sample_limit(float(cost[0]), float(max_elapsed[0]))

    def at(seconds: float) -> float:
        return by_host(timers.on_host_clock(seconds))

    def by_host(seconds: float) -> float:
        return seconds if clock is None else clock.corrected(seconds)

    samples = tuple(_moved(sample, at) for sample in tuple(timers.samples)[-count:])
    replays = tuple(
        Replayed(item.step, item.steps, at(item.begin), at(item.begin + item.seconds) - at(item.begin))
        for item in tuple(timers.replays)[-count:]
    )
    notes = tuple(timers.notes)[-count:]
    activities = tuple((name, by_host(begin), by_host(end)) for name, begin, end in notes)
    rate = 1.0 if clock is None else clock.rate
    return world.gather(RankTrace(platform.node(), samples, replays, activities, rate))


def _moved(sample: Sample, at: Callable[[float], float]) -> Sample:
    """Return a sample whose instants are converted by `at`."""
    begin = at(sample.begin)
    spans = (
        span._replace(begin=at(sample.begin + span.begin) - begin, end=at(sample.begin + span.end) - begin)
        for span in sample.spans
    )
    return Sample(sample.step, begin, tuple(spans))


def sample_limit(cost: float, elapsed: float) -> int:
    """Return the number of written samples per rank if one sample of all ranks costs `cost` seconds."""
    return max(
        _MIN_SAMPLES, min(MAX_STORED_SAMPLES, int(_MAX_COST * elapsed / cost) if cost > 0 else MAX_STORED_SAMPLES)
    )


def _cost(samples: Iterable[Sample]) -> float:
    """Return the time in seconds to write one sample of this rank, with the arrows of received messages."""
    recent = tuple(samples)[-_COST_SAMPLES:]
    if not recent:
        return 0.0
    spans = sum(1 + len(sample.spans) for sample in recent)
    arrows = sum(len(span.messages.received) for sample in recent for span in sample.spans if span.messages is not None)
    min_elapsed = np.inf
    for _ in range(_COST_TRIALS):
        begin = time.perf_counter()
        for event in _slices(0, RankTrace("", recent)):
            _encode(event)
        min_elapsed = min(min_elapsed, time.perf_counter() - begin)
    return float(min_elapsed) / len(recent) * (1 + 2 * arrows / spans)


def trace_events(ranks: Sequence[RankTrace]) -> Iterator[Event]:
    """Yield the events of the trace: names, slices and arrows; times in microseconds."""
    for rank, trace in enumerate(ranks):
        title = f"rank {rank} ({trace.host})"
        yield {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": title}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}}
        for track, name in _TRACKS.items():
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": track, "args": {"name": name}}
        yield from _slices(rank, trace)
    yield from _arrows(ranks)


def write_trace(path: str | os.PathLike[str], ranks: Sequence[RankTrace], **metadata: Any) -> None:
    """Write the trace, with `metadata` as `otherData`; it replaces an existing file when it is complete.

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(
            f'{_FIRST_CHARACTERS}, "displayTimeUnit": "ns", "otherData": {json.dumps(metadata)}, "traceEvents": ['
        )
        for number, event in enumerate(trace_events(ranks)):
            file.write((",\n" if number else "\n") + _encode(event))
        file.write("\n]}\n")


def _slice(name: str, rank: int, track: int, begin: float, seconds: float, **arguments: Any) -> Event:
    event = {"ph": "X", "name": name, "pid": rank, "tid": track, "ts": _us(begin), "dur": _us(max(0.0, seconds))}
    return {**event, "args": arguments} if arguments else event


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _slices(rank: int, trace: RankTrace) -> Iterator[Event]:
    for sample in trace.samples:
        yield _slice(f"step {sample.step}", rank, _STAGES, sample.begin, sample.seconds)
        for span in sample.spans:
            track = _OVERLAP if span.overlap else _STAGES
            yield _slice(span.name, rank, track, sample.begin + span.begin, span.end - span.begin, step=sample.step)
    for graph in trace.replays:
        name = f"steps {graph.step} to {graph.step + graph.steps - 1} as a graph"
        yield _slice(name, rank, _STAGES, graph.begin, graph.seconds)
    for name, begin, end in trace.host_activities:
        yield _slice(name, rank, _HOST, begin, end - begin)


def _arrows(ranks: Sequence[RankTrace]) -> Iterator[Event]:
    """Yield an arrow for each message, from the start of the sending stage to the end of the receiving stage.

    Both stages must have been timed. The message is sent and received at some time within them.
    """
    spans = [
        (rank, sample, span, span.messages)
        for rank, trace in enumerate(ranks)
        for sample in trace.samples
        for span in sample.spans
        if span.messages is not None
    ]
    unmatched_sends: dict[tuple[int, str, int, int], list[tuple[float, int]]] = {}
    for rank, sample, span, messages in spans:
        for peer, size in messages.sent:
            key = (sample.step, messages.channel, rank, peer)
            unmatched_sends.setdefault(key, []).append((sample.begin + span.begin, size))
    number = 0
    for rank, sample, span, messages in spans:
        for peer, _ in messages.received:
            pending = unmatched_sends.get((sample.step, messages.channel, peer, rank))
            begin, size = pending.pop(0) if pending else (0.0, 0)
            if size:
                number += 1
                common = {"cat": "message", "name": messages.channel, "id": number, "tid": _STAGES}
                yield {**common, "ph": "s", "pid": peer, "ts": _us(begin), "args": {"bytes": size}}
                yield {**common, "ph": "f", "bp": "e", "pid": rank, "ts": _us(sample.begin + span.end)}
