# SPDX-License-Identifier: BSD-3-Clause
"""The checklist of a first run on several ranks: every point is in order here, and each problem is found."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import launch
import pytest

from prediction_cases import case_file
from seiche.case import first_run
from seiche.case.first_run import checklist
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World


class Usage(NamedTuple):
    """Free space as `shutil.disk_usage` returns it."""

    free: int


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> tuple[World, Path, Path]:
    """Return the world, a case and an output folder that does not exist; caches of the ranks are their own."""
    world = World.from_mpi()
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    monkeypatch.setenv("SEICHE_CACHE", tempfile.mkdtemp())
    if world.rank == 0:
        case_file(folder, "flow")
    world.barrier()
    monkeypatch.setattr(first_run.shutil, "disk_usage", lambda path: Usage(first_run.SHARED_MEMORY))
    monkeypatch.setattr(first_run, "allowed_cpus", lambda: range(16))
    return world, folder / "flow.toml", folder / "results" / "out"


@pytest.mark.ranks(1, 2, nodes=("1+1",))
def test_all_points_are_in_order_and_leave_no_file(places: tuple[World, Path, Path]) -> None:
    world, case, out = places
    points = checklist(world, case, out, "cpu", threads=2)
    assert [point.name for point in points] == ["ranks", "software", "cores", "case file", "memory", "output", "cache"]
    assert not [point for point in points if point.is_problem], points
    hosts = len(set(hosts_of(world)))
    assert points[0].text.startswith(
        f"{world.size} rank{'s' * (world.size > 1)} on {hosts} host{'s' * (hosts > 1)}; MPI"
    )
    world.barrier()
    assert os.listdir(case.parent) == ["flow.toml"]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", ["cores", "software", "case file", "memory", "output", "cache"])
def test_a_problem_of_one_rank_is_found_on_every_rank(
    name: str, places: tuple[World, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, case, out = places
    threads, is_last = 2, world.rank == 1
    if name == "cores":
        monkeypatch.setattr(first_run, "allowed_cpus", lambda: range(3))
    elif is_last and name == "software":
        monkeypatch.setattr("seiche.__version__", "0.0.1")
    elif is_last and name == "case file":
        case = case.with_name("other.toml")
        case.write_text("other")
    elif is_last and name == "memory":
        monkeypatch.setattr(first_run.shutil, "disk_usage", lambda path: Usage(1024**2))
    elif is_last and name == "output":  # another file system: rank 1 does not see the file of rank 0
        write = first_run._write_own_byte
        monkeypatch.setattr(first_run, "_write_own_byte", lambda path, rank: write(path.with_name("nowhere"), rank))
    elif is_last:
        open_to_all = Path(tempfile.mkdtemp())
        open_to_all.chmod(0o777)
        monkeypatch.setenv("SEICHE_CACHE", str(open_to_all))
    points = checklist(world, case, out, "cpu", threads=threads)
    found = [point for point in points if point.is_problem]
    assert [point.name for point in found] == [name]
    texts = {
        "cores": "4 threads of its ranks share 3 CPUs (0-2); bind ranks to separate cores",
        "software": "rank 1: seiche 0.0.1",
        "case file": "all ranks must read the same files",
        "memory": "at least 1 MiB free in /dev/shm (rank 1)",
        "output": "No such file or directory; the output folder must be on a file system that all hosts share",
        "cache": "rank 1: ",
    }
    assert texts[name] in found[0].text
    assert world.allgather(found) == [found] * world.size
    world.barrier()
    assert not list(case.parent.glob(".seiche-*"))


def test_the_command_prints_the_checklist(tmp_path: Path) -> None:
    case = case_file(tmp_path, "flow")
    words = [sys.executable, "-m", "seiche", "check", str(case)]
    lines = output_of(*launch.launcher(2, ""), *words).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("first run on this machine: "))
    assert lines[begin + 1].startswith("  ok   ranks      2 ranks on 1 host; MPI: MPICH")
    assert sum("ranks      " in line for line in lines) == 1
    assert "  ok   ranks      1 rank on 1 host; MPI: none" in output_of(*words, "--first-run")
    assert "first run" not in output_of(*words)


def output_of(*command: str) -> str:
    """Return the standard output of a command that succeeds."""
    done = subprocess.run(command, env=launch.environment(), capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
