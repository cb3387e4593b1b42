# SPDX-License-Identifier: BSD-3-Clause
"""Messages between GPUs of one host: the pack kernel writes to the neighbour's memory (CUDA IPC, NVLink).

The memory of a rank contains, for each of four slots, the messages from its peers in sequence, followed by one counter
per peer: the number of its last message. A peer without a message for this rank still increments its counter. With two
exchanges in flight, a rank writes message n + 1 after it has received its peers' message n - 1. They sent that one
after reading message n - 3. Four slots therefore need no acquire or release.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.domain.seats import on_different_hosts, rank_locations
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.base import MAX_IN_FLIGHT, Ints, Transport, message_addresses
from seiche.halo.transports.cuda_runtime import IPC_LAZY, MEMCPY_DEFAULT, cuda_runtime
from seiche.halo.transports.single_copy import NONCE
from seiche.kernels.registry.halo import halo_await, halo_publish

#: Time limit in seconds of a wait for a message; SEICHE_TIMEOUT overrides it.
TIMEOUT = 300.0
_WORD = np.dtype(np.uint32).itemsize
#: The counters occupy separate cache lines.
_LINE = 128


class PeerTransport(Transport):
    """CUDA IPC: the whole exchange is device work."""

    capturable = True
    slots = 2 * MAX_IN_FLIGHT

    def __init__(self, backend: Backend, world: World, peers: Ints, sent: Ints, received: Ints) -> None:
        """Allocate this rank's memory and map that of the peers (collective).

        Raises:
            TransportError: a rank has no GPU, a peer is on another host, or its memory cannot be mapped.
        """
        super().__init__(backend, world, peers, sent, received)
        self._runtime = cuda_runtime()
        self._mapped: dict[int, int] = {}
        size = -(-sum(received) // _LINE) * _LINE
        room = max(NONCE, self.slots * size + len(peers) * _WORD)
        self._memory = int(self._runtime.malloc(room))
        self._runtime.memset(self._memory, 0, room)
        self.incoming = tuple(message_addresses(self._memory + slot * size, received) for slot in range(self.slots))
        words = [self.slots * size + _WORD * k for k in range(len(peers))]
        self._map(size, words)
        self._failed = backend.pinned(1, np.uint32)
        self._failed[0] = 0
        self._timeout = float(os.environ.get("SEICHE_TIMEOUT") or os.environ.get("SEICHE_PATIENCE") or 0) or TIMEOUT
        counts = [backend.zeros(max(1, len(peers)), np.uint32) for _ in range(2)]
        flags = backend.upload(np.array(self._peer_words, np.uint64))
        publish, wait = backend.load(halo_publish()), backend.load(halo_await())
        self._kept = (counts, flags)
        self._publish = publish.bind(backend.pack(publish, flags=flags, sent=counts[0]), 0, len(peers))
        arguments = backend.pack(
            wait,
            flags=self._memory + self.slots * size,
            received=counts[1],
            failed=int(self._failed.ctypes.data),
            patience=int(self._timeout * 1e9),
        )
        self._await = wait.bind(arguments, 0, len(peers))
        backend.synchronize()
        world.barrier()  # all counters must be zero before the first store

    def unreachable(self) -> str | None:
        """Return which peer has no GPU or is on another host."""
        at = rank_locations(self.backend, self.world)
        place = at[self.world.rank]
        if place.gpu is None:
            return f"transport 'peer' requires a GPU, but rank {self.world.rank} computes on {self.backend.name}"
        for peer in self.peers:
            if 0 <= peer < self.world.size and at[peer].host != place.host:
                apart = on_different_hosts(place.host, at[peer].host)
                return f"transport 'peer': ranks {self.world.rank} and {peer} are {apart}; use 'nccl'"
        return super().unreachable()

    def _map(self, size: int, words: list[int]) -> None:
        """Exchange handles and offsets, and compute the addresses to store to.

        The memory of each rank initially begins with a nonce. A peer that reads another value has mapped other memory.
        """
        nonce = np.frombuffer(os.urandom(NONCE), np.uint8).copy()
        self._runtime.memcpy(self._memory, nonce.ctypes.data, NONCE, MEMCPY_DEFAULT)
        self.backend.synchronize()
        handles = {
            peer: ([place - self._memory for place in (slot[k] for slot in self.incoming)], words[k])
            for k, peer in enumerate(self.peers)
        }
        handle = bytes(self._runtime.ipcGetMemHandle(self._memory))
        everyone: list[tuple[bytes, dict[int, Any], bytes]] = self.world.allgather((handle, handles, nonce.tobytes()))
        outgoing: list[list[int]] = [[] for _ in range(self.slots)]
        self._peer_words: list[int] = []
        problem, content = None, np.zeros(NONCE, np.uint8)
        for peer in self.peers:
            try:
                base = self._base(peer, everyone[peer][0])
                self._runtime.memcpy(content.ctypes.data, base, NONCE, MEMCPY_DEFAULT)
            except self._runtime.CUDARuntimeError as error:
                problem = f"transport 'peer': rank {self.world.rank} cannot map the memory of rank {peer}: {error}"
                break
            if content.tobytes() != everyone[peer][2]:
                problem = f"transport 'peer': rank {self.world.rank} mapped memory that does not belong to rank {peer}"
                break
            slots, word = everyone[peer][1][self.world.rank]
            for slot, place in enumerate(slots):
                outgoing[slot].append(base + place)
            self._peer_words.append(base + word)
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

    def send(self, slot: int) -> None:
        """Increment the peers' counters after the pack kernels."""
        del slot
        self._publish()

    def receive(self, slot: int) -> None:
        """Make the stream wait for the peers' counters."""
        del slot
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
