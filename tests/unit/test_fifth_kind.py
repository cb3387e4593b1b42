# SPDX-License-Identifier: BSD-3-Clause
"""A fifth kind of case, heat in a ring, needs its own files and one entry of a table: docs/howto/add-a-solver.md."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from launch import run_ranks

import seiche
from page_blocks import ROOT, blocks, write_files
from seiche.case.kinds import KINDS
from seiche.case.simulation import Simulation
from seiche.cli import main

PAGE = "docs/howto/add-a-solver.md"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the case of the page, with its kind in the table."""
    write_files(PAGE, tmp_path)
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(KINDS, "heat", "heat:HEAT")
    yield tmp_path / "heat.toml"
    sys.modules.pop("heat", None)


def decay(sim: Simulation) -> float:
    """Return the exact amplitude of the sine of a ring."""
    ring = sim.setup.case.ring
    rate = ring.conductivity / (ring.density * ring.heat_capacity) * (2 * math.pi / ring.length) ** 2
    return math.exp(-rate * sim.time)


def test_the_kind_is_short() -> None:
    sizes = {name: text for mark, name, _, text in blocks(ROOT / PAGE) if mark == "file"}
    assert len([line for line in sizes["heat.py"].splitlines() if line]) <= 150


def test_a_sine_decays_with_second_order(case: Path) -> None:
    errors = []
    for points, step in ((50, "16 ms"), (100, "4 ms")):
        steps = 125 * points**2 // 2500
        inputs = (f"ring.points={points}", f"time.step={step}", f"time.steps={steps}")
        with seiche.load(case, overrides=inputs, replace=True) as sim:
            sim.run(visible=False)
            assert math.isclose(sim.time, 2.0)
            sine = np.sin(2 * math.pi / points * np.arange(points))
            errors.append(np.abs(sim.fields("temperature")["temperature"] - decay(sim) * sine).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 3.9


def test_a_run_is_what_all_runs_are(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(case)]) == 0
    assert "100 points, diffusion number 0.464" in capsys.readouterr().out
    out, seen = case.parent / "out", []
    with seiche.load(case) as sim:
        sim.every(lambda each: seen.append((each.step, each.fields()["temperature"].max())), steps=50)
        sim.run(steps=120, visible=False)
        path = sim.checkpoint()
        assert "diffuse" in sim.report()
    assert [step for step, _ in seen] == [50, 100] and seen[0][1] > seen[1][1]
    assert main(["run", str(case), "--restart", str(path)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["solver"], summary["steps"], summary["item"]) == ("heat", 380, "points")
    assert abs(summary["invariants"]["mean_temperature"]) < 1e-14
    retained = (out / "temperature.txt").read_text()
    assert main(["run", str(case), "--output", str(case.parent / "whole")]) == 0
    assert (case.parent / "whole" / "temperature.txt").read_text() == retained
    assert main(["report", str(out / "summary.json")]) == 0
    assert main(["predict", str(case), "--machine", "summit", "--ranks", "1,2"]) == 0
    assert "diffuse" in capsys.readouterr().out


def test_errors_are_reported_in_one_line(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(case), "--set", "time.step=5 ms"]) == 2
    assert "time.step: 0.005 s is unstable; expected at most 0.00431" in capsys.readouterr().err
    assert main(["run", str(case), "--set", "time.steps=10"]) == 0
    assert main(["run", str(case)]) == 2
    assert "--replace" in capsys.readouterr().err


def test_two_ranks_give_bitwise_equal_results(case: Path) -> None:
    folder = case.parent
    with seiche.load(case) as sim:
        sim.run(steps=200, visible=False)
        half = sim.checkpoint(folder / "half")
        sim.run(visible=False)
    run_ranks(2, folder / "heat_seiche.py", "run", case, "--restart", half, "--output", folder / "two")
    assert (folder / "two" / "temperature.txt").read_text() == (folder / "out" / "temperature.txt").read_text()
    assert json.loads((folder / "two" / "summary.json").read_text())["ranks"] == 2
