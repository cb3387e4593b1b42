# SPDX-License-Identifier: BSD-3-Clause
"""Which CPUs the ranks of a host use: those beside their GPU, else equal shares of the NUMA nodes.

Only ranks that nobody has bound yet are bound. Linux places a page of memory on the NUMA node of the CPU that first
writes to it. A rank that is bound before it allocates its fields therefore has them on its own node, and no memory
policy is set.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from seiche.backend import gpu_address
from seiche.backend.host_threads import allowed_cpus, restrict_cpus
from seiche.domain.rank_locations import boot_id, host_of
from seiche.domain.world import World
from seiche.machine.laws.locality import cpus_beside_gpu, numa_cpus, parse_cpu_list

Cpus: TypeAlias = frozenset[int]

#: Variables with which users bind the threads of OpenMP themselves; "false" forbids it.
THREAD_BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
_CPUS = Path("/sys/devices/system/cpu")


class RankCpus(NamedTuple):
    """The CPUs that a rank may use, its GPU and the CPUs beside it (none if unknown), and why it is not to be bound."""

    allowed: Cpus
    gpu: str | None = None
    beside_gpu: Cpus = frozenset()
    objection: str = ""


class Binding(NamedTuple):
    """The CPUs to which a rank is bound, None if it is not, and the reason, as text for reports."""

    cpus: Cpus | None
    reason: str


@dataclass
class _State:
    """What `bind_rank` did last in this process, and the CPUs that it had before."""

    binding: Binding = field(default_factory=lambda: Binding(None, ""))
    before: Cpus = frozenset()


_state = _State()


def physical_cores(cpus: Collection[int], folder: Path = _CPUS) -> list[Cpus]:
    """Return the CPUs of `cpus` by core, in ascending order; each is a core of its own if the system has no data."""
    cores: dict[Cpus, None] = {}
    for cpu in sorted(cpus):
        siblings = {cpu}
        for name in ("core_cpus_list", "thread_siblings_list"):
            with suppress(OSError, ValueError):
                siblings |= set(parse_cpu_list((folder / f"cpu{cpu}" / "topology" / name).read_text()))
                break
        cores[frozenset(siblings & set(cpus))] = None
    return list(cores)


def shares(nodes: Sequence[Sequence[Cpus]], count: int) -> list[Cpus]:
    """Return the CPUs of `count` ranks as equal shares of the cores of the NUMA `nodes`, in ascending order.

    A share lies on one node if there are at least as many ranks as nodes, and consists of whole nodes otherwise. More
    ranks than cores on a node share all of them.
    """
    if count < len(nodes):
        bounds = [len(nodes) * rank // count for rank in range(count + 1)]
        parts = [[core for node in nodes[begin:end] for core in node] for begin, end in pairwise(bounds)]
        return [frozenset().union(*part) for part in parts]
    ranks_on = [0] * len(nodes)
    for _ in range(count):  # the next rank goes where it gets most cores
        best = max(range(len(nodes)), key=lambda node: len(nodes[node]) / (ranks_on[node] + 1))
        ranks_on[best] += 1
    result: list[Cpus] = []
    for cores, ranks in zip(nodes, ranks_on, strict=True):
        if ranks > len(cores):
            result += [frozenset().union(*cores)] * ranks
        else:
            bounds = [len(cores) * (rank + 1) // ranks for rank in range(ranks)]
            result += [frozenset().union(*cores[begin:end]) for begin, end in pairwise([0, *bounds])]
    return result


def bindings_of_host(
    ranks: Sequence[RankCpus], nodes: Mapping[int, Collection[int]], cpu_folder: Path = _CPUS
) -> list[Binding]:
    """Return the binding of each rank of a host.

    Args:
        ranks: what the ranks may use, in their order.
        nodes: CPUs of each NUMA node.
        cpu_folder: folder of the system with the topology of the CPUs.
    """
    objections = [rank.objection for rank in ranks if rank.objection]
    if objections:
        return [Binding(None, objections[0])] * len(ranks)
    if any(rank.allowed != ranks[0].allowed for rank in ranks):
        return [Binding(None, "bound by the launcher")] * len(ranks)
    allowed = ranks[0].allowed
    result = [Binding(None, "the place of its GPU is unknown")] * len(ranks)
    near_gpu = [rank.beside_gpu & allowed for rank in ranks]
    for group in dict.fromkeys(group for group in near_gpu if group):
        members = [number for number, cpus in enumerate(near_gpu) if cpus == group]
        for number, cpus in zip(members, shares(_cores_of(group, nodes, cpu_folder), len(members)), strict=True):
            result[number] = Binding(cpus, "bound beside its GPU")
    on_cpus = [number for number, rank in enumerate(ranks) if rank.gpu is None]
    cores = _cores_of(allowed, nodes, cpu_folder)
    count = sum(map(len, cores))
    if len(on_cpus) in range(2, count + 1):
        bindings = [Binding(cpus, "bound to its share of the cores") for cpus in shares(cores, len(on_cpus))]
    else:
        reason = "the only rank of its host" if len(on_cpus) < 2 else f"{len(on_cpus)} ranks on {count} cores"
        bindings = [Binding(None, reason)] * len(on_cpus)
    for number, binding in zip(on_cpus, bindings, strict=True):
        result[number] = binding
    return result


def _cores_of(cpus: Cpus, nodes: Mapping[int, Collection[int]], cpu_folder: Path) -> list[list[Cpus]]:
    """Return the cores of `cpus` by NUMA node, without nodes that have none."""
    cores = [physical_cores(cpus & set(of_node), cpu_folder) for of_node in nodes.values()]
    return [of_node for of_node in cores if of_node] or [physical_cores(cpus, cpu_folder)]


def bind_rank(world: World, device: str, mode: Literal["auto", "none"] = "auto") -> World:
    """Bind this process to its CPUs, and return the world with the resulting shares of CPUs (collective).

    Nothing is bound in a world of one rank, with `mode` "none", or if the user or the launcher has bound the ranks. A
    later call starts from the CPUs that the process had before the first one.

    Args:
        world: the ranks.
        device: the device of this rank, such as "cpu" or "cuda".
        mode: "auto" or "none".
    """
    if world.comm is None or world.size == 1 or world.emulated:
        return world
    if _state.binding.cpus is not None and allowed_cpus() == _state.binding.cpus:
        restrict_cpus(_state.before)
    _state.before = allowed_cpus()
    address = gpu_address(device, world.local_rank)
    own = RankCpus(_state.before, address, cpus_beside_gpu(address) if address else frozenset(), _objection(mode))
    # CPUs belong to a kernel, which several containers may share.
    everyone = world.allgather((boot_id() or host_of(world), own))
    here = [rank for rank, (kernel, _) in enumerate(everyone) if kernel == everyone[world.rank][0]]
    bindings = bindings_of_host([everyone[rank][1] for rank in here], numa_cpus(_state.before))
    _state.binding = bindings[here.index(world.rank)]
    if _state.binding.cpus is not None and not restrict_cpus(_state.binding.cpus):
        _state.binding = Binding(None, "the system does not permit to bind it")
    return world.with_present_cpus()


def present_binding() -> Binding:
    """Return what the last call of `bind_rank` has done."""
    return _state.binding


def _objection(mode: str) -> str:
    """Return why this process must not be bound, "" if it may."""
    if mode == "none":
        return "run.binding is none"
    return next((f"{name} is set" for name in THREAD_BINDING if name in os.environ), "")
