# SPDX-License-Identifier: BSD-3-Clause
"""The times of the stages of a set-up: recorded without overlap, and reported with those of the steps."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

import seiche
from seiche.report.run_report import text
from seiche.set_up import OTHER, STAGES, record_set_up, set_up_stage

CASE = """
solver = "flow"
[geometry]
spacing = "0.25 mm"
shape = { kind = "tube", radius = "1 mm", length = "4 mm", periodic = true }
[fluid]
viscosity = "4 mPa s"
density = "1000 kg/m^3"
[body_force]
force = ["1 N/m^3", "0 N/m^3", "0 N/m^3"]
[lattice]
tau = 0.8
[time]
steps = 2
"""


@set_up_stage("voxelise")
def outer() -> None:
    """Spend time in a stage, in another one inside it, and in the first one again."""
    time.sleep(0.02)
    with set_up_stage("read"):
        time.sleep(0.04)
    time.sleep(0.02)


def test_a_stage_inside_another_one_is_counted_once() -> None:
    shown: list[str] = []
    with record_set_up(shown.append) as times:
        outer()
        time.sleep(0.02)
    seconds = times.seconds()
    assert list(seconds) == ["read", "voxelise", OTHER]
    assert min(seconds.values()) > 0.0
    assert sum(seconds.values()) == pytest.approx(times.total)
    assert seconds["read"] >= 0.04 and seconds["voxelise"] >= 0.04
    assert shown == ["voxelise", "read", "voxelise", OTHER]


def test_only_the_thread_of_a_set_up_is_recorded_and_nothing_after_it() -> None:
    with record_set_up() as times:
        thread = threading.Thread(target=outer)
        thread.start()
        thread.join()
    outer()
    assert list(times.seconds()) == [OTHER]


def test_a_record_inside_another_one_is_the_same() -> None:
    with record_set_up() as times, record_set_up() as inner:
        assert inner is times


def test_a_run_reports_the_stages_of_its_set_up(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(CASE)
    with seiche.load(tmp_path / "case.toml", output=tmp_path / "out") as simulation:
        simulation.run(visible=False)
        report = simulation.report()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (
        {"read", "check", "voxelise", "link", "partition", "model", "solver", OTHER}
        <= set(summary["set_up"])
        <= {*STAGES, OTHER}
    )
    for name, seconds in summary["set_up"].items():
        assert seconds > 0.0
        assert f"set-up: {name}" in report
    assert "Set-up" in text(summary)
    assert summary["set_up"][OTHER] < sum(summary["set_up"][name] for name in STAGES if name in summary["set_up"])
