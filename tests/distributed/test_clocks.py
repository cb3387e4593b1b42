# SPDX-License-Identifier: BSD-3-Clause
"""Clocks of several hosts with different zeros and rates: one time line of all, within the stated error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from seiche.domain.clocks import CommonClock
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

#: Zeros of the clocks of hosts differ by this number of nanoseconds.
APART = 10**15


#: Relative drift of the clock of the last host; that of a computer is a hundred to a thousand times smaller.
DRIFT = 0.01


def two_hosts(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the hosts of the ranks; of ranks on one host, the last one pretends to be on another."""
    hosts = hosts_of(world)
    if len(set(hosts)) == 1:
        hosts = [f"host {int(rank > 0 and rank == world.size - 1)}" for rank in range(world.size)]
        monkeypatch.setattr("seiche.domain.clocks.hosts_of", lambda _: hosts)
    return hosts


@pytest.mark.ranks(1, 2, 3, nodes=("2+1",))
def test_an_instant_is_the_same_on_the_clocks_of_all_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes of this test have one clock; each adds its own zero."""
    world = World.from_mpi()
    hosts = two_hosts(world, monkeypatch)
    zeros = [APART * sorted(set(hosts)).index(host) for host in hosts]
    begin = world.bcast(time.perf_counter_ns())
    world.barrier()
    line = CommonClock(world, lambda: time.perf_counter_ns() + zeros[world.rank])
    instants = [there - zero for there, zero in zip(world.allgather(line.begin), zeros, strict=True)]
    errors = world.allgather(line.error)
    assert all(begin < there < time.perf_counter_ns() for there in instants)
    for rank, there in enumerate(instants):
        assert errors[rank] == 0 if hosts[rank] == hosts[0] else errors[rank] > 0
        assert abs(there - instants[0]) <= errors[rank] < APART


def times_of_answers(comm: Any, now: Callable[[], float], rank: int) -> list[tuple[float, float, float]]:
    """Return (request, answer, arrival) on the clocks `now` of rank 0, of the last rank and of rank 0."""
    rows = []
    for _ in range(20):
        if rank == 0:
            request = now()
            comm.send(None, comm.Get_size() - 1)
            rows.append((request, comm.recv(source=comm.Get_size() - 1), now()))
        elif rank == comm.Get_size() - 1:
            comm.recv(source=0)
            comm.send(now(), 0)
    return rows


@pytest.mark.ranks(2, 3, nodes=("1+1",))
def test_a_clock_with_offset_and_drift_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, in the middle and at the end, an answer lies between its request and its arrival."""
    world = World.from_mpi()
    hosts = two_hosts(world, monkeypatch)
    is_last, begin = hosts[world.rank] == hosts[-1], time.perf_counter_ns()

    def clock() -> int:
        elapsed = time.perf_counter_ns() - begin
        return APART + round(elapsed * (1 + DRIFT)) if is_last else elapsed

    line = CommonClock(world, clock)
    readings = []
    for _ in range(3):
        readings += times_of_answers(world.comm, lambda: float(clock() - line.begin), world.rank)
        time.sleep(0.1)
    line.measure_rate()
    rates, errors = world.allgather(line.rate), world.allgather(line.error)
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(1 / (1 + DRIFT), abs=2 * max(errors) / 3e8)
    readings = world.bcast(readings)
    answers = world.allgather([line.corrected(answer * 1e-9) * 1e9 for _, answer, _ in readings])[-1]
    assert max(answer - arrival for _, answer, arrival in readings) > 1e6  # uncorrected, answers are too late
    for (request, _, arrival), corrected in zip(readings, answers, strict=True):
        assert request - max(errors) - 1 <= corrected <= arrival + max(errors) + 1
