# SPDX-License-Identifier: BSD-3-Clause
"""What `seiche validate flow` does with its checks: exit status, table, JSON, pictures."""

from __future__ import annotations

import json
from datetime import datetime
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seiche.cli import main
from seiche.cli.validate import SUBJECTS
from seiche.errors import UnstableError
from seiche.validate import flow as validate_flow
from seiche.validate import suite
from seiche.validate.check import Check, Setting
from seiche.validate.flow import decay


def families(*checks: Check):
    def family(setting: Setting) -> list[Check]:
        assert setting == Setting("cpu", True)
        return list(checks)

    return (family,)


GOOD = Check("error of the parabola", np.float64(1e-13), 1e-12, reference="doi:10.1000/182")
ORDER = Check("order", 1.9, 1.8, "above")
NOTE = Check("drift in FP16", 0.3, sense="recorded", unit="sites")
BAD = Check("order of another", 1.7, 1.8, "above")
LOST = Check("diverged", float("nan"), 1.0)


def test_a_check_passes_on_its_side_of_the_bound():
    assert [check.passed for check in (GOOD, ORDER, NOTE, BAD, LOST)] == [True, True, True, False, False]
    assert not Check("recorded but lost", float("inf"), sense="recorded").passed


def test_all_passed_is_status_zero_and_everything_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(validate_flow, "FAMILIES", families(GOOD, ORDER, NOTE))
    monkeypatch.setenv("SEICHE_COMMIT", "0123456789ab")
    target = tmp_path / "new folder" / "results.json"
    assert main(["validate", "flow", "--quick", "--json", str(target)]) == 0
    out = capsys.readouterr().out
    assert "error of the parabola" in out
    assert "3 checks in 0 s: all passed" in out
    stored = json.loads(target.read_text())
    assert stored["passed"] is True
    assert stored["quick"] is True
    assert stored["commit"] == "0123456789ab"
    assert [check["bound"] for check in stored["checks"]] == [1e-12, 1.8, None]
    assert stored["checks"][0]["reference"] == "doi:10.1000/182"


def test_some_families_alone_are_run_and_what_is_stored_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(validate_flow, "FAMILIES", (decay.shear_wave, *families(GOOD), decay.taylor_green))
    chosen = suite.selected_families(validate_flow.FAMILIES, ["Taylor_Green", "shear"])
    assert chosen == [decay.shear_wave, decay.taylor_green]
    assert list(suite.selected_families(validate_flow.FAMILIES, [])) == list(validate_flow.FAMILIES)
    target = tmp_path / "results.json"
    assert main(["validate", "flow", "--quick", "--only", "family", "--json", str(target)]) == 0
    stored = json.loads(target.read_text())
    assert [check["name"] for check in stored["checks"]] == [GOOD.name]
    assert not stored["complete"]
    capsys.readouterr()
    assert main(["validate", "flow", "--only", "famly"]) == 2
    message = "--only famly: no check has this text in its name; the names are flow decay shear wave,"
    assert message in capsys.readouterr().err


def test_a_whole_name_selects_one_family_although_others_contain_it() -> None:
    families = validate_flow.FAMILIES
    assert suite.selected_families(families, ["flow decay taylor green"]) == [decay.taylor_green]
    assert suite.selected_families(families, ["decay taylor green"]) == [
        decay.taylor_green,
        decay.taylor_green_of_each_set,
    ]


def test_the_listed_names_select_one_family_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--list"]) == 0
    names = capsys.readouterr().out.splitlines()
    families = [family for subject in SUBJECTS for family in import_module(f"seiche.validate.{subject}").FAMILIES]
    assert len(names) == len(families) > 90
    assert [suite.selected_families(families, [name]) for name in names] == [[family] for family in families]
    assert main(["validate", "--list", "--only", "capsule table"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_results_replace_results_of_their_kind_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(validate_flow, "FAMILIES", families(GOOD))
    results, notes = tmp_path / "results.json", tmp_path / "notes.txt"
    for _ in range(2):
        assert main(["validate", "flow", "--quick", "--json", str(results)]) == 0
    notes.write_text("mine")
    assert main(["validate", "flow", "--quick", "--json", str(notes)]) == 2
    for command in (["bench", "flow"], ["bench", "blood"], ["bench", "ultrasound"], ["bench", "waves"]):
        for file in (notes, results):
            assert main([*command, "--json", str(file)]) == 2
            assert "exists and contains other data; choose another file" in capsys.readouterr().err
    assert notes.read_text() == "mine"
    assert json.loads(results.read_text())["passed"]


def test_one_failure_is_status_one_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(validate_flow, "FAMILIES", families(GOOD, BAD, LOST))
    target = tmp_path / "results.json"
    assert main(["validate", "flow", "--quick", "--json", str(target)]) == 1
    out = capsys.readouterr().out
    assert "2 failed" in out
    assert out.count("FAIL") == 2
    stored = json.loads(target.read_text())
    assert stored["passed"] is False
    assert stored["checks"][2]["value"] is None


def test_all_subjects_run_one_after_the_other_and_a_failure_ends_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(setting: Setting) -> list[Check]:
        raise UnstableError("flow: the state is not finite\nat step 3")

    monkeypatch.setenv("SEICHE_COMMIT", "0123456789ab")
    ran: list[str] = []
    for subject in SUBJECTS:
        module = import_module(f"seiche.validate.{subject}")

        def family(setting: Setting, subject: str = subject) -> list[Check]:
            ran.append(subject)
            return [Check(f"check of {subject}", 0.5, 1.0)]

        monkeypatch.setattr(module, "FAMILIES", (broken, family) if subject == "cells" else (family,))
    target = tmp_path / "all.json"
    assert main(["validate", "--all", "--quick", "--json", str(target)]) == 1
    assert ran == ["flow", "cells", "ultrasound", "waves", "machine"]
    assert "6 checks in 0 s: 1 failed" in capsys.readouterr().out
    stored = json.loads(target.read_text())
    assert (stored["complete"], stored["passed"], stored["commit"]) == (True, False, "0123456789ab")
    assert stored["device"]
    assert datetime.fromisoformat(stored["date"]).tzinfo is not None
    (failed,) = [check for check in stored["checks"] if not check["passed"]]
    assert failed["name"] == "test validate flow broken: flow: the state is not finite"
    assert failed["value"] is None


def test_each_check_of_the_package_has_a_subject_and_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for subject in SUBJECTS:
        for family in import_module(f"seiche.validate.{subject}").FAMILIES:
            assert suite.subject_of(family) == subject
    (check,) = suite.checks_of(lambda setting: [GOOD], Setting())
    assert check.family == "test validate flow <lambda>"


def test_all_takes_no_subject_and_a_subject_is_needed(capsys: pytest.CaptureFixture[str]):
    assert main(["validate", "--all", "flow"]) == 2
    assert "options follow the subject (flow)" in capsys.readouterr().err
    assert main(["validate", "--quick"]) == 2
    assert "choose --all or one of flow, cells, ultrasound, waves, machine" in capsys.readouterr().err


def test_figures_are_drawn_into_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(validate_flow, "FAMILIES", (decay.taylor_green,))
    options = ["--plots", str(tmp_path / "plots"), "--dpi", "127", "--size", "100x60"]
    assert main(["validate", "flow", "--quick", *options]) == 0
    (file,) = (tmp_path / "plots").iterdir()
    assert file.name == "taylor-green-vortices-order-of-convergence.png"
    with Image.open(file) as picture:
        assert picture.format == "PNG" and picture.size == (500, 300)
    assert main(["validate", "flow", "--quick", "--dpi", "10"]) == 2


def test_unknown_device_gives_a_one_line_error(capsys: pytest.CaptureFixture[str]):
    assert main(["validate", "flow", "--device", "abacus"]) == 2
    assert "device 'abacus' is unknown" in capsys.readouterr().err
