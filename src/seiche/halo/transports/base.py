# SPDX-License-Identifier: BSD-3-Clause
"""Interface between the halo exchange and its transports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from seiche.backend import Array, Backend
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError

#: Ranks, message sizes in bytes, or addresses.
Integers: TypeAlias = tuple[int, ...]

#: Maximum number of exchanges of one direction in flight: one message can be written while the previous one is read.
MAX_IN_FLIGHT = 2


class Transport(ABC):
    """Repeated exchange of one message with every peer, in one direction of a plan.

    The transport owns the buffers; the halo exchange launches the kernels that pack and unpack messages. Successive
    exchanges use the buffers 0 ... `buffer_count` - 1 of a transport in turn. The steps of an exchange, with
    `index = buffer_index`:

    1. `acquire(index)`: subsequent work in the current stream may write `outgoing[index]`;
    2. the pack kernels are launched in the current stream;
    3. `send(index)`: the packed messages are sent in stream order; the call returns immediately;
    4. other work may be launched, including steps 1-3 of the next buffer;
    5. `receive(index)`: subsequent work in the current stream may read the messages in `incoming[index]`;
    6. the unpack kernels are launched in the current stream;
    7. `release(index)`: subsequent messages may overwrite `incoming[index]` after the work launched so far.

    `outgoing[index][k]` and `incoming[index][k]` are the device addresses of the messages to and from the k-th peer.
    Messages at consecutive addresses are packed by one launch. Empty messages are not sent.

    If `capturable`, steps 1-7 consist of device work only, so that they can be captured in a CUDA graph and replayed
    without host calls. The number of exchanges in a graph is a multiple of `buffer_count`.

    The transports:

    - `local`: the only peer is this rank, and `incoming` is `outgoing`, without a transfer. Capturable.
    - `host`: `send` copies to pinned memory on a separate stream; `receive` waits for that copy, exchanges by MPI and
      copies back. Not capturable.
    - `peer`: `outgoing[index][k]` is mapped memory of the neighbour, so the pack kernel writes the message to its
      destination. `send` launches the kernel that increments the neighbour's counter, `receive` the kernel that waits
      for the counter of this rank. Capturable on GPUs; on CPUs the memory is shared memory of the host.
    - `nccl`: device buffers; `send` queues one group of sends and receives on a separate stream after an event,
      `receive` makes the current stream wait for them. Capturable.
    - `device_mpi`: device buffers; `send` waits for the pack kernels and starts persistent requests, `receive`
      completes them. Not capturable.
    - `two_step`, `three_step`: as `host`, but messages to another host are joined by rank or by host (`routes.py`).
    - `peer+B`: `peer` between ranks of a host that can map each other's memory, `B` between all others. Capturable if
      `B` is `nccl` and the ranks have GPUs.
    """

    name: str = ""
    #: Reasons why `auto` did not use transports that it tried before this one.
    rejected: tuple[str, ...] = ()
    capturable: bool = False
    buffer_count: int = MAX_IN_FLIGHT
    outgoing: tuple[Integers, ...]
    incoming: tuple[Integers, ...]

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Check that all peers exist and that message sizes agree on both sides (collective).

        Args:
            backend: the device whose kernels pack and unpack the messages.
            world: the ranks.
            peers: ranks to communicate with, in ascending order.
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
        announced = outgoing.copy()
        if self.world.comm is not None:
            self.world.comm.Alltoall(outgoing, announced)
        inconsistent = np.flatnonzero(announced != expected)
        if not len(inconsistent):
            return None
        peer = int(inconsistent[0])
        return (
            f"rank {self.world.rank} expects {expected[peer]} B from rank {peer}, which sends {announced[peer]} B; "
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

    def buffers(self, sizes: Integers) -> list[Array]:
        """Allocate device buffers for messages of `sizes` bytes, one per buffer index."""
        return [self.backend.zeros(max(1, sum(sizes)), np.uint8) for _ in range(self.buffer_count)]

    def acquire(self, buffer_index: int) -> None:
        """Allow subsequent work in the current stream to write `outgoing[buffer_index]`."""
        del buffer_index

    @abstractmethod
    def send(self, buffer_index: int) -> None:
        """Send the messages in `outgoing[buffer_index]` after the work launched so far."""

    @abstractmethod
    def receive(self, buffer_index: int) -> None:
        """Make the messages in `incoming[buffer_index]` available to subsequent work in the current stream."""

    def release(self, buffer_index: int) -> None:
        """Allow subsequent messages to overwrite `incoming[buffer_index]` after the work launched so far."""
        del buffer_index

    def failure(self) -> str | None:
        """Describe the message for which a wait on the device timed out, or return None; the device must be idle."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Free all resources (collective)."""


def message_addresses(address: int, sizes: Integers) -> Integers:
    """Return the addresses of consecutive messages of `sizes` bytes, starting at `address`."""
    return tuple(address + int(end) for end in np.cumsum((0, *sizes))[:-1])
