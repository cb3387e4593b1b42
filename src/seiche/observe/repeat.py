# SPDX-License-Identifier: BSD-3-Clause
"""Time short things well: warm up, repeat in batches that suit the clock, keep minimum and spread, stop in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World

#: Does something n times and returns the seconds that all of them took.
Work: TypeAlias = Callable[[int], float]

_T = TypeVar("_T")

#: Batches of one size, fewest and most, and how long a batch is: much longer than a look at the clock takes, and much
#: shorter than the slices in which a busy machine takes the processor away.
FEWEST, MOST, BATCH = 5, 300, 2e-4
_MOST_IN_BATCH = 4096
#: Looks at how long one takes; the shortest counts.
_LOOKS = 3
_NAP = 5e-4


def queued(backend: Backend, once: Callable[[], None]) -> Work:
    """Return the work that queues calls one behind the other and waits for the last."""

    def run(count: int) -> float:
        backend.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            once()
        backend.synchronize()
        return time.perf_counter() - begin

    return run


@dataclass(frozen=True)
class Timing:
    """Seconds: the smallest of the repetitions, and how far their median is above it."""

    minimum: float
    spread: float
    repetitions: int

    def part(self, count: int) -> Timing:
        """Return the timing of one of the `count` equal things that were timed as one."""
        return Timing(self.minimum / count, self.spread, self.repetitions * count)


@dataclass
class TimingSeries:
    """Timings by ascending size."""

    sizes: list[int] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    def add(self, size: int, timing: Timing) -> None:
        """Add one size."""
        self.sizes.append(size)
        self.timings.append(timing)

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Return the minima (n,)."""
        return np.array([timing.minimum for timing in self.timings])


def summary(seconds: Sequence[float], count: int) -> Timing:
    """Return the timing of batches of `count` that took `seconds` each."""
    each = np.asarray(seconds) / count
    smallest = max(float(each.min()), 1e-12)
    return Timing(smallest, float(np.median(each)) / smallest - 1, len(each) * count)


def batch_count(work: Work) -> int:
    """Warm up, and return how many make a batch."""
    work(2)
    once = min(work(2) / 2 for _ in range(_LOOKS))
    return int(min(_MOST_IN_BATCH, max(1, BATCH / max(once, 1e-9))))


def timed(work: Work, seconds: float = 0.05) -> Timing:
    """Return the timing of work that only this process does, repeated for about `seconds`."""
    count, batches = batch_count(work), Batches(seconds)
    while batches.more():
        batches.add(work(count))
    return summary(batches.seconds, count)


class Batches:
    """Seconds of batches so far, and whether there is time for more of them."""

    def __init__(self, seconds: float) -> None:
        """Begin now."""
        self.seconds: list[float] = []
        self._end = time.perf_counter() + seconds

    def more(self) -> bool:
        """Return whether another batch is to be timed."""
        done = len(self.seconds)
        return done < FEWEST or (done < MOST and time.perf_counter() < self._end)

    def add(self, seconds: float) -> None:
        """Add a batch."""
        self.seconds.append(seconds)


def shares(sizes: Sequence[int], seconds: float) -> Iterator[tuple[int, float]]:
    """Yield sizes, each with its share of the time that is left; stop after two when all of it is spent twice over."""
    begin = time.perf_counter()
    for number, size in enumerate(sizes):
        spent = time.perf_counter() - begin
        if number >= 2 and spent > 2 * seconds:
            return
        yield size, max(0.0, seconds - spent) / (len(sizes) - number)


def timed_sizes(sizes: Sequence[int], work_of: Callable[[int], Work], seconds: float) -> TimingSeries:
    """Return timings of sizes in order that take about `seconds`; too few seconds leave the last ones out."""
    curve = TimingSeries()
    for size, share in shares(sizes, seconds):
        curve.add(size, timed(work_of(size), share))
    return curve


def timed_pair(
    world: World, pair: tuple[int, int], sizes: Sequence[int], work_of: Callable[[int], Work], seconds: float
) -> TimingSeries:
    """Return timings of what two ranks do together; all ranks call it and get them, the others sleep meanwhile.

    `work_of(size)` is called on the two ranks; the first one's clock counts, and it says how often and how long.
    """
    curve = TimingSeries()
    if world.rank == pair[0]:
        for size, share in shares(sizes, seconds):
            world.comm.send(size, pair[1])
            work = work_of(size)
            count, batches = _said(world, pair, batch_count(work)), Batches(share)
            while _said(world, pair, batches.more()):
                batches.add(work(count))
            curve.add(size, summary(batches.seconds, count))
        world.comm.send(None, pair[1])
    elif world.rank == pair[1]:
        while (size := world.comm.recv(source=pair[0])) is not None:
            work = work_of(size)
            batch_count(work)
            count = world.comm.recv(source=pair[0])
            while world.comm.recv(source=pair[0]):
                work(count)
    sleep_until_all_are_here(world)
    result: TimingSeries = world.comm.bcast(curve, root=pair[0])
    return result


def _said(world: World, pair: tuple[int, int], value: _T) -> _T:
    """Return the value after the second rank of a pair was told it."""
    world.comm.send(value, pair[1])
    return value


def sleep_until_all_are_here(world: World) -> None:
    """Wait for all ranks without using a core: others may be timing."""
    if world.comm is None:
        return
    request = world.comm.Ibarrier()
    while not request.Test():
        time.sleep(_NAP)


def seconds_of_all(world: World, act: Callable[[], None]) -> float:
    """Return the seconds of the slowest rank in what all begin together and wait for the end of (collective)."""
    world.barrier()
    begin = time.perf_counter()
    act()
    return float(world.allreduce_max(np.array([time.perf_counter() - begin]))[0])


def timed_together(world: World, work: Work, seconds: float, *, active: bool = True) -> Timing:
    """Return the timing of what several ranks do at the same time: of each batch the slowest rank counts."""
    run = work if active else lambda count: 0.0
    run(2)
    once = min(float(world.allreduce_max(np.array([run(2) / 2]))[0]) for _ in range(_LOOKS))
    count = int(min(_MOST_IN_BATCH, max(1, BATCH / max(once, 1e-9))))
    batches = Batches(seconds)
    while world.bcast(batches.more()):
        world.barrier()
        batches.add(run(count))
    return summary(list(world.allreduce_max(np.array(batches.seconds))), count)
