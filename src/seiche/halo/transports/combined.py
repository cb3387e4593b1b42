# SPDX-License-Identifier: BSD-3-Clause
"""One transport for neighbours of the same host and another one for all others, in the same exchange."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TypeAlias

from seiche.backend import Backend
from seiche.domain.rank_locations import rank_locations
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import Integers, Transport
from seiche.halo.transports.peer import PeerTransport, mappable_peers

#: Separates the names of the two transports: "peer+nccl".
SEPARATOR = "+"

TransportClass: TypeAlias = type[Transport]


class CombinedTransport(Transport):
    """Messages take `inside` or `between`, chosen for each pair of ranks.

    A pair takes `inside` if both ranks are on one host and, for `peer`, if they can map each other's memory. Both
    transports see their own peers only. Packing and unpacking keep the order of all peers, so results have the same
    bits as with one transport.
    """

    def __init__(
        self,
        backend: Backend,
        world: World,
        peers: Integers,
        sent: Integers,
        received: Integers,
        *,
        inside: TransportClass,
        between: TransportClass,
    ) -> None:
        """Assign each peer to one of the transports and open both (collective).

        Raises:
            TransportError: one of the transports cannot be opened.
        """
        super().__init__(backend, world, peers, sent, received)
        if issubclass(inside, PeerTransport):
            near = mappable_peers(backend, world, peers)
        else:
            locations = rank_locations(backend, world)
            near = tuple(peer for peer in peers if locations[peer].host == locations[world.rank].host)
        far = tuple(peer for peer in peers if peer not in near)
        self._near = set(near)
        self._parts: dict[bool, Transport] = {}
        used = world.allgather((bool(near), bool(far)))
        try:
            for is_near, kind, group in ((True, inside, near), (False, between, far)):
                # A transport without messages would only cost time; one of the two is always opened.
                if any(pair[not is_near] for pair in used) or not (is_near or self._parts):
                    self._parts[is_near] = kind(backend, world, *self._of(group))
        except TransportError:  # raised on all ranks together
            self.close()
            raise
        self.capturable = all(part.capturable for part in self._parts.values())
        self.buffer_count = math.lcm(*(part.buffer_count for part in self._parts.values()))
        self.outgoing, self.incoming = (
            tuple(self._in_order(name, index) for index in range(self.buffer_count))
            for name in ("outgoing", "incoming")
        )

    def _of(self, group: Collection[int]) -> tuple[Integers, Integers, Integers]:
        """Return peers, bytes to them and bytes from them of a group of peers."""
        rows = [row for row in zip(self.peers, self.sent, self.received, strict=True) if row[0] in group]
        return tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(row[2] for row in rows)

    def _in_order(self, name: str, buffer_index: int) -> Integers:
        """Return the addresses of both transports in the order of the peers."""
        addresses = {
            is_near: iter(getattr(part, name)[buffer_index % part.buffer_count])
            for is_near, part in self._parts.items()
        }
        return tuple(next(addresses[peer in self._near]) for peer in self.peers)

    def acquire(self, buffer_index: int) -> None:
        """Acquire the buffers of both transports."""
        for part in self._parts.values():
            part.acquire(buffer_index % part.buffer_count)

    def send(self, buffer_index: int) -> None:
        """Send by both transports."""
        for part in self._parts.values():
            part.send(buffer_index % part.buffer_count)

    def receive(self, buffer_index: int) -> None:
        """Receive from other hosts first: such a transport may need the host, whereas `peer` only queues a wait."""
        for part in reversed(self._parts.values()):
            part.receive(buffer_index % part.buffer_count)

    def release(self, buffer_index: int) -> None:
        """Release the buffers of both transports."""
        for part in self._parts.values():
            part.release(buffer_index % part.buffer_count)

    def failure(self) -> str | None:
        """Describe the first failure of either transport."""
        return next((problem for part in self._parts.values() if (problem := part.failure()) is not None), None)

    def close(self) -> None:
        """Close both transports (collective)."""
        for part in self._parts.values():
            part.close()
        self._parts.clear()
