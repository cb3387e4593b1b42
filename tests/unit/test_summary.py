# SPDX-License-Identifier: BSD-3-Clause
"""The table and the summary say what was measured, no more."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seiche.errors import FormatError
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTime, StageTimers, efficiency, mean_over_ranks
from seiche.report.summary import SCHEMA, Summary, read_summary, write_summary
from seiche.report.table import as_text, stage_rows, stage_table


def _nothing() -> None:
    return None


STAGES = [Stage("collide and stream", _nothing, bytes=400_000_000), Stage("exchange halo", _nothing)]
TIMES = {
    "collide and stream": StageTime("collide and stream", 10, 0.4, 0.03, 0.05),
    "exchange halo": StageTime("exchange halo", 10, 0.1, 0.01, 0.01),
}


class SteppedClock:
    """A device whose events are known only when asked for, and which counts how often it was."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, 0

    def record(self) -> float:
        self.now += 1.0
        return self.now

    def elapsed(self, begin: float, end: float) -> float:
        self.waits += 1
        return end - begin


def test_only_every_kth_step_is_timed_and_the_first_never() -> None:
    done: list[str] = []
    stages = [Stage("a", lambda: done.append("a")), Stage("b", lambda: done.append("b"))]
    timers = StageTimers(SteppedClock(), every=4)
    for _ in range(10):
        timers.step(stages)
    assert done == ["a", "b"] * 10
    assert timers.steps == 10
    times = timers.times()
    assert list(times) == ["a", "b"]
    assert times["a"].samples == 3  # steps 1, 5 and 9
    assert times["a"].mean == times["a"].minimum == times["a"].maximum == 1.0


def test_device_marks_are_not_read_while_steps_run() -> None:
    clock = SteppedClock()
    timers = StageTimers(clock, every=1, skip=0)
    for _ in range(100):
        timers.step([Stage("a", _nothing)])
    assert clock.waits == 0
    assert timers.times()["a"].samples == 100
    for _ in range(10_000):
        timers.step([Stage("a", _nothing)])
    assert timers.times()["a"].samples == 10_100


def test_stages_may_overlap_and_have_clocks_of_their_own() -> None:
    device, host = SteppedClock(), SteppedClock()
    timers = StageTimers(device, clocks={"wait": host})
    timers.start("interior")
    timers.start("wait")
    timers.stop("wait")
    timers.start("edge")
    timers.stop("interior")
    timers.stop("edge")
    assert {name: time.mean for name, time in timers.times().items()} == {"wait": 1.0, "interior": 2.0, "edge": 2.0}
    with pytest.raises(KeyError):
        timers.stop("never started")


def test_efficiencies_follow_their_definitions() -> None:
    found = efficiency([3.0, 1.0], 4.0)
    assert (found.load_balance, found.communication, found.parallel) == pytest.approx((2 / 3, 0.75, 0.5))
    with pytest.raises(ValueError, match="positive"):
        efficiency([], 1.0)


def test_mean_over_ranks_counts_a_rank_without_the_stage_as_zero() -> None:
    merged = mean_over_ranks([TIMES, {"collide and stream": StageTime("collide and stream", 10, 0.2, 0.02, 0.02)}])
    assert merged["collide and stream"].mean == pytest.approx(0.03)
    assert merged["collide and stream"].minimum == 0.02
    assert merged["exchange halo"].mean == pytest.approx(0.005)


def test_rows_add_up_to_the_run_and_name_the_rest() -> None:
    rows = stage_rows(STAGES, TIMES, steps=100, seconds=6.0, copy_bandwidth=20e9)
    assert [row.name for row in rows] == ["collide and stream", "exchange halo", "other"]
    assert sum(row.seconds for row in rows) == pytest.approx(6.0)
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert rows[0].bandwidth == pytest.approx(10e9)
    assert rows[0].copy_share == pytest.approx(0.5)
    assert rows[1].bandwidth is None


def test_table_prints_the_columns_of_the_issue() -> None:
    rows = stage_rows(STAGES, TIMES, steps=100, seconds=6.0, copy_bandwidth=20e9)
    lines = [line.split() for line in as_text(stage_table(rows, seconds=6.0)).splitlines() if line.strip()]
    assert lines[0] == ["stage", "time", "(s)", "share", "GB/s", "of", "copy"]
    assert ["collide", "and", "stream", "4", "66.7%", "10.0", "50%"] in lines
    assert ["exchange", "halo", "1", "16.7%"] in lines


def test_summary_is_strict_json_and_reads_back(tmp_path: Path) -> None:
    rows = stage_rows(STAGES, TIMES, steps=100, seconds=6.0)
    summary = Summary(
        "tube",
        "a processor",
        sites=60_000,
        steps=100,
        seconds=6.0,
        stages=rows,
        invariants={"mass drift": np.float64(1e-14), "mach": float("nan")},
        flow_rates={"inlet": 3e-6, "outlet": -1e-6},
        details={"tau": np.arange(2), "file": tmp_path},
    )
    write_summary(tmp_path / "summary.json", summary)
    json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)
    content = read_summary(tmp_path / "summary.json")
    assert content["schema"] == SCHEMA
    assert content["mlups"] == pytest.approx(1.0)
    assert content["mass_balance"] == pytest.approx(0.5)
    assert content["invariants"] == {"mass drift": 1e-14, "mach": None}
    assert content["stages"][0]["bandwidth"] == pytest.approx(10e9)
    assert content["details"]["tau"] == [0, 1]
    assert "python" in content["versions"]


def test_summary_that_cannot_be_written_keeps_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_summary(path, Summary("tube", "cpu", sites=1, steps=1, seconds=1.0, details={"x": object()}))
    assert path.read_text() == "old"
    with pytest.raises(FormatError, match="not JSON"):
        read_summary(path)
    path.write_text("[1]")
    with pytest.raises(FormatError, match="key 'schema'"):
        read_summary(path)
