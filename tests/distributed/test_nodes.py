# SPDX-License-Identifier: BSD-3-Clause
"""Ranks on several nodes, imitated on one host (`nodes.py`): results have the same bits as on one.

Other tests with the mark `ranks(..., nodes=...)` run on such nodes, too: every solver with its files and checkpoints,
and every strategy of an exchange. At night, all tests of several ranks do.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import nodes
import numpy as np
import pytest
from launch import environment, run_ranks
from test_halo_ranks import exchanges_equal_the_dense_reference, two_exchanges_overlap
from test_output_ranks import read_state, write_series, write_state
from test_ultrasound_ranks import OPTIONS, packet

from life_cases import arrays_of, assert_same_arrays
from seiche.domain.rank_locations import boot_id, host_name, hosts_of, pid_namespace
from seiche.domain.world import World
from seiche.halo.transports.single_copy import this_process, verify_process
from seiche.ultrasound import Decomposition, simulate

FOLDER = Path(__file__).parent
#: Files with tests of several ranks that are not about processes of one host.
OF_RANKS = sorted(
    path.name
    for path in FOLDER.glob("test_*.py")
    if path.name not in ("test_nodes.py", "test_jobs.py", "test_containers.py", "test_output_killed.py")
    and any(word in path.read_text() for word in ("mark.ranks(", "run_ranks(", "launcher("))
)


@pytest.mark.ranks(nodes=("2+1", "1+1+1"))
def test_nodes_share_neither_names_nor_processes_nor_memory(ranks: int, node_layout: str) -> None:
    world, sizes = World.from_mpi(), nodes.sizes_of(node_layout)
    node_of = [node for node, size in enumerate(sizes) for _ in range(size)]
    assert world.size == ranks == len(node_of)
    assert world.local_size == sizes[node_of[world.rank]]
    names = world.allgather(platform.node())
    assert names == [f"node{node + 1}" for node in node_of] == [host_name(host) for host in hosts_of(world)]
    for identity in (hosts_of(world), world.allgather(boot_id()), world.allgather(pid_namespace())):
        for first in range(ranks):
            for second in range(ranks):
                assert (identity[first] == identity[second]) == (node_of[first] == node_of[second])
    if world.local_rank == 0:
        Path("/dev/shm/of-this-node").write_text(platform.node())
    world.barrier()
    assert Path("/dev/shm/of-this-node").read_text() == platform.node()
    for rank, process in enumerate(world.allgather(this_process())):
        if node_of[rank] != node_of[world.rank]:
            with pytest.raises(OSError):
                verify_process(process)
    world.barrier()


def local_basis(path: str) -> None:
    world = World.from_mpi()
    objects = packet((128, 96), 60, alpha_coeff=0.5, alpha_power=1.5)
    found = simulate(*objects, world=world, decomposition=Decomposition("local", overlap=12), **OPTIONS)
    if world.rank == 0:
        np.savez(path, **found)


@pytest.mark.parametrize("layout", ["2+1"])
def test_the_local_basis_has_the_bits_of_the_same_ranks_on_one_node(layout: str, tmp_path: Path) -> None:
    ranks = sum(nodes.sizes_of(layout))
    results = []
    for name in ("", layout):
        run_ranks(ranks, local_basis, tmp_path / f"{name or 'one'}.npz", layout=name)
        with np.load(tmp_path / f"{name or 'one'}.npz") as file:
            results.append(dict(file))
    assert_same_arrays(results[1], results[0], layout)
    assert np.abs(results[0]["p"]).max() > 0


def test_a_checkpoint_of_nodes_is_read_on_others(tmp_path: Path) -> None:
    run_ranks(3, write_state, tmp_path / "state", layout="2+1")
    run_ranks(3, write_state, tmp_path / "one", layout="")
    assert (tmp_path / "state").read_bytes() == (tmp_path / "one").read_bytes()
    assert run_ranks(2, read_state, tmp_path / "state", layout="1+1").count("same") == 2
    assert run_ranks(2, read_state, tmp_path / "state", layout="").count("same") == 2


def test_a_field_file_of_nodes_is_that_of_one(tmp_path: Path) -> None:
    for layout in ("", "2+1"):
        (folder := tmp_path / f"on {layout}").mkdir()
        run_ranks(3, write_series, folder / "u.vtkhdf", layout=layout)
    expected = arrays_of(tmp_path / "on ")["u.vtkhdf"]
    assert_same_arrays(arrays_of(tmp_path / "on 2+1")["u.vtkhdf"], expected, "u.vtkhdf")


@pytest.mark.parametrize("transport", ["host", "device_mpi"])
def test_transports_of_several_hosts_exchange_between_nodes(transport: str) -> None:
    run_ranks(3, exchanges_equal_the_dense_reference, transport, "cpu", layout="2+1")
    run_ranks(3, two_exchanges_overlap, "cpu", transport, layout="2+1")


@pytest.mark.nightly
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", OF_RANKS)
@pytest.mark.timeout(3600)
def test_everything_on_nodes(name: str, count: int, tmp_path: Path) -> None:
    nodes.options("1+1")  # skips where there are none
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", "--basetemp", str(tmp_path / "inner")]
    inside = environment() | {nodes.NODES: str(count)}
    done = subprocess.run(
        [*command, "-m", "not nightly and not gpu", str(FOLDER / name)],
        env={key: value for key, value in inside.items() if not key.startswith("PYTEST_")},
        cwd=FOLDER.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, int(pytest.ExitCode.NO_TESTS_COLLECTED)), done.stdout[-20000:] + done.stderr[-2000:]
