# SPDX-License-Identifier: BSD-3-Clause
"""Sites of one rank, their cut links, and neighbours owned by other ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.site_owners import RankSites, SiteOwners
from seiche.domain.site_rows import SiteRows, members_of_runs
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.velocity_set import D3Q19, VelocitySet
from seiche.kernels.registry.sites import remote_links

#: Maximum number of sites of a rank, whose rows have 32 bits; those of a vessel have numbers of 64 bits.
MAX_SITES = (1 << 31) - 1


def check_parts(owner: SiteOwners) -> None:
    """Raise CaseError if a rank has more sites than its rows can number; the same on all ranks."""
    sites = np.zeros(int(owner.owner.max(initial=0)) + 1, np.int64)
    np.add.at(sites, owner.owner, owner.end - owner.start)
    if sites.max() > MAX_SITES:
        rank = int(sites.argmax())
        raise CaseError(
            f"rank {rank} has {sites[rank]} fluid sites, but a rank has at most {MAX_SITES}; use more ranks"
        )


@dataclass(frozen=True)
class Region:
    """The subdomain of rank `rank`; `owner` are the ranks of all sites."""

    sites: SiteSet
    owner: SiteOwners
    rank: int
    velocity_set: VelocitySet = D3Q19

    @cached_property
    def pieces(self) -> RankSites:
        """Return the sites of this rank as pieces of consecutive ones."""
        return self.owner.of_rank(self.rank)

    @cached_property
    def owned(self) -> npt.NDArray[np.int64]:
        """Return the global indices of this rank's sites."""
        return self.pieces.sites()

    @property
    def is_whole(self) -> bool:
        """Return whether this rank owns all sites."""
        return len(self.pieces) == len(self.sites)

    def rows_of(self, sites: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Return the rows in `owned` of the global `sites`; -1 for sites of other ranks and for the site -1."""
        return sites.astype(np.int32) if self.is_whole else self.pieces.rows_of(sites)

    @cached_property
    def coords(self) -> npt.NDArray[np.int64]:
        """Return the coordinates of the owned sites, shape (n, 3)."""
        return np.asarray(self.sites.coords[self.owned], np.int64)

    def coords_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the coordinates of the owned sites `rows` (m,), shape (m, 3)."""
        return np.asarray(self.sites.coords[self.owned[rows]], np.int64)

    @cached_property
    def boundary_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of the site set's boundary arrays that belong to owned sites."""
        return self.pieces.among(self.sites.boundary)

    @cached_property
    def boundary_sites(self) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites of `boundary_rows`."""
        return self.rows_of(self.sites.boundary[self.boundary_rows]).astype(np.int64)

    def cut_sites(self, q: int) -> npt.NDArray[np.int64]:
        """Return the rows in `owned` of the sites whose link along c_q (q = 1 ... Q - 1) is cut by a wall or iolet."""
        row = self.velocity_set.link_rows[q - 1]
        cut: npt.NDArray[np.bool_] = self.sites.link_kind[self.boundary_rows, row] != 0
        return np.asarray(self.boundary_sites[cut])

    def openings(self, world: World) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """Return the ascending rows (m,) of the owned sites with links through openings (collective).

        Also returns their numbers among such sites of all ranks, and the number of these.
        """
        iolet = self.sites.link_iolet[self.boundary_rows][:, self.velocity_set.link_rows]
        rows = self.boundary_sites[(iolet >= 0).any(axis=1)]
        own = self.owned[rows]
        of_all = np.sort(np.concatenate(world.allgather(own)))
        return rows, np.searchsorted(of_all, own), len(of_all)

    def neighbour(self, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the global sites at x + c_q for the owned sites `rows` (m,); -1 if it is cut or there is none."""
        neighbours = self.sites.rows.find(self.coords_of(rows) + self.velocity_set.vectors[q], wrap=True)
        cut = self.cut_sites(q)
        if len(cut):
            neighbours[is_among(rows, cut)] = -1
        return np.asarray(neighbours)

    def own_neighbour(self, q: int) -> npt.NDArray[np.int32]:
        """Return the rows of the sites at x + c_q for all owned sites (n,); -1 if there is none on this rank."""
        neighbours = self.own_rows.neighbours(self.velocity_set.vectors[q], self.own_rows)
        neighbours[self.cut_sites(q)] = -1
        return neighbours

    def remote_neighbour(self, q: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the ascending rows (m,) of the owned sites whose neighbour along c_q is on another rank, and these."""
        if self.is_whole:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        own_rows, pieces = self.own_rows, self.pieces
        counts, runs = np.zeros(len(own_rows.begin), np.int32), len(own_rows.begin)
        common = {
            "own": members_of_runs(own_rows), "all": self.sites.rows.members, "start": pieces.start, "end": pieces.end,
            "vector": tuple(int(value) for value in self.velocity_set.vectors[q]), "pieces": len(pieces.start),
        }  # fmt: skip
        run_pass(remote_links(fill=False), runs, first=None, counts=counts, rows=None, sites=None, **common)
        first = offsets(counts)
        rows, sites = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
        run_pass(remote_links(fill=True), runs, first=first, counts=None, rows=rows, sites=sites, **common)
        linked = ~is_among(rows, self.cut_sites(q))
        return rows[linked], sites[linked]

    @cached_property
    def own_rows(self) -> SiteRows:
        """Return the owned sites as runs along z."""
        return self.sites.rows if self.is_whole else self.pieces.of(self.sites.rows)


def is_among(rows: npt.NDArray[np.int64], ascending: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which of the numbers `rows` (m,) are in `ascending` (n,)."""
    if not len(ascending):
        return np.zeros(len(rows), bool)
    return np.asarray(ascending[np.minimum(np.searchsorted(ascending, rows), len(ascending) - 1)] == rows)
