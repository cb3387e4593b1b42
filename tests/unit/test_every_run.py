# SPDX-License-Identifier: BSD-3-Clause
"""Runs of every solver explain themselves alike: summary, trace, status page, report, comparison, prediction."""

from __future__ import annotations

import json
import math
import threading
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from prediction_cases import case_file, machine
from seiche.backend import ranges
from seiche.backend.cpu import CpuBackend
from seiche.case.simulation import Simulation
from seiche.cli import main
from seiche.machine.laws.file import write_machine
from seiche.report.losses import losses
from trace_checks import check_format, check_nesting, slices

#: Steps of each, and a stage that computes.
SOLVERS = {
    "flow": ("time.steps=100", "stream-collide interior"),
    "blood": ("time.steps=40", "spread"),
    "ultrasound": ("grid.steps=80", "gradient"),
    "waves": ("time.steps=60", "elements"),
}

#: Interval of checkpoints of each.
CHECKPOINTS = {"flow": "50", "blood": "20", "ultrasound": "40", "waves": "30"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def run_case(folder: Path, solver: str, *options: str) -> dict[str, Any]:
    """Return the summary of a run."""
    path = case_file(folder, solver)
    inputs = ["run", str(path), "--set", SOLVERS[solver][0], "--output", str(folder / "out"), *options]
    assert main(inputs) == 0
    result: dict[str, Any] = json.loads((folder / "out" / "summary.json").read_text())
    return result


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_tells_its_time_its_trace_and_its_progress(
    solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run_case(tmp_path, solver, "--serve", "--trace", str(tmp_path / "trace.json"))
    shown = capsys.readouterr()
    assert "seiche: status at http://127.0.0.1:" in shown.err and "100%" in shown.err
    steps, stage = int(SOLVERS[solver][0].partition("=")[2]), SOLVERS[solver][1]
    assert (summary["solver"], summary["steps"], summary["ranks"]) == (solver, steps, 1)
    rows = {row["name"]: row for row in summary["stages"]}
    assert any(name.startswith(stage) for name in rows), list(rows)
    assert all(name in shown.out for name in rows)
    assert sum(row["share"] for row in summary["stages"]) >= 1 - 1e-9
    tree, movement = summary["efficiency"], summary["movement"]
    assert tree["elements"] == 1 and tree["load_balance"] == 1.0
    assert math.isclose(tree["parallel"], tree["load_balance"] * tree["communication"])
    assert math.isclose(tree["communication"], tree["device"] * tree["orchestration"])
    assert movement["messages"] == [] and movement["sites"] == [summary["sites"]]
    timed = [row for row in summary["stages"] if row["samples"]]
    # The table distributes the seconds of all steps in the proportions of the timed steps.
    sampled = {row["name"]: movement["stages"][row["name"]][0] * steps for row in timed}
    scale = sum(row["seconds"] for row in timed) / sum(sampled.values())
    assert [row["seconds"] for row in timed] == pytest.approx([scale * sampled[row["name"]] for row in timed])
    assert sum(part.share for part in losses(tree, movement)) == pytest.approx(1.0)
    events = check_format(json.loads((tmp_path / "trace.json").read_text()))
    check_nesting(events, 1)
    named = [event["name"] for event in slices(events, 0, 0)]
    assert [name for name in named if name.startswith("step ")] == [f"step {k}" for k in range(1, steps, 16)]
    assert any(name.startswith(stage) for name in named)
    assert "steps" in {event["name"] for event in slices(events, 0, 2)}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_is_reported_compared_and_predicted_from(
    solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run_case(tmp_path, solver)
    out = tmp_path / "out"
    write_machine(tmp_path / "m.json", machine(units={"time": "s", "size": "B", "rate": "B/s"}))
    assert main(["report", str(out), "--machine", str(tmp_path / "m.json")]) == 0
    page = (out / "report.html").read_text()
    item = {"ultrasound": "points", "waves": "nodes"}.get(solver, "sites")
    assert summary["item"] == item and f"<li>{item}<b>" in page
    assert "Prediction" in page and SOLVERS[solver][1] in page and "Roofline" in page
    assert main(["report", "--compare", str(out), str(out)]) == 0
    assert f"1.00 times as many {item} per second" in (out / "compare.html").read_text()
    assert main(["report", "--compare", *[str(out)] * 3]) == 0
    assert f"<th>{item} per unit</th>" in (out / "compare.html").read_text()
    capsys.readouterr()
    inputs = ["predict", str(tmp_path / f"{solver}.toml"), "--machine", str(tmp_path / "m.json"), "--ranks", "1"]
    assert main([*inputs, "--set", SOLVERS[solver][0], "--run", str(out), "--json", str(tmp_path / "p.json")]) == 0
    capsys.readouterr()
    (step,) = json.loads((tmp_path / "p.json").read_text())["strong"]
    # On the ranks of the run each stage takes what it took there in the timed steps.
    for row in summary["stages"]:
        if row["bandwidth"]:
            (measured,) = summary["movement"]["stages"][row["name"]]
            assert step["computing_s"][row["name"]] == pytest.approx(measured, rel=1e-6), row["name"]
    assert step["interval_s"][0] < step["step_s"] < step["interval_s"][1]


@pytest.mark.parametrize("solver", ["ultrasound", "waves"])
def test_a_trace_replaces_no_other_file(solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = case_file(tmp_path, solver)
    (tmp_path / "notes.txt").write_text("kept")
    assert main(["run", str(path), "--trace", str(tmp_path / "notes.txt")]) == 2
    assert "notes.txt exists but is not a valid trace; choose another output name" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "kept"
    assert main(["run", str(path), "--set", "output.trace=summary.json"]) == 2
    assert 'two outputs have the same file name "summary.json"' in capsys.readouterr().err


def test_a_run_that_is_not_set_up_has_no_attributes_of_its_kind() -> None:
    with pytest.raises(AttributeError, match="case_run"):
        Simulation.__new__(Simulation).flow_rates()


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_stage_is_a_range_in_the_timeline_of_a_profiler(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: set[str] = set()

    def annotate(self: CpuBackend, name: str) -> AbstractContextManager[None]:
        found.add(name)
        return nullcontext()

    monkeypatch.setattr(CpuBackend, "annotate", annotate)
    summary = run_case(tmp_path, solver)
    assert {row["name"] for row in summary["stages"] if row["samples"]} <= found
    assert any(name.startswith(SOLVERS[solver][1]) for name in found)


class Nvtx:
    """Ranges of each thread, as the library of a profiler sees them."""

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = defaultdict(list)
        self.seen: set[str] = set()

    def RangePush(self, name: str) -> None:  # noqa: N802 - a name of the library
        self.open[threading.get_ident()].append(name)
        self.seen.add(name)

    def RangePop(self) -> None:  # noqa: N802
        self.open[threading.get_ident()].pop()


@pytest.mark.parametrize("solver", SOLVERS)
def test_set_up_steps_and_outputs_are_ranges_under_a_profiler(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Nvtx()
    monkeypatch.setattr(ranges, "nvtx", lambda: library)
    run_case(tmp_path, solver)
    assert not library.seen  # no profiler started this process
    monkeypatch.setenv(ranges.PROFILER_VARIABLE, "/profiler.so")
    every = f"output.checkpoint.every={CHECKPOINTS[solver]}"
    summary = run_case(tmp_path, solver, "--replace", "--set", every)
    assert all(not names for names in library.open.values())
    movement = summary["movement"]
    stages = {row["name"] for row in summary["stages"] if row["samples"]}
    set_up = {name for name, (seconds,) in movement["set_up"].items() if seconds and name != "other"}
    overhead = {name for name, (seconds,) in movement["host_overhead"].items() if seconds}
    overhead -= {"first step", "prepare steps", "wait for output"}
    assert {"read", "check", "solver", "upload"} <= set_up and {"checkpoints", "run control"} <= overhead
    assert movement["writing"]["checkpoints"][0] > 0 and movement["writing"]["after the last step"][0] > 0
    assert stages | set_up | overhead | {"write checkpoints", "complete files"} <= library.seen
    assert main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Set-up, output and checkpoints by rank" in page and "writing: checkpoints" in page
