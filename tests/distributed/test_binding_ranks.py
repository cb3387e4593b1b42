# SPDX-License-Identifier: BSD-3-Clause
"""Ranks are bound by the system's own calls to disjoint cores, unless the user or the launcher has bound them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import launch
import pytest
from launch import run_ranks

import life_cases as runs
import seiche
from seiche.backend.host_threads import allowed_cpus
from seiche.domain.world import World
from seiche.machine.laws.binding import THREAD_BINDING, bind_rank, present_binding

TWO_CORES = pytest.mark.skipif(len(allowed_cpus()) < 2, reason="one core cannot be shared out")
SHARE = "bound to its share of the cores"


def without_settings() -> None:
    """Remove what tests set, so that ranks are bound."""
    for name in (*THREAD_BINDING, "OMP_NUM_THREADS"):
        os.environ.pop(name, None)


def cpus_of_thread(thread: int) -> set[int]:
    """Return the CPUs of a thread as the kernel shows them, not by the call that sets them."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    words = next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed:"))
    return {cpu for cpu in range(4096) if int(words.replace(",", ""), 16) >> cpu & 1}


def bind_and_compare() -> None:
    without_settings()
    world, before = World.from_mpi(), allowed_cpus()
    assert world.cpu_sharers == world.local_size == 2
    assert world.threads() == max(1, len(before) // 2)
    with_thread = threading.Event()
    thread = threading.Thread(target=with_thread.wait)
    thread.start()
    bound = bind_rank(world, "cpu")
    own, (first, second) = allowed_cpus(), world.allgather(allowed_cpus())
    assert present_binding() == (own, SHARE)
    assert not first & second and first | second == before and first and second
    assert cpus_of_thread(thread.native_id or 0) == cpus_of_thread(os.getpid()) == own
    with_thread.set()
    thread.join()
    assert (bound.rank, bound.size, bound.local_size) == (world.rank, world.size, world.local_size)
    assert bound.cpu_sharers == 1 and bound.threads() == len(own)
    again = bind_rank(bound, "cpu")
    assert allowed_cpus() == own and again.cpu_sharers == 1
    assert bind_rank(again, "cpu", "none").cpu_sharers == 2 and allowed_cpus() == before
    assert present_binding() == (None, "run.binding is none")
    os.environ["OMP_PLACES"] = "cores"
    bind_rank(world, "cpu")
    assert allowed_cpus() == before and present_binding() == (None, "OMP_PLACES is set")
    without_settings()
    os.sched_setaffinity(0, {sorted(before)[world.rank]})  # as a launcher binds
    of_launcher = bind_rank(World.of(world.comm), "cpu")
    assert allowed_cpus() == {sorted(before)[world.rank]} and of_launcher.threads() == of_launcher.cpu_sharers == 1
    assert present_binding() == (None, "bound by the launcher")


@TWO_CORES
def test_two_ranks_get_cores_of_their_own_and_give_them_back() -> None:
    run_ranks(2, bind_and_compare, new_processes=True, layout="")


def bind_on_nodes() -> None:
    without_settings()
    world, before = World.from_mpi(), allowed_cpus()
    bind_rank(world, "cpu")
    ranks = world.allgather((allowed_cpus(), present_binding().reason))
    assert [reason for _, reason in ranks] == [SHARE, SHARE, "the only rank of its host"]
    assert not ranks[0][0] & ranks[1][0] and ranks[2][0] == before


@TWO_CORES
def test_ranks_share_the_cores_of_their_own_node_only() -> None:
    run_ranks(3, bind_on_nodes, new_processes=True, layout="2+1")


def load_bound(mode: str) -> None:
    without_settings()
    world, before = World.from_mpi(), allowed_cpus()
    folder = runs.shared_life_folder(world, "waves")
    with seiche.load(folder / "case.toml", overrides={"run.binding": mode}, world=world) as simulation:
        seen: list[frozenset[int]] = []
        simulation.every(lambda _: seen.append(allowed_cpus()), steps=1)
        simulation.run(steps=1, visible=False)
    assert seen == [allowed_cpus()] and (len(seen[0]) < len(before)) == (mode == "auto")


@TWO_CORES
@pytest.mark.parametrize("mode", ["auto", "none"])
def test_a_case_binds_its_ranks_unless_it_says_otherwise(mode: str) -> None:
    run_ranks(2, load_bound, mode, new_processes=True, layout="")


@TWO_CORES
@pytest.mark.parametrize(("change", "said"), [("auto", SHARE), ("none", "not bound: run.binding is none")])
def test_the_binding_is_printed(change: str, said: str, tmp_path: Path) -> None:
    case = runs.life_file(tmp_path, "waves")
    words = ["-m", "seiche", "run", str(case), "--ranks-info", "--set", f"run.binding={change}"]
    inside = {name: value for name, value in launch.environment().items() if name not in THREAD_BINDING}
    command = [*launch.launcher(2, ""), sys.executable, *words]
    done = subprocess.run(command, env=inside, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    hosts = [line for line in done.stdout.splitlines() if line.startswith("host ")]
    assert len(hosts) == 2 and hosts[0] == hosts[1]  # at the start and in the report
    assert hosts[0].endswith(f"; {said}") and ": 2 ranks, NUMA node" in hosts[0]
