# SPDX-License-Identifier: BSD-3-Clause
"""Exports for other performance tools: stages as TALP's JSON, traces as OTF2 archives that its own reader reads."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_every_run import SOLVERS
from test_run_report import summary_of

from prediction_cases import case_file
from seiche.cli import main
from seiche.errors import CaseError, FormatError
from seiche.observe.sample import Replayed, Sample, Span
from seiche.observe.stage import Messages
from seiche.observe.trace import RankTrace, write_trace
from seiche.report.otf2_trace import find_trace, marks_of, write_otf2
from seiche.report.summary import content_of
from seiche.report.talp import talp_content, write_talp

#: Keys of DLB 3.6 of a region of an application, without those of OpenMP's losses.
KEYS = """
numCpus numMpiRanks numNodes avgCpus numGpus cycles instructions numMeasurements numMpiCalls numOmpParallels numOmpTasks
numGpuCalls elapsedTime usefulTime mpiTime gpuRuntimeTime parallelEfficiency mpiParallelEfficiency
mpiCommunicationEfficiency mpiLoadBalance mpiLoadBalanceIn mpiLoadBalanceOut deviceOffloadEfficiency
"""


@pytest.fixture
def otf2() -> Any:
    """Return the package of Score-P."""
    return pytest.importorskip("otf2", reason="the package otf2 is not installed")


def test_stages_have_the_times_and_factors_of_talp() -> None:
    """Four ranks on two nodes; useful 0.4, 0.5, 0.4, 0.4 s of 1 s, twice as much per CPU on two threads each."""
    content = talp_content(content_of(summary_of(threads=2)))
    assert content["resources"] == {"numCpus": 8, "numNodes": 2, "numMpiRanks": 4}
    assert list(content["Application"]) == ["Global", "stream-collide", "receive halo"]
    for region in content["Application"].values():
        assert region.keys() == set(KEYS.split())
    run, sweep, halo = content["Application"].values()
    assert (run["elapsedTime"], run["usefulTime"]) == (10**9, 2 * 1_700_000_000)
    # TALP: useful time over the time of all CPUs; of the process with the most useful time; mean over largest.
    assert run["parallelEfficiency"] == pytest.approx(run["usefulTime"] / (8 * run["elapsedTime"]))
    assert run["mpiCommunicationEfficiency"] == pytest.approx(0.5)
    assert run["mpiLoadBalance"] == pytest.approx(0.425 / 0.5)
    assert run["mpiLoadBalanceIn"] == pytest.approx(0.45 / 0.5)  # node a: 0.4 and 0.5 s
    assert run["mpiLoadBalance"] == pytest.approx(run["mpiLoadBalanceIn"] * run["mpiLoadBalanceOut"])
    assert run["numMpiCalls"] == 8 * 100
    assert (sweep["elapsedTime"], sweep["mpiTime"]) == (500_000_000, 0)
    assert sweep["parallelEfficiency"] == pytest.approx(0.425 / 0.5)
    assert (halo["usefulTime"], halo["parallelEfficiency"]) == (0, 0.0)
    assert halo["mpiTime"] == 2 * 100 * (4 * 2_000_000 + 6 * 100_000)
    processes = content["Process"]["stream-collide"]
    assert [process["usefulTime"] for process in processes] == [800_000_000, 10**9, 800_000_000, 800_000_000]
    assert [process["nodeId"] for process in processes] == [0, 0, 1, 1]


def test_gpus_have_their_own_factors() -> None:
    """Processes that wait 0.6 s for their GPUs and 0.1 s for messages."""
    summary = summary_of()
    waits = {"waited_s": [0.6] * 4, "host_messages_s": [0.1] * 4, "device": "gpu"}
    changed = replace(summary, movement={**summary.movement, **waits})
    run = talp_content(content_of(changed))["Application"]["Global"]
    assert (run["numGpus"], run["gpuUsefulTime"], run["maxGpuActiveTime"]) == (4, 1_700_000_000, 700_000_000)
    assert run["deviceOffloadEfficiency"] == pytest.approx(0.3 / 0.9)  # useful over useful and waiting for the device
    assert run["mpiCommunicationEfficiency"] == pytest.approx(0.9)
    assert run["parallelEfficiency"] == pytest.approx(0.3)
    assert run["gpuLoadBalance"] == pytest.approx(0.425 / 0.5)
    factors = run["gpuLoadBalance"] * run["gpuCommunicationEfficiency"] * run["gpuOrchestrationEfficiency"]
    assert run["gpuParallelEfficiency"] == pytest.approx(factors)


def test_what_is_not_a_talp_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(CaseError, match="exists and is not a TALP file of Seiche; choose another file with --talp"):
        write_talp(tmp_path / "mine.json", content_of(summary_of()))
    for _ in range(2):
        write_talp(tmp_path / "talp.json", content_of(summary_of()))
    assert json.loads((tmp_path / "talp.json").read_text())["dlbVersion"] == "3.6"
    with pytest.raises(CaseError, match="no step of this run was timed"):
        talp_content(content_of(summary_of(efficiency={})))


def exchange(peer: int, begin: float, late: float) -> Sample:
    sent, received = Messages("halo", sent=((peer, 800),)), Messages("halo", received=((peer, 800),))
    spans = (
        Span("send halo", 0.0, 1e-5, False, sent),
        Span("stream-collide", 1e-5, 3e-4),
        Span("receive halo", 3e-4, 3e-4 + late, False, received),
        Span("exchange", 1e-5, 2e-5, False, None, overlap=True),
    )
    return Sample(17, begin, spans)


TRACE = (
    RankTrace("a", (exchange(1, 1.0, 1e-4),), (Replayed(18, 32, 1.1, 1e-2),), (("monitor", 1.2, 1.3),)),
    RankTrace("b", (exchange(0, 1.0, 2e-4),)),
)


def read(otf2: Any, anchor: Path) -> tuple[Any, list[tuple[str, str, Any]]]:
    """Return the definitions and the events (rank, track, event) of an archive."""
    with otf2.reader.open(str(anchor)) as trace:
        events = [(place.group.name, place.name, event) for place, event in trace.events]
        assert trace.timer_resolution == 10**9
        return trace.definitions, events


def test_an_archive_has_the_regions_locations_and_messages_of_the_trace(otf2: Any, tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", TRACE, case="pair")
    anchor = write_otf2(tmp_path / "trace.json", tmp_path / "archive")
    definitions, events = read(otf2, anchor)
    assert [group.name for group in definitions.location_groups] == ["rank 0", "rank 1"]
    assert {node.name for node in definitions.system_tree_nodes} == {"machine", "a", "b"}
    first = [event for rank, track, event in events if (rank, track) == ("rank 0", "stages")]
    shown = []
    for event in first:
        kind = type(event).__name__
        shown.append((kind, event.time, getattr(getattr(event, "region", None), "name", None)))
    assert shown == [
        ("Enter", 1_000_000_000, "step"),
        ("Enter", 1_000_000_000, "send halo"),
        ("MpiSend", 1_000_000_000, None),
        ("Leave", 1_000_010_000, "send halo"),
        ("Enter", 1_000_010_000, "stream-collide"),
        ("Leave", 1_000_300_000, "stream-collide"),
        ("Enter", 1_000_300_000, "receive halo"),
        ("MpiRecv", 1_000_400_000, None),
        ("Leave", 1_000_400_000, "receive halo"),
        ("Leave", 1_000_400_000, "step"),
        ("Enter", 1_100_000_000, "steps as a graph"),
        ("Leave", 1_110_000_000, "steps as a graph"),
    ]
    send, receive = first[2], first[7]
    assert (send.receiver, send.msg_length, receive.sender, receive.msg_length) == (1, 800, 1, 800)
    assert {attribute.name: value for attribute, value in first[1].attributes.items()} == {"step": 17}
    assert [type(event).__name__ for rank, track, event in events if (rank, track) == ("rank 0", "host")] == [
        "Enter",
        "Leave",
    ]


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_run_is_exported(
    otf2: Any, solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    out = tmp_path / "out"
    inputs = ["run", str(case_file(tmp_path, solver)), "--set", SOLVERS[solver][0], "--output", str(out)]
    assert main([*inputs, "--set", "output.trace=trace.json"]) == 0
    capsys.readouterr()
    targets = ["--talp", str(tmp_path / "talp.json"), "--otf2", str(tmp_path / "otf2")]
    assert main(["report", str(out), *targets]) == 0
    written = [str(out / "report.html"), str(tmp_path / "talp.json"), str(tmp_path / "otf2" / "traces.otf2")]
    assert capsys.readouterr().out.splitlines() == [f"seiche: wrote {path}" for path in written]
    summary = json.loads((out / "summary.json").read_text())
    content = json.loads((tmp_path / "talp.json").read_text())
    stages = [row["name"] for row in summary["stages"] if row["samples"]]
    assert {"Global", "set-up", *stages} <= content["Application"].keys()
    assert 0 < content["Application"]["Global"]["parallelEfficiency"] <= 1
    _, events = read(otf2, tmp_path / "otf2" / "traces.otf2")
    # Per stage as many visits and as much time as in the trace.
    trace = json.loads((out / "trace.json").read_text())["traceEvents"]
    for stage in stages:
        slices = [event["dur"] for event in trace if event["ph"] == "X" and event["name"] == stage]
        marks = [event for _, _, event in events if getattr(getattr(event, "region", None), "name", None) == stage]
        times = [(-1) ** (type(event).__name__ == "Enter") * event.time for event in marks]
        assert len(marks) == 2 * len(slices)
        assert sum(times) == pytest.approx(1e3 * sum(slices), abs=4 * len(slices))


def slice_of(name: str, begin: float, length: float) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": begin, "dur": length}


def test_slices_that_rounding_lets_end_late_are_cut() -> None:
    events = [slice_of("step 1", 1.0, 0.5), slice_of("a", 1.0, 0.2), slice_of("b", 1.2, 0.301), slice_of("c", 1.5, 0.0)]
    marks = [(time, kind, event["name"]) for time, kind, event in marks_of(events)]
    assert marks == [
        (1000, "enter", "step 1"),
        (1000, "enter", "a"),
        (1200, "leave", "a"),
        (1200, "enter", "b"),
        (1500, "leave", "b"),
        (1500, "leave", "step 1"),
        (1500, "enter", "c"),
        (1500, "leave", "c"),
    ]


def test_what_cannot_be_converted_gives_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "trace.json", TRACE, case="pair")
    assert find_trace(tmp_path) == tmp_path / "trace.json"
    write_trace(tmp_path / "other.json", TRACE)
    with pytest.raises(CaseError, match=r"expected one trace, found other\.json, trace\.json"):
        find_trace(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaseError, match="expected one trace, found none; run the case with --trace"):
        find_trace(tmp_path / "empty")
    monkeypatch.setitem(sys.modules, "otf2", None)
    with pytest.raises(CaseError, match="--otf2 requires the package otf2: pip install otf2"):
        write_otf2(tmp_path / "trace.json", tmp_path / "archive")
    monkeypatch.setitem(sys.modules, "otf2", importlib.import_module("json"))
    with pytest.raises(CaseError, match="empty exists; choose a new folder with --otf2"):
        write_otf2(tmp_path / "trace.json", tmp_path / "empty")
    for text in ("{}", "text"):
        (tmp_path / "empty" / "bad.json").write_text(text)
        with pytest.raises(FormatError, match="trace of a run"):
            write_otf2(tmp_path / "empty" / "bad.json", tmp_path / "archive")
