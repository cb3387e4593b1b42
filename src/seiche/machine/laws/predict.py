# SPDX-License-Identifier: BSD-3-Clause
"""Predict an exchange by each strategy from a machine file, and take the cheapest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from seiche.machine.laws.curve import postal
from seiche.machine.laws.file import Machine, PathName
from seiche.machine.laws.locality import RankPlace, locality
from seiche.machine.laws.models import LOCALITIES
from seiche.machine.laws.strategies import Paths, Topology, exchange_time

Times: TypeAlias = dict[str, float]

#: Paths of strategies that leave the arrays where they are, on GPUs and on the host.
_DIRECT: dict[str, PathName] = {"mpi": "device_mpi", "nccl": "nccl", "peer": "peer_copy"}
_HELPED: tuple[Literal["extra-message", "duplicate-pointer"], ...] = ("extra-message", "duplicate-pointer")


def exchange_times(machine: Machine, layout: Topology, size: float, *, whole: bool = False, gpus: bool = True) -> Times:
    """Return the predicted times of an exchange by strategy, those that the file can tell.

    Args:
        machine: what was measured.
        layout: nodes, arrays a node, processes an array.
        size: bytes from each array to each other.
        whole: an Alltoallv.
        gpus: the arrays are in GPU memory; else copies to staging memory run at the memory's rate.
    """
    host = machine.messages("host", both_ways=True)
    if host is None:
        return {}
    found: Times = {}
    paths = machine.strategy_paths(both_ways=True) if gpus else _on_host(machine)
    if paths.d2h and paths.h2d:
        found["three-step"] = exchange_time("three-step", paths, replace(layout, processes=1), size, whole=whole)
        if layout.processes > 1:
            for name in _HELPED:
                found[name] = exchange_time(name, paths, layout, size, whole=whole)
    for direct, path in _DIRECT.items():
        messages = machine.messages(path if gpus else "host", both_ways=True) if gpus or direct == "mpi" else None
        counts = [where for where, count in layout.counts().items() if count > 0]
        if messages is not None and all(where in messages.curves for where in counts):
            found[direct] = exchange_time("device", Paths(host, messages), layout, size)
            if direct != "mpi" and paths.d2h is not None:
                # The host waits for the stream, as in a copy of nothing.
                found[direct] += float(paths.d2h.seconds(0))
            if direct == "peer":
                # Two barriers: before, what others still read; after, what they wait for.
                found[direct] += 2 * float(host.curves["on-socket"].seconds(0)) * (layout.gpus - 1).bit_length()
    return found


def _on_host(machine: Machine) -> Paths:
    copy = postal(0.0, 2.0 / machine.memory["host"]) if "host" in machine.memory else None
    return replace(machine.strategy_paths(both_ways=True), d2h=copy, h2d=copy)


def cheapest(times: Times, usable: Iterable[str]) -> str | None:
    """Return the usable strategy that is predicted to be fastest, None if none is predicted."""
    known = [name for name in usable if name in times]
    return min(known, key=times.__getitem__, default=None)


def layout_of(places: Sequence[RankPlace], processes: int = 1) -> Topology:
    """Return how arrays lie on hosts, each served by `processes` ranks one after the other."""
    arrays = places[::processes]
    hosts = list(dict.fromkeys(place.host for place in arrays))
    first = [place for place in arrays if place.host == hosts[0]]
    near = sum(locality(first[0], place, gpus=bool(place.gpu)) == LOCALITIES[0] for place in first)
    return Topology(len(hosts), len(first), max(1, round(len(first) / max(1, near))), processes)
