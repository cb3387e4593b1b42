# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a launcher that does not feed this MPI: each would be rank 0 of a run of its own, in one folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import launch
import pytest

from case_files import toml_of, tube_tables
from seiche.domain import world
from seiche.domain.world import World
from seiche.errors import TransportError


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*world._LAUNCHER_VARIABLES, *world._SIZE_VARIABLES):
        monkeypatch.delenv(name, raising=False)


def command(folder: Path, *words: str, launcher: tuple[str, ...] = (), **environment: str) -> tuple[int, str]:
    """Return exit status and errors of `seiche WORDS` with these variables of a launcher."""
    (folder / "case.toml").write_text(toml_of(tube_tables()))
    line = [*launcher, sys.executable, "-m", "seiche", *words]
    done = subprocess.run(
        line, cwd=folder, env=launch.environment() | environment, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"PMI_RANK": "1", "PMI_SIZE": "2"},
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_a_rank_without_its_others_is_rejected_in_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    status, errors = command(tmp_path, "run", "case.toml", **environment)
    name, number = list(environment.items())[-1]
    assert status == 2 and len(errors.splitlines()) == 1
    assert f"{name}={number}, but this process is the only rank of its MPI (" in errors
    assert os.listdir(tmp_path) == ["case.toml"]  # no run has begun


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])
def test_the_number_alone_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "2")
    with pytest.raises(TransportError, match=f"{name}=2, but .* for a single process: mpiexec -n 1, or unset {name}"):
        World.from_mpi()
    assert World.from_mpi(single_rank=True).size == 1
    for harmless in ("1", "", "many"):
        monkeypatch.setenv(name, harmless)
        assert World.from_mpi().size == 1


def test_a_single_rank_in_an_allocation_of_several_tasks_runs(tmp_path: Path) -> None:
    slurm = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
    status, errors = command(tmp_path, "run", "case.toml", launcher=(launch.mpiexec(), "-n", "1"), **slurm)
    assert status == 0, errors
    assert command(tmp_path, "check", "case.toml", **slurm)[0] == 0  # it writes nothing
