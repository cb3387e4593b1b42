# SPDX-License-Identifier: BSD-3-Clause
"""Cases, checkpoints and machine files that version ba2b923 wrote are read, with the results that it had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.golden import differences, environment
from tools.golden_digest import of_folder

DATA = Path(__file__).parents[1] / "data" / "ba2b923"
#: Penalties of membranes whose defaults have changed since.
FORMER = {
    "blood": ('cells.0.area="50 uN/m"', 'cells.0.local_area="0 N/m"', 'cells.0.volume="500 Pa"'),
}


def seiche(folder: Path, *words: str, **variables: str) -> str:
    """Run a command in `folder` and return what it prints."""
    command = [sys.executable, "-m", "seiche", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment() | variables, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with copies of the files."""
    return Path(shutil.copytree(DATA, tmp_path / "earlier"))


@pytest.mark.parametrize("kind", ["flow", "blood", "ultrasound", "waves"])
def test_a_case_continues_from_its_checkpoint_with_bitwise_equal_results(kind: str, folder: Path) -> None:
    words = ["run", f"{kind}.toml", "--output", "out"]
    words += ["--restart", f"{kind}.seiche"] if kind != "ultrasound" else []  # had none
    text = seiche(folder, *words, *(word for change in FORMER.get(kind, ()) for word in ("--set", change)))
    assert "in the checkpoint" not in text
    result, expected = of_folder(folder / "out"), json.loads((folder / "results.json").read_text())[kind]
    assert result.pop("summary.json")
    # What files contain in addition today is not a difference.
    assert [text for text in differences(expected, result) if not text.endswith(": new")] == []


def test_changed_defaults_are_noted_at_a_restart(folder: Path) -> None:
    text = seiche(folder, "run", "blood.toml", "--output", "out", "--restart", "blood.seiche")
    notes = {line.partition(": cells.ball.")[2] for line in text.splitlines() if "in the checkpoint" in line}
    assert notes == {
        "area is 2.8e-05, but 5e-05 in the checkpoint",
        "local_area is 0.00014, but 0 in the checkpoint",
        "volume is 1000, but 500 in the checkpoint",
    }


@pytest.mark.parametrize("kind", ["flow", "waves"])
def test_a_case_is_predicted_from_a_machine_file(kind: str, folder: Path) -> None:
    """That of another machine is used as it is, also if it is the one by which runs choose transports."""
    file = str(folder / "machine.json")
    words = ("predict", f"{kind}.toml", "--machine", file, "--ranks", "1,2", "--device", "cpu", "--json")
    seiche(folder, *words, "with.json", SEICHE_MACHINE=file)
    seiche(folder, *words, "without.json")
    with_variable, without = (json.loads((folder / f"{name}.json").read_text()) for name in ("with", "without"))
    assert [step["ranks"] for step in without["strong"]] == [1, 2]
    assert with_variable["strong"] == without["strong"]
