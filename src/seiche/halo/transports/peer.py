# SPDX-License-Identifier: BSD-3-Clause
"""Messages between GPUs of one host: the pack kernel writes to the neighbour's memory (CUDA IPC, NVLink).

The memory of a rank contains, for each of four buffers, the messages from its peers in sequence, followed by one
counter per peer: the number of its last message. A peer without a message for this rank still increments its counter.
With two exchanges in flight, a rank writes message n + 1 after it has received its peers' message n - 1. They sent that
one after reading message n - 3. Four buffers therefore need no acquire or release.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.domain.rank_locations import on_different_hosts, rank_locations
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.base import MAX_IN_FLIGHT, Integers, Transport, message_addresses
from seiche.halo.transports.cuda_runtime import IPC_LAZY, MEMCPY_DEFAULT, cuda_runtime
from seiche.halo.transports.single_copy import NONCE
from seiche.kernels.registry.halo import halo_await, halo_publish

#: Time limit in seconds of a wait for a message; SEICHE_TIMEOUT overrides it.
TIMEOUT = 300.0
_COUNTER_BYTES = np.dtype(np.uint32).itemsize
#: The counters occupy separate cache lines.
_CACHE_LINE = 128


class PeerTransport(Transport):
    """Stores through CUDA IPC; an exchange consists of device work only."""

    capturable = True
    buffer_count = 2 * MAX_IN_FLIGHT

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate this rank's memory and map that of the peers (collective).

        Raises:
            TransportError: a rank has no GPU, a peer is on another host, or its memory cannot be mapped.
        """
        super().__init__(backend, world, peers, sent, received)
        self._runtime = cuda_runtime()
        self._mapped: dict[int, int] = {}
        size = -(-sum(received) // _CACHE_LINE) * _CACHE_LINE
        total_size = max(NONCE, self.buffer_count * size + len(peers) * _COUNTER_BYTES)
        self._memory = int(self._runtime.malloc(total_size))
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
        backend.synchronize()
        world.barrier()  # all counters must be zero before the first store

    def unreachable(self) -> str | None:
        """Return which peer has no GPU or is on another host."""
        locations = rank_locations(self.backend, self.world)
        own_location = locations[self.world.rank]
        if own_location.gpu is None:
            return f"transport 'peer' requires a GPU, but rank {self.world.rank} computes on {self.backend.name}"
        for peer in self.peers:
            if 0 <= peer < self.world.size and locations[peer].host != own_location.host:
                relation = on_different_hosts(own_location.host, locations[peer].host)
                return f"transport 'peer': ranks {self.world.rank} and {peer} are {relation}; use 'nccl'"
        return super().unreachable()

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
        """Make the stream wait for the peers' counters."""
        del buffer_index
        self._await()

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
