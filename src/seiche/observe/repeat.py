# SPDX-License-Identifier: BSD-3-Clause
"""Timing of short operations: warm-up, batches adapted to the clock, minimum and spread, a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World

#: Performs an operation n times and returns the total seconds.
Work: TypeAlias = Callable[[int], float]

_T = TypeVar("_T")

#: Minimum and maximum number of batches of one size, and seconds of a batch: much longer than reading the clock, much
#: shorter than a scheduler time slice.
MIN_BATCHES, MAX_BATCHES, BATCH_SECONDS = 5, 300, 2e-4
_MAX_BATCH_COUNT = 4096
#: Number of rounds over all sizes into which the time of a measurement is divided.
ROUNDS = 5
#: Trials to estimate the duration of one call; the shortest counts.
_TRIALS = 3
_POLL_SECONDS = 5e-4
#: Relative difference up to which the minima of two rounds agree.
AGREEMENT = 0.1


def repeated(operation: Callable[[], object], synchronize: Callable[[], object] | None = None) -> Work:
    """Return the work of consecutive calls; `synchronize` is called before the first and after the last."""

    def run(count: int) -> float:
        if synchronize is not None:
            synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            operation()
        if synchronize is not None:
            synchronize()
        return time.perf_counter() - begin

    return run


def queued(backend: Backend, operation: Callable[[], None]) -> Work:
    """Return the work of calls that are queued on a device, with one wait for the last."""
    return repeated(operation, backend.synchronize)


@dataclass(frozen=True)
class Timing:
    """Minimum seconds of the repetitions, and relative distance of their median from it.

    `rounds` are the minima of the rounds of the measurement, which are separated in time.
    """

    minimum: float
    spread: float
    repetitions: int
    rounds: tuple[float, ...] = ()

    def part(self, count: int) -> Timing:
        """Return the timing of one of `count` equal operations that were timed together."""
        rounds = tuple(seconds / count for seconds in self.rounds)
        return Timing(self.minimum / count, self.spread, self.repetitions * count, rounds)

    @property
    def reproduced(self) -> bool:
        """Return whether the minima of two rounds agree within AGREEMENT."""
        smallest = sorted(self.rounds)[:2]
        return len(smallest) == 2 and smallest[1] <= (1 + AGREEMENT) * smallest[0]


def joined(first: Timing, second: Timing) -> Timing:
    """Return the timing of two measurements of the same operation; the median is the mean of both, by repetitions."""
    min_time, total = min(first.minimum, second.minimum), first.repetitions + second.repetitions
    medians = [timing.minimum * (1 + timing.spread) * timing.repetitions for timing in (first, second)]
    return Timing(min_time, sum(medians) / total / min_time - 1, total, first.rounds + second.rounds)


@dataclass
class TimingSeries:
    """Timings by ascending size; `omitted` is the number of larger sizes for which the time was too short."""

    sizes: list[int] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    omitted: int = 0

    def add(self, size: int, timing: Timing) -> None:
        """Add the timing of one size."""
        self.sizes.append(size)
        self.timings.append(timing)

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Return the minima (n,)."""
        return np.array([timing.minimum for timing in self.timings])


def summary(seconds: Sequence[float], count: int, rounds: Sequence[float] = ()) -> Timing:
    """Return the timing of batches of `count` operations that took `seconds` each, `rounds` the fastest of a round."""
    single = np.asarray(seconds) / count
    min_time = max(float(single.min()), 1e-12)
    of_rounds = tuple(fastest / count for fastest in rounds) or (min_time,)
    return Timing(min_time, float(np.median(single)) / min_time - 1, len(single) * count, of_rounds)


def batch_count(work: Work) -> int:
    """Warm up and return the number of operations in a batch."""
    work(2)
    return int(min(_MAX_BATCH_COUNT, max(1, BATCH_SECONDS / max(min(work(2) / 2 for _ in range(_TRIALS)), 1e-9))))


def timed(work: Work, seconds: float = 0.05) -> Timing:
    """Return the timing of work of this process alone, repeated for about `seconds`."""
    count, batches = batch_count(work), Batches(seconds)
    while batches.more():
        batches.add(work(count))
    return summary(batches.seconds, count)


class Batches:
    """Seconds of the batches so far, with a limit of number and total time."""

    def __init__(self, seconds: float) -> None:
        self.seconds: list[float] = []
        self._end = time.perf_counter() + seconds

    def more(self) -> bool:
        """Return whether another batch should be timed."""
        count_done = len(self.seconds)
        return count_done < MIN_BATCHES or (count_done < MAX_BATCHES and time.perf_counter() < self._end)

    def add(self, seconds: float) -> None:
        """Add a batch."""
        self.seconds.append(seconds)


def rounds(sizes: Sequence[int], seconds: float) -> Iterator[tuple[int, float]]:
    """Yield sizes with the time of a measurement, in rounds over all sizes until about `seconds` have passed.

    Other load on the machine that lasts for a while then disturbs one round, not all measurements of a size. The first
    round ends after two or more sizes at twice the total time; later ones have its sizes.
    """
    begin, timed_ones = time.perf_counter(), list[int]()
    for index, size in enumerate(sizes):
        elapsed = time.perf_counter() - begin
        if index >= 2 and elapsed > 2 * seconds:
            break
        timed_ones.append(size)
        yield size, max(0.0, seconds / ROUNDS - elapsed) / (len(sizes) - index)
    while timed_ones:
        for size in timed_ones:
            if time.perf_counter() - begin >= seconds:
                return
            yield size, seconds / ROUNDS / len(timed_ones)


@dataclass
class SizedBatches:
    """Seconds of the batches of each size over all rounds, and the number of operations of a batch."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    rounds: dict[int, list[float]] = field(default_factory=dict)

    def add(self, size: int, count: int, seconds: Sequence[float]) -> None:
        """Add the batches of one measurement."""
        self.counts[size] = count
        self.seconds.setdefault(size, []).extend(seconds)
        self.rounds.setdefault(size, []).append(min(seconds))

    def series(self, planned: int) -> TimingSeries:
        """Return the timings by ascending size, of `planned` sizes."""
        curve = TimingSeries(omitted=planned - len(self.seconds))
        for size in sorted(self.seconds):
            curve.add(size, summary(self.seconds[size], self.counts[size], self.rounds[size]))
        return curve


def timed_sizes(sizes: Sequence[int], work_of: Callable[[int], Work], seconds: float) -> TimingSeries:
    """Return timings by size, in rounds within about `seconds`; the last sizes are omitted if time runs out."""
    works, results = dict[int, Work](), SizedBatches()
    for size, share in rounds(sizes, seconds):
        if size not in works:
            works[size] = work_of(size)
            results.counts[size] = batch_count(works[size])
        count, batches = results.counts[size], Batches(share)
        while batches.more():
            batches.add(works[size](count))
        results.add(size, count, batches.seconds)
    return results.series(len(sizes))


def timed_pair(
    world: World, pair: tuple[int, int], sizes: Sequence[int], work_of: Callable[[int], Work], seconds: float
) -> TimingSeries:
    """Return timings of joint work of two ranks, on all ranks, while the other ranks sleep (collective).

    `work_of(size)` is called on both ranks, once for each size. The first rank measures, in rounds over all sizes, and
    determines the number of repetitions.
    """
    works, results = dict[int, Work](), SizedBatches()
    if world.rank == pair[0]:
        for size, share in rounds(sizes, seconds):
            world.comm.send(size, pair[1])
            if size not in works:
                works[size] = work_of(size)
                results.counts[size] = _sent(world, pair, batch_count(works[size]))
            count, batches = results.counts[size], Batches(share)
            while _sent(world, pair, batches.more()):
                batches.add(works[size](count))
            results.add(size, count, batches.seconds)
        world.comm.send(None, pair[1])
    elif world.rank == pair[1]:
        while (size := world.comm.recv(source=pair[0])) is not None:
            if size not in works:
                works[size] = work_of(size)
                batch_count(works[size])
                results.counts[size] = world.comm.recv(source=pair[0])
            while world.comm.recv(source=pair[0]):
                works[size](results.counts[size])
    sleep_until_barrier(world)
    result: TimingSeries = world.comm.bcast(results.series(len(sizes)) if world.rank == pair[0] else None, root=pair[0])
    return result


def _sent(world: World, pair: tuple[int, int], value: _T) -> _T:
    """Send a value to the second rank of a pair and return it."""
    world.comm.send(value, pair[1])
    return value


def sleep_until_barrier(world: World) -> None:
    """Wait for all ranks without using a core, which would disturb the timing of others."""
    if world.comm is None:
        return
    request = world.comm.Ibarrier()
    while not request.Test():
        time.sleep(_POLL_SECONDS)


def slowest_rank_seconds(world: World, action: Callable[[], None]) -> float:
    """Return the seconds of the slowest rank in an action that all ranks start together (collective)."""
    world.barrier()
    begin = time.perf_counter()
    action()
    return float(world.allreduce_max(np.array([time.perf_counter() - begin]))[0])


def timed_together(world: World, work: Work, seconds: float, *, active: bool = True) -> Timing:
    """Return the timing of simultaneous work of several ranks; the slowest rank of each batch counts (collective)."""
    run = work if active else lambda count: 0.0
    run(2)
    seconds_per_call = min(float(world.allreduce_max(np.array([run(2) / 2]))[0]) for _ in range(_TRIALS))
    count = int(min(_MAX_BATCH_COUNT, max(1, BATCH_SECONDS / max(seconds_per_call, 1e-9))))
    batches = Batches(seconds)
    while world.bcast(batches.more()):
        world.barrier()
        batches.add(run(count))
    return summary(list(world.allreduce_max(np.array(batches.seconds))), count)
