# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs of the ranks of a host: a made-up system with two NUMA nodes, GPUs and two threads a core."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

import seiche.backend
from seiche.backend.nvml import nvml_cpus
from seiche.domain.world import World
from seiche.machine.laws import binding
from seiche.machine.laws.binding import Binding, RankCpus, bindings_of_host, physical_cores, shares
from seiche.machine.laws.locality import cpus_beside_gpu, numa_cpus

#: CPU k and k + 8 are the threads of core k; cores 0-3 are on NUMA node 0, cores 4-7 on node 1.
NODES = {0: "0-3,8-11", 1: "4-7,12-15"}
NEAR, FAR = "0000:1B:00.0", "0000:9B:00.0"
ALL = frozenset(range(16))


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Return a folder with node*, cpu* and the PCI devices as in /sys."""
    for node, cpus in NODES.items():
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cpus}\n")
    for cpu in range(16):
        (folder := tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        name = "core_cpus_list" if cpu % 2 else "thread_siblings_list"  # old kernels have the second one only
        (folder / name).write_text(f"{cpu % 8},{cpu % 8 + 8}\n")
    for address, cpus in ((NEAR, NODES[0]), (FAR, NODES[1]), ("0000:01:00.0", "")):
        (tmp_path / address.lower()).mkdir()
        (tmp_path / address.lower() / "local_cpulist").write_text(f"{cpus}\n")
    return tmp_path


def of_host(system: Path, ranks: Sequence[RankCpus]) -> list[list[int] | str]:
    """Return the CPUs of each rank, or why it is not bound."""
    found = bindings_of_host(ranks, numa_cpus(ranks[0].allowed, system), system)
    assert len(found) == len(ranks)
    return [sorted(item.cpus) if item.cpus is not None else item.reason for item in found]


def on_gpu(system: Path, address: str, allowed: frozenset[int] = ALL) -> RankCpus:
    return RankCpus(allowed, address, cpus_beside_gpu(address, system))


def test_threads_of_a_core_stay_together(system: Path) -> None:
    assert physical_cores(ALL, system) == [frozenset({core, core + 8}) for core in range(8)]
    assert physical_cores({1, 2, 9}, system) == [frozenset({1, 9}), frozenset({2})]
    assert physical_cores({1, 2}, system / "none") == [frozenset({1}), frozenset({2})]


def test_ranks_without_gpus_share_nodes_and_cores(system: Path) -> None:
    half = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    assert of_host(system, [RankCpus(ALL)] * 2) == half
    quarters = [[first, first + 1, first + 8, first + 9] for first in (0, 2, 4, 6)]
    assert of_host(system, [RankCpus(ALL)] * 4) == quarters
    assert of_host(system, [RankCpus(ALL)] * 8) == [[core, core + 8] for core in range(8)]
    assert of_host(system, [RankCpus(ALL)] * 3) == [*quarters[:2], half[1]]
    # A job scheduler gave the job cores 2-7; the shares are as even as the nodes permit.
    part = frozenset({2, 3, 4, 5, 6, 7})
    assert of_host(system, [RankCpus(part)] * 3) == [[2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("sizes", [(1,), (4, 4), (8, 1), (3, 5, 2, 7), (1, 1, 1, 1)])
@pytest.mark.parametrize("count", range(1, 20))
def test_shares_are_disjoint_and_on_one_node_until_there_are_more_ranks_than_cores(
    sizes: tuple[int, ...], count: int
) -> None:
    first = [sum(sizes[:node]) for node in range(len(sizes))]
    nodes = [[frozenset({begin + core}) for core in range(size)] for begin, size in zip(first, sizes, strict=True)]
    found = shares(nodes, count)
    assert len(found) == count and all(found)
    of_node = [frozenset().union(*node) for node in nodes]
    if count < len(sizes):
        assert frozenset().union(*found) == frozenset(range(sum(sizes)))
    else:
        assert all(any(share <= node for node in of_node) for share in found)
    if count <= sum(sizes):
        assert sum(map(len, found)) == len(frozenset().union(*found))


def test_ranks_are_beside_their_gpus_and_share_the_cores_there(system: Path) -> None:
    near, far = on_gpu(system, NEAR), on_gpu(system, FAR)
    assert of_host(system, [far, near]) == [[4, 5, 6, 7, 12, 13, 14, 15], [0, 1, 2, 3, 8, 9, 10, 11]]
    assert of_host(system, [near, near, far]) == [[0, 1, 8, 9], [2, 3, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    assert of_host(system, [far]) == [[4, 5, 6, 7, 12, 13, 14, 15]]
    assert of_host(system, [near] * 5) == [[0, 1, 2, 3, 8, 9, 10, 11]] * 5
    # Only cores of the job are used.
    job = frozenset({1, 2, 4, 12})
    assert of_host(system, [on_gpu(system, FAR, job), on_gpu(system, NEAR, job)]) == [[4, 12], [1, 2]]
    unknown = "the place of its GPU is unknown"
    assert of_host(system, [on_gpu(system, "0000:02:00.0"), near]) == [unknown, [0, 1, 2, 3, 8, 9, 10, 11]]
    assert of_host(system, [on_gpu(system, FAR, frozenset({1, 2}))] * 2) == [unknown] * 2


def test_bound_ranks_and_those_that_must_not_be_bound_stay_as_they_are(system: Path) -> None:
    launcher = [RankCpus(frozenset({0, 8})), RankCpus(frozenset({1, 9}))]
    assert of_host(system, launcher) == ["bound by the launcher"] * 2
    assert of_host(system, [RankCpus(ALL), RankCpus(ALL, objection="OMP_PLACES is set")]) == ["OMP_PLACES is set"] * 2
    assert of_host(system, [RankCpus(ALL)]) == ["the only rank of its host"]
    assert of_host(system, [RankCpus(ALL)] * 9) == ["9 ranks on 8 cores"] * 9


class _View(list[int]):
    """The words that NVML returns."""


def _fake_nvml(monkeypatch: pytest.MonkeyPatch, words: dict[str, list[int]], error: type[Exception]) -> None:
    """Let `cuda.bindings.nvml` know these GPUs, with the words of their CPUs."""

    def handle_of(address: str) -> int:
        if address not in words:
            raise error("not found")
        return list(words).index(address)

    def affinity(handle: int, count: int) -> _View:
        return _View((list(words.values())[handle] + [0] * count)[:count])

    nvml = types.ModuleType("cuda.bindings.nvml")
    nvml.__dict__.update(init_v2=lambda: None, device_get_cpu_affinity=affinity)
    nvml.__dict__["device_get_handle_by_pci_bus_id_v2"] = handle_of
    bindings = types.ModuleType("cuda.bindings")
    bindings.__dict__["nvml"] = nvml
    for name, module in {"cuda": types.ModuleType("cuda"), "cuda.bindings": bindings, nvml.__name__: nvml}.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_nvml_names_the_cpus_where_the_system_does_not(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    word = (1 << 3) | (1 << 63)
    _fake_nvml(monkeypatch, {"0000:01:00.0": [word, 0b101], NEAR: [1]}, RuntimeError)
    assert nvml_cpus("0000:01:00.0", 128) == {3, 63, 64, 66}
    assert nvml_cpus("0000:01:00.0", 64) == {3, 63}
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    assert cpus_beside_gpu("0000:01:00.0", system) == {3, 63, 64, 66}  # its file is empty
    assert cpus_beside_gpu(NEAR, system) == {0, 1, 2, 3, 8, 9, 10, 11}  # the system comes first
    assert cpus_beside_gpu("0000:02:00.0", system) == frozenset()


def test_without_nvml_or_its_driver_no_cpus_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert nvml_cpus(NEAR) == frozenset()


def test_a_gpu_that_cannot_be_opened_has_no_address() -> None:
    assert seiche.backend.gpu_address("cpu") is None
    assert seiche.backend.gpu_address("cuda:planned") is None
    assert seiche.backend.gpu_address("cuda:4000") is None


def test_a_single_process_is_not_bound() -> None:
    world = World.serial()
    assert binding.bind_rank(world, "cpu") is world
    assert binding.present_binding().cpus is None
    assert Binding(None, "").reason == ""
