# SPDX-License-Identifier: BSD-3-Clause
"""Routes of messages that are joined host by host before they cross the network.

*Two-step*: a rank joins its messages for a host and sends them to one rank there, which distributes them. *Three-step*:
the messages of all ranks of a host for another one are collected by one rank, sent as one message, and distributed.
After Bienz, Gropp, Olson, "Reducing communication in algebraic multigrid with multi-step node aware communication",
IJHPCA 34 (2020), and the neighbourhood collectives of MPI Advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Steps: TypeAlias = Literal["two_step", "three_step"]


class RoutePart(NamedTuple):
    """Bytes that `source` sends to `target`, and their offset in the message of their route."""

    source: int
    target: int
    begin: int
    size: int


@dataclass(frozen=True)
class Route:
    """One message over the network, from rank `sender` to rank `receiver`.

    Its pieces are ordered by target, then by source.
    """

    sender: int
    receiver: int
    pieces: tuple[RoutePart, ...]

    @property
    def size(self) -> int:
        """Return the bytes of the message."""
        return sum(piece.size for piece in self.pieces)


def routes_of(hosts: Sequence[str], messages: Sequence[tuple[int, int, int]], steps: Steps) -> list[Route]:
    """Return the routes of messages between hosts, ascending by sender and receiver.

    Routes between the hosts of a pair start and end at ranks that depend on the numbers of both hosts, so that the
    ranks of a host share this work.

    Args:
        hosts: host of each rank.
        messages: (source, target, bytes) of the messages of all ranks; those within a host and empty ones are omitted.
        steps: how messages are joined.
    """
    names = list(dict.fromkeys(hosts))
    members = {name: [rank for rank, host in enumerate(hosts) if host == name] for name in names}
    number = {name: index for index, name in enumerate(names)}
    place = {rank: index for ranks in members.values() for index, rank in enumerate(ranks)}
    joined: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for source, target, size in messages:
        near, far = hosts[source], hosts[target]
        if near == far or not size:
            continue
        distance = number[far] - number[near]
        sender, index = source, place[source]
        if steps == "three_step":
            sender = members[near][distance % len(names) % len(members[near])]
            index = -distance % len(names)
        receiver = members[far][index % len(members[far])]
        joined.setdefault((sender, receiver), []).append((target, source, size))
    routes = []
    for sender, receiver in sorted(joined):
        pieces, begin = list[RoutePart](), 0
        for target, source, size in sorted(joined[sender, receiver]):
            pieces.append(RoutePart(source, target, begin, size))
            begin += size
        routes.append(Route(sender, receiver, tuple(pieces)))
    return routes
