# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of a simulation: paths of checkpoints, intervals, and names that are reserved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.loading import prepare
from seiche.case.output import OutputTarget
from seiche.case.output_targets import files_at
from seiche.cli import main
from seiche.errors import CaseError

KINDS = ("flow", "blood", "ultrasound", "waves")


def test_a_checkpoint_replaces_only_a_checkpoint(tmp_path: Path) -> None:
    case = case_file(tmp_path, "flow")
    notes, folder = tmp_path / "notes.txt", tmp_path / "folder"
    notes.write_text("mine")
    folder.mkdir()
    content = case.read_bytes()
    with seiche.load(case, output=tmp_path / "out") as sim:
        sim.run(steps=1, visible=False)
        for path, message in (
            (notes, "is not a valid checkpoint"),
            (case, "replace"),
            (folder, "is a folder"),
            (tmp_path / "missing" / "state", "does not exist"),
            (Path("/dev/null"), "is not a regular file"),
        ):
            with pytest.raises(CaseError, match=message):
                sim.checkpoint(path)
        for _ in range(2):
            assert sim.checkpoint(tmp_path / "state.seiche").is_file()
    with pytest.raises(CaseError, match="is closed"):
        sim.checkpoint(tmp_path / "later.seiche")
    assert notes.read_text() == "mine" and case.read_bytes() == content
    assert not (tmp_path / "later.seiche").exists()


def test_files_of_a_series_are_states_lists_and_walls_only(tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("cells.000000010.vtkhdf", "cells.wall.vtkhdf")]
    for path in (*own, tmp_path / "cells.mean.vtkhdf"):
        h5py.File(path, "w").close()
    place = OutputTarget("output.cells", tmp_path / "cells.vtkhdf", series=True)
    assert sorted(files_at(place)) == sorted(own)


@pytest.mark.parametrize(
    "interval",
    [{}, {"steps": 1, "time": 1.0}, *({name: value} for name in ("steps", "time") for value in (0, -1, 1e999, "3"))],
)
def test_an_interval_is_one_positive_number(interval: dict[str, Any], tmp_path: Path) -> None:
    with seiche.load(case_file(tmp_path, "flow"), output=tmp_path / "out") as sim:
        for given in (interval, {"steps": 1.5}, {"time": float("nan")}):
            with pytest.raises(CaseError, match="every: expected a positive whole number of steps"):
                sim.every(print, **given)
        with pytest.raises(CaseError, match="every: 5 is not a function"):
            sim.every(5, steps=3)  # type: ignore[arg-type]


def test_names_of_the_record_of_a_run_are_reserved(tmp_path: Path) -> None:
    case = case_file(tmp_path, "flow")
    for name in (".seiche-run.json", ".seiche-run.lock"):
        with pytest.raises(CaseError, match="is reserved for the record of the run"):
            seiche.load(case, output=tmp_path / "out", overrides=[f"output.summary={name}"])


def test_an_output_folder_without_a_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = case_file(tmp_path, "flow")
    with pytest.raises(CaseError, match=r"^output: expected the name of a folder, not an empty text"):
        seiche.load(case, output="")
    for words in (["run", str(case)], ["sweep", str(case), "--set", "time.steps=5,6"]):
        for name in ("--output", "-o"):
            assert main([*words, name, ""]) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1 and "expected the name of a folder, not an empty text" in said
    assert [path.name for path in tmp_path.iterdir()] == [case.name]


@pytest.mark.parametrize("value", ["0", '"0 s"', "-1"])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((kind, "output.checkpoint.every={}") for kind in KINDS),
        ("flow", "time.steady_interval={}"),
        ("flow", "output.record_every={}"),
        ("flow", 'output.fields=[{{file="a.vtkhdf", every={}}}]'),
        ("flow", 'output.surface=[{{file="a.vtkhdf", every={}}}]'),
        ("flow", 'output.averages={{file="a.vtkhdf", window={}}}'),
        ("blood", 'output.cells=[{{file="a.vtkhdf", every={}}}]'),
        ("waves", 'output.snapshots=[{{file="a.h5", every={}}}]'),
        ("waves", "output.receivers.every={}"),
    ],
)
def test_an_interval_of_a_case_is_positive(kind: str, key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"is no interval; expected a time|is not a number of steps"):
        prepare(case_file(tmp_path, kind), [key.format(value)])


def test_a_missing_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    said = f"there is no folder {missing}"
    case = case_file(tmp_path, "flow")
    with pytest.raises(CaseError, match=said):
        seiche.load(missing / "case.toml")
    with pytest.raises(CaseError, match=said):
        seiche.load(case, output=tmp_path / "out", restart=missing / "checkpoint.seiche")
    with seiche.load(case, output=tmp_path / "out") as sim, pytest.raises(CaseError, match=said):
        sim.result().plot().save(missing / "flow.png")
    vessel = 'geometry={stl="missing/vessel.stl", unit="1 mm", spacing="0.1 mm"}'
    assert main(["check", str(case), "--set", vessel]) == 2
    assert said in capsys.readouterr().err
    waves = case_file(tmp_path, "waves")
    pulse = 'source=[{position=["1 m", "1 m", "1 m"], volume="1 m^3", time={kind="file", file="missing/pulse.txt"}}]'
    assert main(["check", str(waves), "--set", pulse]) == 2
    assert said in capsys.readouterr().err
    ultrasound = case_file(tmp_path, "ultrasound")
    assert main(["check", str(ultrasound), "--set", 'medium={file="missing/medium.npz"}']) == 2
    assert said in capsys.readouterr().err
