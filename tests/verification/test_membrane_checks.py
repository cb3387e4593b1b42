# SPDX-License-Identifier: BSD-3-Clause
"""The checks of `seiche validate cells`, in their quick form, and the command itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seiche.cli import main
from seiche.validate import cells as validate_cells
from seiche.validate.cells import membranes, tweezers
from seiche.validate.check import Check, Setting


@pytest.mark.parametrize("family", validate_cells.FAMILIES, ids=lambda family: family.__name__)
def test_membranes_pass_their_checks(family, device: str):
    for check in family(Setting(device, quick=True)):
        assert check.passed, f"{check.name}: {check.value:.3g}, bound {check.bound:g}"


def test_command_stores_and_draws_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    bad = Check("no such thing", 2.0, 1.0)
    monkeypatch.setattr(validate_cells, "FAMILIES", (membranes.sphere, lambda setting: [bad]))
    target, plots = tmp_path / "cells.json", tmp_path / "plots"
    assert main(["validate", "cells", "--quick", "--json", str(target), "--plots", str(plots)]) == 1
    assert "1 failed" in capsys.readouterr().out
    assert [check["passed"] for check in json.loads(target.read_text())["checks"]] == [True, True, True, False]
    assert [picture.name for picture in plots.iterdir()] == ["bending-energy-of-a-sphere-642-vertices.png"]
    tweezers._figure(tmp_path / "stretch.png", results=tweezers.MEASURED[:, [1, 3]])
    assert (tmp_path / "stretch.png").read_bytes().startswith(b"\x89PNG")
