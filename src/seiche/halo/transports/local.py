# SPDX-License-Identifier: BSD-3-Clause
"""Messages from a rank to itself: they remain in device memory."""

from __future__ import annotations

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.halo.transports.base import Integers, Transport, message_addresses


class LocalTransport(Transport):
    """Buffers that are packed and unpacked in stream order."""

    capturable = True

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Allocate the buffers.

        Raises:
            TransportError: a peer is another rank.
        """
        super().__init__(backend, world, peers, sent, received)
        self._buffers = self.buffers(sent)
        self.outgoing = tuple(message_addresses(backend.pointer(buffer), sent) for buffer in self._buffers)
        self.incoming = self.outgoing

    def unreachable(self) -> str | None:
        """Return which peer is another rank."""
        other_ranks = [peer for peer in self.peers if peer != self.world.rank]
        if other_ranks:
            return f"transport 'local' cannot send from rank {self.world.rank} to rank {other_ranks[0]}; use 'host'"
        return None

    def send(self, buffer_index: int) -> None:
        """Do nothing: the message is in place."""

    def receive(self, buffer_index: int) -> None:
        """Do nothing: the message is in place."""

    def close(self) -> None:
        """Release the buffers."""
        self._buffers.clear()
