# SPDX-License-Identifier: BSD-3-Clause
"""The rank of every site, stored as pieces of consecutive sites of one rank: far fewer numbers than sites."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.site_rows import Indices, SiteRows, expanded

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SiteOwners:
    """The rank of each of `count` sites.

    `start` (p,) are the first sites of the pieces, ascending from 0, and `owner` (p,) int32 their ranks.
    """

    start: Indices
    owner: Ranks
    count: int

    @staticmethod
    def of(owner: npt.NDArray[Any]) -> SiteOwners:
        """Return the owners `owner` (n,) of all sites."""
        return SiteOwners.merged(np.arange(len(owner)), owner, len(owner))

    @staticmethod
    def merged(start: Indices, owner: npt.NDArray[Any], count: int) -> SiteOwners:
        """Return the owners of pieces, of which neighbouring ones may have the same."""
        begins = np.ones(len(owner), bool)
        begins[1:] = owner[1:] != owner[:-1]
        return SiteOwners(np.asarray(start[begins], np.int64), np.asarray(owner[begins], np.int32), count)

    def __len__(self) -> int:
        """Return the number of sites."""
        return self.count

    def __getitem__(self, sites: npt.NDArray[np.integer[Any]]) -> Ranks:
        """Return the ranks of `sites` (m,)."""
        return np.asarray(self.owner[np.searchsorted(self.start, sites, side="right") - 1])

    @cached_property
    def end(self) -> Indices:
        """Return the site after the last one of each piece (p,)."""
        return np.append(self.start[1:], self.count)[: len(self.start)]

    def expanded(self) -> Ranks:
        """Return the rank of every site (n,)."""
        return np.repeat(self.owner, self.end - self.start)

    def of_rank(self, rank: int) -> RankSites:
        """Return the sites of one rank."""
        pieces = np.flatnonzero(self.owner == rank)
        return RankSites(self.start[pieces], self.end[pieces])


@dataclass(frozen=True, eq=False)
class RankSites:
    """Sites of one rank: the ascending pieces `start` <= site < `end`, (p,) each. A row is a number among them."""

    start: Indices
    end: Indices

    @cached_property
    def first_row(self) -> Indices:
        """Return the row of the first site of each piece, and the number of sites, (p + 1,)."""
        return np.concatenate([[0], np.cumsum(self.end - self.start)])

    def __len__(self) -> int:
        """Return the number of sites."""
        return int(self.first_row[-1])

    def sites(self) -> Indices:
        """Return the ascending sites (n,)."""
        if len(self.start) == 1:
            return np.arange(self.start[0], self.end[0])
        return expanded(self.start, self.end)

    def rows_of(self, sites: npt.NDArray[np.integer[Any]]) -> Ranks:
        """Return the rows of `sites` (m,), -1 for those of other ranks and for the site -1."""
        if not len(self.start):
            return np.full(len(sites), -1, np.int32)
        piece = np.maximum(np.searchsorted(self.start, sites, side="right") - 1, 0)
        offset = sites - self.start[piece]
        inside = (offset >= 0) & (sites < self.end[piece])
        return np.where(inside, self.first_row[piece] + offset, -1).astype(np.int32)

    def among(self, ascending: Indices) -> Indices:
        """Return the indices in the `ascending` sites (m,) of those of this rank."""
        return expanded(np.searchsorted(ascending, self.start), np.searchsorted(ascending, self.end))

    def of(self, rows: SiteRows) -> SiteRows:
        """Return these sites of `rows` as runs."""
        start, length, run = rows.split(np.concatenate([self.start, self.end]))
        piece = np.searchsorted(self.start, start, side="right") - 1
        used = np.flatnonzero((piece >= 0) & (start < self.end[piece])) if len(self.start) else np.zeros(0, np.int64)
        return rows.chosen(start[used], length[used], run[used])
