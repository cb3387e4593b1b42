# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that every rank reads, with one copy per host.

Ranks of a host map the same memory, an unlinked file in /dev/shm, and verify it by a random number. If it is missing or
too small, every rank has a separate copy.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World

#: Folder of files in memory on Linux.
SHARED_MEMORY = Path("/dev/shm")
#: Shorter arrays are copied to every rank.
MIN_SHARED_BYTES = 1 << 16
#: Bytes of the random number that shows each rank that it has mapped the memory of its host's first rank.
_NONCE = 16
#: Maximum bytes per message.
_MAX_MESSAGE = 1 << 30


def shared_array(world: World, array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return rank 0's `array` on every rank, read-only, in shared memory of each host (collective).

    The memory is freed with the last array that uses it.
    """
    if world.size == 1:
        assert array is not None
        return array
    if world.emulated:
        return np.asarray(world.bcast(array))
    shape, dtype = world.bcast((array.shape, array.dtype) if array is not None else None)
    lengths = [shape[0] if shape else 1] + [0] * (world.size - 1)
    part = np.empty((0, *shape[1:]), dtype) if array is None else array
    return _in_shared_memory(world, part, lengths).reshape(shape)


def joined_array(world: World, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the parts (n, ...) of all ranks in their order, read-only, in shared memory of each host (collective).

    Each rank writes its own part; no rank gathers them.
    """
    if world.size == 1:
        return part
    if world.emulated:
        parts = world.gather(part)
        return np.asarray(world.bcast(None if parts is None else np.concatenate(parts)))
    return _in_shared_memory(world, part, world.allgather(len(part)))


def _in_shared_memory(world: World, part: npt.NDArray[Any], lengths: Sequence[int]) -> npt.NDArray[Any]:
    """Return the array whose rows come from the ranks, `lengths[r]` of them from `part` of rank r (collective)."""
    from mpi4py import MPI

    width = int(np.prod(part.shape[1:], dtype=np.int64)) * part.itemsize
    bounds = (np.concatenate([[0], np.cumsum(lengths)]) * width).tolist()
    size = bounds[-1]
    host = world.comm.Split_type(MPI.COMM_TYPE_SHARED)
    is_leader = host.Get_rank() == 0
    leaders = world.comm.Split(0 if is_leader else 1, world.rank)
    try:
        leader_of = world.allgather(host.bcast(world.rank))
        memory = _map_shared_memory(host, size) if size >= MIN_SHARED_BYTES and host.Get_size() > 1 else None
        available = memory is not None or (size >= MIN_SHARED_BYTES and host.Get_size() == 1)
        shared = all(world.allgather(available))  # all ranks or none, so that the broadcasts below match
        use_memory = memory is not None and shared
        target = np.frombuffer(memory, np.uint8, size) if use_memory else np.empty(size, np.uint8)  # type: ignore[arg-type]
        own_bytes = slice(bounds[world.rank], bounds[world.rank + 1])
        target[own_bytes] = np.ascontiguousarray(part).reshape(-1).view(np.uint8)[: own_bytes.stop - own_bytes.start]
        host.Barrier()
        hosts = sorted(set(leader_of))
        if not shared or (is_leader and len(hosts) > 1):
            comm = leaders if shared else world.comm
            for rank, leader in enumerate(leader_of):
                root = hosts.index(leader) if shared else rank
                _broadcast(comm, target[bounds[rank] : bounds[rank + 1]], root)
        host.Barrier()
    finally:
        leaders.Free()
        host.Free()
    result: npt.NDArray[Any] = target.view(part.dtype).reshape(sum(lengths), *part.shape[1:])
    result.flags.writeable = False
    return result


def _map_shared_memory(host: Any, size: int) -> mmap.mmap | None:
    """Return `size` bytes shared by the ranks of `host`, None on all of them if it fails on one (collective)."""
    path, descriptor, nonce = "", -1, os.urandom(_NONCE)
    length = max(size, _NONCE)
    memory: mmap.mmap | None = None
    if host.Get_rank() == 0:
        with contextlib.suppress(OSError):
            descriptor, path = tempfile.mkstemp(prefix="seiche-", dir=SHARED_MEMORY)
            # Allocates now, so that missing memory is an error here and not at the first write.
            os.posix_fallocate(descriptor, 0, length)
            memory = mmap.mmap(descriptor, length)
            memory[:_NONCE] = nonce
    name, nonce = host.bcast((path if memory is not None else "", nonce))
    if name and host.Get_rank() > 0:
        with contextlib.suppress(OSError, ValueError):  # missing, or shorter
            descriptor = os.open(name, os.O_RDWR)
            mapped = mmap.mmap(descriptor, length)
            if mapped[:_NONCE] == nonce:  # not a file with this name in another container
                memory = mapped
    mapped_by_all = all(host.allgather(memory is not None))
    if descriptor >= 0:
        os.close(descriptor)
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return memory if mapped_by_all else None


def _broadcast(comm: Any, data: npt.NDArray[np.uint8], root: int) -> None:
    from mpi4py import MPI

    for begin in range(0, len(data), _MAX_MESSAGE):
        comm.Bcast([data[begin : begin + _MAX_MESSAGE], MPI.BYTE], root=root)
