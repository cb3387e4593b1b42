# SPDX-License-Identifier: BSD-3-Clause
"""Predict an exchange with each strategy from a machine file, and select the cheapest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from seiche.machine.laws.curve import postal
from seiche.machine.laws.file import Machine, PathName
from seiche.machine.laws.locality import RankPlacement, locality
from seiche.machine.laws.models import LOCALITIES
from seiche.machine.laws.strategies import Paths, Topology, exchange_time

#: Paths of strategies that use the arrays directly, on GPUs and on the host.
_DIRECT: dict[str, PathName] = {"mpi": "device_mpi", "nccl": "nccl", "peer": "peer_copy"}
_WITH_HELPERS: tuple[Literal["extra-message", "duplicate-pointer"], ...] = ("extra-message", "duplicate-pointer")


def exchange_times(
    machine: Machine, layout: Topology, size: float, *, whole_messages: bool = False, gpus: bool = True
) -> dict[str, float]:
    """Return the predicted times of an exchange by strategy, as far as the file has data.

    Args:
        machine: the measurements.
        layout: nodes, arrays per node, processes per array.
        size: bytes from each array to each other array.
        whole_messages: whether it is an Alltoallv.
        gpus: whether the arrays are in GPU memory; otherwise copies to staging memory use the memory bandwidth.
    """
    host = machine.messages("host", both_ways=True)
    if host is None:
        return {}
    times: dict[str, float] = {}
    paths = machine.strategy_paths(both_ways=True) if gpus else _host_paths(machine)
    if paths.d2h and paths.h2d:
        times["three-step"] = exchange_time("three-step", paths, replace(layout, processes=1), size)
        for name in _WITH_HELPERS if layout.processes > 1 else ():
            options = {"whole_messages": whole_messages, "empty_messages": exchanges_pairwise(machine)}
            times[name] = exchange_time(name, paths, layout, size, **options)
    for direct, path in _DIRECT.items():
        messages = machine.messages(path if gpus else "host", both_ways=True) if gpus or direct == "mpi" else None
        required = [name for name, count in layout.counts().items() if count > 0]
        if messages is not None and all(name in messages.curves for name in required):
            times[direct] = exchange_time("device", Paths(host, messages), layout, size)
            if direct != "mpi" and paths.d2h is not None:
                # The host synchronises with the stream, as in an empty copy.
                times[direct] += float(paths.d2h.seconds(0))
            if direct == "peer":
                # Two barriers, before and after the copies.
                times[direct] += 2 * float(host.curves["on-socket"].seconds(0)) * (layout.gpus - 1).bit_length()
    return times


def exchanges_pairwise(machine: Machine) -> bool:
    """Return whether the MPI library exchanges with one process after the other, empty messages included."""
    return any(name in str(machine.hardware.get("mpi", "")) for name in ("Open MPI", "Spectrum MPI"))


def _host_paths(machine: Machine) -> Paths:
    copy = postal(0.0, 2.0 / machine.memory["host"]) if "host" in machine.memory else None
    return replace(machine.strategy_paths(both_ways=True), d2h=copy, h2d=copy)


def cheapest(times: dict[str, float], usable: Iterable[str]) -> str | None:
    """Return the usable strategy with the lowest predicted time, None without predictions."""
    return min((name for name in usable if name in times), key=times.__getitem__, default=None)


def layout_of(placements: Sequence[RankPlacement], processes: int = 1) -> Topology:
    """Return the distribution of arrays over hosts; `processes` consecutive ranks serve each array."""
    arrays = placements[::processes]
    hosts = list(dict.fromkeys(placement.host for placement in arrays))
    first = [placement for placement in arrays if placement.host == hosts[0]]
    same_socket = sum(locality(first[0], placement, gpus=bool(placement.gpu)) == LOCALITIES[0] for placement in first)
    return Topology(len(hosts), len(first), max(1, round(len(first) / max(1, same_socket))), processes)
