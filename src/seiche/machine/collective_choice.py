# SPDX-License-Identifier: BSD-3-Clause
"""Choose how the data of an exchange travels: by the machine file in use, else the first way that works."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

import numpy as np

from seiche.domain.seats import hosts_of
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.choice import Decision, decide, drifted
from seiche.halo.transports.memory import Memory
from seiche.machine.collective_ways import ExchangeParts, Way
from seiche.machine.in_use import machine_in_use
from seiche.machine.laws.locality import RankPlace, gpu_numa_node, numa_cpus
from seiche.machine.laws.predict import exchange_times, layout_of
from seiche.observe.repeat import timed_together

_log = logging.getLogger("seiche.machine")

#: Seconds of timing a way before it is taken.
_TRIAL = 0.02


def candidates(gpus: bool, processes: int) -> tuple[str, ...]:
    """Return the strategies that may work, in the order in which they are tried without a machine file."""
    if processes > 1:
        return "duplicate-pointer", "extra-message"
    return ("peer", "nccl", "mpi", "three-step") if gpus else ("mpi", "three-step")


def choose_way(
    world: World,
    memory: Memory | None,
    parts: ExchangeParts,
    make: Callable[[str], Way],
    *,
    processes: int,
    whole: bool,
) -> tuple[Way, Decision]:
    """Return the way that is taken, and why; all ranks must call it together.

    With a machine file the way that it makes the cheapest is made and timed, which overwrites what is received.

    Raises:
        TransportError: nothing works; the reason of the last one.
    """
    gpus = world.allgather(memory is not None and memory.device is not None)[0]
    names = candidates(gpus, processes)
    machine = machine_in_use(world, None)
    if machine is not None:
        layout = layout_of(_places(world, memory), processes)
        largest = world.allreduce_max(np.array([float(sum(parts.sent)), float(sum(parts.received))])).max()
        times = exchange_times(machine, layout, largest / layout.size, whole=whole, gpus=gpus)
        known = {name: seconds for name, seconds in times.items() if name in names}
        found = decide(world, known, make, lambda way: _seconds(world, way), lambda way: way.close())
        if found is not None:
            return found
    for name in names[:-1]:
        try:
            return make(name), Decision(name)
        except TransportError as error:  # raised on all ranks together: the next one
            if world.rank == 0:
                _log.info("strategy %s is not taken: %s", name, error)
    return make(names[-1]), Decision(names[-1])


def choose_again(world: World, way: Way, decision: Decision, make: Callable[[str], Way]) -> tuple[Way, Decision]:
    """Return another way, or the same, after a look at how long it takes now; all ranks must call it together.

    Where that is far from what it took when it was chosen, all are tried. What is received is overwritten.
    """
    if not decision.measured:
        return way, decision
    name, now = decision.transport, _seconds(world, way)
    if not drifted(decision.measured[name], now):
        return way, decision
    found = decide(
        world,
        decision.predicted,
        lambda each: way if each == name else make(each),
        lambda each: _seconds(world, each),
        lambda each: each.close(),
        doubt=decision.now_takes(now),
    )
    assert found is not None  # the present one can be had
    return found


def _seconds(world: World, way: Way) -> float:
    def run(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            way()
        return time.perf_counter() - begin

    return timed_together(world, run, _TRIAL).minimum


def _places(world: World, memory: Memory | None) -> list[RankPlace]:
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    address = memory.bus if memory is not None else None
    node = gpu_numa_node(address) if address else None
    mine = RankPlace(hosts_of(world)[world.rank], numa_cpus(allowed), address, "", node)
    return world.allgather(mine)
