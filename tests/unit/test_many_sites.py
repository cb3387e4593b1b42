# SPDX-License-Identifier: BSD-3-Clause
"""A vessel may have more than 2^31 sites, and even 2^32, on several ranks: numbers of sites have 64 bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seiche.domain.site_owners import SiteOwners
from seiche.domain.site_rows import rows_of
from seiche.errors import CaseError
from seiche.flow.region import MAX_SITES, Region, check_parts
from seiche.flow.velocity_set import D3Q19

#: A box of 4.6e9 sites as runs along z, periodic along x; the last rank has a few rows at both ends.
SHAPE = (300, 300, 51_200)
COLUMNS = SHAPE[0] * SHAPE[1]
TOTAL = COLUMNS * SHAPE[2]


class Coordinates:
    """Coordinates of sites of the full box, computed when they are read."""

    def __getitem__(self, sites: np.ndarray) -> np.ndarray:
        """Return the coordinates (m, 3) of sites."""
        return np.stack(np.unravel_index(sites, SHAPE), axis=1)


class Sites(SimpleNamespace):
    """Sites of the full box without boundary sites."""

    def __len__(self) -> int:
        """Return the number of sites."""
        return TOTAL


@pytest.fixture(scope="module")
def region() -> Region:
    ends = np.full(COLUMNS, SHAPE[2], np.int32)
    rows = rows_of(SHAPE, (True, False, False), np.arange(COLUMNS + 1), np.zeros_like(ends), ends)
    sites: Any = Sites(
        rows=rows,
        shape=SHAPE,
        coords=Coordinates(),
        boundary=np.zeros(0, np.int64),
        link_kind=np.zeros((0, 26), np.uint8),
    )
    first, last = SHAPE[2] + 5, TOTAL - 2 * SHAPE[2] - 7
    owner = SiteOwners(np.array([0, first, last]), np.array([1, 0, 1], np.int32), TOTAL)
    return Region(sites, owner, 1)


def neighbours(sites: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the sites at a distance `vector` in the full box, -1 outside it, by arithmetic."""
    coords = np.stack(np.unravel_index(sites, SHAPE), axis=1) + vector
    coords[:, 0] %= SHAPE[0]
    inside = ((coords >= 0) & (coords < SHAPE)).all(axis=1)
    return np.where(inside, np.ravel_multi_index(tuple(np.where(inside[:, None], coords, 0).T), SHAPE), -1)


def test_neighbours_beyond_2_to_the_32_are_those_of_the_box(region: Region) -> None:
    assert TOTAL > 1 << 32
    assert len(region.sites.rows) == TOTAL
    expected = np.r_[0 : SHAPE[2] + 5, TOTAL - 2 * SHAPE[2] - 7 : TOTAL]
    np.testing.assert_array_equal(region.owned, expected)
    is_own = np.zeros(0, bool)
    for q in range(1, D3Q19.Q):
        target = neighbours(expected, D3Q19.vectors[q])
        is_own = (target >= 0) & ((target < expected[SHAPE[2] + 5 - 1] + 1) | (target >= TOTAL - 2 * SHAPE[2] - 7))
        rows = np.where(is_own, np.searchsorted(expected, target), -1)
        np.testing.assert_array_equal(region.own_neighbour(q), rows)
        remote, sites = region.remote_neighbour(q)
        is_remote = (target >= 0) & ~is_own
        np.testing.assert_array_equal(remote, np.flatnonzero(is_remote))
        np.testing.assert_array_equal(sites, target[is_remote])
        some = np.arange(3, len(expected), 997)
        np.testing.assert_array_equal(region.neighbour(q, some), target[some])
        np.testing.assert_array_equal(region.rows_of(target[some]), rows[some])


def test_only_a_rank_is_limited() -> None:
    check_parts(SiteOwners(np.array([0, MAX_SITES]), np.array([1, 0], np.int32), 2 * MAX_SITES))
    too_many = SiteOwners(np.array([0, MAX_SITES, MAX_SITES + 5]), np.array([1, 0, 1], np.int32), MAX_SITES + 9)
    with pytest.raises(CaseError, match=r"rank 1 has 2147483651 fluid sites, .* at most 2147483647; use more ranks"):
        check_parts(too_many)
