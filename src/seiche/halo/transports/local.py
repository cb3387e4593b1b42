# SPDX-License-Identifier: BSD-3-Clause
"""Messages of a rank to itself: they stay in the memory of the device."""

from __future__ import annotations

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.halo.transports.base import Transport, places


class LocalTransport(Transport):
    """One buffer a slot: what is packed is what is unpacked, in the order of the stream."""

    capturable = True

    def __init__(
        self, backend: Backend, world: World, peers: tuple[int, ...], sent: tuple[int, ...], received: tuple[int, ...]
    ) -> None:
        """Allocate the buffers.

        Raises:
            TransportError: a peer is another rank.
        """
        super().__init__(backend, world, peers, sent, received)
        self._buffers = self.buffers(sent)
        self.outgoing = tuple(places(backend.pointer(buffer), sent) for buffer in self._buffers)
        self.incoming = self.outgoing

    def unreachable(self) -> str | None:
        """Return which peer is another rank."""
        others = [peer for peer in self.peers if peer != self.world.rank]
        if others:
            return f"transport 'local' cannot send from rank {self.world.rank} to rank {others[0]}: use 'host'"
        return None

    def send(self, slot: int) -> None:
        """Return: the message is already there."""

    def receive(self, slot: int) -> None:
        """Return: the message is already there."""

    def close(self) -> None:
        """Give the buffers back."""
        self._buffers.clear()
