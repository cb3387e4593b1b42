# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a launcher that does not feed this MPI: each would be rank 0 of a run of its own, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import launch
import pytest

from case_files import toml_of, tube_tables
from seiche.domain import launchers
from seiche.domain.world import World
from seiche.dropin import command as command_of_dropin
from seiche.errors import TransportError


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*launchers.LAUNCHER_VARIABLES, *launchers.SIZE_VARIABLES):
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
        {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
        {"FLUX_TASK_RANK": "0", "FLUX_JOB_SIZE": "3"},
        {"JSM_NAMESPACE_RANK": "1", "JSM_NAMESPACE_SIZE": "2"},
        {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"},
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_a_rank_without_its_others_is_rejected_in_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    status, errors = command(tmp_path, "run", "case.toml", **environment)
    name, number = list(environment.items())[-1]
    assert status == 2 and len(errors.splitlines()) == 1
    assert f"{name}={number}, but this process is the only rank of its MPI (" in errors
    assert os.listdir(tmp_path) == ["case.toml"]  # no run has begun


@pytest.mark.parametrize("name", launchers.SIZE_VARIABLES)
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
    assert command(tmp_path, "check", "case.toml", **slurm)[0] == 0


@pytest.mark.parametrize("of_batch", [{}, {"SLURM_PROCID": "0"}], ids=["salloc", "sbatch"])
def test_a_process_without_a_launcher_in_an_allocation_of_several_tasks_runs(
    of_batch: dict[str, str], tmp_path: Path
) -> None:
    """SLURM_NTASKS is that of the allocation; only srun sets the number of tasks of a step."""
    status, errors = command(tmp_path, "run", "case.toml", SLURM_JOB_ID="7", SLURM_NTASKS="4", **of_batch)
    assert status == 0, errors


MPICH = "MPICH Version:      5.0.2\nMPICH configure:    --with-device=ch4:ucx,ofi --with-pm=hydra"
OPEN_MPI = "Open MPI v5.0.11, package: Open MPI"
HYDRA = {"PMI_SIZE": "1", "MPI_LOCALNRANKS": "1", "PMI_RANK": "0"}
OPEN = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "PMIX_RANK": "2", "PMIX_NAMESPACE": "job"}
FLUX = {"FLUX_JOB_SIZE": "3", "FLUX_TASK_RANK": "1", "PMI_SIZE": "3", "PMI_RANK": "1", "PMI_FD": "9"}
JSRUN = {"JSM_NAMESPACE_SIZE": "2", "JSM_NAMESPACE_RANK": "0", "PMIX_RANK": "0"}
PALS = {"PALS_RANKID": "0", "PMI_SIZE": "2", "PMI_RANK": "0"}


@pytest.mark.parametrize(
    ("size", "library", "environment", "said"),
    [
        (1, MPICH, OPEN, "OMPI_COMM_WORLD_SIZE=4, .* its MPI (MPICH Version: 5.0.2): .*mpiexec of Open MPI;"),
        (1, OPEN_MPI, HYDRA | {"PMI_SIZE": "3"}, "PMI_SIZE=3, .*(Open MPI v5.*): .*mpiexec of MPICH or Intel MPI;"),
        (1, OPEN_MPI, HYDRA | OPEN | {"OMPI_COMM_WORLD_SIZE": "1"}, None),  # Open MPI's mpiexec within another one
        (1, MPICH, HYDRA | {"OMPI_COMM_WORLD_SIZE": "4"}, None),  # one rank of a job of Open MPI starts mpiexec -n 1
        (1, MPICH, HYDRA | OPEN | {"PMI_SIZE": "2"}, "and unset PMIX_NAMESPACE, which was set by the outer launcher;"),
        (1, MPICH, {"PMI_SIZE": "1", **OPEN}, "OMPI_COMM_WORLD_SIZE=4"),  # Open MPI's mpiexec in srun -n 1 --pty bash
        (1, MPICH, HYDRA | {"SLURM_STEP_NUM_TASKS": "4"}, None),  # Hydra starts its proxies through srun
        (4, OPEN_MPI, OPEN, None),
        (6, MPICH, {"SLURM_STEP_NUM_TASKS": "4"}, None),  # the other ranks are in another component of the job
        (1, MPICH, {"MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_RANK": "1"}, "MV2_.*=2, .*mpirun of MVAPICH;"),
        (1, MPICH, FLUX, "FLUX_JOB_SIZE=3, .*flux run;"),
        (1, MPICH, FLUX | HYDRA, None),  # mpiexec -n 1 in a task of Flux
        (1, MPICH, FLUX | {"FLUX_JOB_SIZE": "1", "PMI_SIZE": "1", "SLURM_STEP_NUM_TASKS": "4"}, None),  # Flux in srun
        (1, MPICH, JSRUN, "JSM_NAMESPACE_SIZE=2, .*jsrun;"),
        (1, MPICH, JSRUN | {"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE=2, "),
        (1, OPEN_MPI, PALS, "PMI_SIZE=2, .*mpiexec of PALS;"),
        (1, OPEN_MPI, PALS | {"SLURM_STEP_NUM_TASKS": "2"}, "PMI_SIZE=2, .*a launcher with PMI;"),
        (1, OPEN_MPI, PALS | {"PMI_SIZE": "1"}, None),
        (3, MPICH, FLUX, None),
        (1, "", {"PMIX_RANK": "2"}, "PMIX_RANK=2, .* (none is loaded): .*a launcher with PMIx;"),
        (1, "", {"PMIX_RANK": "0"}, None),
        (1, "", {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),
        (1, "", {}, None),
    ],
)
def test_the_launcher_that_decides_is_named_with_the_library(
    size: int, library: str, environment: dict[str, str], said: str | None
) -> None:
    problem = launchers.launcher_mismatch(size, library, environment)
    assert (problem is None) == (said is None), problem
    if said is not None:
        assert re.search(said.replace("(", r"\(").replace(")", r"\)"), problem or ""), problem
        assert "\n" not in (problem or "") and "for a single process: mpiexec -n 1, or unset " in (problem or "")


@pytest.mark.parametrize("program", ["omp", "cuda"])
@pytest.mark.parametrize("name", launchers.SIZE_VARIABLES)
def test_the_stand_ins_for_programs_of_k_wave_reject_a_rank_without_its_others(
    program: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "2")
    paths = "-i", str(tmp_path / "in.h5"), "-o", str(tmp_path / "out.h5")
    monkeypatch.setattr(sys, "argv", [f"kspaceFirstOrder-{program.upper()}", *paths])
    with pytest.raises(SystemExit, match=r"^1$"):
        getattr(command_of_dropin, program)()
    errors = capsys.readouterr().err
    assert f"{name}=2, but this process is the only rank of its MPI (" in errors and len(errors.splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_only_mpich_without_pmix_is_known_to_lack_it() -> None:
    assert launchers.lacks_pmix(MPICH)
    others = (MPICH.replace("--with-pm=", "--with-pmix=/usr --with-pm="), OPEN_MPI, "CRAY MPICH version 8.1", "")
    assert not any(map(launchers.lacks_pmix, others))


@pytest.mark.parametrize("number", ["1", "2"])
def test_a_library_that_would_end_the_process_is_not_initialised(number: str, tmp_path: Path) -> None:
    """MPICH without PMIx ends a process in which PMIX_NAMESPACE is set."""
    pytest.importorskip("mpi4py")
    environment = OPEN | {"OMPI_COMM_WORLD_SIZE": number, "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}
    status, errors = command(tmp_path, "run", "case.toml", **environment)
    if number == "1":
        assert status == 0, errors
    else:
        assert status == 2 and len(errors.splitlines()) == 1, errors
        assert "OMPI_COMM_WORLD_SIZE=2, but this process is the only rank of its MPI (" in errors
        assert "it was started by mpiexec of Open MPI; " in errors
        assert command(tmp_path, "check", "case.toml", **environment)[0] == 0
