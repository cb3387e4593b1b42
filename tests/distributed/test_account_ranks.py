# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of ultrasound and of waves tell of their messages apart from what they compute, and trace them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seiche
from prediction_cases import case_file
from seiche.domain.world import World
from seiche.report.summary import read_summary
from trace_checks import check_format, check_nesting


def summary_and_events(
    tmp_path: Path, solver: str, *changes: str
) -> tuple[World, dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the summary of a run on all ranks, and its trace, checked; on rank 0 only."""
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path)))
    if world.rank == 0:
        case_file(folder, solver)
    world.barrier()
    inputs = [*changes, "run.threads=1", "run.transport=host", f"output.trace={folder / 'trace.json'}"]
    seiche.load(folder / f"{solver}.toml", overrides=inputs, output=folder / "out", world=world).run()
    if world.rank:
        return world, None, []
    summary = read_summary(folder / "out" / "summary.json")
    tree = summary["efficiency"]
    assert tree["elements"] == world.size
    assert tree["communication"] == pytest.approx(tree["serialisation"] * tree["transfer"])
    assert tree["communication"] == pytest.approx(tree["device"] * tree["orchestration"])
    assert tree["device"] < 1
    assert sum(summary["movement"]["sites"]) >= summary["sites"]
    events = check_format(json.loads((folder / "trace.json").read_text()))
    check_nesting(events, world.size)
    assert {event["pid"] for event in events} == set(range(world.size))
    return world, summary, events


def arrows(events: list[dict[str, Any]], step: int) -> list[tuple[int, int, int]]:
    """Return (sender, receiver, bytes) of the messages of a step, each of which arrives after it has left."""
    span = next(event for event in events if event["name"] == f"step {step}" and event["pid"] == 0)
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    result = []
    for start in (event for event in events if event["ph"] == "s"):
        end = ends[start["id"]]
        assert end["ts"] > start["ts"]
        if abs(start["ts"] - span["ts"] - span["dur"] / 2) < span["dur"] / 2 + 1 and start["pid"] == 0:
            result.append((start["pid"], end["pid"], start["args"]["bytes"]))
    return result


@pytest.mark.ranks(2)
def test_overlaps_of_ultrasound_are_messages_and_no_computing(tmp_path: Path) -> None:
    """A field of pressure and one for each component of velocity are exchanged, once each."""
    _, summary, events = summary_and_events(tmp_path, "ultrasound", "grid.steps=20", "run.basis=local", "run.overlap=8")
    if summary is None:
        return
    movement = summary["movement"]
    assert movement["message_stages"] == ["send halo", "receive halo"]
    assert movement["transport"] == "host"
    # Both ends of 64 points are cut, and each rank gives away 8 planes at either.
    size = 4 * (2 * 8 * 48 * 32) * 4
    assert movement["messages"] == [[0, 1, 4.0, size], [1, 0, 4.0, size]]
    assert arrows(events, 1) == [(0, 1, size // 4)] * 4
    rows = {row["name"] for row in summary["stages"]}
    assert {"gradient", "divergence", "send halo", "receive halo"} <= rows


@pytest.mark.ranks(2)
def test_transposes_of_ultrasound_are_messages_and_no_computing(tmp_path: Path) -> None:
    """Every transform takes one: of the pressure forward, of three components back, forward and back."""
    _, summary, events = summary_and_events(
        tmp_path, "ultrasound", "grid.steps=20", "run.basis=global", "run.transport=mpi"
    )
    if summary is None:
        return
    movement = summary["movement"]
    assert movement["message_stages"] == ["transpose"] and movement["transport"] == "mpi"
    assert [row[:3] for row in movement["messages"]] == [[0, 1, 10.0], [1, 0, 10.0]]
    # Half of a rank's complex numbers: 32 planes of 48 x 17, each transform.
    assert [row[3] for row in movement["messages"]] == [10 * 32 * 24 * 17 * 8] * 2
    assert len(arrows(events, 1)) == 10


@pytest.mark.ranks(3)
def test_ghosts_of_waves_are_messages_and_no_computing(tmp_path: Path) -> None:
    """Five stages a step, each with one message to every neighbour."""
    _, summary, events = summary_and_events(tmp_path, "waves", "time.steps=20")
    if summary is None:
        return
    movement = summary["movement"]
    assert movement["message_stages"] == ["send halo", "receive halo"]
    sent = {(row[0], row[1]): row[2:] for row in movement["messages"]}
    assert all(count == 5.0 and sent[peer, rank] == [5.0, size] for (rank, peer), (count, size) in sent.items())
    assert len(arrows(events, 1)) == 5 * sum(rank == 0 for rank, _ in sent)
    # A step has its stages five times; the table contains their sum. Traces are rounded to nanoseconds.
    step = sum(seconds[0] for seconds in movement["stages"].values())
    timed = [event for event in events if event["name"].startswith("step ") and event["pid"] == 0]
    assert step == pytest.approx(sum(event["dur"] for event in timed) * 1e-6 / len(timed), rel=1e-5)
