# SPDX-License-Identifier: BSD-3-Clause
"""Properties of every trace of a run that viewers require."""

from __future__ import annotations

from typing import Any

from seiche.observe.trace import SCHEMA


def check_format(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Assert the properties of events that Perfetto requires, and return the events."""
    assert document["schema"] == SCHEMA
    for event in document["traceEvents"]:
        assert event["ph"] in "MXsf"
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"]
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
    return list(document["traceEvents"])


def slices(events: list[dict[str, Any]], pid: int, tid: int) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) == (pid, tid)]


def check_nesting(events: list[dict[str, Any]], ranks: int) -> None:
    """Assert that slices of a track are nested or disjoint, as viewers require."""
    for pid in range(ranks):
        for tid in range(3):
            open_ends: list[float] = []
            for event in sorted(slices(events, pid, tid), key=lambda e: (e["ts"], -e["dur"])):
                while open_ends and open_ends[-1] <= event["ts"] + 2e-3:
                    open_ends.pop()
                end = event["ts"] + event["dur"]
                assert not open_ends or end <= open_ends[-1] + 2e-3
                open_ends.append(end)


def check_arrows(events: list[dict[str, Any]]) -> int:
    """Assert that both ends of every arrow lie in a slice of their track; return the number of arrows."""
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        for end, name in ((start, "send"), (ends[number], "receive")):
            assert any(
                part["ts"] - 2e-3 <= end["ts"] <= part["ts"] + part["dur"] + 2e-3
                for part in slices(events, end["pid"], end["tid"])
                if part["name"].startswith(name)
            )
        assert start["pid"] != ends[number]["pid"]
        assert start["args"]["bytes"] > 0
    return len(starts)
