# SPDX-License-Identifier: BSD-3-Clause
"""Runs of consecutive slots: the tables contain the adjacency."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from seiche.flow.runs import RUN, runs_of


def slots_of(rows: npt.NDArray[np.uint32], pieces: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the slots (Q - 1, RUN runs) that the tables describe."""
    slots = np.empty((rows.shape[1] - 1, len(rows), RUN), np.uint32)
    for run, row in enumerate(rows):
        for q in range(1, len(row)):
            if not row[0] >> q & 1:
                slots[q - 1, run] = row[q] + np.arange(RUN, dtype=np.uint32)
                continue
            lane, piece = 0, int(row[q])
            while lane < RUN:
                slot, end = pieces[piece]
                slots[q - 1, run, lane:end] = slot + np.arange(end - lane, dtype=np.uint32)
                lane, piece = int(end), piece + 1
            assert lane == RUN
    return slots.reshape(len(slots), -1)


@pytest.mark.parametrize("directions", [14, 18, 26])
def test_the_tables_contain_the_adjacency(directions: int) -> None:
    random = np.random.default_rng(directions)
    count, size = 20 * RUN + 5, 20 * RUN + 64
    first = random.integers(0, 1 << 20, (directions, 1), np.uint32)
    jumps = 1 + random.integers(0, 1 << 10, (directions, size), np.uint32) * (random.random((directions, size)) < 0.03)
    adjacency = (first + np.cumsum(jumps, axis=1, dtype=np.uint32)).astype(np.uint32)
    adjacency[0] = np.arange(size, dtype=np.uint32)
    adjacency[1] = random.permutation(size).astype(np.uint32)
    rows, pieces = runs_of(adjacency, count)
    assert rows.shape == (20, directions + 1) and rows.dtype == pieces.dtype == np.uint32
    np.testing.assert_array_equal(slots_of(rows, pieces), adjacency[:, : 20 * RUN])
    irregular = (np.diff(adjacency[:, : 20 * RUN].reshape(directions, 20, RUN)) != 1).any(axis=2)
    np.testing.assert_array_equal(rows[:, :1] >> np.arange(1, directions + 1) & 1, irregular.T)


def test_a_list_shorter_than_a_run_has_no_pieces() -> None:
    rows, pieces = runs_of(np.zeros((18, 64), np.uint32), RUN - 1)
    assert rows.shape == (1, 19) and not rows.any() and pieces.shape == (0, 2)
