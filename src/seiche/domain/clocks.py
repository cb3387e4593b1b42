# SPDX-License-Identifier: BSD-3-Clause
"""A common time line of the clocks of several hosts, which count from different zeros and at different rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

#: Round trips for each host; the shortest one gives the difference of the clocks.
ROUND_TRIPS = 32


@dataclass(frozen=True)
class Reading:
    """One instant on two clocks, ns: that of rank 0 (`reference`) and that of this host, with its maximum `error`."""

    reference: int
    here: int
    error: int = 0


class CommonClock:
    """Common time line of all ranks: seconds since its start, by the clock of rank 0.

    The clocks are compared at the start and by `measure_rate` at the end. In between, their difference is interpolated
    linearly, as for clocks with constant rates (Becker, Rabenseifner, Wolf, Parallel Computing 35, 595, 2009).

    Attributes:
        begin: the start on this host's clock, ns; before `measure_rate` with the assumption of equal rates.
        error: maximum error of an instant at the start and the end, ns.
        rate: seconds of the time line per second of this host's clock.
    """

    def __init__(self, world: World, clock: Callable[[], int]) -> None:
        """Start the time line now; `clock` returns the nanoseconds of this host (collective)."""
        self._world, self._clock, self.rate = world, clock, 1.0
        self._first = first = common_reading(world, clock)
        self._delay = first.reference - world.bcast(first.reference)
        self.begin, self.error = first.here - self._delay, first.error

    def measure_rate(self) -> None:
        """Measure the rate of this host's clock from the start until now (collective)."""
        first, last = self._first, common_reading(self._world, self._clock)
        if last.here > first.here:
            self.rate = (last.reference - first.reference) / (last.here - first.here)
        self.error = max(first.error, last.error)

    def corrected(self, seconds: float) -> float:
        """Return the time on the time line, s, of `seconds` after `begin` on this host's clock."""
        delay = self._delay * 1e-9
        return float(delay + (seconds - delay) * self.rate)


def common_reading(world: World, clock: Callable[[], int]) -> Reading:
    """Return one instant on the `clock` of rank 0 and on that of this host (collective).

    All ranks of a host use the clock of the first of them. That rank answers rank 0, which assumes that the answer was
    given halfway between request and arrival (Cristian, Distributed Computing 3, 146, 1989). The error is at most half
    the shortest round trip; no message of the same path appears to arrive before it was sent.
    """
    world.barrier()
    instant = clock()
    if world.size == 1 or world.emulated:
        return Reading(instant, instant)
    hosts = hosts_of(world)
    first_ranks = {host: hosts.index(host) for host in hosts}
    comm = world.comm.Dup()
    readings = {hosts[0]: Reading(instant, instant)}
    try:
        for host, rank in first_ranks.items():
            if rank == 0:
                continue
            if world.rank == 0:
                readings[host] = _reading(comm, rank, clock)
            elif world.rank == rank:
                _answer(comm, clock)
    finally:
        comm.Free()
    result: Reading = world.bcast(readings)[hosts[world.rank]]
    return result


def _reading(comm: Any, rank: int, clock: Callable[[], int]) -> Reading:
    """Return the reading of the shortest round trip to `rank`."""
    best: Reading | None = None
    message = np.zeros(1, np.int64)
    for _ in range(ROUND_TRIPS):
        begin = clock()
        comm.Send(message, rank)
        comm.Recv(message, rank)
        end = clock()
        error = -(-(end - begin) // 2) + 1
        if best is None or error < best.error:
            best = Reading((begin + end) // 2, int(message[0]), error)
    assert best is not None
    return best


def _answer(comm: Any, clock: Callable[[], int]) -> None:
    message = np.zeros(1, np.int64)
    for _ in range(ROUND_TRIPS):
        comm.Recv(message, 0)
        message[0] = clock()
        comm.Send(message, 0)
