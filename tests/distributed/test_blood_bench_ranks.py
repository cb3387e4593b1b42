# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench blood --weak`: the same load on one and on two ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from launch import run_ranks

from seiche.bench.blood_ranks import LOADS, BloodRanksRow, Load, tile_of, tiled
from seiche.bench.results import rank_counts, read_rows
from seiche.cli import main
from seiche.errors import FormatError


def measured(target: str, *more: str) -> None:
    """Run the command on these ranks."""
    small = ["--size", "32", "--spacing", "0.5", "--vertices", "162", "--steps", "2", "--support", "4"]
    assert main(["bench", "blood", "--weak", *small, "--json", target, *more]) == 0


def test_two_ranks_have_twice_the_load_and_the_time_of_messages_is_reported(tmp_path: Path) -> None:
    target = tmp_path / "blood.json"
    output = run_ranks(2, measured, target, timeout=120.0)
    one, two = read_rows(target, BloodRanksRow, "")
    assert (one.ranks, two.ranks, one.transport, two.transport) == (1, 2, "none", "host")
    assert (two.sites, two.cells) == (2 * one.sites, 2 * one.cells)
    assert one.hematocrit == two.hematocrit == pytest.approx(0.40, abs=0.01)
    assert (one.copies, one.exposed, one.efficiency, one.message_bytes) == (0.0, 0.0, 1.0, 0)
    assert two.copies > 0.1
    assert two.efficiency == pytest.approx(one.step_microseconds / two.step_microseconds)
    assert two.exposed == pytest.approx(max(0.0, 1.0 - two.compute_microseconds / two.step_microseconds))
    # velocities of two sides of 32^2 sites and two layers, 12 B, and as many populations of one layer; and vertices
    assert two.message_bytes > 2 * 2 * (2 * 32**2 * 12 + 32**2 * 5 * 4)
    assert "exposed" in output
    assert json.loads(target.read_text())["benchmark"] == "blood-ranks"
    target.write_text('{"rows": [{"cells": 1}]}')
    with pytest.raises(FormatError, match="not a benchmark of blood on several ranks"):
        read_rows(target, BloodRanksRow, "a benchmark of blood on several ranks")


def rejected() -> None:
    """Say what cannot be measured on two ranks."""
    assert main(["bench", "blood", "--size", "32"]) == 2
    assert main(["bench", "blood", "--weak", "--size", "32", "--ranks", "3"]) == 2


def test_what_cannot_be_measured_is_reported_in_a_line() -> None:
    output = run_ranks(2, rejected)
    assert "bench blood: several ranks (2) require --weak or --strong" in output
    assert "bench blood: cannot use 3 ranks of 2: choose 1 to 2" in output


def test_every_rank_has_copies_of_the_same_cells():
    load = Load("small", (32, 32, 32), 1.0, 162, 0.3)
    tile, counts = tile_of(load)
    one, three = tiled(load, (1, 1, 1), tile, counts), tiled(load, (3, 1, 1), tile, counts)
    shift = np.repeat(np.arange(3), len(one.centers))[:, None] * np.array([32.0, 0.0, 0.0])
    assert np.allclose(three.centers, np.tile(one.centers, (3, 1)) + shift)
    assert three.hematocrit == one.hematocrit == pytest.approx(0.3, abs=0.01)
    assert rank_counts(6) == [1, 2, 4, 6]
    coarse = LOADS["coarse"]
    assert np.prod(coarse.shape) == pytest.approx(2.08e7, rel=0.01)
    packing = tiled(coarse, (1, 1, 1), *tile_of(coarse))
    assert len(packing.centers) == pytest.approx(88_000, rel=0.05)
