# SPDX-License-Identifier: BSD-3-Clause
"""The time line of a run: valid JSON of Chrome, a process a rank, slices inside their step, arrows with two ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from case_files import changed, toml_of, tube_tables
from seiche.cli import main
from seiche.domain.world import World
from seiche.observe.sample import Replayed, Sample, Span
from seiche.observe.stage import Messages, Stage
from seiche.observe.timers import StageTimers
from seiche.observe.trace import MAX_STORED_SAMPLES, RankTrace, gather_trace, sample_limit, trace_events, write_trace
from trace_checks import check_arrows, check_format, check_nesting, slices


def write(folder: Path, tables: dict[str, Any]) -> Path:
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


def exchange(peer: int, begin: float, late: float) -> Sample:
    """Return a step at `begin` that sends 800 B to `peer`, works, and waits `late` for as much."""
    sent, received = Messages("halo", sent=((peer, 800),)), Messages("halo", received=((peer, 800),))
    return Sample(
        17,
        begin,
        (
            Span("send halo", 0.0, 1e-5, False, sent),
            Span("stream-collide interior", 1e-5, 3e-4),
            Span("receive halo", 3e-4, 3e-4 + late, False, received),
            Span("exchange", 1e-5, 2e-5, False, None, overlap=True),
        ),
    )


RANKS = (
    RankTrace("a", (exchange(1, 1.0, 1e-4),), (Replayed(18, 32, 1.1, 1e-2),), (("monitor", 1.2, 1.3),)),
    RankTrace("b", (exchange(0, 1.0, 2e-4),)),
)


def test_a_trace_has_a_process_a_rank_a_track_a_stream_and_an_arrow_a_message(tmp_path: Path) -> None:
    write_trace(tmp_path / "deep" / "trace.json", RANKS, case="pair")
    document = json.loads((tmp_path / "deep" / "trace.json").read_text())
    events = check_format(document)
    assert document["otherData"] == {"case": "pair"}
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {0: "rank 0 (a)", 1: "rank 1 (b)"}
    check_nesting(events, 2)
    assert check_arrows(events) == 2
    assert [part["name"] for part in slices(events, 0, 0)] == [
        "step 17",
        "send halo",
        "stream-collide interior",
        "receive halo",
        "steps 18 to 49 as a graph",
    ]
    assert [part["name"] for part in slices(events, 0, 1)] == ["exchange"]
    assert [(part["name"], part["ts"], part["dur"]) for part in slices(events, 0, 2)] == [("monitor", 1.2e6, 1e5)]
    (sweep,) = [part for part in slices(events, 1, 0) if part["name"] == "stream-collide interior"]
    assert (sweep["ts"], sweep["dur"]) == pytest.approx((1e6 + 10, 290))


def test_messages_without_bytes_or_a_timed_other_end_have_no_arrow() -> None:
    empty = Sample(3, 0.0, (Span("send halo", 0.0, 1e-5, False, Messages("halo", sent=((1, 0),))),))
    waits = Sample(3, 0.0, (Span("receive halo", 0.0, 1e-5, False, Messages("halo", received=((0, 0),))),))
    other = Sample(5, 0.0, (Span("receive halo", 0.0, 1e-5, False, Messages("halo", received=((0, 8),))),))
    events = list(trace_events((RankTrace("a", (empty,)), RankTrace("a", (waits, other)))))
    assert not [event for event in events if event["ph"] in "sf"]


def test_a_run_leaves_the_trace_that_it_is_requested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, changed(tube_tables(), "output", {"fields": [{"file": "flow.vtkhdf", "every": 50}]}))
    target = tmp_path / "my traces" / "run.json"
    assert main(["run", str(path), "--trace", str(target)]) == 0
    events = check_format(json.loads(target.read_text()))
    check_nesting(events, 1)
    timed = [event for event in slices(events, 0, 0) if event["name"].startswith("step ")]
    assert [event["name"] for event in timed] == [f"step {k}" for k in range(1, 100, 16)]
    names = {event["name"] for event in slices(events, 0, 0)}
    assert {"stream-collide interior", "velocity iolets", "pressure iolets"} <= names
    assert {"steps", "snapshots", "monitor"} <= {event["name"] for event in slices(events, 0, 2)}
    assert len(timed) < MAX_STORED_SAMPLES
    # Requested in the case file, twice: a trace is replaced by a trace.
    for _ in range(2):
        assert main(["run", str(path), "--replace", "--set", "output.trace=trace.json"]) == 0
    assert (tmp_path / "out" / "trace.json").exists()
    capsys.readouterr()


def test_another_file_is_not_replaced_by_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = write(tmp_path, tube_tables()), tmp_path / "notes.txt"
    other.write_text("kept")
    for foreign in (path, other):
        before = foreign.read_text()
        assert main(["run", str(path), "--trace", str(foreign)]) == 2
        assert foreign.read_text() == before
    own, reference = capsys.readouterr().err.splitlines()
    assert own.endswith(f"output.trace: would overwrite {path}, which the case reads; choose another name or folder")
    assert (
        reference == f"seiche: error: output.trace: {other} exists but is not a valid trace; choose another output name"
    )
    assert main(["run", str(path), "--trace", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err == f"seiche: error: output.trace: {tmp_path} is a folder; choose another output name\n"
    )


def test_two_outputs_of_one_name_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, tube_tables())
    assert main(["run", str(path), "--set", "output.trace=summary.json"]) == 2
    assert 'two outputs have the same file name "summary.json"' in capsys.readouterr().err


@pytest.mark.parametrize(("elapsed", "written"), [(1e-6, 128), (1e6, MAX_STORED_SAMPLES)])
def test_a_trace_is_as_long_as_a_hundredth_of_the_run_can_write(elapsed: float, written: int) -> None:
    timers = StageTimers(every=1)
    timers.set_sample_limit(MAX_STORED_SAMPLES)
    for _ in range(MAX_STORED_SAMPLES + 1):
        timers.step([Stage("collide", lambda: None)])
    (retained,) = gather_trace(timers, World.serial(), elapsed) or ()
    assert [sample.step for sample in retained.samples] == list(
        range(MAX_STORED_SAMPLES + 1 - written, MAX_STORED_SAMPLES + 1)
    )


def test_all_ranks_together_take_a_hundredth_of_the_run() -> None:
    assert sample_limit(1e-4, 10.0) == 1000
    assert 1e-4 * sample_limit(1e-4, 10.0) <= 0.01 * 10.0
