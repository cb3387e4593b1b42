# SPDX-License-Identifier: BSD-3-Clause
"""A job of several ranks ends with one message, whichever ranks fail, and stops at the same step on request."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import seiche
from case_files import box_tables, changed, toml_of
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import FormatError

#: Where the package that is tested lies: the source tree or an installation.
SOURCE = Path(seiche.__file__).resolve().parents[1]
BROKEN = """
import sys
from seiche import cli
from seiche.case.outputs import Outputs
from seiche.errors import CaseError
take_scheduled = Outputs.take_scheduled
def fail(outputs):
    take_scheduled(outputs)
    if outputs._solver.world.rank in FAILING and outputs._solver.step >= 14:
        raise ERROR
Outputs.take_scheduled = fail
sys.exit(cli.main(sys.argv[1:]))
"""


def start(ranks: int, code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start `code` on `ranks` ranks; skip the test where there is no launcher."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [launcher, "-n", str(ranks), sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def broken(failing: set[int], error: str) -> str:
    return BROKEN.replace("FAILING", repr(failing)).replace("ERROR", error)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Return a case that runs until it is stopped."""
    tables = changed(box_tables(), "time", {"steps": 1_000_000_000})
    tables = changed(tables, "body_force", {"force": ["1e-6 N/m^3", "0 N/m^3", "0 N/m^3"]})
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(tables, "run.monitor_every", 7)))
    return path


def test_an_error_of_all_ranks_is_reported_once(endless: Path) -> None:
    job = start(3, broken(set(), "None"), "run", endless, "--set", "lattice.collision=mr")
    out, err = job.communicate(timeout=60)
    assert job.returncode == 2
    assert not out
    words = 'lattice.collision: "mr" is not known; expected "trt", "bgk", "mrt" or "regularised"; did you mean "mrt"?'
    assert err == f"seiche: error: {endless}: {words}\n"


@pytest.mark.parametrize("failing", [{1}, {0, 2}])
def test_ranks_that_fail_alone_end_the_job_with_one_message(endless: Path, failing: set[int]) -> None:
    job = start(3, broken(failing, "CaseError('some ranks have failed')"), "run", endless)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 2
    assert [line for line in err.splitlines() if "step" not in line] == ["seiche: error: some ranks have failed"]


def test_a_defect_of_one_rank_ends_the_job_with_its_traceback(endless: Path) -> None:
    job = start(2, broken({1}, "ZeroDivisionError('a defect')"), "run", endless)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 2
    assert err.count("ZeroDivisionError: a defect") == 1


def test_sigterm_stops_all_ranks_after_the_same_step_with_a_checkpoint(endless: Path) -> None:
    job = start(2, broken(set(), "None"), "run", endless, "--set", "output.checkpoint.every=50")
    checkpoint = endless.parent / "out" / "checkpoint.seiche"
    deadline = time.monotonic() + 40
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    assert "seiche: stopped by signal SIGTERM at step" in out
    assert f"--restart {checkpoint}" in out
    assert (endless.parent / "out" / "summary.json").exists()


def test_an_error_of_rank_zero_keeps_its_kind() -> None:
    def broken() -> None:
        raise FormatError("a.stl", "byte 3", "wrong")

    with pytest.raises(FormatError, match=r"a\.stl: byte 3: wrong"):
        on_root(World.serial(), broken)
