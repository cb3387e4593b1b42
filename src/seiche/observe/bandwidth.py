# SPDX-License-Identifier: BSD-3-Clause
"""Aggregate copy bandwidth of all ranks, the reference of relative bandwidths."""

from __future__ import annotations

import numpy as np

from seiche.backend.base import WARM_UP_COPIES, Backend
from seiche.domain.world import World


def copy_bandwidth(backend: Backend, world: World) -> float:
    """Return bytes per second, read plus written, of simultaneous plain copies on all ranks (collective).

    Each round counts the bytes of all ranks and the time of the slowest; the result is the median over rounds.
    """
    return copy_bandwidth_interval(backend, world)[0]


def copy_bandwidth_interval(backend: Backend, world: World) -> tuple[float, tuple[float, float]]:
    """Return the bandwidth of `copy_bandwidth` and the rates of its slowest and fastest round (collective).

    For seven rounds of any distribution, the true median lies between them with probability 63/64.
    """
    size, seconds = backend.copy_times(world.barrier)
    slowest = world.allreduce_max(seconds)[WARM_UP_COPIES:]
    total = float(world.allreduce_sum(np.array([float(size)]))[0])
    return total / float(np.median(slowest)), (total / float(slowest.max()), total / float(slowest.min()))
