# SPDX-License-Identifier: BSD-3-Clause
"""Runs of sites in columns of cubes, and distinct numbers by sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seiche.domain.site_rows import SiteRows, distinct_numbers, runs_in_columns


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_columns_of_cubes_contain_their_runs_and_segments(seed: int, edge: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(extent) for extent in random.integers(1, 12, 3))
    coords = np.argwhere(random.random(shape) < 0.4).astype(np.int32)
    rows = SiteRows.of_coords(shape, (False,) * 3, coords)
    cubes, first = rows.segments(edge)
    columns = np.unique(cubes[:, :2], axis=0)
    chosen = columns[random.random(len(columns)) < 0.5]
    runs = runs_in_columns(rows, chosen, edge)
    is_chosen = (cubes[:, None, :2] == chosen).all(axis=2).any(axis=1)
    cubes_of_runs, first_of_runs = rows.segments(edge, runs)
    np.testing.assert_array_equal(cubes_of_runs, cubes[is_chosen])
    np.testing.assert_array_equal(first_of_runs, first[is_chosen])
    np.testing.assert_array_equal(runs_in_columns(rows, columns, edge), np.arange(len(rows.begin)))


def test_distinct_numbers_are_ascending() -> None:
    assert distinct_numbers(np.array([[5, 3], [5, -1]])).tolist() == [-1, 3, 5]
    assert distinct_numbers(np.zeros(0, np.int64)).tolist() == []
