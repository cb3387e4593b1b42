# SPDX-License-Identifier: BSD-3-Clause
"""Transports of halo messages; `open_transport` opens one by name."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from seiche.backend import Backend
from seiche.domain.rank_locations import rank_locations
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports.aggregated import ThreeStepTransport, TwoStepTransport
from seiche.halo.transports.base import MAX_IN_FLIGHT, Integers, Transport
from seiche.halo.transports.combined import SEPARATOR, CombinedTransport
from seiche.halo.transports.device_mpi import DeviceMpiTransport
from seiche.halo.transports.emulated import EmulatedTransport, is_emulated
from seiche.halo.transports.host import HostTransport
from seiche.halo.transports.local import LocalTransport
from seiche.halo.transports.nccl import NcclTransport
from seiche.halo.transports.peer import PeerTransport

__all__ = ["MAX_IN_FLIGHT", "Transport", "TransportName", "open_transport"]

_log = logging.getLogger("seiche.halo")

#: In "A+B", neighbours of one host use A, and all others B.
TransportName: TypeAlias = Literal[
    "auto",
    "local",
    "host",
    "peer",
    "nccl",
    "device_mpi",
    "two_step",
    "three_step",
    "peer+host",
    "peer+nccl",
    "peer+device_mpi",
    "peer+two_step",
    "peer+three_step",
]

_TRANSPORTS: dict[str, type[Transport]] = {
    "local": LocalTransport,
    "host": HostTransport,
    "peer": PeerTransport,
    "nccl": NcclTransport,
    "device_mpi": DeviceMpiTransport,
    "two_step": TwoStepTransport,
    "three_step": ThreeStepTransport,
}


def open_transport(
    name: TransportName, backend: Backend, world: World, *, peers: Integers, sent: Integers, received: Integers
) -> Transport:
    """Open the transport `name` for messages of `sent` and `received` bytes (collective).

    `auto` is `local` on one rank and `host` on CPUs and on GPUs that ranks share. If every rank has its own GPU, it is
    the first of `peer` (one host), `peer+nccl` (several hosts), `nccl`, `peer+host` and `host` that works on all ranks.

    Raises:
        TransportError: unknown transport, peers that it cannot reach, or ranks with inconsistent plans.
    """
    if name not in get_args(TransportName) and name not in _TRANSPORTS:
        known = ", ".join(repr(known) for known in dict.fromkeys((*get_args(TransportName), *_TRANSPORTS)))
        raise TransportError(f"transport {name!r} is unknown: use one of {known}")
    if is_emulated(backend, world):
        emulated = EmulatedTransport(backend, world, peers, sent, received)
        emulated.name = emulated.name if name == "auto" else name
        return emulated
    candidates: tuple[str, ...] = (name,)
    if name == "auto":
        candidates = ("local",) if world.size == 1 else ("host",)
        locations = rank_locations(backend, world)
        if world.size > 1 and all(location.gpu for location in locations) and len(set(locations)) == world.size:
            one_host = len({location.host for location in locations}) == 1
            candidates = ("peer", "nccl", "host") if one_host else ("peer+nccl", "nccl", "peer+host", "host")

    def open_named(name: str) -> Transport:
        transport: Transport = _transport_class(name)(backend, world, peers, sent, received)
        transport.name = name
        return transport

    rejected: list[str] = []
    for candidate in candidates[:-1]:
        try:
            opened = open_named(candidate)
            opened.rejected = tuple(rejected)
            return opened
        except TransportError as error:  # raised on all ranks together
            rejected.append(f"transport {candidate} is not used: {error}")
            if world.rank == 0:
                _log.info("transport %s is not used: %s", candidate, error)
    opened = open_named(candidates[-1])
    opened.rejected = tuple(rejected)
    return opened


def _transport_class(name: str) -> Any:
    if SEPARATOR not in name:
        return _TRANSPORTS[name]
    inside, between = (_TRANSPORTS[part] for part in name.split(SEPARATOR))
    return partial(CombinedTransport, inside=inside, between=between)
