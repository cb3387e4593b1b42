# SPDX-License-Identifier: BSD-3-Clause
"""Sites of a lattice as runs along z, which take far less memory than their coordinates.

A run is a sequence of sites (x, y, z), (x, y, z + 1) ...; a row is all sites with the same x and y. Sites are numbered
in ascending order of (x, y, z).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.set_up_ranks import joined, set_up_world
from seiche.kernels.registry import sites as registry

Indices = npt.NDArray[np.int64]
Coords = npt.NDArray[np.int32]
Triple = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class SiteRows:
    """Sites inside the box `shape`, with links that wrap along the `periodic` axes.

    - `row` (r,) int64: row x ny + y of each run, ascending
    - `begin`, `end` (r,) int32: first z of each run, and the z after its last one
    """

    shape: Triple
    periodic: tuple[bool, bool, bool]
    row: Indices
    begin: Coords
    end: Coords

    @staticmethod
    def of_runs(
        shape: Triple, periodic: tuple[bool, bool, bool], row: Indices, begin: npt.NDArray[Any], end: npt.NDArray[Any]
    ) -> SiteRows:
        """Return the sites of the runs in the ascending rows `row` (r,)."""
        rows = np.asarray(row, np.int64)
        return SiteRows(shape, periodic, rows, np.asarray(begin, np.int32), np.asarray(end, np.int32))

    @staticmethod
    def of_coords(shape: Triple, periodic: tuple[bool, bool, bool], coords: Coords) -> SiteRows:
        """Return the sites at `coords` (n, 3), ascending and inside `shape`."""
        blocks = -(-len(coords) // registry.BLOCK)
        counts, common = np.zeros(blocks, np.int32), {"coords": np.ascontiguousarray(coords), "count": len(coords)}
        run_pass(registry.run_starts(fill=False), blocks, first=None, counts=counts, starts=None, **common)
        first = offsets(counts)
        start = np.empty(first[-1], np.int64)
        run_pass(registry.run_starts(fill=True), blocks, first=first, counts=None, starts=start, **common)
        length = np.diff(start, append=len(coords))
        x, y, z = (coords[start, axis].astype(np.int64) for axis in range(3))
        return SiteRows.of_runs(shape, periodic, x * shape[1] + y, z, z + length)

    @staticmethod
    def merged(parts: Sequence[SiteRows]) -> SiteRows:
        """Return the sites of all `parts` of one box; each part comes after the previous ones."""
        shape, periodic = parts[0].shape, parts[0].periodic
        arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "begin", "end")]
        return SiteRows.of_runs(shape, periodic, arrays[0], arrays[1], arrays[2])

    @cached_property
    def site(self) -> Indices:
        """Return the first site of each run, and the number of sites, (r + 1,)."""
        return offsets(self.end - self.begin)

    @cached_property
    def first(self) -> Indices:
        """Return the first run of each row of the box, and the number of runs, (nx ny + 1,).

        The sites of one rank do without it, because it may be much larger than they are.
        """
        return offsets(np.bincount(self.row, minlength=self.shape[0] * self.shape[1]))

    @cached_property
    def _first_nodes(self) -> Indices:
        """Return the linear index of the first node of each run (r,)."""
        return self.row * self.shape[2] + self.begin

    def __len__(self) -> int:
        """Return the number of sites."""
        return int(self.site[-1])

    @property
    def members(self) -> dict[str, Any]:
        """Return the arguments of kernels."""
        return {**members_of_runs(self), "first": self.first}

    def coords(self, low: Triple = (0, 0, 0)) -> Coords:
        """Return the coordinates (n, 3) of all sites, minus `low`."""
        out = np.empty((len(self), 3), np.int32)
        run_pass(registry.run_coords(), len(self.begin), rows=self.members, low=low, out=out)
        return out

    def run_of(self, sites: Indices) -> Indices:
        """Return the run of each of `sites`."""
        return np.searchsorted(self.site, sites, side="right") - 1

    def coords_of(self, sites: Indices, run: Indices | None = None) -> Indices:
        """Return the coordinates (p, 3) of `sites` (p,), whose runs are `run`."""
        number = self.run_of(sites) if run is None else run
        x, y = np.divmod(self.row[number], self.shape[1])
        return np.stack([x, y, self.begin[number] + (sites - self.site[number])], axis=1)

    def neighbours(self, vector: npt.NDArray[Any], own_rows: SiteRows) -> Coords:
        """Return the site (n,) at x + `vector` for all sites x of `own_rows`, -1 where there is none; links wrap."""
        out, step = np.empty(len(own_rows), np.int32), tuple(int(value) for value in vector)
        members = {"own": members_of_runs(own_rows), "all": self.members, "vector": step, "out": out}
        run_pass(registry.run_neighbours(), len(own_rows.begin), **members)
        return out

    def find(self, coords: Indices, *, wrap: bool = False) -> Indices:
        """Return the site at each of `coords` (p, 3), -1 where there is none; with `wrap`, periodic axes repeat."""
        if not len(self.begin):
            return np.full(len(coords), -1, np.int64)
        if wrap:
            extent = np.where(self.periodic, self.shape, np.iinfo(np.int64).max)
            coords = np.where(self.periodic, coords % extent, coords)
        inside = np.all((coords >= 0) & (coords < np.array(self.shape)), axis=1)
        x, y, z = np.where(inside[:, None], coords, 0).T
        run = np.searchsorted(self._first_nodes, (x * self.shape[1] + y) * self.shape[2] + z, side="right") - 1
        inside &= (run >= 0) & (self.row[run] == x * self.shape[1] + y)
        inside &= z < self.end[run]
        return np.where(inside, self.site[run] + (z - self.begin[run]), -1)

    def bounds(self) -> tuple[Triple, Triple]:
        """Return the lowest and the highest coordinates of the sites; there must be one."""
        x, y = np.divmod(self.row, self.shape[1])
        low, high = (x[0], y.min(), self.begin.min()), (x[-1], y.max(), self.end.max() - 1)
        return (int(low[0]), int(low[1]), int(low[2])), (int(high[0]), int(high[1]), int(high[2]))

    def in_box(self, low: Indices, high: Indices) -> tuple[Indices, Indices]:
        """Return the ascending sites (p,) from `low` to `high` (3,), both included, and their coordinates (p, 3)."""
        low, high = np.maximum(low, 0), np.minimum(high, np.array(self.shape) - 1)
        if np.any(high < low):
            return np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
        x, y = np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)
        rows = (x[:, None] * self.shape[1] + y).reshape(-1)
        run = expanded(self.first[rows], self.first[rows + 1])
        begin, end = np.maximum(self.begin[run], low[2]), np.minimum(self.end[run], high[2] + 1)
        used = np.flatnonzero(begin < end)
        run, begin, end = run[used], begin[used].astype(np.int64), end[used].astype(np.int64)
        start = self.site[run] + (begin - self.begin[run])
        sites = expanded(start, start + (end - begin))
        return sites, self.coords_of(sites, np.repeat(run, end - begin))

    def segments(self, edge: int, runs: Indices | None = None) -> tuple[Indices, Indices]:
        """Return the parts of runs in cubes of `edge`^3 nodes: the cube (s, 3) and the first site (s,) of each.

        `runs` are the runs to divide, all by default.
        """
        chosen = np.arange(len(self.begin)) if runs is None else runs
        low, high = self.begin[chosen] // edge, (self.end[chosen] - 1) // edge + 1
        run, z = np.repeat(chosen, high - low), expanded(low.astype(np.int64), high.astype(np.int64))
        x, y = np.divmod(self.row[run], self.shape[1])
        site = self.site[run] + np.maximum(z * edge - self.begin[run], 0)
        return np.stack([x // edge, y // edge, z], axis=1), site

    def split(self, positions: Indices) -> tuple[Indices, Indices, Indices]:
        """Return the runs, divided before the sites `positions`: first site, number of sites and original run."""
        start = np.union1d(self.site[:-1], positions[positions < len(self)])
        return start, np.diff(start, append=len(self)), self.run_of(start)

    def chosen(self, start: Indices, length: Indices, run: Indices) -> SiteRows:
        """Return the sites of the ascending pieces of runs of `split`; adjacent pieces are joined."""
        begin = self.begin[run] + (start - self.site[run])
        begins = np.ones(len(start), bool)
        begins[1:] = (run[1:] != run[:-1]) | (start[1:] != start[:-1] + length[:-1])
        last = np.append(begins[1:], True)[: len(start)]
        return self.of_runs(self.shape, self.periodic, self.row[run[begins]], begin[begins], (begin + length)[last])

    def without(self, sites: Indices) -> SiteRows:
        """Return the rows without the ascending `sites`."""
        if not len(sites):
            return self
        start, length, run = self.split(np.concatenate([sites, sites + 1]))
        is_kept = np.ones(len(start), bool)
        is_kept[np.searchsorted(start, sites)] = False
        return self.chosen(start[is_kept], length[is_kept], run[is_kept])

    def moved(self, low: Triple, shape: Triple) -> SiteRows:
        """Return the same sites in a box of `shape` whose first node is at `low`."""
        x, y = np.divmod(self.row, self.shape[1])
        row = (x - low[0]) * shape[1] + (y - low[1])
        return self.of_runs(shape, self.periodic, row, self.begin - low[2], self.end - low[2])

    def incomplete(self, of: range | None = None) -> tuple[Indices, npt.NDArray[np.uint32]]:
        """Return the ascending sites (m,) with absent neighbours, and the bits of their absent links (m,).

        `of` selects the sites of some runs.
        """
        runs, rows = range(len(self.begin)) if of is None else of, self.members
        counts = np.zeros(len(self.begin), np.int64)
        run_pass(registry.absent_links(fill=False), runs, rows=rows, first=None, counts=counts, sites=None, links=None)
        first = offsets(counts)
        sites, links = np.empty(first[-1], np.int64), np.empty(first[-1], np.uint32)
        run_pass(registry.absent_links(fill=True), runs, rows=rows, first=first, counts=None, sites=sites, links=links)
        return sites, links

    def touching(self, vector: npt.NDArray[Any], start: Indices, length: Indices, run: Indices) -> tuple[Indices, ...]:
        """Return the pairs of pieces of runs that links along `vector` connect, and the numbers of these links.

        `start`, `length` and `run` are the pieces of `split`. Links do not wrap.
        """
        strides = np.array([(self.shape[1] + 2) * (self.shape[2] + 2), self.shape[2] + 2, 1], np.int64)
        begin = (self.coords_of(start, run) + 1) @ strides
        end = begin + length
        step = int(vector.astype(np.int64) @ strides)
        low = np.searchsorted(end, begin + step, side="right")
        high = np.searchsorted(begin, end + step, side="left")
        piece = np.repeat(np.arange(len(start)), np.maximum(high - low, 0))
        other = expanded(low, np.maximum(high, low))
        links = np.minimum(end[piece] + step, end[other]) - np.maximum(begin[piece] + step, begin[other])
        return piece, other, links


def rows_of(shape: Triple, periodic: tuple[bool, bool, bool], first: Indices, begin: Coords, end: Coords) -> SiteRows:
    """Return the sites of runs of which `first` (nx ny + 1,) are the first ones of all rows, and their number."""
    return SiteRows(shape, periodic, np.repeat(np.arange(len(first) - 1), np.diff(first)), begin, end)


def members_of_runs(rows: SiteRows) -> dict[str, Any]:
    """Return the arguments of kernels that visit runs and find none by its row."""
    arrays = {"begin": rows.begin, "end": rows.end, "site": rows.site, "row": rows.row}
    return {"first": None, **arrays, "shape": rows.shape, "periodic": rows.periodic}


def part_of(rows: SiteRows, runs: range) -> SiteRows:
    """Return the sites of some consecutive runs, numbered from 0."""
    own = slice(runs.start, runs.stop)
    return SiteRows(rows.shape, rows.periodic, rows.row[own], rows.begin[own], rows.end[own])


def joined_rows(part: SiteRows) -> SiteRows:
    """Return the sites of all ranks; those of a rank come after those of the ranks before it (collective)."""
    if set_up_world().size == 1:
        return part
    row, begin, end = (joined(array) for array in (part.row, part.begin, part.end))
    return SiteRows.of_runs(part.shape, part.periodic, row, begin, end)


def runs_in_columns(rows: SiteRows, columns: Indices, edge: int) -> Indices:
    """Return the ascending runs (r,) in the columns of cubes of `edge`^3 nodes; `columns` (c, 2) are distinct."""
    offset = np.arange(edge)
    x, y = (edge * columns[:, axis, None] + offset for axis in range(2))
    is_inside = (x < rows.shape[0])[:, :, None] & (y < rows.shape[1])[:, None]
    row = np.sort((x[:, :, None] * rows.shape[1] + y[:, None])[is_inside])
    return expanded(rows.first[row], rows.first[row + 1])


def distinct_numbers(values: npt.NDArray[np.integer[Any]]) -> Indices:
    """Return the distinct `values` (n,), ascending, by sorting: several times faster than the hash table of NumPy."""
    ordered = np.sort(values, axis=None)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[is_first])


def expanded(first: Indices, end: Indices) -> Indices:
    """Return the concatenated ranges first[i] ... end[i] - 1."""
    counts = end - first
    total = offsets(counts)
    return np.repeat(first - total[:-1], counts) + np.arange(total[-1])
