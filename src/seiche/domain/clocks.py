# SPDX-License-Identifier: BSD-3-Clause
"""One instant on the clocks of several hosts, which count from different zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

#: Round trips for each host; the shortest one gives the difference of the clocks.
ROUND_TRIPS = 32


def common_instant(world: World, clock: Callable[[], int]) -> tuple[int, int]:
    """Return the reading of this host's `clock` at one instant, and its maximum error (collective).

    All ranks of a host use the clock of the first of them. That rank answers rank 0, which assumes that the answer was
    given halfway between request and arrival (Cristian, Distributed Computing 3, 146, 1989). The error is at most half
    the shortest round trip; no message of the same path appears to arrive before it was sent.
    """
    world.barrier()
    instant = clock()
    if world.size == 1 or world.emulated:
        return instant, 0
    hosts = hosts_of(world)
    first_ranks = {host: hosts.index(host) for host in hosts}
    comm = world.comm.Dup()
    readings = {hosts[0]: (instant, 0)}
    try:
        for host, rank in first_ranks.items():
            if rank == 0:
                continue
            if world.rank == 0:
                difference, error = _difference(comm, rank, clock)
                readings[host] = (instant + difference, error)
            elif world.rank == rank:
                _answer(comm, clock)
    finally:
        comm.Free()
    result: tuple[int, int] = world.bcast(readings)[hosts[world.rank]]
    return result


def _difference(comm: Any, rank: int, clock: Callable[[], int]) -> tuple[int, int]:
    """Return the clock of `rank` minus that of this rank, and the maximum error."""
    shortest, difference = None, 0
    message = np.zeros(1, np.int64)
    for _ in range(ROUND_TRIPS):
        begin = clock()
        comm.Send(message, rank)
        comm.Recv(message, rank)
        end = clock()
        if shortest is None or end - begin < shortest:
            shortest, difference = end - begin, int(message[0]) - (begin + end) // 2
    assert shortest is not None
    return difference, -(-shortest // 2) + 1


def _answer(comm: Any, clock: Callable[[], int]) -> None:
    message = np.zeros(1, np.int64)
    for _ in range(ROUND_TRIPS):
        comm.Recv(message, 0)
        message[0] = clock()
        comm.Send(message, 0)
