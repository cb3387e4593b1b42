# SPDX-License-Identifier: BSD-3-Clause
"""Where the ranks of a run are: MPI library, launcher and hosts; cores, NUMA nodes and GPU of each rank."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from seiche.backend import Backend
from seiche.domain.launchers import launcher_of
from seiche.domain.rank_locations import host_name
from seiche.domain.world import World
from seiche.machine.laws.binding import present_binding
from seiche.machine.laws.locality import RankPlacement, numa_cpus, rank_placements


def mpi_line(world: World) -> str:
    """Return MPI library, its ABI, the module of mpi4py and the launcher, as one line."""
    if world.comm is None or world.emulated:
        return "MPI: none"
    text = sys.modules["mpi4py.MPI"].Get_library_version().replace("\x00", "")
    abi = re.search(r"ABI:\s*(\S+)", text)
    module = Path(str(sys.modules["mpi4py.MPI"].__file__)).name.partition(".cpython")[0].partition(".abi3")[0]
    launcher = launcher_of(text)
    started = f"started by {launcher.describe()}" if launcher is not None else "started without a launcher"
    return f"MPI: {world.library()}, ABI {abi[1] if abi else 'unknown'}, mpi4py module {module}, {started}"


def cpu_list(cpus: Collection[int]) -> str:
    """Return numbers as a list such as "0-3,8"."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def host_lines(placements: Sequence[RankPlacement], bindings: Sequence[str] = ()) -> list[str]:
    """Return a line for each host: ranks, NUMA nodes, GPUs, those that several ranks use, and how ranks are bound.

    Args:
        placements: places of all ranks.
        bindings: how each of them is bound, as text.
    """
    lines = []
    for host, number in Counter(placement.host for placement in placements).items():
        gpus = Counter(placement.gpu for placement in placements if placement.host == host and placement.gpu)
        is_mig = {placement.gpu for placement in placements if placement.host == host and "MIG" in placement.gpu_name}
        shared = [
            f"; {count} ranks {'use MIG instances of' if gpu in is_mig else 'share'} GPU {gpu}"
            for gpu, count in gpus.items()
            if count > 1
        ]
        ranks = [rank for rank, placement in enumerate(placements) if placement.host == host]
        bound = dict.fromkeys(bindings[rank] for rank in ranks if bindings and bindings[rank])
        parts = [f"{number} rank{'s' * (number > 1)}", *_hardware([placements[rank] for rank in ranks])]
        lines.append(
            f"host {host_name(host)}: {', '.join(parts)}{''.join(shared)}{''.join(f'; {text}' for text in bound)}"
        )
    return lines


def _hardware(placements: Sequence[RankPlacement]) -> list[str]:
    """Return the NUMA nodes and the GPUs of the ranks of a host."""
    nodes = cpu_list({node for placement in placements for node in placement.cpus})
    gpus = {placement.gpu: placement.gpu_name for placement in placements if placement.gpu is not None}
    texts = [f"NUMA node{'s' * (not nodes.isdecimal())} {nodes}"] if nodes else []
    return texts + [f"{number} x {name}" for name, number in Counter(gpus.values()).items()]


def rank_place(placement: RankPlacement, gpu_node_cores: Collection[int] = ()) -> str:
    """Return cores, NUMA nodes and GPU of a rank as text.

    Args:
        placement: the place of the rank.
        gpu_node_cores: cores of the NUMA node of its GPU, of which it should use some.
    """
    cpus = [cpu for numbers in placement.cpus.values() for cpu in numbers]
    nodes = cpu_list(placement.cpus)
    text = f"core{'s' * (len(cpus) > 1)} {cpu_list(cpus)} of NUMA node{'s' * (len(placement.cpus) > 1)} {nodes}"
    if placement.gpu is None:
        return text
    text += f"; {placement.gpu_name} at {placement.gpu}"
    if placement.gpu_node is None:
        return text
    text += f" beside NUMA node {placement.gpu_node}"
    if set(placement.cpus) != {placement.gpu_node} and gpu_node_cores:
        text += f": bind the rank to cores {cpu_list(gpu_node_cores)}"
    return text


def report_lines(world: World, backend: Backend) -> list[str]:
    """Return MPI and the hosts of several ranks, nothing for a single one (collective)."""
    return _run_lines(world, rank_placements(backend, world)) if world.size > 1 else []


def place_lines(world: World, backend: Backend, items: int, item: str) -> list[str]:
    """Return MPI, hosts, and the number of items and the place of each rank, on all ranks (collective)."""
    placements = rank_placements(backend, world)
    own_placement = placements[world.rank]
    all_cpus = numa_cpus(range(os.cpu_count() or 1))
    gpu_node_cores = all_cpus.get(own_placement.gpu_node, ()) if own_placement.gpu_node is not None else ()
    place = rank_place(own_placement, gpu_node_cores)
    own_line = f"rank {world.rank} on {host_name(own_placement.host)}: {items:,} {item}; {place}"
    return [*_run_lines(world, placements), *world.allgather(own_line)]


def _run_lines(world: World, placements: Sequence[RankPlacement]) -> list[str]:
    """Return MPI and the hosts of all ranks (collective)."""
    binding = present_binding()
    how = f"{'' if binding.cpus or not binding.reason else 'not bound: '}{binding.reason}"
    return [mpi_line(world), *host_lines(placements, world.allgather(how))]


def print_places(world: World, backend: Backend, items: int, item: str) -> None:
    """Print the lines of `place_lines` on rank 0 (collective)."""
    lines = place_lines(world, backend, items, item)
    if world.rank == 0:
        print("\n".join(lines))
