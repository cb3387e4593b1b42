# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench ultrasound` on several ranks: a cube for each, shared by overlaps and by transposes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launch import run_ranks

from seiche.bench.ultrasound_ranks import UltrasoundRanksRow
from seiche.cli import main


def measured(target: str, *more: str) -> None:
    """Run the command on these ranks."""
    small = ["--size", "32", "--physics", "lossless", "--seconds", "0", "--threads", "1"]
    assert main(["bench", "ultrasound", *small, "--json", target, *more]) == 0


def rejected(*options: str) -> None:
    """Ask for what does not go with several ranks."""
    assert main(["bench", "ultrasound", *options]) == 2


def test_each_way_to_share_is_timed_and_its_redundant_work_is_counted(tmp_path: Path) -> None:
    target = tmp_path / "ultrasound.json"
    output = run_ranks(2, measured, str(target), "--overlap", "8", "--overlap", "0", timeout=200.0)
    stored = json.loads(target.read_text())
    assert stored["benchmark"] == "ultrasound-ranks"
    local, full = (UltrasoundRanksRow(**row) for row in stored["rows"])
    assert (local.basis, local.ranks, local.overlap, local.width) == ("local", 2, 8, 8)
    assert local.redundant_work == pytest.approx((32 + 2 * 8) / 32)
    assert (full.basis, full.overlap, full.width, full.redundant_work) == ("global", 0, 0, 1.0)
    for row in (local, full):
        assert row.milliseconds_one_rank == local.milliseconds_one_rank > 0.0
        assert row.efficiency_after_redundant_work == pytest.approx(
            row.redundant_work * row.milliseconds_one_rank / row.milliseconds
        )
        assert 0.0 < row.share_of_messages < 1.0
    assert "after work" in output


def test_options_of_one_and_of_several_ranks_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "ultrasound", "--size", "32", "--overlap", "8"]) == 2
    assert "--overlap, --split, --ranks and --transport require several ranks" in capsys.readouterr().err
