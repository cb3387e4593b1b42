# SPDX-License-Identifier: BSD-3-Clause
"""Messages by an MPI library that accepts device addresses. Most do not and crash, so support is queried first."""

from __future__ import annotations

import ctypes
from typing import Any

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import Integers, Transport, message_addresses


def accepts_device_addresses() -> bool:
    """Return whether the MPI library reports support (MPIX_Query_cuda_support of MPICH and Open MPI)."""
    from mpi4py import MPI

    try:
        query = ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return False
    query.restype = ctypes.c_int
    return bool(query() == 1)


class DeviceMpiTransport(Transport):
    """Persistent requests on device buffers, or on host memory if the device is the CPU."""

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate buffers and set up the requests (collective).

        Raises:
            TransportError: MPI is not available or does not accept device addresses.
        """
        if world.comm is None:
            raise TransportError("transport 'device_mpi' requires MPI; start Seiche with mpiexec, or use 'local'")
        super().__init__(backend, world, peers, sent, received)
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = world.comm.Dup()
        self._buffers = [self.buffers(sent), self.buffers(received)]
        self.outgoing = tuple(message_addresses(backend.pointer(buffer), sent) for buffer in self._buffers[0])
        self.incoming = tuple(message_addresses(backend.pointer(buffer), received) for buffer in self._buffers[1])
        init_send, init_receive = self._comm.Send_init, self._comm.Recv_init
        self._sends = [self._requests(init_send, out, sent, tag) for tag, out in enumerate(self.outgoing)]
        self._receives = [
            self._requests(init_receive, target, received, tag) for tag, target in enumerate(self.incoming)
        ]

    def unreachable(self) -> str | None:
        """Return why the MPI library or a peer cannot be used."""
        if not self.backend.host_memory and not accepts_device_addresses():
            return "transport 'device_mpi': this MPI does not accept addresses of GPU memory; use 'nccl' or 'host'"
        return super().unreachable()

    def _requests(self, init: Any, addresses: Integers, sizes: Integers, tag: int) -> list[Any]:
        buffer = self._mpi.memory.fromaddress if hasattr(self._mpi, "memory") else self._mpi.buffer.fromaddress
        return [
            init([buffer(address, size), self._mpi.BYTE], peer, tag)
            for peer, address, size in zip(self.peers, addresses, sizes, strict=True)
            if size
        ]

    def acquire(self, buffer_index: int) -> None:
        """Wait until the buffer's earlier messages are sent, then start its receives once the kernels have finished."""
        self.wait(self._sends[buffer_index], "sending")
        self.backend.current().synchronize()
        self._mpi.Prequest.Startall(self._receives[buffer_index])

    def send(self, buffer_index: int) -> None:
        """Send after the pack kernels."""
        self.backend.current().synchronize()
        self._mpi.Prequest.Startall(self._sends[buffer_index])

    def receive(self, buffer_index: int) -> None:
        """Wait for the messages while kernels of the current stream continue."""
        self.wait(self._receives[buffer_index], "receiving")

    def close(self) -> None:
        """Free requests and communicator (collective)."""
        for buffer_index in range(self.buffer_count):
            self.wait(self._sends[buffer_index], "sending")
            for request in self._sends[buffer_index] + self._receives[buffer_index]:
                request.Free()
            self._sends[buffer_index], self._receives[buffer_index] = [], []
        if self._comm is not None:
            self._comm.Free()
            self._comm = None
