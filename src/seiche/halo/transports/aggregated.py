# SPDX-License-Identifier: BSD-3-Clause
"""Messages between hosts joined host by host, by MPI from host memory (`routes.py`).

A rank packs a message where it is joined, if it sends the route itself, and unpacks it where it arrives, if it receives
the route. Otherwise its part is collected or distributed by a message within the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import Integers, Transport, message_addresses
from seiche.halo.transports.host import message_of_pieces
from seiche.halo.transports.routes import Route, RoutePart, Steps, routes_of

_Bytes = npt.NDArray[np.uint8]


@dataclass
class _RouteBuffers:
    """Memory and persistent requests of one exchange.

    `outgoing` and `incoming` are the parts of each peer in host memory. Requests are those of messages within the host
    that collect, of joined messages, of messages within the host that distribute, and of direct messages.
    """

    outgoing: dict[int, _Bytes] = field(default_factory=dict)
    incoming: dict[int, _Bytes] = field(default_factory=dict)
    collect_sends: list[Any] = field(default_factory=list)
    collect_receives: list[Any] = field(default_factory=list)
    joined_sends: list[Any] = field(default_factory=list)
    joined_receives: list[Any] = field(default_factory=list)
    distribute_sends: list[Any] = field(default_factory=list)
    distribute_receives: list[Any] = field(default_factory=list)
    direct_sends: list[Any] = field(default_factory=list)
    direct_receives: list[Any] = field(default_factory=list)

    @property
    def sends(self) -> list[Any]:
        """Return the requests of all messages that this rank sends."""
        return self.collect_sends + self.joined_sends + self.distribute_sends + self.direct_sends

    @property
    def receives(self) -> list[Any]:
        """Return the requests of all messages that this rank receives."""
        return self.collect_receives + self.joined_receives + self.distribute_receives + self.direct_receives


class _Staging:
    """Device buffers of a set, and pinned memory for one copy in each direction; only for devices with own memory."""

    def __init__(self, backend: Backend, sent: int, received: int) -> None:
        self.device_out, self.device_in = (
            backend.zeros(max(1, sent), np.uint8),
            backend.zeros(max(1, received), np.uint8),
        )
        self.host_out, self.host_in = (backend.pinned(max(1, size), np.uint8) for size in (sent, received))
        self.stream = backend.stream()


class AggregatedTransport(Transport):
    """Joins messages between hosts; messages within a host are sent directly."""

    steps: ClassVar[Steps]

    def __init__(self, backend: Backend, world: World, peers: Integers, sent: Integers, received: Integers) -> None:
        """Agree on the routes, allocate buffers and set up the requests (collective).

        Raises:
            TransportError: MPI is not available, or two ranks expect different messages.
        """
        if world.comm is None:
            raise TransportError(f"transport {self.steps!r} requires MPI; start Seiche with mpiexec, or use 'local'")
        super().__init__(backend, world, peers, sent, received)
        from mpi4py import MPI

        self._mpi, self._comm = MPI, world.comm.Dup()
        self._types: list[Any] = []
        hosts = hosts_of(world)
        rows: list[list[tuple[int, int, int]]] = world.allgather(
            [(world.rank, peer, size) for peer, size in zip(peers, sent, strict=True)]
        )
        routes = routes_of(hosts, [row for of_rank in rows for row in of_rank], self.steps)
        self._direct = {peer for peer in peers if hosts[peer] == hosts[world.rank]}
        self._sets = [self._buffer_set(routes, index) for index in range(self.buffer_count)]
        if backend.host_memory:
            self._staging: list[_Staging] = []
            self.outgoing, self.incoming = (
                tuple(tuple(backend.pointer(parts[peer]) for peer in peers) for parts in sets)
                for sets in ([item.outgoing for item in self._sets], [item.incoming for item in self._sets])
            )
            return
        self._staging = [_Staging(backend, sum(sent), sum(received)) for _ in range(self.buffer_count)]
        self.outgoing = tuple(message_addresses(backend.pointer(item.device_out), sent) for item in self._staging)
        self.incoming = tuple(message_addresses(backend.pointer(item.device_in), received) for item in self._staging)

    def _buffer_set(self, routes: Iterable[Route], index: int) -> _RouteBuffers:
        """Return memory and requests of exchanges with a buffer index."""
        items, rank = _RouteBuffers(), self.world.rank
        for peer, out_size, in_size in zip(self.peers, self.sent, self.received, strict=True):
            items.outgoing[peer], items.incoming[peer] = np.zeros(out_size, np.uint8), np.zeros(in_size, np.uint8)
            if peer in self._direct and out_size:
                items.direct_sends.append(self._request("Send", items.outgoing[peer], peer, self._tag(index, 0, peer)))
            if peer in self._direct and in_size:
                items.direct_receives.append(
                    self._request("Recv", items.incoming[peer], peer, self._tag(index, 0, rank))
                )
        for route in routes:
            self._add_outgoing(items, route, index)
            self._add_incoming(items, route, index)
        return items

    def _add_outgoing(self, items: _RouteBuffers, route: Route, index: int) -> None:
        """Add the parts of a route that are on the host of its sender."""
        rank, tag = self.world.rank, self._tag(index, 1, route.receiver)
        own = [piece for piece in route.pieces if piece.source == rank]
        if route.sender == rank:
            joined = np.zeros(route.size, np.uint8)
            items.outgoing |= {piece.target: joined[piece.begin : piece.begin + piece.size] for piece in own}
            items.joined_sends.append(self._request("Send", joined, route.receiver, self._tag(index, 2, rank)))
            for source in sorted({piece.source for piece in route.pieces} - {rank}):
                message = message_of_pieces(joined, [p[2:] for p in route.pieces if p.source == source])
                self._types.append(message[2])
                items.collect_receives.append(self._comm.Recv_init(message, source, tag))
        elif own:
            part, views = _contiguous(own)
            items.outgoing |= {piece.target: view for piece, view in zip(own, views, strict=True)}
            items.collect_sends.append(self._request("Send", part, route.sender, tag))

    def _add_incoming(self, items: _RouteBuffers, route: Route, index: int) -> None:
        """Add the parts of a route that are on the host of its receiver."""
        rank, tag = self.world.rank, self._tag(index, 3, route.sender)
        own = [piece for piece in route.pieces if piece.target == rank]
        if route.receiver == rank:
            joined = np.zeros(route.size, np.uint8)
            items.incoming |= {piece.source: joined[piece.begin : piece.begin + piece.size] for piece in own}
            joined_tag = self._tag(index, 2, route.sender)
            items.joined_receives.append(self._request("Recv", joined, route.sender, joined_tag))
            for target in sorted({piece.target for piece in route.pieces} - {rank}):
                pieces = [piece for piece in route.pieces if piece.target == target]
                part = joined[pieces[0].begin : pieces[-1].begin + pieces[-1].size]
                items.distribute_sends.append(self._request("Send", part, target, tag))
        elif own:
            part, views = _contiguous(own)
            items.incoming |= {piece.source: view for piece, view in zip(own, views, strict=True)}
            items.distribute_receives.append(self._request("Recv", part, route.receiver, tag))

    def _tag(self, index: int, step: int, rank: int) -> int:
        """Return the tag of a message: two ranks may exchange parts of several routes in a step."""
        return (rank * 4 + step) * self.buffer_count + index

    def _request(self, kind: str, memory: _Bytes, peer: int, tag: int) -> Any:
        return getattr(self._comm, f"{kind}_init")([memory, self._mpi.BYTE], peer, tag)

    def acquire(self, buffer_index: int) -> None:
        """Wait until the earlier messages of the buffers are sent, then start all receives."""
        items = self._sets[buffer_index]
        self.wait(items.sends, "sending")
        if self._staging:
            self._staging[buffer_index].stream.synchronize()
        self._mpi.Prequest.Startall(items.receives)

    def send(self, buffer_index: int) -> None:
        """Collect and send, or start the copy to the host if the device has separate memory."""
        if not self._staging:
            self._forward(buffer_index)
            return
        staging = self._staging[buffer_index]
        staging.stream.wait(self.backend.clock().record())
        with self.backend.use(staging.stream):
            self.backend.copy_to_host(staging.device_out, staging.host_out)

    def _forward(self, buffer_index: int) -> None:
        items = self._sets[buffer_index]
        self._mpi.Prequest.Startall(items.collect_sends + items.direct_sends)
        self.wait(items.collect_receives, "collecting messages to other hosts")
        self._mpi.Prequest.Startall(items.joined_sends)

    def receive(self, buffer_index: int) -> None:
        """Wait for the joined messages, distribute them and wait for the parts of this rank."""
        items = self._sets[buffer_index]
        if self._staging:
            staging = self._staging[buffer_index]
            staging.stream.synchronize()
            self._copy(staging.host_out, items.outgoing, self.sent, to_parts=True)
            self._forward(buffer_index)
        self.wait(items.joined_receives, "receiving")
        self._mpi.Prequest.Startall(items.distribute_sends)
        self.wait(items.distribute_receives + items.direct_receives, "receiving")
        if self._staging:
            self._copy(staging.host_in, items.incoming, self.received, to_parts=False)
            with self.backend.use(staging.stream):
                self.backend.copy_to_device(staging.host_in, staging.device_in)
            self.backend.current().wait(staging.stream.record())

    def _copy(self, pinned: _Bytes, parts: dict[int, _Bytes], sizes: Integers, *, to_parts: bool) -> None:
        """Copy between pinned memory, in the order of the peers, and the parts of the peers."""
        for peer, begin, size in zip(self.peers, message_addresses(0, sizes), sizes, strict=True):
            pair = parts[peer], pinned[begin : begin + size]
            np.copyto(*(pair if to_parts else pair[::-1]))

    def close(self) -> None:
        """Free requests, data types and communicator (collective)."""
        for items in self._sets:
            self.wait(items.sends, "sending")
            for request in items.sends + items.receives:
                request.Free()
        for datatype in self._types:
            datatype.Free()
        self._sets, self._types = [], []
        if self._comm is not None:
            self._comm.Free()
            self._comm = None


class TwoStepTransport(AggregatedTransport):
    """A rank sends one message to each other host."""

    steps = "two_step"


class ThreeStepTransport(AggregatedTransport):
    """A host sends one message to each other host."""

    steps = "three_step"


def _contiguous(pieces: list[RoutePart]) -> tuple[_Bytes, list[_Bytes]]:
    """Return memory for pieces in sequence, and the views of the pieces."""
    sizes = tuple(piece.size for piece in pieces)
    memory, begins = np.zeros(sum(sizes), np.uint8), message_addresses(0, sizes)
    return memory, [memory[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]
