# SPDX-License-Identifier: BSD-3-Clause
"""The ways a halo message can travel; `open_transport` picks one by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import SLOTS, Transport
from seiche.halo.transports.host import HostTransport
from seiche.halo.transports.local import LocalTransport

__all__ = ["SLOTS", "Transport", "TransportName", "open_transport"]

TransportName: TypeAlias = Literal["auto", "local", "host"]

_TRANSPORTS: dict[str, type[Transport]] = {"local": LocalTransport, "host": HostTransport}


def open_transport(
    name: TransportName,
    backend: Backend,
    world: World,
    peers: tuple[int, ...],
    sent: tuple[int, ...],
    received: tuple[int, ...],
) -> Transport:
    """Return the transport called `name` for messages of `sent` and `received` bytes; all ranks must call it together.

    `auto` is `local` where there is one rank and `host` where there are more.

    Raises:
        TransportError: no such transport, it cannot serve these peers, or the ranks' plans do not belong together.
    """
    chosen = ("local" if world.size == 1 else "host") if name == "auto" else name
    if chosen not in _TRANSPORTS:
        raise TransportError(f"transport {name!r} is unknown: use 'auto', 'local' or 'host'")
    return _TRANSPORTS[chosen](backend, world, peers, sent, received)
