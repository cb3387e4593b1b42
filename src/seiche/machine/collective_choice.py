# SPDX-License-Identifier: BSD-3-Clause
"""Choose the algorithm of an exchange: the cheapest by the machine file in use, otherwise the first that works."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import numpy as np

from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.choice import Decision, decide, drifted
from seiche.halo.transports.memory import Memory
from seiche.machine.collective_algorithms import AlltoallAlgorithm, ExchangeParts
from seiche.machine.laws.locality import RankPlacement, gpu_numa_node, numa_cpus
from seiche.observe.repeat import repeated, timed_together

_log = logging.getLogger("seiche.machine")

#: Seconds for which an algorithm is timed before it is chosen.
_TRIAL_SECONDS = 0.02


def candidates(gpus: bool, processes: int) -> tuple[str, ...]:
    """Return the strategies that may work, in the order of trial without a machine file."""
    if processes > 1:
        return "duplicate-pointer", "extra-message"
    return ("peer", "nccl", "mpi", "three-step") if gpus else ("mpi", "three-step")


def choose_algorithm(
    world: World,
    memory: Memory | None,
    parts: ExchangeParts,
    make: Callable[[str], AlltoallAlgorithm],
    *,
    processes: int,
    whole_messages: bool,
) -> tuple[AlltoallAlgorithm, Decision]:
    """Return the chosen algorithm and the reason (collective).

    With a machine file the algorithm with the lowest predicted time is timed, which overwrites the receive array.

    Raises:
        TransportError: no algorithm works; the reason of the last one.
    """
    from seiche.machine.in_use import machine_in_use
    from seiche.machine.laws.predict import exchange_times, layout_of

    gpus = world.allgather(memory is not None and memory.device is not None)[0]
    names = candidates(gpus, processes)
    machine = machine_in_use(world, None)
    if machine is not None:
        layout = layout_of(_placements(world, memory), processes)
        max_bytes = world.allreduce_max(np.array([float(sum(parts.sent)), float(sum(parts.received))])).max()
        times = exchange_times(machine, layout, max_bytes / layout.size, whole_messages=whole_messages, gpus=gpus)
        candidate_times = {name: seconds for name, seconds in times.items() if name in names}
        choice = decide(world, candidate_times, make, lambda algorithm: _seconds(world, algorithm), _close)
        if choice is not None:
            return choice
    for name in names[:-1]:
        try:
            return make(name), Decision(name)
        except TransportError as error:  # raised on all ranks: try the next one
            if world.rank == 0:
                _log.info("strategy %s is not available: %s", name, error)
    return make(names[-1]), Decision(names[-1])


def choose_again(
    world: World, current: AlltoallAlgorithm, decision: Decision, make: Callable[[str], AlltoallAlgorithm]
) -> tuple[AlltoallAlgorithm, Decision]:
    """Time the current algorithm again and return it, or another one if its time has drifted (collective).

    If the time deviates strongly from the time at the choice, all algorithms are timed. The receive array is
    overwritten.
    """
    if not decision.measured:
        return current, decision
    name, seconds = decision.transport, _seconds(world, current)
    if not drifted(decision.measured[name], seconds):
        return current, decision
    choice = decide(
        world,
        decision.predicted,
        lambda candidate: current if candidate == name else make(candidate),
        lambda algorithm: _seconds(world, algorithm),
        _close,
        fallback_reason=decision.change_since_choice(seconds),
    )
    assert choice is not None  # the current one is available
    return choice


def _close(algorithm: AlltoallAlgorithm) -> None:
    algorithm.close()


def _seconds(world: World, algorithm: AlltoallAlgorithm) -> float:
    return timed_together(world, repeated(algorithm), _TRIAL_SECONDS).minimum


def _placements(world: World, memory: Memory | None) -> list[RankPlacement]:
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    address = memory.bus if memory is not None else None
    node = gpu_numa_node(address) if address else None
    placement = RankPlacement(hosts_of(world)[world.rank], numa_cpus(allowed), address, "", node)
    return world.allgather(placement)
