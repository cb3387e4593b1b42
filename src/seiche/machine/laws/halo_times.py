# SPDX-License-Identifier: BSD-3-Clause
"""Predict the time of one halo exchange of a rank by each transport (theory/movement, eq. 14)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seiche.machine.laws.file import Machine, PathName
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
    """Return predicted seconds by transport: those that all ranks could use, infinite where the file does not say.

    Messages of no bytes are not sent. Packing and unpacking are counted as launches; their bytes are the caller's,
    but where `packed_too` says that what was measured has them.

    Args:
        machine: what was measured.
        places: of all ranks.
        rank: whose exchange it is.
        peers: ranks that it exchanges with.
        sent: bytes to each.
        received: bytes from each.
        graphs: exchanges that are device work only are replayed as parts of graphs.
    """
    gpus = all(place.gpu for place in places)
    told = machine.launch.get("device" if gpus else "host")
    launch, event = (told.kernel, told.event) if told else (0.0, 0.0)
    replayed, waited = launch, event
    if graphs and told is not None and told.graph_kernel is not None:
        replayed, waited = told.graph_kernel, min(event, told.graph_kernel)
    both = [
        (locality(places[rank], places[peer], gpus=gpus), max(out, into))
        for peer, out, into in zip(peers, sent, received, strict=True)
        if max(out, into) and peer != rank
    ]
    # Ranks of a node exchange at the same time, and share what it injects into the network.
    here = sum(place.host == places[rank].host for place in places)
    found = {"host": _messages(machine, "host", both, here) + 2 * launch}
    if not gpus:
        whole = machine.messages("host_exchange") if both else None
        if whole is not None and all(where in whole.curves for where, _ in both):
            found["host"] = _messages(machine, "host_exchange", both, here)
        return found
    down, up = (machine.measured(path, "on-socket") for path in ("d2h", "h2d"))
    if down is None or up is None:
        found["host"] = math.inf
    elif both:
        # The host's streams wait for the kernels, and the kernels for them.
        found["host"] += float(down.curve.seconds(sum(sent))) + float(up.curve.seconds(sum(received))) + 2 * event
    found["device_mpi"] = math.inf
    probe = machine.probes.get("device_mpi")
    if probe is None or probe.works:
        found["device_mpi"] = _messages(machine, "device_mpi", both, here) + 2 * launch
    alone = len({(place.host, place.gpu) for place in places}) == len(places)
    if alone and len({place.host for place in places}) == 1:
        # The pack kernel delivers; a kernel counts up the neighbours' words, another waits for its own.
        found["peer"] = _one_call(machine, "peer_store", both) + 3 * replayed
        if graphs and _has(machine, "peer_exchange"):
            # It was measured between two; every other neighbour is one more that words are sent to and come from.
            gaps = [each.gap for each in machine.paths if each.path == "peer_exchange" and each.gap is not None]
            gap = max(gaps, default=replayed)
            found["peer"] = _one_call(machine, "peer_exchange", both) + gap * max(len(both) - 1, 0)
    if alone:
        call: PathName = "nccl_graph" if graphs and _has(machine, "nccl_graph") else "nccl"
        found["nccl"] = _one_call(machine, call, both) + 2 * replayed + 2 * waited
    return found


def packed_too(machine: Machine, transport: str, *, gpu: bool, graphs: bool) -> bool:
    """Return whether what the file has of a transport are whole exchanges, which pack and unpack."""
    if gpu:
        return graphs and transport == "peer" and _has(machine, "peer_exchange")
    return transport == "host" and _has(machine, "host_exchange")


def _has(machine: Machine, path: PathName) -> bool:
    return any(each.path == path for each in machine.paths)


def _messages(machine: Machine, path: PathName, both: Sequence[tuple[Locality, int]], senders: int) -> float:
    """Return the time of messages that are under way together: each after the first costs its class's gap."""
    messages, total = machine.messages(path, both_ways=True), 0.0
    for number, (where, size) in enumerate(both):
        if messages is None or where not in messages.curves:
            return math.inf
        piece = messages.curves[where].piece(size)
        gap = messages.gaps.get(where, piece.alpha)
        beta = max(piece.beta, senders / messages.node_rate) if where == "off-node" else piece.beta
        total += (piece.alpha if number == 0 else min(gap, piece.alpha)) + size * beta
    return total


def _one_call(machine: Machine, path: PathName, both: Sequence[tuple[Locality, int]]) -> float:
    """Return the time of all bytes in one call: the latency once, every byte at its class's rate."""
    total = latency = 0.0
    for where, size in both:
        measured = machine.measured(path, where)
        if measured is None:
            return math.inf
        piece = measured.curve.piece(size)
        latency = max(latency, piece.alpha)
        total += size * piece.beta
    return latency + total
