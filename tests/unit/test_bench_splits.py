# SPDX-License-Identifier: BSD-3-Clause
"""Loads of benchmarks grow with the ranks in three directions."""

from __future__ import annotations

import math

import pytest

from seiche.bench.splits import grown, parse_split, requested_counts, split_of
from seiche.cli import main
from seiche.errors import CaseError


def test_equal_cubes_are_stacked_as_evenly_as_their_number_permits():
    splits = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 6: (3, 2, 1), 7: (7, 1, 1), 8: (2, 2, 2), 12: (3, 2, 2)}
    assert {ranks: split_of(ranks) for ranks in splits} == splits
    assert all(math.prod(split_of(ranks)) == ranks for ranks in range(1, 200))
    assert grown((3, 4, 5), (2, 2, 1)) == (6, 8, 5)


def test_a_split_is_three_positive_numbers():
    assert parse_split("4x2x1") == (4, 2, 1)
    for text in ("4x2", "4x2x0", "axbxc", "2x2x2x2"):
        with pytest.raises(CaseError, match=f"--split: '{text}' is not three numbers of pieces, as in 2x2x1"):
            parse_split(text)


def test_numbers_of_ranks_are_requested_or_default():
    assert requested_counts("flow", [4, 1, 4], 4, [4]) == [1, 4]
    assert requested_counts("flow", [], 4, [4]) == [4]
    with pytest.raises(CaseError, match="bench flow: cannot use 5 ranks of 4: choose 1 to 4"):
        requested_counts("flow", [5], 4, [4])


def test_weak_and_strong_exclude_each_other(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "blood", "--weak", "--strong"]) == 2
    assert "bench blood: --weak and --strong exclude each other" in capsys.readouterr().err
