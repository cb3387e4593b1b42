# SPDX-License-Identifier: BSD-3-Clause
"""Timing of writes to a folder: large blocks of all ranks together, and small synchronous writes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from seiche.domain.world import World
from seiche.io.parallel import raise_on_all_ranks
from seiche.machine.laws.file import Files

_BLOCK, _SMALL, _TRIALS = 8 << 20, 4096, 5


def file_writes(world: World, folder: Path, *, seconds: float, max_bytes: int = 512 << 20) -> Files:
    """Return the costs of writing when every rank writes a separate file in `folder` (collective).

    Args:
        world: the ranks.
        folder: an existing writable folder.
        seconds: time after which no further block is started.
        max_bytes: maximum size of the temporary file of a rank, bytes.

    Raises:
        OSError: on all ranks, if one cannot write.
    """
    path = folder / f".seiche-bench-{os.getpid()}-{world.rank}"
    small_write = elapsed = float("inf")
    written = 0
    block = np.random.default_rng(world.rank).integers(0, 255, _BLOCK, np.uint8).tobytes()
    try:
        with raise_on_all_ranks(world):
            small_write = _small_writes(path)
        world.barrier()
        with raise_on_all_ranks(world):
            begin = time.perf_counter()
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                while written < max_bytes and (not written or time.perf_counter() - begin < seconds):
                    written += os.write(descriptor, block)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            elapsed = time.perf_counter() - begin
    finally:
        with suppress(OSError):
            path.unlink()
    total = float(world.allreduce_sum(np.array([float(written)]))[0])
    max_elapsed, small_write = world.allreduce_max(np.array([elapsed, small_write]))
    return Files(rate=total / float(max_elapsed), small=float(small_write), ranks=world.size)


def _small_writes(path: Path) -> float:
    """Return the smallest time of a small write that is synchronised to disk."""
    min_elapsed = float("inf")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for _ in range(_TRIALS):
            begin = time.perf_counter()
            os.write(descriptor, bytes(_SMALL))
            os.fsync(descriptor)
            min_elapsed = min(min_elapsed, time.perf_counter() - begin)
    finally:
        os.close(descriptor)
    return min_elapsed
