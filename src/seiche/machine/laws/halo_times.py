# SPDX-License-Identifier: BSD-3-Clause
"""Predict the time of one halo exchange of a rank by each transport (theory/movement, eqs. 14, 28 and 31)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from seiche.machine.laws.file import Machine, PathName
from seiche.machine.laws.locality import RankPlacement, locality
from seiche.machine.laws.models import Locality
from seiche.machine.laws.prepared import MessageLaws, PlacedRanks

#: Transports whose whole exchange, packing included, is measured between CPUs by `host_exchange`.
_BY_HOST = ("host", "two_step", "three_step")


class _Message(NamedTuple):
    """A pair of messages, to and from a peer, by class and host of the peer."""

    locality: Locality
    host: str
    sent: int
    received: int

    @property
    def size(self) -> int:
        return max(self.sent, self.received)


class _Rank(NamedTuple):
    """A rank of an exchange: the machine, whether it has a GPU, its own GPU and graphs, and the ranks of its host."""

    machine: MessageLaws
    gpus: bool
    own_gpus: bool
    graphs: bool
    node_ranks: int
    near_class: Locality


def transport_times(
    machine: Machine | MessageLaws,
    placements: Sequence[RankPlacement] | PlacedRanks,
    rank: int,
    peers: Sequence[int],
    *,
    sent: Sequence[int],
    received: Sequence[int],
    graphs: bool = False,
) -> dict[str, float]:
    """Return predicted seconds of the transports that all ranks can use; infinite without data in the file.

    Empty messages are not sent. Packing and unpacking count as launches; the caller adds their memory traffic, unless
    the measurement includes it (`includes_packing`).

    Args:
        machine: the measurements; prepared, for many exchanges.
        placements: hosts and processors of all ranks; prepared, for many exchanges.
        rank: the rank of the exchange.
        peers: ranks with which it exchanges.
        sent: bytes to each peer.
        received: bytes from each peer.
        graphs: whether exchanges of device work only are replayed in graphs.
    """
    laws = machine if isinstance(machine, MessageLaws) else MessageLaws(machine)
    placed = placements if isinstance(placements, PlacedRanks) else PlacedRanks(placements)
    gpus, places = placed.gpus, placed.placements
    own = places[rank]
    # Ranks of a node exchange at the same time, and share its injection rate.
    here = _Rank(laws, gpus, placed.own_gpus, graphs, placed.node_ranks(rank), placed.near_class(rank))
    exchanged = [
        _Message(locality(own, places[peer], gpus=gpus), places[peer].host, outgoing, incoming)
        for peer, outgoing, incoming in zip(peers, sent, received, strict=True)
        if max(outgoing, incoming) and peer != rank
    ]
    times = _direct_times(here, exchanged)
    if placed.hosts == 1:
        return times
    times.pop("peer", None)
    if placed.hosts == len(places):
        return times
    near, far = ([item for item in exchanged if (item.locality == "off-node") == away] for away in (False, True))
    inside, between = _direct_times(here, near), _direct_times(here, far)
    between.pop("peer", None)
    for name in ("two_step", "three_step"):
        between[name] = _joined_time(here, far, name)
        times[name] = inside["host"] + between[name] if near and far else (between[name] if far else inside["host"])
    for name, seconds in between.items() if "peer" in inside else ():
        # A device stores to its neighbours while messages to other hosts are on their way; a host does both in turn.
        parts = [inside["peer"]] * bool(near) + [seconds] * bool(far)
        times[f"peer+{name}"] = max([0.0, *parts]) if gpus else sum(parts)
    return times


def _direct_times(here: _Rank, exchanged: Sequence[_Message]) -> dict[str, float]:
    """Return the times of transports that send each message directly; of `peer` if all are within the host."""
    machine, gpus, node_ranks = here.machine, here.gpus, here.node_ranks
    costs = machine.costs(gpus=gpus)
    launch, event = costs.kernel, costs.event
    kernel_cost, event_cost = launch, event
    if here.graphs and costs.graph_kernel is not None:
        kernel_cost, event_cost = costs.graph_kernel, min(event, costs.graph_kernel)
    sizes = [(message.locality, message.size) for message in exchanged]
    within = all(message.locality != "off-node" for message in exchanged)
    times = {"host": _message_time(machine, "host", sizes, node_ranks) + 2 * launch}
    if not gpus:
        times["host"] = _host_time(here, sizes, node_ranks)
        if within and machine.has("shared_exchange"):
            # Every further neighbour adds a launch that packs its message.
            times["peer"] = _single_call_time(machine, "shared_exchange", sizes, node_ranks)
            times["peer"] += launch * max(len(exchanged) - 1, 0)
        return times
    times["host"] = _host_time(here, sizes, node_ranks) + _staging(here, exchanged)
    times["device_mpi"] = math.inf
    probe = machine.probes.get("device_mpi")
    if probe is None or probe.works:
        times["device_mpi"] = _message_time(machine, "device_mpi", sizes, node_ranks) + 2 * launch
    if here.own_gpus and within:
        # Three kernels: pack into the memory of the peers, increment their counters, wait for the counter of this rank.
        times["peer"] = _single_call_time(machine, "peer_store", sizes, node_ranks) + 3 * kernel_cost
        if here.graphs and machine.has("peer_exchange"):
            # Measured between two ranks: every further neighbour adds its counters.
            gap = max(machine.gaps("peer_exchange"), default=kernel_cost) * max(len(exchanged) - 1, 0)
            times["peer"] = _single_call_time(machine, "peer_exchange", sizes, node_ranks) + gap
    if here.own_gpus:
        call: PathName = "nccl_graph" if here.graphs and machine.has("nccl_graph") else "nccl"
        times["nccl"] = _single_call_time(machine, call, sizes, node_ranks) + 2 * kernel_cost + 2 * event_cost
    return times


def _host_time(here: _Rank, sizes: Sequence[tuple[Locality, int]], senders: int) -> float:
    """Return the time of messages between host memories, with packing where whole exchanges were measured (CPUs)."""
    costs = here.machine.costs(gpus=here.gpus)
    exchanges = here.machine.messages("host_exchange") if sizes and not here.gpus else None
    if exchanges is not None and all(locality_class in exchanges.curves for locality_class, _ in sizes):
        return _message_time(here.machine, "host_exchange", sizes, senders)
    return _message_time(here.machine, "host", sizes, senders) + 2 * costs.kernel


def _staging(here: _Rank, exchanged: Sequence[_Message]) -> float:
    """Return the time of the copies between a GPU and host memory."""
    down, up = here.machine.curve("d2h", "on-socket"), here.machine.curve("h2d", "on-socket")
    if down is None or up is None:
        return math.inf
    if not exchanged:
        return 0.0
    event = here.machine.costs(gpus=True).event
    sent, received = (sum(getattr(message, name) for message in exchanged) for name in ("sent", "received"))
    # The copy streams wait for the kernels, and the kernels for the copies.
    return float(down.seconds(sent)) + float(up.seconds(received)) + 2 * event


def _joined_time(here: _Rank, far: Sequence[_Message], steps: str) -> float:
    """Return the time of messages to other hosts that are joined by rank ("two_step") or by host ("three_step").

    All ranks of the host are assumed to send as much as this one. A rank is spared a message within the host if it
    sends or receives the joined message itself, which is one case in `node_ranks`.
    """
    to_host: dict[str, int] = {}
    for message in far:
        to_host[message.host] = to_host.get(message.host, 0) + message.size
    ranks = here.node_ranks
    if steps == "two_step":
        joined = [("off-node", size) for size in to_host.values()]
        local, senders = [(here.near_class, message.size) for message in far], ranks
    else:
        # The ranks of the host share its routes.
        routes = sorted(to_host.values(), reverse=True)[: -(-len(to_host) // ranks)]
        joined = [("off-node", ranks * size) for size in routes]
        local, senders = [(here.near_class, size) for size in to_host.values()] * 2, min(ranks, len(to_host))
    seconds = _host_time(here, joined, max(1, senders))  # type: ignore[arg-type]
    if ranks > 1:
        seconds += (1 - 1 / ranks) * _message_time(here.machine, "host", local, ranks)
    return seconds + (_staging(here, far) if here.gpus else 0.0)


def includes_packing(machine: Machine, transport: str, *, gpu: bool, graphs: bool) -> bool:
    """Return whether the file has measurements of whole exchanges, packing included, for a transport."""
    if gpu:
        return graphs and transport == "peer" and _has(machine, "peer_exchange")
    parts = transport.split("+")
    by_host = _has(machine, "host_exchange") or not set(parts) & set(_BY_HOST)
    by_stores = _has(machine, "shared_exchange") or "peer" not in parts
    return by_host and by_stores and set(parts) <= {*_BY_HOST, "peer"}


def _has(machine: Machine, path: PathName) -> bool:
    return any(entry.path == path for entry in machine.paths)


def _message_time(
    machine: MessageLaws, path: PathName, exchanged: Sequence[tuple[Locality, int]], senders: int
) -> float:
    """Return the time of simultaneous messages; each after the first costs the gap of its class."""
    messages, total = machine.messages(path, both_ways=True), 0.0
    for index, (locality_class, size) in enumerate(exchanged):
        if messages is None or locality_class not in messages.curves:
            return math.inf
        piece = messages.curves[locality_class].piece(size)
        gap = messages.gap(locality_class, size)
        latency, share = messages.node_share(locality_class, senders)
        total += (piece.alpha if index == 0 else gap) + latency + size * max(piece.beta, share)
    return total


def _single_call_time(
    machine: MessageLaws, path: PathName, exchanged: Sequence[tuple[Locality, int]], senders: int
) -> float:
    """Return the time of all bytes in one call of each of `senders` ranks of a node at the same time.

    There is one latency. Every byte moves at the rate of its class, between nodes at most at the sender's share of the
    injection rate.
    """
    total = latency = 0.0
    shared_cost = senders / machine.node_rate(path)
    for locality_class, size in exchanged:
        curve = machine.curve(path, locality_class)
        if curve is None:
            return math.inf
        piece = curve.piece(size)
        latency = max(latency, piece.alpha)
        total += size * (max(piece.beta, shared_cost) if locality_class == "off-node" else piece.beta)
    return latency + total
