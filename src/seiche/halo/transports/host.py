# SPDX-License-Identifier: BSD-3-Clause
"""Messages by MPI from host memory: any MPI, any number of hosts, any device.

On a device with separate memory a message takes three steps: pinned copy, MPI, pinned copy. On the CPU the kernels
pack into and unpack from the MPI buffers directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import Integers, Transport, message_addresses


class _BufferSet:
    """Buffers and requests that one exchange uses."""

    def __init__(self, backend: Backend, sent: int, received: int) -> None:
        self.host_out = backend.pinned(max(1, sent), np.uint8)
        self.host_in = backend.pinned(max(1, received), np.uint8)
        staged = not backend.host_memory
        self.device_out = backend.zeros(max(1, sent), np.uint8) if staged else self.host_out
        self.device_in = backend.zeros(max(1, received), np.uint8) if staged else self.host_in
        self.stream = backend.stream()
        self.sends: list[Any] = []
        self.receives: list[Any] = []


class HostTransport(Transport):
    """Persistent MPI requests on a separate communicator, with one tag per set of buffers."""

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate buffers and set up the requests (collective).

        Raises:
            TransportError: MPI is not available, or two ranks expect different messages.
        """
        if world.comm is None:
            raise TransportError("transport 'host' requires MPI; start Seiche with mpiexec, or use 'local'")
        super().__init__(backend, world, peers, sent, received)
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = world.comm.Dup()
        self._buffer_sets = [_BufferSet(backend, sum(sent), sum(received)) for _ in range(self.buffer_count)]
        for tag, buffers in enumerate(self._buffer_sets):
            buffers.sends = self._requests(self._comm.Send_init, buffers.host_out, sent, tag)
            buffers.receives = self._requests(self._comm.Recv_init, buffers.host_in, received, tag)
        self.outgoing = tuple(
            message_addresses(backend.pointer(buffers.device_out), sent) for buffers in self._buffer_sets
        )
        self.incoming = tuple(
            message_addresses(backend.pointer(buffers.device_in), received) for buffers in self._buffer_sets
        )

    def _requests(self, set_up: Any, buffer: Any, sizes: Integers, tag: int) -> list[Any]:
        requests, begin = [], 0
        for peer, size in zip(self.peers, sizes, strict=True):
            if size:
                requests.append(set_up([buffer[begin : begin + size], self._mpi.BYTE], peer, tag))
            begin += size
        return requests

    def acquire(self, buffer_index: int) -> None:
        """Wait until the buffer's earlier messages are sent, then start its receives."""
        resources = self._buffer_sets[buffer_index]
        self.wait(resources.sends, "sending")
        # The previous copy out of the pinned receive buffer must finish before MPI refills it.
        resources.stream.synchronize()
        self._mpi.Prequest.Startall(resources.receives)

    def send(self, buffer_index: int) -> None:
        """Send, or start the copy to the host if the device has separate memory."""
        resources = self._buffer_sets[buffer_index]
        if self.backend.host_memory:
            self._mpi.Prequest.Startall(resources.sends)
            return
        # The event follows the pack kernels and the unpack kernels of the buffer's previous message. Copies to and from
        # these buffers therefore start only after the kernels that use its buffers.
        resources.stream.wait(self.backend.clock().record())
        with self.backend.use(resources.stream):
            self.backend.copy_to_host(resources.device_out, resources.host_out)

    def receive(self, buffer_index: int) -> None:
        """Wait for the messages while kernels of the current stream continue."""
        resources = self._buffer_sets[buffer_index]
        if not self.backend.host_memory:
            resources.stream.synchronize()
            self._mpi.Prequest.Startall(resources.sends)
        self.wait(resources.receives, "receiving")
        if not self.backend.host_memory:
            with self.backend.use(resources.stream):
                self.backend.copy_to_device(resources.host_in, resources.device_in)
            self.backend.current().wait(resources.stream.record())

    def close(self) -> None:
        """Free requests and communicator (collective)."""
        for buffers in self._buffer_sets:
            self.wait(buffers.sends, "sending")
            for request in buffers.sends + buffers.receives:
                request.Free()
            buffers.sends, buffers.receives = [], []
        if self._comm is not None:
            self._comm.Free()
            self._comm = None


def message_of_pieces(array: npt.NDArray[np.uint8], pieces: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the MPI buffer specification of pieces (offset, bytes), at least one, of an array.

    The caller must free its last element, a derived type.
    """
    from mpi4py import MPI

    offsets, sizes = zip(*pieces, strict=True)
    return [array, 1, MPI.BYTE.Create_hindexed(sizes, offsets).Commit()]
