# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate machine`: the checks of the models pass and are stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seiche.cli import main


def test_all_checks_of_the_models_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "checks.json"
    assert main(["validate", "machine", "--quick", "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    assert document["passed"]
    checks = {check["name"]: check for check in document["checks"]}
    assert len(checks) == 21
    assert 0 < checks["duration of the timed step"]["value"]
    assert checks["overhead of timing the stages"]["bound"] == 0.01
    assert checks["overhead of writing a trace"]["bound"] == 0.02
    assert "all passed" in capsys.readouterr().out
