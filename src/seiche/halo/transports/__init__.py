# SPDX-License-Identifier: BSD-3-Clause
"""The ways a halo message can travel; `open_transport` picks one by name."""

from __future__ import annotations

import logging
from typing import Literal, TypeAlias

from seiche.backend import Backend
from seiche.domain.seats import seats
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.base import UNDER_WAY, Transport
from seiche.halo.transports.device_mpi import DeviceMpiTransport
from seiche.halo.transports.host import HostTransport
from seiche.halo.transports.local import LocalTransport
from seiche.halo.transports.nccl import NcclTransport
from seiche.halo.transports.peer import PeerTransport
from seiche.halo.transports.rehearsed import RehearsedTransport, is_rehearsed

__all__ = ["UNDER_WAY", "Transport", "TransportName", "open_transport"]

_log = logging.getLogger("seiche.halo")

TransportName: TypeAlias = Literal["auto", "local", "host", "peer", "nccl", "device_mpi"]

_TRANSPORTS: dict[str, type[Transport]] = {
    "local": LocalTransport,
    "host": HostTransport,
    "peer": PeerTransport,
    "nccl": NcclTransport,
    "device_mpi": DeviceMpiTransport,
}


def open_transport(
    name: TransportName,
    backend: Backend,
    world: World,
    *,
    peers: tuple[int, ...],
    sent: tuple[int, ...],
    received: tuple[int, ...],
) -> Transport:
    """Return the transport called `name` for messages of `sent` and `received` bytes; all ranks must call it together.

    `auto` is `local` where there is one rank. Where every rank has a GPU of its own it is the first of `peer` and
    `nccl` that can serve all of them, else `host`.

    Raises:
        TransportError: no such transport, it cannot serve these peers, or the ranks' plans do not belong together.
    """
    if name != "auto" and name not in _TRANSPORTS:
        known = ", ".join(repr(each) for each in ("auto", *_TRANSPORTS))
        raise TransportError(f"transport {name!r} is unknown: use one of {known}")
    if is_rehearsed(backend, world):
        rehearsed = RehearsedTransport(backend, world, peers, sent, received)
        rehearsed.name = rehearsed.name if name == "auto" else name
        return rehearsed
    tried: tuple[str, ...] = (name,)
    if name == "auto":
        tried = ("local",) if world.size == 1 else ("host",)
        at = seats(backend, world)
        if world.size > 1 and all(seat.gpu for seat in at) and len(set(at)) == world.size:
            tried = ("peer", "nccl", "host")

    def opened(name: str) -> Transport:
        transport = _TRANSPORTS[name](backend, world, peers, sent, received)
        transport.name = name
        return transport

    for each in tried[:-1]:
        try:
            return opened(each)
        except TransportError as error:  # raised on all ranks together: the next one
            if world.rank == 0:
                _log.info("transport %s is not taken: %s", each, error)
    return opened(tried[-1])
