# SPDX-License-Identifier: BSD-3-Clause
"""Data created by rank 0 and read by all ranks: results by broadcast, long arrays with one copy per host.

Ranks of a host map the same memory (an unlinked file in /dev/shm). If it is missing or too small, every rank has a
separate copy. See docs/decisions/0018-geometry-once-a-host.md.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from seiche.domain.partition import partition
from seiche.domain.rank_mapping import host_numbers
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.set_up import set_up_stage

Result = TypeVar("Result")

#: Folder of files in memory on Linux.
SHARED_MEMORY = Path("/dev/shm")
#: Shorter arrays are copied to every rank.
MIN_SHARED_BYTES = 1 << 16
#: Maximum bytes per message.
_MAX_MESSAGE = 1 << 30


def on_root(world: World, work: Callable[[], Result]) -> Result:
    """Return the result of `work()` on rank 0 to every rank; a SeicheError of rank 0 is raised on all (collective)."""
    if world.size == 1:
        return work()
    outcome: tuple[Result | None, type[SeicheError] | None, tuple[object, ...]] = (None, None, ())
    if world.rank == 0:
        try:
            outcome = (work(), None, ())
        except SeicheError as error:
            details = (error.path, error.location, error.reason) if isinstance(error, FormatError) else error.args
            outcome = (None, type(error), details)
    result, kind, details = world.bcast(outcome)
    if kind is not None:
        raise kind(*details)
    return cast(Result, result)


@contextlib.contextmanager
def fail_together(world: World, name: str) -> Iterator[None]:
    """Let all ranks fail if the block fails on one of them, which the others would wait for (collective).

    A rank on which the block has succeeded raises a CaseError that begins with `name`.
    """
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    texts = world.allgather(None if failure is None else f"{type(failure).__name__}: {failure}")
    if failure is not None:
        raise failure
    for rank, text in enumerate(texts):
        if text is not None:
            raise CaseError(f"{name}: failed on rank {rank}: {' '.join(text.split())}")


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
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    from mpi4py import MPI

    host = world.comm.Split_type(MPI.COMM_TYPE_SHARED)
    is_leader = host.Get_rank() == 0
    leaders = world.comm.Split(0 if is_leader else 1, world.rank)
    try:
        memory = _map_shared_memory(host, size) if size >= MIN_SHARED_BYTES and host.Get_size() > 1 else None
        available = memory is not None or (size >= MIN_SHARED_BYTES and host.Get_size() == 1)
        shared = all(world.allgather(available))  # all ranks or none, so that the broadcasts below match
        use_memory = memory is not None and shared
        target = np.frombuffer(memory, np.uint8, size) if use_memory else np.empty(size, np.uint8)  # type: ignore[arg-type]
        if array is not None:
            target[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if not shared:
            _broadcast(world.comm, target)
        elif is_leader:
            _broadcast(leaders, target)
        host.Barrier()
    finally:
        leaders.Free()
        host.Free()
    result: npt.NDArray[Any] = target.view(dtype).reshape(shape)
    result.flags.writeable = False
    return result


def shared_sites(world: World, sites: SiteSet | None) -> SiteSet:
    """Return rank 0's sites on every rank, with one copy of the arrays per host (collective)."""
    if world.size == 1:
        assert sites is not None
        return sites
    if world.emulated:
        shared: SiteSet = world.bcast(sites)
        return shared
    empty_sites: SiteSet = world.bcast(without_arrays(sites) if sites is not None else None)
    arrays: dict[str, Any] = {name: shared_array(world, getattr(sites, name, None)) for name in _arrays_of(empty_sites)}
    return replace(empty_sites, **arrays)


def without_arrays(sites: SiteSet) -> SiteSet:
    """Return the same box and iolets without sites."""
    return replace(sites, **{name: array[:0].copy() for name, array in _arrays_of(sites).items()})


def _arrays_of(sites: SiteSet) -> dict[str, Any]:
    return {name: value for name, value in vars(sites).items() if isinstance(value, np.ndarray)}


@set_up_stage("partition")
def owners(sites: SiteSet, world: World, **options: Any) -> npt.NDArray[np.int32]:
    """Return the rank of every site, (n,), by `partition` with `options` on rank 0, one copy per host (collective).

    Parts of METIS with many common links go to ranks of one host.
    """
    hosts = host_numbers(world)
    return shared_from_root(world, lambda: partition(sites, world.size, hosts=hosts, **options))


def shared_from_root(world: World, work: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the array made by `work` on rank 0, on every rank, one copy per host (collective).

    A SeicheError of `work` is raised on every rank.
    """
    arrays: list[npt.NDArray[Any]] = []
    on_root(world, lambda: arrays.append(work()))
    return shared_array(world, arrays[0] if arrays else None)


def _map_shared_memory(host: Any, size: int) -> mmap.mmap | None:
    """Return `size` bytes shared by the ranks of `host`, None on all of them if it fails on one (collective)."""
    name, descriptor = "", -1
    memory: mmap.mmap | None = None
    if host.Get_rank() == 0:
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix="seiche-", dir=SHARED_MEMORY)
            # Allocates now, so that missing memory is an error here and not at the first write.
            os.posix_fallocate(descriptor, 0, size)
            memory = mmap.mmap(descriptor, size)
    name = host.bcast(name if memory is not None else "")
    if name and host.Get_rank() > 0:
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDWR)
            memory = mmap.mmap(descriptor, size)
    mapped_by_all = all(host.allgather(memory is not None))
    if descriptor >= 0:
        os.close(descriptor)
    if host.Get_rank() == 0 and name:
        with contextlib.suppress(OSError):
            os.unlink(name)
    return memory if mapped_by_all else None


def _broadcast(comm: Any, data: npt.NDArray[np.uint8]) -> None:
    from mpi4py import MPI

    for begin in range(0, len(data), _MAX_MESSAGE):
        comm.Bcast([data[begin : begin + _MAX_MESSAGE], MPI.BYTE], root=0)
