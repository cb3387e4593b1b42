# SPDX-License-Identifier: BSD-3-Clause
"""Interface between the halo exchange and its transports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from seiche.backend import Array, Backend
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError

#: Peers (ranks), or sizes of their messages in bytes.
Ints: TypeAlias = tuple[int, ...]

#: Exchanges of one direction that may be in flight: one message can be written while the previous one is read.
MAX_IN_FLIGHT = 2


class Transport(ABC):
    """Moves one message to and one from every peer, repeatedly, in one direction of a plan.

    The transport owns the buffers; the exchange launches the kernels that fill and empty them. Exchanges use the
    `slots` of a transport in turn. One exchange with `slot` consists of:

    1. `acquire(slot)`: later work of the current stream may write `outgoing[slot]`;
    2. the exchange launches its pack kernels in the current stream;
    3. `send(slot)`: sends the packed messages in stream order and returns immediately;
    4. other work of the caller; steps 1-3 of the next slot may also take place here;
    5. `receive(slot)`: later work of the current stream can read the messages in `incoming[slot]`;
    6. the exchange launches its unpack kernels in the current stream;
    7. `release(slot)`: later messages may overwrite `incoming[slot]` after the work launched so far.

    `outgoing[slot][k]` and `incoming[slot][k]` are the device addresses of the messages to and from peer number k. The
    exchange uses one launch for adjacent messages. Empty messages are not sent.

    `capturable`: steps 1-7 are device work only. They can then be captured in a graph and replayed without host calls.
    A graph contains a multiple of `slots` exchanges.

    The transports:

    - `local`: the peer is this rank; `incoming` is `outgoing`; no transfer. Capturable.
    - `host`: `send` copies to pinned memory on a separate stream; `receive` waits for that copy, exchanges by MPI and
      copies back. Not capturable.
    - `peer`: `outgoing[slot][k]` is mapped memory of the neighbour, so the pack kernel writes the message to its
      destination. `send` launches the kernel that increments the neighbour's counter, `receive` the kernel that waits
      for the counter of this rank. Capturable.
    - `nccl`: device buffers; `send` queues one group of sends and receives on a separate stream after an event,
      `receive` makes the current stream wait for it. Capturable.
    - `device_mpi`: device buffers; `send` waits for the pack kernels and starts persistent requests, `receive`
      completes them. Not capturable.
    """

    name: str = ""
    capturable: bool = False
    slots: int = MAX_IN_FLIGHT
    outgoing: tuple[Ints, ...]
    incoming: tuple[Ints, ...]

    def __init__(self, backend: Backend, world: World, peers: Ints, sent: Ints, received: Ints) -> None:
        """Check that all peers exist and expect the same messages (collective).

        Args:
            backend: the device whose kernels fill and empty the buffers.
            world: the ranks.
            peers: ranks, ascending.
            sent: bytes of the message to each peer.
            received: bytes of the message from each peer.

        Raises:
            TransportError: on every rank, when a peer does not exist, the transport cannot reach it, or two ranks
                expect different messages.
        """
        self.backend, self.world, self.peers, self.sent, self.received = backend, world, peers, sent, received
        raise_together(world, self.unreachable())
        raise_together(world, self._mismatch())

    def unreachable(self) -> str | None:
        """Return why a peer cannot be reached, or None."""
        invalid = [peer for peer in self.peers if not 0 <= peer < self.world.size]
        if invalid:
            return f"rank {self.world.rank} has peer {invalid[0]}, but there are {self.world.size} ranks"
        return None

    def _mismatch(self) -> str | None:
        outgoing, expected = np.zeros((2, self.world.size), np.int64)
        for peer, sent, received in zip(self.peers, self.sent, self.received, strict=True):
            outgoing[peer], expected[peer] = sent, received
        arriving = outgoing.copy()
        if self.world.comm is not None:
            self.world.comm.Alltoall(outgoing, arriving)
        wrong = np.flatnonzero(arriving != expected)
        if not len(wrong):
            return None
        peer = int(wrong[0])
        return (
            f"rank {self.world.rank} expects {expected[peer]} B from rank {peer}, which sends {arriving[peer]} B; "
            "the halo plans are inconsistent"
        )

    def wait(self, requests: list[Any], action: str) -> None:
        """Wait for persistent MPI requests.

        Raises:
            TransportError: a request failed; the message names the `action`.
        """
        from mpi4py import MPI

        try:
            MPI.Prequest.Waitall(requests)
        except MPI.Exception as error:
            raise TransportError(f"rank {self.world.rank}, {action}, peers {self.peers}: {error}") from error

    def buffers(self, sizes: Ints) -> list[Array]:
        """Return device memory for messages of `sizes` bytes, one buffer per slot."""
        return [self.backend.zeros(max(1, sum(sizes)), np.uint8) for _ in range(self.slots)]

    def acquire(self, slot: int) -> None:
        """Allow later work of the current stream to write `outgoing[slot]`."""
        del slot

    @abstractmethod
    def send(self, slot: int) -> None:
        """Send the messages in `outgoing[slot]` after the work launched so far."""

    @abstractmethod
    def receive(self, slot: int) -> None:
        """Make the messages in `incoming[slot]` available to later work of the current stream."""

    def release(self, slot: int) -> None:
        """Allow later messages to overwrite `incoming[slot]` after the work launched so far."""
        del slot

    def failure(self) -> str | None:
        """Describe the message for which a wait on the device timed out, or return None; the device must be idle."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Free all resources (collective)."""


def message_addresses(address: int, sizes: Ints) -> Ints:
    """Return the addresses of consecutive messages of `sizes` bytes, starting at `address`."""
    return tuple(address + int(end) for end in np.cumsum((0, *sizes))[:-1])
