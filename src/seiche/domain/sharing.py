# SPDX-License-Identifier: BSD-3-Clause
"""What rank 0 makes and all ranks read: results by broadcast, long arrays as one copy a host.

Ranks of a host map the same memory (a file in /dev/shm without a name). Where there is none, or not enough of it, every
rank has a copy of its own. See docs/decisions/0018-geometry-once-a-host.md.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.domain.partition import partition
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError

Result = TypeVar("Result")

#: Where files live in memory on Linux.
MEMORY = Path("/dev/shm")
#: Shorter arrays are simply copied.
LEAST_BYTES = 1 << 16
#: Most bytes that one message carries.
_PIECE = 1 << 30


def by_rank_zero(world: World, work: Callable[[], Result]) -> Result:
    """Return what `work` returns on rank 0, on every rank (collective).

    Raises:
        CaseError: on every rank, as raised by `work`.
    """
    if world.size == 1:
        return work()
    answer: tuple[Any, str | None] = (None, None)
    if world.rank == 0:
        try:
            answer = (work(), None)
        except CaseError as error:
            answer = (None, str(error))
    result, refused = world.bcast(answer)
    if refused is not None:
        raise CaseError(refused)
    return result  # type: ignore[no-any-return]


def shared_array(world: World, array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return rank 0's `array` on every rank, read-only, in memory that the ranks of a host share (collective).

    The memory is given back when the last array on it is gone.
    """
    if world.size == 1:
        assert array is not None
        return array
    if world.rehearsed:
        only: npt.NDArray[Any] = world.bcast(array)
        return only
    shape, dtype = world.bcast((array.shape, array.dtype) if array is not None else None)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    from mpi4py import MPI

    host = world.comm.Split_type(MPI.COMM_TYPE_SHARED)
    first = host.Get_rank() == 0
    firsts = world.comm.Split(0 if first else 1, world.rank)
    try:
        memory = _mapped(host, size) if size >= LEAST_BYTES and host.Get_size() > 1 else None
        enough = memory is not None or (size >= LEAST_BYTES and host.Get_size() == 1)
        once_a_host = all(world.allgather(enough))  # or no rank shares: the messages below must fit together
        target = (
            np.empty(size, np.uint8) if memory is None or not once_a_host else np.frombuffer(memory, np.uint8, size)
        )
        if array is not None:
            target[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if not once_a_host:
            _broadcast(world.comm, target)
        elif first:
            _broadcast(firsts, target)
        host.Barrier()
    finally:
        firsts.Free()
        host.Free()
    result: npt.NDArray[Any] = target.view(dtype).reshape(shape)
    result.flags.writeable = False
    return result


def shared_sites(world: World, sites: SiteSet | None) -> SiteSet:
    """Return rank 0's sites on every rank, their arrays once a host (collective)."""
    if world.size == 1:
        assert sites is not None
        return sites
    if world.rehearsed:
        same: SiteSet = world.bcast(sites)
        return same
    bare: SiteSet = world.bcast(without_arrays(sites) if sites is not None else None)
    names = [item.name for item in fields(SiteSet) if isinstance(getattr(bare, item.name), np.ndarray)]
    arrays: dict[str, Any] = {
        name: shared_array(world, getattr(sites, name) if sites is not None else None) for name in names
    }
    return replace(bare, **arrays)


def without_arrays(sites: SiteSet) -> SiteSet:
    """Return the same box and iolets with no site."""
    arrays: dict[str, Any] = {item.name: getattr(sites, item.name) for item in fields(SiteSet)}
    empty: dict[str, Any] = {name: a[:0].copy() for name, a in arrays.items() if isinstance(a, np.ndarray)}
    return replace(sites, **empty)


def owners(sites: SiteSet, world: World, **options: Any) -> npt.NDArray[np.int32]:
    """Return the rank of every site, (n,), made by `partition` on rank 0 and kept once a host (collective).

    `options` are those of `partition`.

    Raises:
        CaseError: as `partition` does, on every rank.
    """
    return shared_by_rank_zero(world, lambda: partition(sites, world.size, **options))


def shared_by_rank_zero(world: World, work: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the array that `work` returns on rank 0, on every rank, once a host (collective).

    Raises:
        CaseError: on every rank, as raised by `work`.
    """
    made: list[npt.NDArray[Any]] = []
    by_rank_zero(world, lambda: made.append(work()))
    return shared_array(world, made[0] if made else None)


def _mapped(host: Any, size: int) -> mmap.mmap | None:
    """Return `size` bytes that the ranks of `host` share, None on all of them if one cannot (collective)."""
    name, descriptor = "", -1
    memory: mmap.mmap | None = None
    if host.Get_rank() == 0:
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix="seiche-", dir=MEMORY)
            # Memory that is not there must be missed now, not when it is written.
            os.posix_fallocate(descriptor, 0, size)
            memory = mmap.mmap(descriptor, size)
    name = host.bcast(name if memory is not None else "")
    if name and host.Get_rank() > 0:
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDWR)
            memory = mmap.mmap(descriptor, size)
    everywhere = all(host.allgather(memory is not None))
    if descriptor >= 0:
        os.close(descriptor)
    if host.Get_rank() == 0 and name:
        with contextlib.suppress(OSError):
            os.unlink(name)
    return memory if everywhere else None


def _broadcast(comm: Any, data: npt.NDArray[np.uint8]) -> None:
    from mpi4py import MPI

    for begin in range(0, len(data), _PIECE):
        comm.Bcast([data[begin : begin + _PIECE], MPI.BYTE], root=0)
