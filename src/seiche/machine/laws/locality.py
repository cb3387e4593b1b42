# SPDX-License-Identifier: BSD-3-Clause
"""Hosts and NUMA nodes of ranks and their GPUs, and the locality class of a pair."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seiche.backend import Backend
from seiche.backend.host_threads import allowed_cpus
from seiche.backend.nvml import nvml_cpus
from seiche.domain.rank_locations import host_name, rank_locations
from seiche.domain.world import World
from seiche.machine.laws.models import Locality

_NODES = Path("/sys/devices/system/node")
_DEVICES = Path("/sys/bus/pci/devices")


@dataclass(frozen=True)
class RankPlacement:
    """Host of a rank, its allowed CPUs by NUMA node, and its GPU: PCI address, name and NUMA node."""

    host: str
    cpus: dict[int, tuple[int, ...]] = field(default_factory=dict)
    gpu: str | None = None
    gpu_name: str = ""
    gpu_node: int | None = None


def numa_cpus(allowed: Collection[int], nodes: Path = _NODES) -> dict[int, tuple[int, ...]]:
    """Return the CPUs of `allowed` by NUMA node; all on node 0 if the system has no such data."""
    by_node: dict[int, tuple[int, ...]] = {}
    for folder in sorted(nodes.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        with suppress(OSError, ValueError):
            cpus = parse_cpu_list((folder / "cpulist").read_text())
            if usable := tuple(sorted(set(cpus) & set(allowed))):
                by_node[int(folder.name[4:])] = usable
    return by_node or {0: tuple(sorted(allowed))}


def parse_cpu_list(text: str) -> list[int]:
    """Return the numbers of a list such as "0-3,8"."""
    indices: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        indices += range(int(first), int(last or first) + 1)
    return indices


def gpu_numa_node(address: str, devices: Path = _DEVICES) -> int | None:
    """Return the NUMA node of a GPU by its PCI address, None if unknown."""
    try:
        node = int((devices / address.lower() / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def cpus_beside_gpu(address: str, devices: Path = _DEVICES) -> frozenset[int]:
    """Return the CPUs beside the GPU with this PCI address, by the system or else by NVML; none if unknown."""
    with suppress(OSError, ValueError):
        if cpus := parse_cpu_list((devices / address.lower() / "local_cpulist").read_text()):
            return frozenset(cpus)
    return nvml_cpus(address)


def rank_placements(backend: Backend, world: World) -> list[RankPlacement]:
    """Return the placements of all ranks (collective)."""
    location = rank_locations(backend, world)[world.rank]
    gpu_name = backend.describe().partition(" (")[0] if location.gpu else ""
    gpu_node = gpu_numa_node(location.gpu) if location.gpu else None
    own_placement = RankPlacement(location.host, numa_cpus(allowed_cpus()), location.gpu, gpu_name, gpu_node)
    return world.allgather(own_placement)


def locality(first: RankPlacement, second: RankPlacement, *, gpus: bool = False) -> Locality:
    """Return the class of two ranks, or of their GPUs, with their present binding.

    Ranks that may run on several NUMA nodes count as on-node, because their position is not fixed.
    """
    if first.host != second.host:
        return "off-node"
    if gpus:
        return "on-socket" if first.gpu_node == second.gpu_node else "on-node"
    nodes = {*first.cpus, *second.cpus}
    return "on-socket" if len(nodes) == 1 else "on-node"


def bindings(first: RankPlacement, second: RankPlacement, target: Locality) -> tuple[set[int], set[int]] | None:
    """Return CPUs for two ranks of one host that put them into class `target`, None if impossible."""
    for a, first_cpus in first.cpus.items():
        for b, second_cpus in second.cpus.items():
            if (a == b) == (target == "on-socket"):
                return set(first_cpus), set(second_cpus)
    return None


def pairs(placements: Sequence[RankPlacement], target: Locality, *, gpus: bool = False) -> list[tuple[int, int]]:
    """Return disjoint pairs of ranks that are, or can be bound, in the locality class `target`.

    Off-node pairs all connect the same two hosts; their number is therefore the number of senders of a node.
    """
    ranks = [rank for rank, placement in enumerate(placements) if not gpus or placement.gpu]
    hosts = list(dict.fromkeys(placements[rank].host for rank in ranks))
    if target == "off-node":
        if len(hosts) < 2:
            return []
        sides = [[rank for rank in ranks if placements[rank].host == host] for host in hosts[:2]]
        return list(zip(*sides, strict=False))
    unpaired = [rank for rank in ranks if placements[rank].host == hosts[0]] if hosts else []
    matched: list[tuple[int, int]] = []
    while unpaired:
        first = unpaired.pop(0)
        for second in unpaired:
            a, b = placements[first], placements[second]
            if gpus and a.gpu == b.gpu:
                continue
            if (locality(a, b, gpus=True) == target) if gpus else bindings(a, b, target):
                matched.append((first, second))
                unpaired.remove(second)
                break
    return matched


@contextmanager
def bound(cpus: set[int] | None) -> Iterator[None]:
    """Bind this process to `cpus` inside the block if the system allows it; None changes nothing."""
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    previous = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, previous)


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor."""
    with suppress(OSError):
        for line in cpuinfo.read_text().splitlines():
            if line.startswith(("model name", "cpu\t")):
                return line.partition(":")[2].strip()
    return platform.machine()


def hardware(placements: Sequence[RankPlacement], mpi: str) -> dict[str, Any]:
    """Return the identifying hardware properties for a machine file."""
    first = placements[0].host
    hosts = list(dict.fromkeys(placement.host for placement in placements))
    gpus = dict.fromkeys(
        (placement.gpu, placement.gpu_name) for placement in placements if placement.host == first and placement.gpu
    )
    sockets = len(list(_NODES.glob("node[0-9]*"))) or 1
    return {
        "host": host_name(first),
        "hosts": len(hosts),
        "ranks": len(placements),
        "cpu": processor(),
        "cores": os.cpu_count() or 1,
        "sockets": sockets,
        "gpus": [name for _, name in gpus],
        "mpi": mpi,
    }


#: Keys that identify a machine; the numbers of ranks and hosts may differ.
_IDENTITY = ("cpu", "cores", "sockets", "gpus", "mpi")


def differences(stored: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """Return the differences between the machine `current` and that of a file, one line each.

    Keys missing in the file are not compared. Fewer GPUs of the same kind are no difference.
    """
    lines = []
    for key in _IDENTITY:
        is_subset = key == "gpus" and (not current["gpus"] or set(current["gpus"]) <= set(stored.get("gpus", ())))
        if key in stored and stored[key] != current[key] and not is_subset:
            lines.append(f"{key} is {current[key]!r}, but {stored[key]!r} in the file")
    return lines
