# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of cells in flow: what it measures, stores and draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seiche.cli import main
from seiche.errors import FormatError
from seiche.report.bench_blood import read_rows


def test_bench_of_blood_stores_and_draws_the_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, figure = tmp_path / "blood.json", tmp_path / "shares.png"
    arguments = ["--size", "32", "--spacing", "0.5", "--vertices", "162", "--steps", "2", "--support", "4"]
    arguments += ["--hematocrit", "0.1", "--hematocrit", "0.3", "--json", str(target), "--figure", str(figure)]
    assert main(["bench", "blood", *arguments]) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [row["cells"] for row in rows] == [5, 14]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["step_microseconds"] / row["flow_microseconds"])
        assert min(row["stages"].values()) > 0
        rate = row["vertices_per_second"]["spread"] * row["stages"]["spread force"] * 1e-6
        assert rate == pytest.approx(162 * row["cells"])
    # two copies of 19 populations, force and velocity of a site; places, forces and lists of 162 vertices
    assert rows[0]["bytes_per_site"] == pytest.approx(38 * 4 + 28, rel=0.01)
    assert 162 * 150 < rows[1]["bytes_per_cell"] < 162 * 400
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "0.31" in capsys.readouterr().out
    assert [row.cells for row in read_rows(target)] == [5, 14]
    assert main(["bench", "blood", "--support", "5"]) == 2
    assert main(["bench", "blood", "--size", "32", "--points", "2"]) == 2
    assert "points = 2: an element has 1 or 3 points of integration" in capsys.readouterr().err
    target.write_text('{"rows": [{"cells": 1}]}')
    with pytest.raises(FormatError, match="not a blood benchmark"):
        read_rows(target)
