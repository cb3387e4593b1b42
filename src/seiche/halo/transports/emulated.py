# SPDX-License-Identifier: BSD-3-Clause
"""Messages of emulated ranks: only counted on a planned device, passed between threads otherwise."""

from __future__ import annotations

import numpy as np

from seiche.backend import Backend
from seiche.backend.planned import Ledger, PlannedBackend
from seiche.domain.world import World
from seiche.halo.transports.base import Integers, Transport, message_addresses


def is_emulated(backend: Backend, world: World) -> bool:
    """Return whether messages of these ranks or this device belong to an emulation."""
    return world.emulated or isinstance(backend, PlannedBackend)


class EmulatedTransport(Transport):
    """Replaces, in an emulation, the transport that the case selects."""

    name = "emulated"

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate buffers like every transport (collective).

        Raises:
            TransportError: as for every transport.
        """
        super().__init__(backend, world, peers, sent, received)
        self._tag = world.comm.next_tag() if world.emulated else 0
        self._out, self._in = self.buffers(sent), self.buffers(received)
        self.outgoing = tuple(message_addresses(backend.pointer(buffer), sent) for buffer in self._out)
        self.incoming = tuple(message_addresses(backend.pointer(buffer), received) for buffer in self._in)

    @property
    def _ledger(self) -> Ledger | None:
        """Return the ledger that counts messages, or None if they are transferred."""
        backend = self.backend
        return backend.ledger if isinstance(backend, PlannedBackend) and not backend.running else None

    def send(self, buffer_index: int) -> None:
        """Count the messages of an exchange, or transfer them."""
        if (ledger := self._ledger) is not None:
            sizes = zip(self.peers, self.sent, self.received, strict=True)
            ledger.exchanges.append(
                tuple((peer, outgoing, incoming) for peer, outgoing, incoming in sizes if outgoing or incoming)
            )
            return
        begin = 0
        for peer, size in zip(self.peers, self.sent, strict=True):
            if size:
                self.world.comm.put(
                    peer, (self._tag, buffer_index), self._out[buffer_index][begin : begin + size].tobytes()
                )
            begin += size

    def receive(self, buffer_index: int) -> None:
        """Take the messages sent by the peers."""
        if (ledger := self._ledger) is not None:
            ledger.arrivals += 1
            return
        begin = 0
        for peer, size in zip(self.peers, self.received, strict=True):
            if size:
                message = self.world.comm.take(peer, (self._tag, buffer_index))
                self._in[buffer_index][begin : begin + size] = np.frombuffer(message, np.uint8)
            begin += size

    def close(self) -> None:
        """Release the buffers."""
        self._out, self._in = [], []
