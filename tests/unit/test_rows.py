# SPDX-License-Identifier: BSD-3-Clause
"""Rows of whole numbers as keys: compared with numpy's results for the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.domain.rows import distinct, first_occurrences, keys_of


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-5, 6), (0, 1000), (-(1 << 62), 1 << 62)])
def test_keys_sort_as_their_rows_do(low: int, high: int) -> None:
    rows = np.random.default_rng(1).integers(low, high, size=(500, 3))
    rows = np.concatenate([rows, rows[:100]])
    assert np.array_equal(np.argsort(keys_of(rows), kind="stable"), np.lexsort(rows.T[::-1]))
    assert np.array_equal(first_occurrences(rows), np.unique(rows, axis=0, return_index=True)[1])


@pytest.mark.parametrize("extent", [4, 300])
def test_distinct_rows_and_the_number_of_each(extent: int) -> None:
    rows = np.random.default_rng(2).integers(0, extent, size=(700, 3))
    result, number = distinct(rows)
    assert np.array_equal(result, np.unique(rows, axis=0))
    assert np.array_equal(result[number], rows)


def test_no_rows_have_no_keys() -> None:
    assert not len(first_occurrences(np.zeros((0, 3), np.int64)))
