# SPDX-License-Identifier: BSD-3-Clause
"""Predict the time of one halo exchange of a rank by each transport (theory/movement, eq. 14)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seiche.machine.laws.file import Launch, Machine, PathName
from seiche.machine.laws.locality import RankPlacement, locality
from seiche.machine.laws.models import Locality


def transport_times(
    machine: Machine,
    placements: Sequence[RankPlacement],
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
        machine: the measurements.
        placements: hosts and processors of all ranks.
        rank: the rank of the exchange.
        peers: ranks with which it exchanges.
        sent: bytes to each peer.
        received: bytes from each peer.
        graphs: whether exchanges of device work only are replayed in graphs.
    """
    gpus = all(placement.gpu for placement in placements)
    costs = machine.launch.get("device" if gpus else "host") or Launch(kernel=0.0)
    launch, event = costs.kernel, costs.event
    kernel_cost, event_cost = launch, event
    if graphs and costs.graph_kernel is not None:
        kernel_cost, event_cost = costs.graph_kernel, min(event, costs.graph_kernel)
    exchanged = [
        (locality(placements[rank], placements[peer], gpus=gpus), max(outgoing, incoming))
        for peer, outgoing, incoming in zip(peers, sent, received, strict=True)
        if max(outgoing, incoming) and peer != rank
    ]
    # Ranks of a node exchange at the same time, and share its injection rate.
    node_ranks = sum(placement.host == placements[rank].host for placement in placements)
    times = {"host": _message_time(machine, "host", exchanged, node_ranks) + 2 * launch}
    if not gpus:
        exchanges = machine.messages("host_exchange") if exchanged else None
        if exchanges is not None and all(locality_class in exchanges.curves for locality_class, _ in exchanged):
            times["host"] = _message_time(machine, "host_exchange", exchanged, node_ranks)
        return times
    down, up = (machine.measured(path, "on-socket") for path in ("d2h", "h2d"))
    if down is None or up is None:
        times["host"] = math.inf
    elif exchanged:
        # The copy streams wait for the kernels, and the kernels for the copies.
        times["host"] += float(down.curve.seconds(sum(sent))) + float(up.curve.seconds(sum(received))) + 2 * event
    times["device_mpi"] = math.inf
    probe = machine.probes.get("device_mpi")
    if probe is None or probe.works:
        times["device_mpi"] = _message_time(machine, "device_mpi", exchanged, node_ranks) + 2 * launch
    has_own_gpus = len({(placement.host, placement.gpu) for placement in placements}) == len(placements)
    if has_own_gpus and len({placement.host for placement in placements}) == 1:
        # Three kernels: pack into the memory of the peers, increment their counters, wait for the counter of this rank.
        times["peer"] = _single_call_time(machine, "peer_store", exchanged, node_ranks) + 3 * kernel_cost
        if graphs and _has(machine, "peer_exchange"):
            # Measured between two ranks: every further neighbour adds its counters.
            gaps = [entry.gap for entry in machine.paths if entry.path == "peer_exchange" and entry.gap is not None]
            gap = max(gaps, default=kernel_cost)
            times["peer"] = _single_call_time(machine, "peer_exchange", exchanged, node_ranks) + gap * max(
                len(exchanged) - 1, 0
            )
    if has_own_gpus:
        call: PathName = "nccl_graph" if graphs and _has(machine, "nccl_graph") else "nccl"
        times["nccl"] = _single_call_time(machine, call, exchanged, node_ranks) + 2 * kernel_cost + 2 * event_cost
    return times


def includes_packing(machine: Machine, transport: str, *, gpu: bool, graphs: bool) -> bool:
    """Return whether the file has measurements of whole exchanges, packing included, for a transport."""
    if gpu:
        return graphs and transport == "peer" and _has(machine, "peer_exchange")
    return transport == "host" and _has(machine, "host_exchange")


def _has(machine: Machine, path: PathName) -> bool:
    return any(entry.path == path for entry in machine.paths)


def _message_time(machine: Machine, path: PathName, exchanged: Sequence[tuple[Locality, int]], senders: int) -> float:
    """Return the time of simultaneous messages; each after the first costs the gap of its class."""
    messages, total = machine.messages(path, both_ways=True), 0.0
    for index, (locality_class, size) in enumerate(exchanged):
        if messages is None or locality_class not in messages.curves:
            return math.inf
        piece = messages.curves[locality_class].piece(size)
        gap = messages.gap(locality_class, size)
        beta = max(piece.beta, senders / messages.node_rate) if locality_class == "off-node" else piece.beta
        total += (piece.alpha if index == 0 else gap) + size * beta
    return total


def _single_call_time(
    machine: Machine, path: PathName, exchanged: Sequence[tuple[Locality, int]], senders: int
) -> float:
    """Return the time of all bytes in one call of each of `senders` ranks of a node at the same time.

    There is one latency. Every byte moves at the rate of its class, between nodes at most at the sender's share of the
    injection rate.
    """
    total = latency = 0.0
    shared_cost = senders / machine.node_rate(path)
    for locality_class, size in exchanged:
        measured = machine.measured(path, locality_class)
        if measured is None:
            return math.inf
        piece = measured.curve.piece(size)
        latency = max(latency, piece.alpha)
        total += size * (max(piece.beta, shared_cost) if locality_class == "off-node" else piece.beta)
    return latency + total
