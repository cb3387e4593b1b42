# SPDX-License-Identifier: BSD-3-Clause
"""Runs of `seiche validate` in parts: continued after an end, and merged into one file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from seiche.cli import main
from seiche.validate import cells as validate_cells
from seiche.validate import flow as validate_flow
from seiche.validate import machine as validate_machine
from seiche.validate import ultrasound as validate_ultrasound
from seiche.validate import waves as validate_waves
from seiche.validate.check import Check, Family, Setting

MODULES = (validate_flow, validate_cells, validate_ultrasound, validate_waves, validate_machine)


def family(name: str, ran: list[str], *checks: Check) -> Family:
    def function(setting: Setting) -> list[Check]:
        ran.append(name)
        return list(checks)

    function.__name__, function.__module__ = name, f"seiche.validate.{name.partition('_')[0]}.sample"
    return function


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace all families by quick ones, and return the names of those that have run."""
    monkeypatch.setenv("SEICHE_COMMIT", "0123456789ab")
    names: list[str] = []
    for module in MODULES:
        subject = module.__name__.rpartition(".")[2]
        checks = (
            Check(f"error in {subject}", 0.5, 1.0),
            Check("lost", math.nan, math.nan),
            Check("seen", 2.0, sense="recorded"),
        )
        chosen = (
            family(f"{subject}_one", names, *checks),
            family(f"{subject}_two", names, Check("order", 3.0, 2.9, "above")),
        )
        monkeypatch.setattr(module, "FAMILIES", chosen)
    return names


def stored(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_run_that_was_ended_continues_with_the_families_without_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[str]
) -> None:
    path = tmp_path / "results.json"

    def killed(setting: Setting) -> list[Check]:
        raise KeyboardInterrupt

    whole = validate_cells.FAMILIES
    killed.__module__ = "seiche.validate.cells.sample"
    monkeypatch.setattr(validate_cells, "FAMILIES", (whole[0], killed))
    main(["validate", "--all", "--json", str(path)])
    first = stored(path)
    assert [row["name"] for row in first["families"]] == [
        "flow sample flow one",
        "flow sample flow two",
        "cells sample cells one",
    ]
    assert not first["complete"]
    monkeypatch.setattr(validate_cells, "FAMILIES", whole)
    ran.clear()
    assert main(["validate", "--all", "--json", str(path), "--resume"]) == 1
    assert ran == [
        "cells_two",
        *(f"{subject}_{part}" for subject in ("ultrasound", "waves", "machine") for part in ("one", "two")),
    ]
    second = stored(path)
    assert second["complete"] and not second["passed"]
    assert second["subjects"] == ["flow", "cells", "ultrasound", "waves", "machine"]
    assert second["checks"][: len(first["checks"])] == first["checks"]
    assert len(second["checks"]) == 20
    assert second["seconds"] == pytest.approx(sum(row["seconds"] for row in second["families"]))


def test_results_of_another_commit_or_size_are_not_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ran: list[str]
) -> None:
    path = tmp_path / "results.json"
    main(["validate", "flow", "--json", str(path)])
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["validate", "flow", "--quick", "--json", str(path), "--resume"]) == 2
    assert "its quick is False, that of this run is True" in capsys.readouterr().err
    monkeypatch.setenv("SEICHE_COMMIT", "ba9876543210")
    assert main(["validate", "flow", "--json", str(path), "--resume"]) == 2
    assert "its commit is 0123456789ab, that of this run is ba9876543210" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["validate", "flow", "--resume"]) == 2
    assert "--resume: requires the file with the results, --json FILE" in capsys.readouterr().err


def test_results_of_parts_are_merged_into_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ran: list[str]
) -> None:
    names = [
        f"{subject}_{part}"
        for subject in ("flow", "cells", "ultrasound", "waves", "machine")
        for part in ("one", "two")
    ]
    parts = [tmp_path / f"{name}.json" for name in reversed(names)]
    for name, path in zip(reversed(names), parts, strict=True):
        main(["validate", "--all", "--only", name, "--json", str(path)])
    whole, merged = tmp_path / "whole.json", tmp_path / "merged.json"
    assert main(["validate", "--all", "--json", str(whole)]) == 1
    capsys.readouterr()
    assert main(["validate", "merge", *map(str, parts), "--json", str(merged)]) == 1
    assert "20 checks" in capsys.readouterr().out
    one, other = stored(whole), stored(merged)
    for document in (one, other):
        document.pop("date"), document.pop("seconds")
        document["families"] = [row["name"] for row in document["families"]]
    assert one == other
    assert main(["validate", "merge", *map(str, parts[1:]), "--json", str(merged)]) == 1
    assert not stored(merged)["complete"]


def test_files_that_do_not_belong_together_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ran: list[str]
) -> None:
    first, second, target = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "merged.json"
    main(["validate", "flow", "--json", str(first)])
    main(["validate", "flow", "--only", "two", "--json", str(second)])
    capsys.readouterr()
    assert main(["validate", "merge", str(first), str(second), "--json", str(target)]) == 2
    assert "second.json: flow sample flow two is in another file too" in capsys.readouterr().err
    monkeypatch.setenv("SEICHE_COMMIT", "ba9876543210")
    main(["validate", "waves", "--json", str(second)])
    capsys.readouterr()
    assert main(["validate", "merge", str(first), str(second), "--json", str(target)]) == 2
    assert "second.json: its commit is ba9876543210, that of" in capsys.readouterr().err
    second.write_text('{"checks": []}')
    assert main(["validate", "merge", str(first), str(second), "--json", str(target)]) == 2
    assert "is not a file of results that can be continued or merged" in capsys.readouterr().err
    assert main(["validate", "merge", str(tmp_path / "absent.json"), "--json", str(target)]) == 2
    assert "absent.json: No such file or directory" in capsys.readouterr().err
    assert not target.exists()
