# SPDX-License-Identifier: BSD-3-Clause
"""Predict the time of one halo exchange of a rank by each transport (theory/movement, eq. 14)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seiche.machine.laws.file import Launch, Machine, PathName
from seiche.machine.laws.locality import RankPlace, locality
from seiche.machine.laws.models import Locality


def transport_times(
    machine: Machine,
    places: Sequence[RankPlace],
    rank: int,
    peers: Sequence[int],
    *,
    sent: Sequence[int],
    received: Sequence[int],
    graphs: bool = False,
) -> dict[str, float]:
    """Return predicted seconds of the transports that all ranks can use; infinite without data in the file.

    Empty messages are not sent. Packing and unpacking count as launches; their memory traffic is the caller's, unless
    `packed_too` reports that the measurement includes it.

    Args:
        machine: the measurements.
        places: places of all ranks.
        rank: the rank of the exchange.
        peers: ranks with which it exchanges.
        sent: bytes to each peer.
        received: bytes from each peer.
        graphs: whether exchanges of device work only are replayed in graphs.
    """
    gpus = all(place.gpu for place in places)
    costs = machine.launch.get("device" if gpus else "host") or Launch(kernel=0.0)
    launch, event = costs.kernel, costs.event
    replayed, waited = launch, event
    if graphs and costs.graph_kernel is not None:
        replayed, waited = costs.graph_kernel, min(event, costs.graph_kernel)
    both = [
        (locality(places[rank], places[peer], gpus=gpus), max(out, into))
        for peer, out, into in zip(peers, sent, received, strict=True)
        if max(out, into) and peer != rank
    ]
    # Ranks of a node exchange at the same time, and share its injection rate.
    node_ranks = sum(place.host == places[rank].host for place in places)
    times = {"host": _messages(machine, "host", both, node_ranks) + 2 * launch}
    if not gpus:
        exchanges = machine.messages("host_exchange") if both else None
        if exchanges is not None and all(locality_class in exchanges.curves for locality_class, _ in both):
            times["host"] = _messages(machine, "host_exchange", both, node_ranks)
        return times
    down, up = (machine.measured(path, "on-socket") for path in ("d2h", "h2d"))
    if down is None or up is None:
        times["host"] = math.inf
    elif both:
        # The copy streams wait for the kernels, and the kernels for the copies.
        times["host"] += float(down.curve.seconds(sum(sent))) + float(up.curve.seconds(sum(received))) + 2 * event
    times["device_mpi"] = math.inf
    probe = machine.probes.get("device_mpi")
    if probe is None or probe.works:
        times["device_mpi"] = _messages(machine, "device_mpi", both, node_ranks) + 2 * launch
    alone = len({(place.host, place.gpu) for place in places}) == len(places)
    if alone and len({place.host for place in places}) == 1:
        # Three kernels: pack into the memory of the peers, increment their counters, wait for the own counter.
        times["peer"] = _one_call(machine, "peer_store", both, node_ranks) + 3 * replayed
        if graphs and _has(machine, "peer_exchange"):
            # Measured between two ranks: every further neighbour adds its counters.
            gaps = [entry.gap for entry in machine.paths if entry.path == "peer_exchange" and entry.gap is not None]
            gap = max(gaps, default=replayed)
            times["peer"] = _one_call(machine, "peer_exchange", both, node_ranks) + gap * max(len(both) - 1, 0)
    if alone:
        call: PathName = "nccl_graph" if graphs and _has(machine, "nccl_graph") else "nccl"
        times["nccl"] = _one_call(machine, call, both, node_ranks) + 2 * replayed + 2 * waited
    return times


def packed_too(machine: Machine, transport: str, *, gpu: bool, graphs: bool) -> bool:
    """Return whether the file has measurements of whole exchanges, packing included, for a transport."""
    if gpu:
        return graphs and transport == "peer" and _has(machine, "peer_exchange")
    return transport == "host" and _has(machine, "host_exchange")


def _has(machine: Machine, path: PathName) -> bool:
    return any(entry.path == path for entry in machine.paths)


def _messages(machine: Machine, path: PathName, both: Sequence[tuple[Locality, int]], senders: int) -> float:
    """Return the time of simultaneous messages; each after the first costs the gap of its class."""
    messages, total = machine.messages(path, both_ways=True), 0.0
    for number, (where, size) in enumerate(both):
        if messages is None or where not in messages.curves:
            return math.inf
        piece = messages.curves[where].piece(size)
        gap = messages.gaps.get(where, piece.alpha)
        beta = max(piece.beta, senders / messages.node_rate) if where == "off-node" else piece.beta
        total += (piece.alpha if number == 0 else min(gap, piece.alpha)) + size * beta
    return total


def _one_call(machine: Machine, path: PathName, both: Sequence[tuple[Locality, int]], senders: int) -> float:
    """Return the time of all bytes in one call of each of `senders` ranks of a node at the same time.

    There is one latency. Every byte moves at the rate of its class, between nodes at most at the sender's share of the
    injection rate.
    """
    total = latency = 0.0
    shared = senders / machine.node_rate(path)
    for where, size in both:
        measured = machine.measured(path, where)
        if measured is None:
            return math.inf
        piece = measured.curve.piece(size)
        latency = max(latency, piece.alpha)
        total += size * (max(piece.beta, shared) if where == "off-node" else piece.beta)
    return latency + total
