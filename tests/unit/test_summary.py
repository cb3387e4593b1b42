# SPDX-License-Identifier: BSD-3-Clause
"""The table and the summary say what was measured, no more."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from seiche.errors import FormatError
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTime, StageTimers, mean_over_ranks
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
    """A device that evaluates its events only on request, and counts the requests."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, 0

    def record(self) -> float:
        self.now += 1.0
        return self.now

    def elapsed(self, begin: float, end: float) -> float:
        self.waits += 1
        return end - begin


DATA = Path(__file__).parents[1] / "data"


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


def test_work_of_another_stream_counts_once_where_it_overlaps() -> None:
    timers = StageTimers(SteppedClock(), every=1, skip=0)

    def send() -> None:  # the clock advances by one at each reading: the exchange is in flight from 2 to 3
        with timers.overlap("exchange"):
            pass

    timers.step([Stage("send halo", send, useful=False), Stage("collide and stream", _nothing)])
    (sample,) = timers.samples if timers.times() else ()
    assert [(span.name, span.begin, span.end, span.overlap) for span in sample.spans] == [
        ("send halo", 0.0, 3.0, False),
        ("collide and stream", 3.0, 4.0, False),
        ("exchange", 1.0, 2.0, True),
    ]
    assert (sample.useful, sample.active, sample.seconds) == (1.0, 4.0, 4.0)
    with timers.overlap("exchange"):  # between steps nothing is recorded
        pass
    assert "exchange" not in timers.times()


def test_steps_between_graphs_are_timed_ever_more_seldom() -> None:
    timers = StageTimers(SteppedClock(), every=16)
    timed: list[int] = []
    while timers.steps < 20_000:
        if timers.steps == 0 or timers.is_sample_due:
            timed += [timers.steps] if timers.is_sample_due else []
            timers.step([Stage("a", _nothing)])
        else:
            timers.replay(32, _nothing)
    assert timed[:4] == [1, 34, 99, 228]
    assert np.diff(timed).max() <= 2048 + 32
    assert len(timed) < 20
    assert timers.times()["a"].samples == len(timed)


def test_steps_in_graphs_take_the_time_of_graphs() -> None:
    timers = StageTimers(SteppedClock(), every=16)
    stages = [Stage("work", _nothing), Stage("receive halo", _nothing, useful=False)]
    for _ in range(4):
        timers.step(stages)
    for _ in range(10):
        timers.replay(32, _nothing)
    result = timers.activity()
    assert timers.steps == 4 + timers.replayed == 324
    # Two seconds a step by stages, half of them useful; one second a graph.
    assert result.active == pytest.approx(4 * 2.0 + 320 / 32)
    assert result.useful == pytest.approx(result.active / 2)
    assert result.host_messages > 0
    assert len(timers.replays) == 2
    timers.reset()
    assert timers.activity().active == 0.0


def test_samples_lie_on_the_common_time_line() -> None:
    timers = StageTimers(SteppedClock(), every=1, skip=0)
    timers.align(time.perf_counter_ns())
    for _ in range(3):
        timers.step([Stage("a", _nothing)])
    timers.times()
    first, *later = [sample.begin for sample in timers.samples]
    assert 0.5 < first < 5.5  # the clock ticks whenever it is read, and one of five readings is the origin
    assert later == pytest.approx([first + 2.0, first + 4.0])
    timers.set_sample_limit(2)
    assert [sample.step for sample in timers.samples] == [1, 2]


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
    assert lines[0] == ["stage", "time", "(s)", "share", "GB/s", "share", "of", "copy"]
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


def test_former_keys_of_a_summary_are_read_under_their_present_names() -> None:
    former = json.loads((DATA / "ba2b923" / "flow-summary.json").read_text())["movement"]
    movement = read_summary(DATA / "ba2b923" / "flow-summary.json")["movement"]
    assert movement["host_overhead"] == former["beside"]
    assert movement["message_stages"] == former["not_useful"]
    assert not {"beside", "not_useful"} & movement.keys()


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


def test_stages_share_the_measured_time_of_all_steps() -> None:
    # The timed steps took 5 s, all steps 5.5 s: stages are scaled, and only what is not measured remains.
    rows = stage_rows(STAGES, TIMES, steps=100, seconds=6.0, step_seconds=5.5, host_overhead={"first step": 0.25})
    seconds = {row.name: row.seconds for row in rows}
    assert seconds["collide and stream"] == pytest.approx(4.4)
    assert seconds["exchange halo"] == pytest.approx(1.1)
    assert seconds["first step"] == 0.25
    assert seconds["other"] == pytest.approx(0.25)


def test_timers_measure_every_step_and_the_preparation_of_steps() -> None:
    timers = StageTimers(every=16)
    pause = [Stage("pause", lambda: time.sleep(0.002))]
    for _ in range(4):
        timers.step(pause)
    first = timers.host_seconds()["first step"]
    assert first >= 0.002
    assert timers.step_seconds() >= 3 * 0.002
    timers.preparation.add(3_000_000)
    with timers.preparation.activity("mark inside cells"):
        time.sleep(0.001)
    host = timers.host_seconds()
    assert host["mark inside cells"] >= 0.001
    assert host["mark inside cells"] + host["prepare steps"] == pytest.approx(0.003)
