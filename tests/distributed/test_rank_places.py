# SPDX-License-Identifier: BSD-3-Clause
"""`--ranks-info`: MPI, launcher, hosts, cores, NUMA nodes and GPUs of ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seiche.domain.partition
from seiche.backend import open_backend
from seiche.case.rank_places import cpu_list, host_lines, mpi_line, place_lines, rank_place, report_lines
from seiche.domain import shapes
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Solver
from seiche.machine.laws.locality import RankPlacement, gpu_numa_node, numa_cpus

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Return a tree as that of a system with two NUMA nodes of four cores and a GPU beside the second one."""
    for node, cpus in enumerate(["0-3", "4-7"]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cpus}\n")
    (tmp_path / "0000:9b:00.0").mkdir()
    (tmp_path / "0000:9b:00.0" / "numa_node").write_text("1\n")
    return tmp_path


def test_cores_and_the_node_of_a_gpu_are_those_of_the_system(system: Path) -> None:
    node = gpu_numa_node("0000:9B:00.0", system)
    everywhere = RankPlacement("n@boot/1", numa_cpus(range(8), system), "0000:9B:00.0", H100, node)
    beside = numa_cpus(range(8), system)[1]
    assert rank_place(everywhere, beside) == (
        f"cores 0-7 of NUMA nodes 0-1; {H100} at 0000:9B:00.0 beside NUMA node 1: bind the rank to cores 4-7"
    )
    bound = RankPlacement("n@boot/1", numa_cpus([4, 6], system), "0000:9B:00.0", H100, node)
    assert rank_place(bound, beside) == f"cores 4,6 of NUMA node 1; {H100} at 0000:9B:00.0 beside NUMA node 1"
    assert rank_place(RankPlacement("n", numa_cpus([2], system))) == "core 2 of NUMA node 0"
    assert (
        rank_place(RankPlacement("n", {0: (0,)}, "0000:01:00.0", H100))
        == f"core 0 of NUMA node 0; {H100} at 0000:01:00.0"
    )


def test_shared_gpus_and_mig_instances_are_named() -> None:
    ranks = [RankPlacement("a@boot/1", {}, gpu, H100) for gpu in ("0:1", "0:1", "0:2")]
    mig = [RankPlacement("b@boot/1", {}, "0:1", f"{H100} MIG 1g.10gb")] * 2
    assert host_lines([*ranks, *mig, RankPlacement("c")]) == [
        f"host a: 3 ranks, 2 x {H100}; 2 ranks share GPU 0:1",
        f"host b: 2 ranks, 1 x {H100} MIG 1g.10gb; 2 ranks use MIG instances of GPU 0:1",
        "host c: 1 rank",
    ]


def test_numa_nodes_and_bindings_are_named_host_by_host() -> None:
    ranks = [RankPlacement("a@boot/1", {0: (0,), 1: (4,)}), RankPlacement("a@boot/1", {1: (5,)}), RankPlacement("b")]
    assert host_lines(ranks, ["bound by the launcher"] * 2 + ["not bound: the only rank of its host"]) == [
        "host a: 2 ranks, NUMA nodes 0-1; bound by the launcher",
        "host b: 1 rank; not bound: the only rank of its host",
    ]


def test_numbers_are_listed_as_spans() -> None:
    assert cpu_list([8, 0, 1, 2, 3, 10, 11]) == "0-3,8,10-11"
    assert cpu_list([]) == ""


@pytest.mark.ranks(2, nodes=("2+1",))
def test_library_launcher_and_hosts_are_printed(ranks: int, node_layout: str | None) -> None:
    world = World.from_mpi()
    lines = place_lines(world, open_backend("cpu", 1), 1000 + world.rank, "sites")
    assert lines == world.bcast(lines)
    assert lines[0].startswith(f"MPI: {world.library()}, ABI ") and "mpi4py module MPI" in lines[0]
    assert f"_SIZE={ranks})" in lines[0]
    if node_layout == "2+1":
        assert [line.partition(", NUMA node")[0] for line in lines[1:3]] == [
            "host node1: 2 ranks",
            "host node2: 1 rank",
        ]
        assert lines[5].startswith("rank 2 on node2: 1,002 sites; core")
    assert report_lines(world, open_backend("cpu", 1)) == lines[:-ranks]
    assert len(lines) == 1 + ranks + len(set(hosts_of(world)))


def values_between_hosts(world: World, solver: Solver) -> int:
    """Return the number of values that all ranks send to ranks of other hosts in an exchange."""
    hosts, plan = hosts_of(world), solver.populations.plan
    sent = [len(slots) for peer, slots in zip(plan.peers, plan.owned, strict=True) if hosts[peer] != hosts[world.rank]]
    return sum(world.allgather(sum(sent)))


@pytest.mark.ranks(nodes=("2+1",))
def test_parts_that_exchange_much_are_on_ranks_of_one_node(
    ranks: int, node_layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """METIS numbers three parts in a row so that the middle one is alone on the second node, if nothing maps them."""
    world, half = World.from_mpi(), np.array([25.0, 3.0, 3.0])
    row = shapes.sites_from_distance(lambda x: (np.abs(x - half) - half).max(axis=-1), (0, 0, 0), 2 * half, 1.0)
    assert world.size == ranks and len(set(hosts_of(world))) == 2, node_layout
    mapped = Solver(row, FlowModel(Newtonian(0.1)), layout="list-ab", world=world, threads=1)
    monkeypatch.setattr(seiche.domain.partition, "host_numbers", lambda world: ())
    in_order = Solver(row, FlowModel(Newtonian(0.1)), layout="list-ab", world=world, threads=1)
    values = [values_between_hosts(world, solver) for solver in (mapped, in_order)]
    assert values == [344, 688]


def test_a_serial_run_has_no_mpi() -> None:
    assert mpi_line(World.serial()) == "MPI: none"
    assert report_lines(World.serial(), open_backend("cpu", 1)) == []
