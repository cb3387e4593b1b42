# SPDX-License-Identifier: BSD-3-Clause
"""Timing of GPU communication without the host: copies and stores into peer memory, and NCCL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.halo.transports.cuda_runtime import cuda_runtime
from seiche.halo.transports.nccl import join, nccl_library
from seiche.kernels.registry.halo import halo_move
from seiche.machine.laws.file import PathName, Probe
from seiche.machine.laws.locality import RankPlacement
from seiche.observe.repeat import TimingSeries, Work, queued, sleep_until_barrier, timed_pair, timed_sizes

SIZES = tuple(2**k for k in range(3, 27))
#: Calls in a timed graph.
_CALLS = 32
#: CUDA flags: map peer memory on first use; infer the direction of a copy from its addresses.
_LAZY, _DEFAULT = 1, 4


def peer_access(world: World, placements: Sequence[RankPlacement]) -> Probe:
    """Return whether the GPUs of the first host can access each other's memory (collective)."""
    probe = None
    if world.rank == 0:
        probe = Probe(works=None, reason="no GPU") if placements[0].gpu is None else _probe_access(cuda_runtime())
    return world.bcast(probe)  # type: ignore[no-any-return]


def _probe_access(runtime: Any) -> Probe:
    count = int(runtime.getDeviceCount())
    if count < 2:
        return Probe(works=None, reason="only one GPU is visible")
    for a, b in itertools.permutations(range(count), 2):
        if not runtime.deviceCanAccessPeer(a, b):
            return Probe(works=False, reason=f"GPU {a} cannot access the memory of GPU {b}")
    return Probe(works=True, reason=f"all pairs of {count} GPUs")


def peer_curve(
    world: World, backend: Backend, pair: tuple[int, int], path: PathName, seconds: float
) -> TimingSeries | str:
    """Return timings of "peer_copy" or "peer_store" between the GPUs of two ranks, or the reason for none (collective).

    Calls are queued as in an exchange; the host waits for the last.
    """
    result: TimingSeries | str = ""
    with _mapped_memory(world, pair) as remote:
        if world.rank == pair[0]:
            if isinstance(remote, str):
                result = remote
            else:
                work_of = _stores(backend, remote) if path == "peer_store" else _copies(backend, remote)
                result = timed_sizes(SIZES, work_of, seconds)
    sleep_until_barrier(world)
    return world.comm.bcast(result, root=pair[0])  # type: ignore[no-any-return]


@contextmanager
def _mapped_memory(world: World, pair: tuple[int, int]) -> Iterator[int | str]:
    """Yield, on the first rank of a pair, the address of mapped memory of the second GPU, or the reason for none."""
    comm: Any = world.comm
    if world.rank == pair[1]:
        runtime = cuda_runtime()
        memory = int(runtime.malloc(SIZES[-1]))
        comm.send(bytes(runtime.ipcGetMemHandle(memory)), pair[0])
        yield memory
        comm.recv(source=pair[0])
        runtime.free(memory)
    elif world.rank == pair[0]:
        runtime = cuda_runtime()
        handle = comm.recv(source=pair[1])
        try:
            address = int(runtime.ipcOpenMemHandle(handle, _LAZY))
        except runtime.CUDARuntimeError as error:
            yield f"rank {pair[0]} cannot map the memory of rank {pair[1]}: {error}"
        else:
            yield address
            runtime.ipcCloseMemHandle(address)
        comm.send(None, pair[1])
    else:
        yield ""


def _copies(backend: Backend, remote: int) -> Any:
    runtime = cuda_runtime()
    source = backend.zeros(SIZES[-1], np.uint8)

    def work_of(size: int) -> Work:
        stream: Any = backend.current()
        address = backend.pointer(source)
        return queued(backend, lambda: runtime.memcpyAsync(remote, address, size, _DEFAULT, stream.stream.ptr))

    return work_of


def _stores(backend: Backend, remote: int) -> Any:
    kernel = backend.load(halo_move("Pack", "float32"))
    values = backend.zeros(SIZES[-1] // 4, np.float32)
    slots = backend.upload(np.arange(SIZES[-1] // 4, dtype=np.uint32))

    def work_of(size: int) -> Work:
        arguments = backend.pack(kernel, array=values, slots=slots, buffer=remote)
        return queued(backend, kernel.bind(arguments, 0, max(1, size // 4)))

    return work_of


def nccl_curves(
    world: World, backend: Backend, pairs: Sequence[tuple[int, int]], seconds: float, *, graph: bool = False
) -> list[TimingSeries] | str:
    """Return timings of NCCL between pairs, in both directions, or the reason for none (collective).

    Calls are queued, or captured in graphs of several calls (`graph`).
    """
    nccl = nccl_library()
    if nccl is None:
        return "NCCL is not installed: pip install nvidia-nccl-cu13 (or -cu12)"
    communicator = join(world, nccl)
    source, target = (backend.zeros(SIZES[-1], np.uint8) for _ in range(2))
    curves = []
    for pair in pairs:
        peer = pair[1] if world.rank == pair[0] else pair[0]

        def work_of(size: int, peer: int = peer) -> Work:
            stream: Any = backend.current()
            addresses = backend.pointer(source), backend.pointer(target)

            def once() -> None:
                nccl.groupStart()
                communicator.send(addresses[0], size, nccl.NCCL_UINT8, peer, stream.stream.ptr)
                communicator.recv(addresses[1], size, nccl.NCCL_UINT8, peer, stream.stream.ptr)
                nccl.groupEnd()

            if not graph:
                return queued(backend, once)
            once()  # establishes the connection
            backend.synchronize()
            return _replayed(backend, once)

        curves.append(timed_pair(world, pair, SIZES, work_of, seconds / len(pairs)))
    backend.synchronize()
    communicator.destroy()
    return curves


def _replayed(backend: Backend, once: Callable[[], None]) -> Work:
    """Return the work of calls in graphs of `_CALLS` calls."""

    def call_repeatedly() -> None:
        for _ in range(_CALLS):
            once()

    run = queued(backend, backend.capture(call_repeatedly).launch)

    def work(count: int) -> float:
        replays = -(-count // _CALLS)
        return run(replays) * count / (replays * _CALLS)

    return work
