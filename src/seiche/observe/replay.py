# SPDX-License-Identifier: BSD-3-Clause
"""Replay of a run with an ideal network, on which messages arrive instantly."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from seiche.observe.sample import Sample


class _RankReplay:
    """Position of a rank in its sampled steps."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.time, self.done = 0.0, False
        self._events = self._replayed(samples)
        self.next: tuple[str, str, int] | None = None

    def _replayed(self, samples: Sequence[Sample]) -> Iterator[tuple[str, str, int]]:
        """Yield (kind, channel, peer) of each message event, and ("barrier", channel, number of the barrier).

        The time advances by the useful spans in between.
        """
        barriers = 0
        for sample in samples:
            for span in sample.spans:
                if span.overlap:
                    continue
                self.time += span.end - span.begin if span.useful else 0.0
                if span.messages is None:
                    continue
                channel = span.messages.channel
                yield from (("send", channel, peer) for peer, size in span.messages.sent if size)
                yield from (("receive", channel, peer) for peer, size in span.messages.received if size)
                if span.messages.is_collective:
                    yield "barrier", channel, barriers
                    barriers += 1

    def advance(self) -> None:
        """Advance to the next event."""
        self.next = next(self._events, None)
        self.done = self.next is None


def ideal_seconds(ranks: Sequence[Sequence[Sample]]) -> tuple[float, float]:
    """Return the measured seconds of the samples, and the seconds with an ideal network.

    `ranks` has the samples of each rank; only steps that all ranks sampled count, in sequence. A useful span takes its
    measured time, any other only the wait for its messages (theory/movement, section 6). The second number never
    exceeds the first.

    Raises:
        ValueError: a received message was never sent, or a rank does not reach a barrier.
    """
    common = set.intersection(*(({sample.step for sample in samples}) for samples in ranks)) if ranks else set()
    common_samples = [[sample for sample in samples if sample.step in common] for samples in ranks]
    measured = max((sum(sample.seconds for sample in samples) for samples in common_samples), default=0.0)
    replays = [_RankReplay(samples) for samples in common_samples]
    sent: defaultdict[tuple[str, int, int], deque[float]] = defaultdict(deque)
    barriers: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for replay in replays:
        replay.advance()
    while not all(replay.done for replay in replays):
        progressed = False
        for rank, replay in enumerate(replays):
            while replay.next is not None and _process(replay, rank, sent, barriers, len(replays)):
                replay.advance()
                progressed = True
        if not progressed:
            waiting = next(rank for rank, replay in enumerate(replays) if not replay.done)
            event = replays[waiting].next
            assert event is not None
            source = "the other ranks" if event[0] == "barrier" else f"a message from rank {event[2]}"
            raise ValueError(f"deadlock in the samples: rank {waiting} waits for {source} ({event[1]})")
    return measured, min(measured, max((replay.time for replay in replays), default=0.0))


def _process(
    replay: _RankReplay,
    rank: int,
    sent: defaultdict[tuple[str, int, int], deque[float]],
    barriers: defaultdict[tuple[str, int], dict[int, float]],
    ranks: int,
) -> bool:
    """Process the next event of a rank; return False if the rank must wait."""
    assert replay.next is not None
    kind, channel, peer_or_barrier = replay.next
    if kind == "send":
        sent[channel, rank, peer_or_barrier].append(replay.time)
        return True
    if kind == "receive":
        if not sent[channel, peer_or_barrier, rank]:
            return False
        replay.time = max(replay.time, sent[channel, peer_or_barrier, rank].popleft())
        return True
    arrivals = barriers[channel, peer_or_barrier]
    arrivals.setdefault(rank, replay.time)
    if len(arrivals) < ranks:
        return False
    replay.time = max(arrivals.values())
    return True
