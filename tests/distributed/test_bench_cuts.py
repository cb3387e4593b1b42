# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks on several ranks cut in three directions, with several transports and partitions in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launch import run_ranks

from seiche.bench.blood_ranks import BloodRanksRow, with_efficiency
from seiche.bench.flow import FlowRow
from seiche.bench.results import read_rows
from seiche.cli import main


def measured(*words: str) -> None:
    """Run a benchmark on these ranks."""
    assert main(["bench", *words]) == 0


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the stored rows."""
    return json.loads(path.read_text())["rows"]


def test_flow_boxes_are_stacked_and_compared_by_partition_and_transport(tmp_path: Path) -> None:
    target = tmp_path / "flow.json"
    words = ["--shape", "box", "--size", "16", "--weak", "--layout", "list-ab", "--precision", "float32"]
    words += ["--seconds", "0", "--partition", "bisection", "--partition", "metis", "--ranks", "1", "--ranks", "4"]
    transports = ["--transport", "host", "--transport", "peer", "--transport", "nccl"]
    output = run_ranks(4, measured, "flow", *words, *transports, "--json", target, timeout=200.0)
    one, *several = read_rows(target, FlowRow, "flow")
    assert (one.case, one.sites, one.partition, one.efficiency) == ("box 16^3", 16**3, "none", 1.0)
    assert [(row.partition, row.transport) for row in several] == [
        (partition, transport) for partition in ("bisection", "metis") for transport in ("host", "peer")
    ]
    for row in several:
        assert (row.case, row.sites, row.ranks) == ("box 16^3 x 2x2x1", 4 * 16**3, 4)
        assert row.efficiency == pytest.approx(row.mlups / 4 / one.mlups)
    assert "not measured: transport nccl: " in output


def test_blood_shares_one_load_by_bisection(tmp_path: Path) -> None:
    target = tmp_path / "blood.json"
    words = ["--strong", "--size", "32", "--spacing", "0.5", "--vertices", "162", "--steps", "2", "--support", "3"]
    run_ranks(2, measured, "blood", *words, "--transport", "host", "--transport", "peer", "--json", target, timeout=200)
    one, host, peer = read_rows(target, BloodRanksRow, "blood")
    assert [row.transport for row in (one, host, peer)] == ["none", "host", "peer"]
    assert host.sites == one.sites == 32**3 and host.cells == one.cells
    assert (one.partition, host.partition, host.strong) == ("none", "bisection", True)
    assert host.efficiency == pytest.approx(one.step_microseconds / host.step_microseconds / 2)
    assert with_efficiency([one, host, peer]) == [one, host, peer]


def test_ultrasound_cubes_are_stacked_by_each_split(tmp_path: Path) -> None:
    target = tmp_path / "ultrasound.json"
    words = ["--size", "32", "--physics", "lossless", "--seconds", "0", "--threads", "1", "--overlap", "8", "--overlap"]
    words += ["0", "--split", "2x1x1", "--split", "1x2x1", "--split", "4x1x1", "--transport", "host"]
    run_ranks(2, measured, "ultrasound", *words, "--json", target, timeout=200.0)
    rows = [(row["basis"], row["split"]) for row in rows_of(target)]
    assert rows == [("local", "2x1x1"), ("global", "2x1x1"), ("local", "1x2x1")]


def test_waves_without_overlap_have_the_same_states(tmp_path: Path) -> None:
    target = tmp_path / "waves.json"
    words = ["--size", "2", "--nodes", "4", "--medium", "acoustic", "--precision", "float64", "--seconds", "0"]
    words += ["--transport", "host", "--transport", "peer", "--overlap", "on", "--overlap", "off"]
    run_ranks(4, measured, "waves", *words, "--json", target, timeout=200.0)
    rows = rows_of(target)
    assert [(row["transport"], row["overlap"]) for row in rows] == [
        (transport, overlap) for transport in ("host", "peer") for overlap in (True, False)
    ]
    assert all(row["error"] == 0.0 and row["elements"] == 4 * 8 for row in rows)
