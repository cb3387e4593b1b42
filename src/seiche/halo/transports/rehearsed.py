# SPDX-License-Identifier: BSD-3-Clause
"""Messages of a rehearsal: on a device that only counts they are counted, between threads they go from hand to hand."""

from __future__ import annotations

import numpy as np

from seiche.backend import Backend
from seiche.backend.planned import Ledger, PlannedBackend
from seiche.domain.world import World
from seiche.halo.transports.base import Transport, places


def is_rehearsed(backend: Backend, world: World) -> bool:
    """Return whether messages between these ranks, or of this device, are those of a rehearsal."""
    return world.rehearsed or isinstance(backend, PlannedBackend)


class RehearsedTransport(Transport):
    """Stands for any transport, whatever the case asks for."""

    name = "rehearsed"

    def __init__(
        self, backend: Backend, world: World, peers: tuple[int, ...], sent: tuple[int, ...], received: tuple[int, ...]
    ) -> None:
        """Allocate buffers, as every transport does; all ranks must call it together.

        Raises:
            TransportError: as of every transport.
        """
        super().__init__(backend, world, peers, sent, received)
        self._label = world.comm.next_label() if world.rehearsed else 0
        self._out, self._in = self.buffers(sent), self.buffers(received)
        self.outgoing = tuple(places(backend.pointer(buffer), sent) for buffer in self._out)
        self.incoming = tuple(places(backend.pointer(buffer), received) for buffer in self._in)

    @property
    def _ledger(self) -> Ledger | None:
        """Return where messages are counted, None where they travel."""
        backend = self.backend
        return backend.ledger if isinstance(backend, PlannedBackend) and not backend.running else None

    def send(self, slot: int) -> None:
        """Count the messages of an exchange, or hand them over."""
        if (ledger := self._ledger) is not None:
            both = zip(self.peers, self.sent, self.received, strict=True)
            found = tuple((peer, out, into) for peer, out, into in both if out or into)
            ledger.exchanges.append(found)
            return
        begin = 0
        for peer, size in zip(self.peers, self.sent, strict=True):
            if size:
                self.world.comm.put(peer, (self._label, slot), self._out[slot][begin : begin + size].tobytes())
            begin += size

    def receive(self, slot: int) -> None:
        """Take what was handed over."""
        if (ledger := self._ledger) is not None:
            ledger.arrivals += 1
            return
        begin = 0
        for peer, size in zip(self.peers, self.received, strict=True):
            if size:
                letter = self.world.comm.take(peer, (self._label, slot))
                self._in[slot][begin : begin + size] = np.frombuffer(letter, np.uint8)
            begin += size

    def close(self) -> None:
        """Forget the buffers."""
        self._out, self._in = [], []
