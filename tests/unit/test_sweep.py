# SPDX-License-Identifier: BSD-3-Clause
"""`seiche sweep`: values, folders that stay, runs that go on after kills, and the table of results."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from case_files import toml_of, tube_tables
from prediction_cases import case_file
from seiche.case.folder import RECORD
from seiche.case.quantities import si_value
from seiche.case.sweep import SWEEP, TABLES, grid_of, list_of, plan_sweep, split_values, writing_tables
from seiche.case.sweep_runs import SweepRuns, table_of
from seiche.cli import main
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.report import sweep_table
from seiche.report.page_size import page, page_of
from seiche.report.summary import read_summary
from seiche.report.sweep_table import SweepRow, SweepTable, write_tables


def case_of(folder: Path, steps: int = 20, every: int | None = None) -> Path:
    """Return a case of a tube with an output of checkpoints."""
    tables = tube_tables()
    tables["time"] = {"steps": steps}
    if every is not None:
        tables.setdefault("output", {})["checkpoint"] = {"every": every}
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


def test_values_are_split_at_commas_outside_brackets_and_quotes() -> None:
    assert split_values("0.6, 0.7,1e-3") == ["0.6", "0.7", "1e-3"]
    assert split_values('[1, 2],[3, 4],"a, b"') == ["[1, 2]", "[3, 4]", '"a, b"']
    assert split_values("{ kind = 'tube', radius = '1 mm' },{ kind = 'duct' }")[1] == "{ kind = 'duct' }"
    with pytest.raises(CaseError, match="a value is missing"):
        split_values("1,,2")


def test_a_grid_has_all_combinations_and_the_last_key_varies_fastest() -> None:
    assert grid_of(["a=1,2", "b=x,y"]) == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]
    for settings, message in ((["a"], "expected key=value"), (["a=1", "a=2"], "given twice")):
        with pytest.raises(CaseError, match=message):
            grid_of(settings)


def test_a_list_has_a_run_in_each_row(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text('lattice.tau, time.steps\n0.6, 20\n0.7, "30"\n')
    assert list_of(path) == [{"lattice.tau": "0.6", "time.steps": "20"}, {"lattice.tau": "0.7", "time.steps": "30"}]
    for text, message in (
        ("a,b\n1\n", "row 2: expected 2 values"),
        ("a,a\n1,2\n", "different keys"),
        ("", "first row"),
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=message):
            list_of(path)
    with pytest.raises(CaseError, match="cannot read the list"):
        list_of(tmp_path / "none.csv")


def test_runs_keep_their_folders_when_values_are_added(tmp_path: Path) -> None:
    case, folder = case_of(tmp_path), tmp_path / "sweep"
    first = plan_sweep(case, grid_of(["lattice.tau=0.6,0.8"]), folder)
    second = plan_sweep(case, grid_of(["lattice.tau=0.55,0.6,0.7,0.8"]), folder)
    assert [run.folder.name for run in first] == ["run-0001", "run-0002"]
    assert [run.folder.name for run in second] == ["run-0003", "run-0001", "run-0004", "run-0002"]
    assert first[0].checkpoint == folder / "run-0001" / "checkpoint.seiche" and first[0].state == ""
    case.write_text(case.read_text() + "\n# another version\n")
    with pytest.raises(CaseError, match="belong to an earlier version of"):
        plan_sweep(case, grid_of(["lattice.tau=0.6"]), folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(CaseError, match="not the folder of a sweep"):
        plan_sweep(case, grid_of(["lattice.tau=0.6"]), tmp_path / "other")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["lattice.tau=0.6,high"], 'lattice.tau: "high" is not a number'),
        (["lattice.taau=0.6"], "lattice.taau: unknown key"),
        (["lattice.tau=0.6,0.6"], "occurs twice"),
        (["lattice.tau=0.4,0.6"], r"run with lattice.tau=0.4 is invalid, so no run was started: .* out of range"),
        (["iolet.inlet.ramp=5,300"], r"iolet.inlet.ramp=300 is invalid.* longer than the run of 20 steps"),
    ],
)
def test_wrong_values_are_rejected_before_any_run(tmp_path: Path, settings: list[str], message: str) -> None:
    with pytest.raises(SeicheError, match=message):
        plan_sweep(case_of(tmp_path), grid_of(settings), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        ("blood", "lattice.step=1 us,20 ms", "lattice.step=20 ms is invalid"),
        ("ultrasound", "source.0.frequency=0.4 MHz,9 MHz", "points per wavelength"),
        ("waves", "time.step=0.1 ms,0.1 s", "above the largest stable step"),
    ],
)
def test_limits_of_every_kind_are_checked_before_any_run(kind: str, setting: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SeicheError, match=message):
        plan_sweep(case_file(tmp_path, kind), grid_of([setting]), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


def test_every_invalid_run_has_a_line_and_complete_runs_are_not_checked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, folder = case_of(tmp_path), tmp_path / "sweep"
    assert main(["sweep", str(case), "--set", "lattice.tau=0.4,0.6,0.3", "--output", str(folder)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(f": {case}")[0] for line in lines[:2]] == [
        "seiche: lattice.tau=0.4",
        "seiche: lattice.tau=0.3",
    ]
    assert lines[2:] == [
        "seiche: error: sweep: 2 of 3 runs are invalid (lattice.tau=0.4 and 1 more); no run was started"
    ]
    assert not folder.exists()
    (run,) = plan_sweep(case, grid_of(["lattice.tau=0.6"]), folder)
    run.folder.mkdir()
    (run.folder / RECORD).write_text('{"state": "done"}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seiche.case.sweep.verify", lambda source: pytest.fail("checked again"))
        assert plan_sweep(case, grid_of(["lattice.tau=0.6"]), folder) == [run]


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_killed_sweep_continues_and_has_the_results_of_single_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGKILL of the sweep and of a run; the next command continues from checkpoints and repeats no complete run."""
    case, folder = case_of(tmp_path, 600, 20), tmp_path / "sweep"
    words = ["sweep", str(case), "--set", "lattice.tau=0.8,0.9,1.0", "--jobs", "2"]
    command = [sys.executable, "-m", "seiche", *words]
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (folder / "run-0001" / "checkpoint.seiche").exists():
        time.sleep(0.02)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "3 of 3 runs are done" in text
    rows = rows_of(folder / "sweep.csv")
    assert [row["state"] for row in rows] == ["done"] * 3
    assert [row["lattice.tau"] for row in rows] == ["0.8", "0.9", "1.0"]
    times = {path: path.stat().st_mtime_ns for path in folder.glob("run-*/*")}
    main(words)
    assert capsys.readouterr().out.count("was already complete") == 3
    assert times == {path: path.stat().st_mtime_ns for path in folder.glob("run-*/*")}
    main(["run", str(case), "--set", "lattice.tau=0.9", "--output", str(tmp_path / "single")])
    capsys.readouterr()
    single = SweepRow("single", "done", {}, read_summary(tmp_path / "single" / "summary.json"))
    assert float(rows[1]["flow_m3_s.outlet"]) == single.results()["flow_m3_s.outlet"]


@pytest.mark.slow
def test_a_failed_run_does_not_end_the_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, table = case_of(tmp_path), tmp_path / "runs.csv"
    table.write_text("run.device\ncuda:99\ncpu\n")  # the device is opened by the run only
    assert main(["sweep", str(case), "--list", str(table), "--output", str(tmp_path / "out")]) == 2
    output = capsys.readouterr()
    assert "sweep: run-0001 failed: see" in output.err
    assert "1 of 2 runs are done" in output.out and "run-0001 (run.device=cuda:99): failed: " in output.out
    rows = rows_of(tmp_path / "out" / "sweep.csv")
    assert [row["state"] for row in rows] == ["", "done"] and rows[0]["mach_seen"] == ""


def test_a_signal_stops_the_runs_with_checkpoints(tmp_path: Path) -> None:
    case = case_of(tmp_path, 1_000_000)
    runs = plan_sweep(case, grid_of(["lattice.tau=0.8,0.9"]), tmp_path / "sweep")
    batch, lines = SweepRuns(case, runs), list[str]()
    lock = runs[0].folder / ".seiche-run.lock"

    def interrupt() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not lock.exists():
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    batch.execute(lines.append)
    thread.join()
    assert batch.stopped and runs[0].state == "stopped" and runs[0].checkpoint.is_file() and runs[1].state == ""
    assert len(lines) == 1 and "run-0001 (lattice.tau=0.8): stopped after" in lines[0]
    assert [row.state for row in table_of(runs).rows] == ["stopped", ""]


def example_table() -> SweepTable:
    """Return a table of a grid of two by three runs, of which one failed."""
    rows = []
    for number, values in enumerate(grid_of(["a.tau=0.6,0.8", "b.speed=1 cm/s,20 mm/s,0.03 m/s"])):
        summary = {
            "seconds": 1.0,
            "mlups": 2.0,
            "invariants": {"mach": 0.1 * number, "same": 1.0},
            "flow_rates": {"in": 1e-6 * number},
            "details": {
                "cells": {"hematocrit": 0.3, "history": {"time_s": [1.0]}},
                "files": ["a"],
                "place_m": [1, 2.5],
            },
            "estimates": [{"warning": None}, {"warning": "too large"}],
        }
        rows.append(
            SweepRow(f"run-{number}", "failed" if number == 4 else "done", values, {} if number == 4 else summary)
        )
    return SweepTable(rows, si_value)


def test_the_table_has_inputs_and_the_numbers_of_the_summaries(tmp_path: Path) -> None:
    table = example_table()
    names = [
        "seconds",
        "mlups",
        "warnings",
        "mach",
        "same",
        "flow_m3_s.in",
        "cells.hematocrit",
        "place_m.0",
        "place_m.1",
    ]
    assert table.results == names
    assert table.drawn() == ["flow_m3_s.in"]  # the Mach number is one of the method
    with pytest.raises(CaseError, match="--plot speed: no run has this result; expected one of seconds"):
        table.drawn(["speed"])
    with page(page_of(100, "101.6x50.8")):
        written = write_tables(table, tmp_path)
    with Image.open(tmp_path / "sweep.png") as picture:
        assert picture.size == (400, 200)
    rows = rows_of(written[0])
    assert rows[1]["b.speed"] == "20 mm/s" and float(rows[1]["mach"]) == 0.1 and float(rows[1]["warnings"]) == 1.0
    assert rows[4]["state"] == "failed" and rows[4]["mach"] == ""


def test_a_picture_shows_results_of_physics_with_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    table = example_table()
    assert [table.described(name) for name in ("flow_m3_s.in", "cells.hematocrit", "place_m.1", "mass_kg")] == [
        ("flow rate of in", "m^3/s"),
        ("cells hematocrit", ""),
        ("position y", "m"),
        ("mass", "kg"),
    ]
    stored: list[Figure] = []
    monkeypatch.setattr(sweep_table, "store", lambda figure, *arguments: stored.append(figure))
    assert table.draw("a.png")
    panel = stored[0].axes[0]
    assert (panel.get_title(), panel.get_ylabel(), panel.get_xlabel()) == ("flow rate of in", "mL/s", "b.speed (m/s)")
    assert panel.lines[0].get_ydata()[1] == pytest.approx(1.0)  # the second run: 1 mL/s
    rows = [
        SweepRow(
            f"run-{k}",
            "done",
            {"a.x": f"{k} mPa s"},
            {
                "seconds": 1.0,
                "mlups": 1.0,
                "details": {
                    "greatest_p_max_all": {"value": 1e5 * k, "unit": "Pa", "place_m": [1e-3 * k]},
                    "time_step_s": 1e-6 * k,
                },
            },
        )
        for k in (1, 2)
    ]
    focus = SweepTable(rows, si_value)
    assert focus.drawn() == ["greatest_p_max_all.value", "greatest_p_max_all.place_m.0"]
    assert focus.described("greatest_p_max_all.value") == ("maximum of p max all", "Pa")
    assert focus.described("greatest_p_max_all.place_m.0") == ("maximum of p max all position x", "m")
    assert focus.draw("a.png")
    assert [axes.get_ylabel() for axes in stored[1].axes] == ["kPa", "mm"]
    assert stored[1].axes[0].get_xlabel() == "a.x (mPa s)"
    only_method = [
        SweepRow(row.name, row.state, row.inputs, {**row.summary, "details": {"time_step_s": 1.0 * k}})
        for k, row in enumerate(rows)
    ]
    assert SweepTable(only_method, si_value).drawn() == ["time_step_s"]


def test_a_full_grid_becomes_a_dataset_with_an_axis_for_each_key(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    table = example_table()
    assert table.write_netcdf(tmp_path / "sweep.nc")
    data = xarray.load_dataset(tmp_path / "sweep.nc")
    assert data.mach.dims == ("a.tau", "b.speed") and data["b.speed"].attrs["units"] == "m/s"
    np.testing.assert_allclose(data["b.speed"], [0.01, 0.02, 0.03])
    np.testing.assert_allclose(data.mach, [[0.0, 0.1, 0.2], [0.3, np.nan, 0.5]])
    assert data.state.values[1, 1] == "failed"
    part = SweepTable(table.rows[:4], si_value).to_xarray()
    assert part.mach.dims == ("run",) and part["a.tau"].dims == ("run",)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.6", (0.6, "")), ("120 mmHg", (15998.684, "kg/m/s^2")), ("tube", None), ("1 xyzzy", None), ("[1, 2]", None)],
)
def test_inputs_are_numbers_where_they_have_a_known_unit(text: str, value: tuple[float, str] | None) -> None:
    result = si_value(text)
    assert (result is None) == (value is None)
    if result is not None and value is not None:
        assert result[0] == pytest.approx(value[0], rel=1e-6) and result[1] == value[1]


def table_of_one_run() -> SweepTable:
    return SweepTable([SweepRow("run-0001", "done", {"lattice.tau": "0.8"}, {})], si_value)


@pytest.mark.parametrize("name", TABLES)
def test_tables_replace_those_of_the_sweep_and_no_foreign_file(name: str, tmp_path: Path) -> None:
    case, folder, settings = case_of(tmp_path), tmp_path / "sweep", grid_of(["lattice.tau=0.8,0.9"])
    plan_sweep(case, settings, folder)
    for _ in range(2):
        with writing_tables(folder):
            write_tables(table_of_one_run(), folder)
            (folder / name).touch()
    foreign = b"run,state\nsomebody's,own\n"
    (folder / name).write_bytes(foreign)
    message = "was not written by this sweep; move it, or choose another folder"
    with pytest.raises(CaseError, match=message):  # before the first run
        plan_sweep(case, settings, folder)
    with pytest.raises(CaseError, match=message), writing_tables(folder):
        write_tables(table_of_one_run(), folder)
    assert (folder / name).read_bytes() == foreign
    assert main(["sweep", str(case), "--set", "lattice.tau=0.8", "-o", str(folder)]) == 2
    assert (folder / name).read_bytes() == foreign


def test_tables_of_a_killed_sweep_and_of_earlier_versions_are_replaced(tmp_path: Path) -> None:
    case, folder, settings = case_of(tmp_path), tmp_path / "sweep", grid_of(["lattice.tau=0.8"])
    plan_sweep(case, settings, folder)
    with pytest.raises(KeyboardInterrupt), writing_tables(folder):
        write_tables(table_of_one_run(), folder)
        raise KeyboardInterrupt
    plan_sweep(case, settings, folder)
    known = json.loads((folder / SWEEP).read_text())
    del known["tables"]
    (folder / SWEEP).write_text(json.dumps(known))
    with writing_tables(folder):
        write_tables(table_of_one_run(), folder)
    (folder / SWEEP).write_text(json.dumps(known))
    (folder / "sweep.csv").write_text("somebody's,own")
    with pytest.raises(CaseError, match="was not written by this sweep"):
        plan_sweep(case, settings, folder)
