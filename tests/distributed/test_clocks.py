# SPDX-License-Identifier: BSD-3-Clause
"""Clocks of several hosts with different zeros: one instant on all of them, within the stated error."""

from __future__ import annotations

import time

import pytest

from seiche.domain.clocks import common_instant
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

#: Zeros of the clocks of hosts differ by this number of nanoseconds.
APART = 10**15


@pytest.mark.ranks(1, 2, 3, nodes=("2+1",))
def test_an_instant_is_the_same_on_the_clocks_of_all_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes of this test have one clock; each adds its own zero."""
    world = World.from_mpi()
    hosts = hosts_of(world)
    if len(set(hosts)) == 1:  # two hosts, the second one with the last rank only
        hosts = [f"host {int(rank > 0 and rank == world.size - 1)}" for rank in range(world.size)]
        monkeypatch.setattr("seiche.domain.clocks.hosts_of", lambda _: hosts)
    zeros = [APART * sorted(set(hosts)).index(host) for host in hosts]
    begin = world.bcast(time.perf_counter_ns())
    world.barrier()
    instant, error = common_instant(world, lambda: time.perf_counter_ns() + zeros[world.rank])
    instants = [there - zero for there, zero in zip(world.allgather(instant), zeros, strict=True)]
    errors = world.allgather(error)
    assert all(begin < there < time.perf_counter_ns() for there in instants)
    for rank, there in enumerate(instants):
        assert errors[rank] == 0 if hosts[rank] == hosts[0] else errors[rank] > 0
        assert abs(there - instants[0]) <= errors[rank] < APART
