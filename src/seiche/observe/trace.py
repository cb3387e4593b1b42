# SPDX-License-Identifier: BSD-3-Clause
"""A run on a time line: JSON that Perfetto (https://ui.perfetto.dev) and Chrome's chrome://tracing open.

One process a rank, one track a stream: the stages of the steps that were timed, what went on beside them in the
exchange's stream, graphs, and what the host did. Arrows are messages. Nothing is measured for a trace that the timers
do not measure anyhow; it only is kept.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seiche.domain.seats import host_identity
from seiche.domain.world import World
from seiche.io import files
from seiche.observe.sample import Replayed, Sample
from seiche.observe.timers import SAMPLES_KEPT, StageTimers

#: The first key of the file; what does not begin with it is not replaced.
SCHEMA = "seiche-trace-1"
_BEGIN = f'{{"schema": "{SCHEMA}"'
#: Timed steps, graphs and doings of the host that a rank keeps: the last ones, about 3 MB of JSON.
KEPT = 2000
#: Those that are written however short the run was; more only while writing them takes this part of the run.
_LEAST, _SHARE = SAMPLES_KEPT, 0.01
#: Samples by which it is told what writing one takes, and tries of which the shortest counts.
_TRIED, _TRIES = 8, 3

_STAGES, _BESIDE, _HOST = 0, 1, 2
_TRACKS = {_STAGES: "stages", _BESIDE: "exchange", _HOST: "host"}

Event = dict[str, Any]
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class RankTrace:
    """What one rank kept; `notes` (name, begin, end) are the host's, seconds on the common time line."""

    host: str
    samples: tuple[Sample, ...]
    replays: tuple[Replayed, ...] = ()
    notes: tuple[tuple[str, float, float], ...] = ()


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """Refuse to write a trace where another file is.

    Raises:
        CaseError: there is one.
    """
    known = f"output.trace: {path} is there and is no trace; give the trace another name"
    files.refuse_foreign(path, _BEGIN, f"output.trace: cannot write {path}", known)


def common_epoch(world: World) -> int:
    """Return a moment that all ranks take for zero, in nanoseconds of this host's clock (collective).

    Processes of a host share its clock; hosts take the moment at which they leave a barrier for the same.
    """
    world.barrier()
    here = host_identity(platform.node())
    moments: list[tuple[str, int]] = world.allgather((here, time.perf_counter_ns()))
    return next(moment for host, moment in moments if host == here)


def gather_trace(timers: StageTimers, world: World, elapsed: float) -> list[RankTrace] | None:
    """Return what all ranks kept, on rank 0, None elsewhere (collective).

    One rank writes what all of them tell: of a run of `elapsed` seconds as much as takes a hundredth of it.
    """
    timers.times()  # marks that are still open
    cost, longest = world.allreduce_sum(np.array([_cost(timers.samples)])), world.allreduce_max(np.array([elapsed]))
    count = writable(float(cost[0]), float(longest[0]))
    samples, replays, notes = tuple(timers.samples), tuple(timers.replays), tuple(timers.notes)
    return world.gather(RankTrace(platform.node(), samples[-count:], replays[-count:], notes[-count:]))


def writable(cost: float, elapsed: float) -> int:
    """Return how many samples of each rank are written if one of all ranks takes `cost` seconds."""
    return max(_LEAST, min(KEPT, int(_SHARE * elapsed / cost) if cost > 0 else KEPT))


def _cost(samples: Iterable[Sample]) -> float:
    """Return the seconds that writing a sample of this rank takes, arrows of what it receives included."""
    last = tuple(samples)[-_TRIED:]
    if not last:
        return 0.0
    spans = sum(1 + len(sample.spans) for sample in last)
    arrows = sum(len(span.messages.received) for sample in last for span in sample.spans if span.messages is not None)
    least = np.inf
    for _ in range(_TRIES):
        begin = time.perf_counter()
        for event in _slices(0, RankTrace("", last)):
            _encode(event)
        least = min(least, time.perf_counter() - begin)
    return float(least) / len(last) * (1 + 2 * arrows / spans)


def trace_events(ranks: Sequence[RankTrace]) -> Iterator[Event]:
    """Yield the events of the trace: names, slices and arrows; times in microseconds."""
    for rank, kept in enumerate(ranks):
        yield {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": f"rank {rank} ({kept.host})"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}}
        for track, name in _TRACKS.items():
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": track, "args": {"name": name}}
        yield from _slices(rank, kept)
    yield from _arrows(ranks)


def write_trace(path: str | os.PathLike[str], ranks: Sequence[RankTrace], **about: Any) -> None:
    """Write the trace; what `path` held stays until it is complete. `about` is kept as `otherData`.

    Raises:
        OSError: it cannot be written.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as part, part.open("w", encoding="utf-8") as file:
        file.write(f'{_BEGIN}, "displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [')
        for number, event in enumerate(trace_events(ranks)):
            file.write(",\n" if number else "\n")
            file.write(_encode(event))
        file.write("\n]}\n")


def _slice(name: str, rank: int, track: int, begin: float, seconds: float, **arguments: Any) -> Event:
    made = {"ph": "X", "name": name, "pid": rank, "tid": track, "ts": _us(begin), "dur": _us(max(0.0, seconds))}
    return {**made, "args": arguments} if arguments else made


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _slices(rank: int, kept: RankTrace) -> Iterator[Event]:
    for sample in kept.samples:
        yield _slice(f"step {sample.step}", rank, _STAGES, sample.begin, sample.seconds)
        for span in sample.spans:
            track = _BESIDE if span.beside else _STAGES
            yield _slice(span.name, rank, track, sample.begin + span.begin, span.end - span.begin, step=sample.step)
    for graph in kept.replays:
        name = f"steps {graph.step} to {graph.step + graph.steps - 1} as a graph"
        yield _slice(name, rank, _STAGES, graph.begin, graph.seconds)
    for name, begin, end in kept.notes:
        yield _slice(name, rank, _HOST, begin, end - begin)


def _arrows(ranks: Sequence[RankTrace]) -> Iterator[Event]:
    """Yield an arrow for each message from the begin of the stage that sent it to the end of the one it arrived in.

    Both must have been timed. A message leaves and arrives somewhere inside these stages.
    """
    departures: dict[tuple[int, str, int, int], list[tuple[float, int]]] = {}
    for rank, kept in enumerate(ranks):
        for sample in kept.samples:
            for span in sample.spans:
                if span.messages is not None:
                    for peer, size in span.messages.sent:
                        key = (sample.step, span.messages.channel, rank, peer)
                        departures.setdefault(key, []).append((sample.begin + span.begin, size))
    number = 0
    for rank, kept in enumerate(ranks):
        for sample in kept.samples:
            for span in sample.spans:
                if span.messages is None:
                    continue
                for peer, _ in span.messages.received:
                    left = departures.get((sample.step, span.messages.channel, peer, rank))
                    if not left:
                        continue
                    begin, size = left.pop(0)
                    if not size:
                        continue
                    number += 1
                    about = {"cat": "message", "name": span.messages.channel, "id": number, "tid": _STAGES}
                    yield {**about, "ph": "s", "pid": peer, "ts": _us(begin), "args": {"bytes": size}}
                    yield {**about, "ph": "f", "bp": "e", "pid": rank, "ts": _us(sample.begin + span.end)}
