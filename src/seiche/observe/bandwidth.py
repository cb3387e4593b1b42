# SPDX-License-Identifier: BSD-3-Clause
"""The copy bandwidth that shares are shares of: what all ranks together reach while they copy at the same time."""

from __future__ import annotations

import numpy as np

from seiche.backend.base import COPIES_TO_WARM_UP, Backend
from seiche.domain.world import World


def copy_bandwidth(backend: Backend, world: World) -> float:
    """Return bytes a second, read plus written, of plain copies on all ranks at once (collective).

    Ranks that share cores or a memory share its bandwidth: each round counts the bytes of all ranks and the time of the
    slowest, and the median of the rounds is taken.
    """
    return copy_rates(backend, world)[0]


def copy_rates(backend: Backend, world: World) -> tuple[float, tuple[float, float]]:
    """Return the bandwidth of `copy_bandwidth` with the rates of its slowest and fastest round (collective).

    The true median lies between them in all but one of 64 cases, whatever the distribution of the seven rounds.
    """
    size, seconds = backend.copy_times(world.barrier)
    slowest = world.allreduce_max(seconds)[COPIES_TO_WARM_UP:]
    every = float(world.allreduce_sum(np.array([float(size)]))[0])
    return every / float(np.median(slowest)), (every / float(slowest.max()), every / float(slowest.min()))
