# SPDX-License-Identifier: BSD-3-Clause
"""What the same run would have taken on a network without cost: its messages replayed, each arriving as it leaves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from seiche.observe.sample import Sample


class _Rank:
    """A rank on its way through its steps."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.time, self.done = 0.0, False
        self._events = self._walk(samples)
        self.next: tuple[str, str, int] | None = None

    def _walk(self, samples: Sequence[Sample]) -> Iterator[tuple[str, str, int]]:
        """Yield (kind, channel, peer) of each event of a message; the time of what is useful passes in between."""
        meetings = 0
        for sample in samples:
            for span in sample.spans:
                if span.beside:
                    continue
                self.time += span.end - span.begin if span.useful else 0.0
                if span.messages is None:
                    continue
                channel = span.messages.channel
                yield from (("send", channel, peer) for peer, size in span.messages.sent if size)
                yield from (("receive", channel, peer) for peer, size in span.messages.received if size)
                if span.messages.everyone:
                    yield "everyone", channel, meetings
                    meetings += 1

    def advance(self) -> None:
        """Go to the next event."""
        self.next = next(self._events, None)
        self.done = self.next is None


def ideal_seconds(ranks: Sequence[Sequence[Sample]]) -> tuple[float, float]:
    """Return the seconds that the samples took and would have taken on a network without cost.

    `ranks` has for each rank its samples; only steps that all ranks sampled count, one behind the other. A useful span
    takes the time that was measured, any other none but the wait for the messages that arrive in it (theory/movement,
    section 6). The second number never passes the first.

    Raises:
        ValueError: a message that is received was never sent, or some rank never came where all meet.
    """
    common = set.intersection(*(({sample.step for sample in samples}) for samples in ranks)) if ranks else set()
    chosen = [[sample for sample in samples if sample.step in common] for samples in ranks]
    taken = max((sum(sample.seconds for sample in samples) for samples in chosen), default=0.0)
    walkers = [_Rank(samples) for samples in chosen]
    sent: defaultdict[tuple[str, int, int], deque[float]] = defaultdict(deque)
    met: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for walker in walkers:
        walker.advance()
    while not all(walker.done for walker in walkers):
        moved = False
        for rank, walker in enumerate(walkers):
            while walker.next is not None and _pass(walker, rank, sent, met, len(walkers)):
                walker.advance()
                moved = True
        if not moved:
            waiting = next(rank for rank, walker in enumerate(walkers) if not walker.done)
            event = walkers[waiting].next
            assert event is not None
            whom = "the other ranks" if event[0] == "everyone" else f"a message of rank {event[2]}"
            raise ValueError(f"rank {waiting} waits for {whom} ({event[1]}) without end")
    return taken, min(taken, max((walker.time for walker in walkers), default=0.0))


def _pass(
    walker: _Rank,
    rank: int,
    sent: defaultdict[tuple[str, int, int], deque[float]],
    met: defaultdict[tuple[str, int], dict[int, float]],
    ranks: int,
) -> bool:
    """Do the event that a rank is at; return False if it must still wait."""
    assert walker.next is not None
    kind, channel, peer = walker.next
    if kind == "send":
        sent[channel, rank, peer].append(walker.time)
        return True
    if kind == "receive":
        if not sent[channel, peer, rank]:
            return False
        walker.time = max(walker.time, sent[channel, peer, rank].popleft())
        return True
    here = met[channel, peer]  # the number of the meeting stands in the place of a peer
    here.setdefault(rank, walker.time)
    if len(here) < ranks:
        return False
    walker.time = max(here.values())
    return True
