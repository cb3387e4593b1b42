# SPDX-License-Identifier: BSD-3-Clause
"""Messages by an MPI that takes addresses of device memory; most do not, and crash when given one, so it is asked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import UNDER_WAY, Transport, places


def takes_device_addresses() -> bool:
    """Return whether the MPI library says so itself (MPIX_Query_cuda_support of MPICH and Open MPI)."""
    from mpi4py import MPI

    try:
        query = ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return False
    query.restype = ctypes.c_int
    return bool(query() == 1)


class DeviceMpiTransport(Transport):
    """Persistent requests on device buffers; where the device is the CPU, on ordinary memory."""

    def __init__(
        self, backend: Backend, world: World, peers: tuple[int, ...], sent: tuple[int, ...], received: tuple[int, ...]
    ) -> None:
        """Allocate buffers and set up the requests; all ranks must call it together.

        Raises:
            TransportError: there is no MPI, or it does not take device addresses.
        """
        if world.comm is None:
            raise TransportError("transport 'device_mpi' needs MPI: start Seiche by mpiexec, or use 'local'")
        super().__init__(backend, world, peers, sent, received)
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = world.comm.Dup()
        self._buffers = [
            [backend.zeros(max(1, sum(sizes)), np.uint8) for _ in range(UNDER_WAY)] for sizes in (sent, received)
        ]
        self.outgoing = tuple(places(backend.pointer(buffer), sent) for buffer in self._buffers[0])
        self.incoming = tuple(places(backend.pointer(buffer), received) for buffer in self._buffers[1])
        self._sends = [self._requests(self._comm.Send_init, self.outgoing[k], sent, k) for k in range(UNDER_WAY)]
        self._receives = [self._requests(self._comm.Recv_init, self.incoming[k], received, k) for k in range(UNDER_WAY)]

    def unreachable(self) -> str | None:
        """Return that this MPI does not take device addresses."""
        if not self.backend.host_memory and not takes_device_addresses():
            return "transport 'device_mpi': this MPI does not take addresses of GPU memory; use 'nccl' or 'host'"
        return super().unreachable()

    def _requests(self, set_up: Any, addresses: tuple[int, ...], sizes: tuple[int, ...], tag: int) -> list[Any]:
        buffer = self._mpi.memory.fromaddress if hasattr(self._mpi, "memory") else self._mpi.buffer.fromaddress
        return [
            set_up([buffer(address, size), self._mpi.BYTE], peer, tag)
            for peer, address, size in zip(self.peers, addresses, sizes, strict=True)
            if size
        ]

    def acquire(self, slot: int) -> None:
        """Wait until the slot's earlier messages have left; stand ready for new ones once the old ones are read."""
        self.wait(self._sends[slot], "sending")
        self.backend.current().synchronize()
        self._mpi.Prequest.Startall(self._receives[slot])

    def send(self, slot: int) -> None:
        """Send when the pack kernels are done."""
        self.backend.current().synchronize()
        self._mpi.Prequest.Startall(self._sends[slot])

    def receive(self, slot: int) -> None:
        """Wait for the messages; kernels of the current stream go on meanwhile."""
        self.wait(self._receives[slot], "receiving")

    def close(self) -> None:
        """Free requests and communicator; all ranks must call it together."""
        for slot in range(UNDER_WAY):
            self.wait(self._sends[slot], "sending")
            for request in self._sends[slot] + self._receives[slot]:
                request.Free()
            self._sends[slot], self._receives[slot] = [], []
        if self._comm is not None:
            self._comm.Free()
            self._comm = None
