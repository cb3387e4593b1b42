# SPDX-License-Identifier: BSD-3-Clause
"""Ranks on several nodes, imitated on one host (`nodes.py`): results have the same bits as on one.

Other tests with the mark `ranks(..., nodes=...)` run on such nodes, too: every solver with its files and checkpoints,
and every strategy of an exchange. At night, all tests of several ranks do.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nodes
import numpy as np
import pytest
from launch import environment, run_ranks
from test_halo_ranks import exchanges_equal_the_dense_reference, two_exchanges_overlap
from test_output_ranks import read_state, write_series, write_state
from test_ultrasound_ranks import OPTIONS, packet

import seiche
from life_cases import LIVES, arrays_of, assert_same_arrays, assert_same_checkpoint, changes_of, life_file
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


@pytest.mark.parametrize("name", ["unshare: unshare failed: Operation not permitted", ""])
def test_nodes_that_cannot_be_imitated_are_skipped_with_the_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "missing", nodes.missing.__wrapped__)
    if name:
        (tmp_path / "unshare").write_text(f"#!/bin/sh\necho '{name}' >&2\nexit 1\n")
        (tmp_path / "unshare").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        reason = f"the kernel does not allow imitated nodes: {name}"
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        reason = "unshare is not installed"
    with pytest.raises(pytest.skip.Exception, match=f"^{reason}$"):
        nodes.options("1+1")


def basis_of(kind: str, path: str) -> None:
    world = World.from_mpi()
    objects = packet((128, 96), 60, alpha_coeff=0.5, alpha_power=1.5)
    found = simulate(*objects, world=world, decomposition=Decomposition(kind, overlap=12), **OPTIONS)  # type: ignore[arg-type]
    if world.rank == 0:
        np.savez(path, **found)


#: Layouts of nodes for the nightly tests, beside that of all tests.
MORE_LAYOUTS = [pytest.param(layout, marks=pytest.mark.nightly) for layout in ("1+1", "1+1+1", "2+2", "2+1+1")]


@pytest.mark.parametrize("layout", ["2+1", *MORE_LAYOUTS])
@pytest.mark.parametrize("basis", ["local", "global"])
def test_ultrasound_has_the_bits_of_the_same_ranks_on_one_node(basis: str, layout: str, tmp_path: Path) -> None:
    ranks = sum(nodes.sizes_of(layout))
    results = []
    for name in ("", layout):
        run_ranks(ranks, basis_of, basis, tmp_path / f"{name or 'one'}.npz", layout=name)
        with np.load(tmp_path / f"{name or 'one'}.npz") as file:
            results.append(dict(file))
    assert_same_arrays(results[1], results[0], layout)
    assert np.abs(results[0]["p"]).max() > 0


def run_case(kind: str, private: str, cache: str, output: str) -> None:
    """Run a case that each host has in a folder of its own; only the outputs are in a folder that all can see."""
    world, folder = World.from_mpi(), Path("/dev/shm") / private
    if cache == "private":
        os.environ["SEICHE_CACHE"] = str(folder / "cache")
    if world.local_rank == 0:
        folder.mkdir()
        life_file(folder, kind)
    world.barrier()
    with seiche.load(folder / "case.toml", overrides=changes_of(kind), output=output, world=world) as simulation:
        assert simulation.run(visible=False).summary["finished"] is True
    world.barrier()
    if world.local_rank == 0:
        shutil.rmtree(folder)


def sorted_by_place(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays of a file with fixed cells in the order of their places; the file has them in that of the ranks."""
    key = next((key for key in ("VTKHDF/", "VTKHDF/Polygons/") if f"{key}Connectivity" in arrays), None)
    if key is None or len(arrays["VTKHDF/NumberOfPoints"]) > 1:
        return dict(arrays)
    (corners,) = set(np.diff(arrays[f"{key}Offsets"]).tolist())
    places = arrays["VTKHDF/Points"][arrays[f"{key}Connectivity"].reshape(-1, corners)]
    sums = places.astype(np.longdouble).sum(axis=1)  # exact: does not depend on the order of the corners
    order, times = np.lexsort(sums.T), arrays["VTKHDF/Steps/Values"]
    assert len(np.unique(sums, axis=0)) == len(sums)
    result = {"places": sums[order], "times": times}
    for name, values in arrays.items():
        if name.startswith("VTKHDF/CellData/"):
            steps = len(values) // len(order)
            result[name] = values.reshape(steps, len(order), *values.shape[1:])[:, order]
    assert len(result) > 2
    return result


@pytest.mark.parametrize("layout", ["2+1", *MORE_LAYOUTS])
@pytest.mark.parametrize("kind", LIVES)
def test_all_files_of_nodes_that_share_only_outputs_are_those_of_one(kind: str, layout: str, tmp_path: Path) -> None:
    """Those of one rank or, of ultrasound, of the same ranks; at night also with kernels compiled by each node."""
    ranks, at_night = sum(nodes.sizes_of(layout)), layout != "2+1"
    found, expected = tmp_path / "nodes", tmp_path / "one"
    cache = "private" if at_night else "shared"
    words = kind, f"{tmp_path.name}-{os.getpid()}", cache, found
    run_ranks(ranks, run_case, *words, layout=layout, timeout=270.0, new_processes=at_night)
    count = ranks if kind in ("ultrasound", "time reversal") else 1
    run_ranks(count, run_case, *words[:2], "shared", expected, layout="", timeout=270.0)
    own, others = arrays_of(found), arrays_of(expected)
    assert own and own.keys() == others.keys()
    for file, arrays in others.items():
        assert_same_arrays(sorted_by_place(own[file]), sorted_by_place(arrays), file)
    assert_same_checkpoint(found / "checkpoint.seiche", expected / "checkpoint.seiche")


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
