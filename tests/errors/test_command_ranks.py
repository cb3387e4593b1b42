# SPDX-License-Identifier: BSD-3-Clause
"""Whatever command several ranks run, one that fails alone ends them all with one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seiche
from case_files import box_tables, toml_of

#: Where the package that is tested lies: the source tree or an installation.
SOURCE = Path(seiche.__file__).resolve().parents[1]
#: Runs a command in which a function, called by all ranks, fails on the last one while the others wait for it. Ranks
#: are distinguished as by the launchers: a command that has not yet created its World must end, too.
BROKEN = """
import os, sys
from importlib import import_module
from seiche import cli
from seiche.errors import CaseError
module, name = sys.argv[1].rsplit(".", 1)
rank = next(os.environ[key] for key in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK") if key in os.environ)
def fail(*arguments, **options):
    if rank == "1":
        raise CaseError("the last rank has failed")
    from mpi4py import MPI
    MPI.COMM_WORLD.Barrier()
setattr(import_module(module), name, fail)
sys.exit(cli.main(sys.argv[2:]))
"""


def on_two_ranks(folder: Path, code: str, *arguments: object) -> tuple[int, str, str]:
    """Return exit status, output and errors of `code` on two ranks; skip the test where there is no launcher."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [launcher, "-n", "2", sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("broken", "command"),
    [
        ("seiche.case.loading.load", "run case.toml"),
        ("seiche.case.load.read_source", "check case.toml"),
        ("seiche.bench.flow.main", "bench flow"),
        ("seiche.bench.flow.FlowSolver", "bench flow --size 1 --layout list-ab"),
        ("seiche.bench.waves.main", "bench waves"),
        ("seiche.bench.ultrasound_ranks.main", "bench ultrasound"),
        ("seiche.bench.lfb.main", "bench lfb"),
        ("seiche.bench.machine.measure", "bench machine"),
        ("seiche.bench.choice.main", "bench choice machine.json"),
        ("seiche.bench.collectives.main", "bench collectives"),
        ("seiche.bench.predict.main", "bench predict"),
    ],
)
def test_a_rank_that_fails_alone_ends_any_command(tmp_path: Path, broken: str, command: str) -> None:
    (tmp_path / "case.toml").write_text(toml_of(box_tables()))
    status, _, err = on_two_ranks(tmp_path, BROKEN, broken, *command.split())
    output = [line for line in err.splitlines() if "measuring" not in line]
    assert (status, output) == (2, ["seiche: error: the last rank has failed"])


MAIN = "import sys; from seiche.cli import main; sys.exit(main(sys.argv[1:]))"


def test_what_one_process_does_is_done_by_one_rank(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(toml_of(box_tables()))
    words = ("predict", "case.toml", "--machine", "summit", "--ranks", "1", "--json", "p.json")
    status, out, err = on_two_ranks(tmp_path, MAIN, *words)
    assert (status, err) == (0, "")
    assert out.count("ranks ") == 1 + out.count("stage, ranks")
    assert json.loads((tmp_path / "p.json").read_text())
    status, _, err = on_two_ranks(tmp_path, MAIN, "report", "nowhere")
    assert status == 2
    assert err.count("seiche: error: nowhere: ") == err.count("\n") == 1


def test_validation_rejects_several_ranks(tmp_path: Path) -> None:
    status, out, err = on_two_ranks(tmp_path, MAIN, "validate", "machine", "--quick")
    assert (status, out) == (2, "")
    assert err.startswith("seiche: error: validate: requires one rank, not 2") and err.count("\n") == 1
