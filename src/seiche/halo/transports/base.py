# SPDX-License-Identifier: BSD-3-Clause
"""How messages travel: what the exchange and a transport promise each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from seiche.backend import Array, Backend
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError

#: Exchanges of one direction that may be under way: a message can be written while the one before is being read.
UNDER_WAY = 2


class Transport(ABC):
    """Moves one message to and one from every peer, again and again, in one direction of a plan.

    The transport owns the buffers; the exchange launches the kernels that fill and empty them. Messages use the
    `slots` of a transport in turn. One exchange with `slot` is, in this order:

    1. `acquire(slot)`: from now on work of the current stream may write `outgoing[slot]`.
    2. the exchange launches its pack kernels, in the current stream;
    3. `send(slot)`: what they wrote leaves, in stream order. Returns at once.
    4. the caller's own work; the next slot's steps 1-3 may also come here;
    5. `receive(slot)`: work launched in the current stream after this call finds the messages in `incoming[slot]`.
    6. the exchange launches its unpack kernels, in the current stream;
    7. `release(slot)`: later messages may overwrite `incoming[slot]` once the work launched so far is done.

    `outgoing[slot][k]` and `incoming[slot][k]` are the addresses of the messages to and from peer number k as kernels
    of this device see them. Where neighbouring messages touch, the exchange serves them by one launch. A message of no
    bytes is not sent.

    `capturable` says that steps 1-7 are device work only: they can then be captured in a graph (a multiple of `slots`
    exchanges, so that the slots come out even) and replayed without a host call.

    How transports fill this in:

    - `local`: peer = own rank; `incoming` is `outgoing`; nothing to move. Capturable.
    - `host`: `send` copies to pinned memory on a stream of its own; `receive` waits for that copy, exchanges by MPI and
      copies back. The host takes part: not capturable.
    - `peer`: `outgoing[slot][k]` is the neighbour's memory, mapped here, so the pack kernel itself delivers; `send`
      launches the kernel that counts up the neighbour's word, `receive` the one that waits for its own. Capturable.
    - `nccl`: device buffers; `send` queues one group of sends and receives on a stream of its own after an event,
      `receive` lets the current stream wait for it. Capturable.
    - `device_mpi`: device buffers; `send` waits for the pack kernels and starts persistent requests, `receive`
      completes them. Not capturable.
    """

    name: str = ""
    capturable: bool = False
    slots: int = UNDER_WAY
    outgoing: tuple[tuple[int, ...], ...]
    incoming: tuple[tuple[int, ...], ...]

    def __init__(
        self, backend: Backend, world: World, peers: tuple[int, ...], sent: tuple[int, ...], received: tuple[int, ...]
    ) -> None:
        """Agree with the peers; all ranks must call it together.

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
        """Return why some peer cannot be reached, or None."""
        strangers = [peer for peer in self.peers if not 0 <= peer < self.world.size]
        if strangers:
            return f"rank {self.world.rank} has peer {strangers[0]}, but there are {self.world.size} ranks"
        return None

    def _mismatch(self) -> str | None:
        to_each, from_each = np.zeros(self.world.size, np.int64), np.zeros(self.world.size, np.int64)
        for peer, sent, received in zip(self.peers, self.sent, self.received, strict=True):
            to_each[peer], from_each[peer] = sent, received
        arriving = to_each.copy()
        if self.world.comm is not None:
            self.world.comm.Alltoall(to_each, arriving)
        wrong = np.flatnonzero(arriving != from_each)
        if not len(wrong):
            return None
        peer = int(wrong[0])
        return (
            f"rank {self.world.rank} expects {from_each[peer]} B from rank {peer},"
            f" which sends {arriving[peer]} B: their halo plans do not belong together"
        )

    def wait(self, requests: list[Any], doing: str) -> None:
        """Wait for persistent MPI requests.

        Raises:
            TransportError: one of them failed while `doing` something.
        """
        from mpi4py import MPI

        try:
            MPI.Prequest.Waitall(requests)
        except MPI.Exception as error:
            raise TransportError(f"rank {self.world.rank}, {doing}, peers {self.peers}: {error}") from error

    def buffers(self, sizes: tuple[int, ...]) -> list[Array]:
        """Return device memory for messages of `sizes` bytes, one a slot."""
        return [self.backend.zeros(max(1, sum(sizes)), np.uint8) for _ in range(self.slots)]

    def acquire(self, slot: int) -> None:
        """Let work of the current stream write `outgoing[slot]`."""
        del slot

    @abstractmethod
    def send(self, slot: int) -> None:
        """Let the messages in `outgoing[slot]` leave after the work launched so far."""

    @abstractmethod
    def receive(self, slot: int) -> None:
        """Let later work of the current stream find the messages in `incoming[slot]`."""

    def release(self, slot: int) -> None:
        """Let later messages overwrite `incoming[slot]` after the work launched so far."""
        del slot

    def failure(self) -> str | None:
        """Return which message the device gave up waiting for, None if all came; to be asked when it is idle."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Give back what the transport holds; all ranks must call it together."""


def places(address: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the addresses of messages of `sizes` bytes that lie one behind the other from `address` on."""
    ends = np.cumsum((0, *sizes))
    return tuple(address + int(end) for end in ends[:-1])
