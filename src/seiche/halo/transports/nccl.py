# SPDX-License-Identifier: BSD-3-Clause
"""Messages between GPUs by NCCL: any number of hosts, without host work between pack and unpack."""

from __future__ import annotations

from typing import Any

from seiche.backend import Backend
from seiche.domain.rank_locations import rank_locations
from seiche.domain.world import World, raise_together
from seiche.halo.transports.base import Integers, Transport, message_addresses


def nccl_library() -> Any:
    """Return CuPy's NCCL module, or None if it is not available."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return None
    return nccl if getattr(nccl, "available", True) else None


def join(world: World, nccl: Any) -> Any:
    """Return a communicator of all ranks, each with its own GPU (collective).

    Raises:
        TransportError: on all ranks, if one cannot join.
    """
    problem = communicator = None
    name = world.bcast(nccl.get_unique_id() if world.rank == 0 else None)
    try:
        communicator = nccl.NcclCommunicator(world.size, name, world.rank)
    except nccl.NcclError as error:
        problem = f"transport 'nccl': rank {world.rank} cannot join the communicator: {error}"
    raise_together(world, problem)
    return communicator


class NcclTransport(Transport):
    """One group of sends and receives per exchange, on a separate stream."""

    capturable = True

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate buffers and join a communicator (collective).

        Raises:
            TransportError: a rank has no GPU of its own, NCCL is missing, or the communicator cannot be created.
        """
        super().__init__(backend, world, peers, sent, received)
        self._nccl = nccl_library()
        self._communicator = join(world, self._nccl)
        self._stream = backend.stream()
        self._buffers = [self.buffers(sent), self.buffers(received)]
        self.outgoing = tuple(message_addresses(backend.pointer(buffer), sent) for buffer in self._buffers[0])
        self.incoming = tuple(message_addresses(backend.pointer(buffer), received) for buffer in self._buffers[1])

    def unreachable(self) -> str | None:
        """Return why NCCL cannot be used by these ranks."""
        locations = rank_locations(self.backend, self.world)
        own_location = locations[self.world.rank]
        if own_location.gpu is None:
            return f"transport 'nccl' requires a GPU, but rank {self.world.rank} computes on {self.backend.name}"
        shared = [
            rank for rank, location in enumerate(locations) if location == own_location and rank != self.world.rank
        ]
        if shared:
            return (
                f"transport 'nccl' requires a GPU per rank, but ranks {self.world.rank} and {shared[0]} share "
                f"{own_location.gpu}"
            )
        if nccl_library() is None:
            return "transport 'nccl' requires NCCL: pip install nvidia-nccl-cu13 (or -cu12)"
        return super().unreachable()

    def send(self, buffer_index: int) -> None:
        """Queue the group after the pack kernels, on the transport's stream."""
        stream: Any = self._stream
        stream.wait(self.backend.current().record())
        self._nccl.groupStart()
        for peer, size, address in zip(self.peers, self.sent, self.outgoing[buffer_index], strict=True):
            if size:
                self._communicator.send(address, size, self._nccl.NCCL_UINT8, peer, stream.stream.ptr)
        for peer, size, address in zip(self.peers, self.received, self.incoming[buffer_index], strict=True):
            if size:
                self._communicator.recv(address, size, self._nccl.NCCL_UINT8, peer, stream.stream.ptr)
        self._nccl.groupEnd()

    def receive(self, buffer_index: int) -> None:
        """Make the current stream wait for the group."""
        del buffer_index
        self.backend.current().wait(self._stream.record())

    def close(self) -> None:
        """Leave the communicator (collective)."""
        self.backend.synchronize()
        if self._communicator is not None:
            self._communicator.destroy()
            self._communicator = None
        self._buffers.clear()
