# SPDX-License-Identifier: BSD-3-Clause
"""Messages between ranks of one host: the pack kernel writes to the neighbour's memory.

GPUs map each other's memory by CUDA IPC (NVLink or PCIe), ranks on CPUs by shared memory of the host.

The memory of a rank contains, for each of four buffers, the messages from its peers in sequence, followed by one
counter per peer: the number of its last message. A peer without a message for this rank still increments its counter.
With two exchanges in flight, a rank writes message n + 1 after it has received its peers' message n - 1. They sent that
one after reading message n - 3. Four buffers therefore need no acquire or release.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.rank_locations import RankLocation, on_different_hosts, rank_locations
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.base import MAX_IN_FLIGHT, Integers, Transport, message_addresses
from seiche.halo.transports.cuda_runtime import IPC_LAZY, MEMCPY_DEFAULT, cuda_runtime
from seiche.halo.transports.memory import bytes_at
from seiche.halo.transports.shared_memory import SharedMemoryRuntime
from seiche.halo.transports.single_copy import NONCE
from seiche.kernels.registry.halo import halo_await, halo_publish

#: Time limit in seconds of a wait for a message; SEICHE_TIMEOUT overrides it.
TIMEOUT = 300.0
_COUNTER_BYTES = np.dtype(np.uint32).itemsize
#: The counters occupy separate cache lines.
_CACHE_LINE = 128


def runtime_of(location: RankLocation) -> Any:
    """Return the runtime with which a rank there shares memory: that of CUDA, or shared memory of the host."""
    return SharedMemoryRuntime() if location.gpu is None else cuda_runtime()


def mappable_peers(backend: Backend, world: World, peers: Integers) -> tuple[int, ...]:
    """Return those of `peers` on this host whose memory this rank can map, and which can map that of this rank.

    Collective. Each pair is tested: a peer counts only if this rank reads there what it has written.
    """
    locations = rank_locations(backend, world)
    own = locations[world.rank]
    runtime, nonce = runtime_of(own), np.frombuffer(os.urandom(NONCE), np.uint8).copy()
    content, handle, address = np.zeros(NONCE, np.uint8), b"", 0
    with suppress(runtime.CUDARuntimeError):
        address = int(runtime.malloc(NONCE))
        runtime.memcpy(address, nonce.ctypes.data, NONCE, MEMCPY_DEFAULT)
        backend.synchronize()
        handle = bytes(runtime.ipcGetMemHandle(address))
    shared: list[tuple[bytes, bytes]] = world.allgather((handle, nonce.tobytes()))
    mapped = set[int]()
    for peer in peers:
        if peer == world.rank:
            mapped.add(peer)
        elif locations[peer].host == own.host and handle and shared[peer][0]:
            with suppress(runtime.CUDARuntimeError):
                base = int(runtime.ipcOpenMemHandle(shared[peer][0], IPC_LAZY))
                runtime.memcpy(content.ctypes.data, base, NONCE, MEMCPY_DEFAULT)
                runtime.ipcCloseMemHandle(base)
                if content.tobytes() == shared[peer][1]:
                    mapped.add(peer)
    all_mapped: list[set[int]] = world.allgather(mapped)  # afterwards no rank has the memory mapped
    if address:
        runtime.free(address)
    return tuple(peer for peer in peers if peer in mapped and world.rank in all_mapped[peer])


class PeerTransport(Transport):
    """Stores into mapped memory of the peers. On GPUs an exchange consists of device work only."""

    buffer_count = 2 * MAX_IN_FLIGHT

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate this rank's memory and map that of the peers (collective).

        Raises:
            TransportError: a peer is on another host, or its memory cannot be mapped.
        """
        super().__init__(backend, world, peers, sent, received)
        location = rank_locations(backend, world)[world.rank]
        self._runtime = runtime_of(location)
        self._polls = location.gpu is None
        self.capturable = not self._polls
        self._mapped: dict[int, int] = {}
        size = -(-sum(received) // _CACHE_LINE) * _CACHE_LINE
        total_size = max(NONCE, self.buffer_count * size + len(peers) * _COUNTER_BYTES)
        self._memory = self._allocated(total_size)
        self._runtime.memset(self._memory, 0, total_size)
        self.incoming = tuple(
            message_addresses(self._memory + buffer_index * size, received) for buffer_index in range(self.buffer_count)
        )
        counter_offsets = [self.buffer_count * size + _COUNTER_BYTES * k for k in range(len(peers))]
        self._map(size, counter_offsets)
        self._failed = backend.pinned(1, np.uint32)
        self._failed[0] = 0
        self._timeout = float(os.environ.get("SEICHE_TIMEOUT") or os.environ.get("SEICHE_PATIENCE") or 0) or TIMEOUT
        counts = [backend.zeros(max(1, len(peers)), np.uint32) for _ in range(2)]
        flags = backend.upload(np.array(self._peer_counters, np.uint64))
        publish, wait = backend.load(halo_publish()), backend.load(halo_await())
        # Bound kernels use these arrays: they must not be freed.
        self._referenced = (counts, flags)
        self._publish = publish.bind(backend.pack(publish, flags=flags, sent=counts[0]), 0, len(peers))
        arguments = backend.pack(
            wait,
            flags=self._memory + self.buffer_count * size,
            received=counts[1],
            failed=int(self._failed.ctypes.data),
            timeout=int(self._timeout * 1e9),
        )
        self._await = wait.bind(arguments, 0, len(peers))
        counters = self._memory + self.buffer_count * size
        self._counters = bytes_at(counters, _COUNTER_BYTES * len(peers)).view(np.uint32) if self._polls else None
        self._exchanges = np.uint32(0)
        backend.synchronize()
        world.barrier()  # all counters must be zero before the first store

    def unreachable(self) -> str | None:
        """Return which peer is on another host."""
        locations = rank_locations(self.backend, self.world)
        own_location = locations[self.world.rank]
        for peer in self.peers:
            if 0 <= peer < self.world.size and locations[peer].host != own_location.host:
                relation = on_different_hosts(own_location.host, locations[peer].host)
                other = "host" if own_location.gpu is None else "nccl"
                return f"transport 'peer': ranks {self.world.rank} and {peer} are {relation}; use 'peer+{other}'"
        return super().unreachable()

    def _allocated(self, size: int) -> int:
        """Return the address of memory that the peers can map (collective)."""
        address, problem = 0, None
        try:
            address = int(self._runtime.malloc(size))
        except self._runtime.CUDARuntimeError as error:
            problem = f"transport 'peer': rank {self.world.rank} cannot allocate {size} B to share: {error}"
        try:
            raise_together(self.world, problem)
        except TransportError:
            if address:
                self._runtime.free(address)
            raise
        return address

    def _map(self, size: int, counter_offsets: list[int]) -> None:
        """Exchange handles and offsets, and compute the addresses to store to.

        The memory of each rank initially begins with a nonce. A peer that reads another value has mapped other memory.
        """
        nonce = np.frombuffer(os.urandom(NONCE), np.uint8).copy()
        self._runtime.memcpy(self._memory, nonce.ctypes.data, NONCE, MEMCPY_DEFAULT)
        self.backend.synchronize()
        handles = {
            peer: (
                [offset - self._memory for offset in (addresses[k] for addresses in self.incoming)],
                counter_offsets[k],
            )
            for k, peer in enumerate(self.peers)
        }
        handle = bytes(self._runtime.ipcGetMemHandle(self._memory))
        shared: list[tuple[bytes, dict[int, Any], bytes]] = self.world.allgather((handle, handles, nonce.tobytes()))
        outgoing: list[list[int]] = [[] for _ in range(self.buffer_count)]
        self._peer_counters: list[int] = []
        problem, content = None, np.zeros(NONCE, np.uint8)
        for peer in self.peers:
            try:
                base = self._base(peer, shared[peer][0])
                self._runtime.memcpy(content.ctypes.data, base, NONCE, MEMCPY_DEFAULT)
            except self._runtime.CUDARuntimeError as error:
                problem = f"transport 'peer': rank {self.world.rank} cannot map the memory of rank {peer}: {error}"
                break
            if content.tobytes() != shared[peer][2]:
                problem = f"transport 'peer': rank {self.world.rank} mapped memory that does not belong to rank {peer}"
                break
            buffer_offsets, counter = shared[peer][1][self.world.rank]
            for buffer_index, offset in enumerate(buffer_offsets):
                outgoing[buffer_index].append(base + offset)
            self._peer_counters.append(base + counter)
        try:
            raise_together(self.world, problem)
        except TransportError:
            self._unmap()
            raise
        self._runtime.memset(self._memory, 0, NONCE)
        self.outgoing = tuple(tuple(addresses) for addresses in outgoing)

    def _base(self, peer: int, handle: bytes) -> int:
        if peer == self.world.rank:
            return self._memory
        if peer not in self._mapped:
            self._mapped[peer] = int(self._runtime.ipcOpenMemHandle(handle, IPC_LAZY))
        return self._mapped[peer]

    def send(self, buffer_index: int) -> None:
        """Increment the peers' counters after the pack kernels."""
        del buffer_index
        self._publish()

    def receive(self, buffer_index: int) -> None:
        """Make the stream wait for the peers' counters; a CPU waits here."""
        del buffer_index
        if self._counters is not None:
            self._poll(self._counters)
        self._await()

    def _poll(self, counters: npt.NDArray[np.uint32]) -> None:
        """Give the core to other processes until all counters have arrived."""
        self._exchanges += np.uint32(1)  # wraps around, as the counters
        end = time.monotonic() + self._timeout
        # Signed difference, because the counts may wrap around.
        while (late := (counters - self._exchanges).view(np.int32) < 0).any() and not self._failed[0]:
            os.sched_yield()
            if time.monotonic() > end:
                self._failed[0] = 1 + int(np.argmax(late))

    def failure(self) -> str | None:
        """Describe the wait that timed out."""
        if not self._failed[0]:
            return None
        peer = self.peers[int(self._failed[0]) - 1]
        return (
            f"rank {self.world.rank} received no message from rank {peer} within {self._timeout:g} s (the "
            "environment variable SEICHE_TIMEOUT sets this limit)"
        )

    def _unmap(self) -> None:
        self._counters = None
        for address in self._mapped.values():
            with suppress(self._runtime.CUDARuntimeError):
                self._runtime.ipcCloseMemHandle(address)
        self._mapped.clear()
        self.world.barrier()  # free the memory only after all ranks have unmapped it
        if self._memory:
            self._runtime.free(self._memory)
            self._memory = 0

    def close(self) -> None:
        """Unmap and free the memory (collective)."""
        self.backend.synchronize()
        self.world.barrier()
        self._unmap()
