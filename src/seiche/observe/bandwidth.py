# SPDX-License-Identifier: BSD-3-Clause
"""Aggregate copy bandwidth of all ranks, the reference for relative bandwidths."""

from __future__ import annotations

import numpy as np

from seiche.backend.base import WARM_UP_COPIES, Backend
from seiche.domain.world import World, raise_together
from seiche.errors import BackendUnavailable


def copy_bandwidth(backend: Backend, world: World) -> float:
    """Return bytes per second, read plus written, of simultaneous copies on all ranks (collective).

    Each round counts the bytes of all ranks and the time of the slowest; the result is the median over rounds. On a CPU
    it is the fastest of several ways to move data (`CpuBackend.copy_times`).

    Raises:
        BackendUnavailable: the free memory of a rank is insufficient (on all ranks).
    """
    return copy_bandwidth_interval(backend, world)[0]


def copy_bandwidth_interval(backend: Backend, world: World) -> tuple[float, tuple[float, float]]:
    """Return the bandwidth of `copy_bandwidth` and the rates of its slowest and fastest round (collective).

    For seven independent rounds, the true median lies between them with probability 63/64, whatever the distribution.
    """
    has_started = False

    def synchronise() -> None:
        nonlocal has_started
        if not has_started:
            has_started = True
            raise_together(world, None, BackendUnavailable)
        world.barrier()

    try:
        size, seconds = backend.copy_times(synchronise, world.local_size)
    except BackendUnavailable as error:
        if not has_started:
            raise_together(world, str(error), BackendUnavailable)
        raise
    max_seconds = world.allreduce_max(seconds)[WARM_UP_COPIES:]
    total = float(world.allreduce_sum(np.array([float(size)]))[0])
    return total / float(np.median(max_seconds)), (total / float(max_seconds.max()), total / float(max_seconds.min()))
