# SPDX-License-Identifier: BSD-3-Clause
"""What a rank knows of others' sites: their bricks, fluid beside its own, velocities that it needs (decision 19)."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.region import Region
from seiche.kernels.registry.held import MOST_RANKS
from seiche.kernels.registry.ibm import BRICK

Keys = npt.NDArray[np.int64]

#: Sites by which a stencil may reach beyond one that it contains.
_REACH = 3
#: Cells of the boxes in which the halo of velocities is looked for.
_SLAB = 1 << 25
_CHUNK = 1 << 20


class Territory:
    """The bricks of all ranks, by their keys in a box that has one brick more along each axis.

    `sets` (box) numbers the sets of ranks that have sites in a brick, -1 where there are none; `ranks` (sets, words)
    are these sets as bits and `homes` (sets,) the rank with most of a brick's sites. `known` are the keys of the bricks
    of which this rank must know what is fluid.
    """

    def __init__(self, region: Region, world: World) -> None:
        """Bring the ranks' bricks together (collective).

        Raises:
            CaseError: more ranks than sets of them have room for.
        """
        if world.size > MOST_RANKS:
            raise CaseError(f"cells in flow on {world.size} ranks: at most {MOST_RANKS} are possible")
        self.region, self.shape = region, region.sites.shape
        self.extent = np.array([-(-extent // BRICK) for extent in self.shape])
        own, counts = np.unique(self.key(region.coords // BRICK), return_counts=True)
        parts = world.allgather((own, counts))
        self.words = -(-world.size // 32)
        keys = np.concatenate([part[0] for part in parts])
        ranks = np.repeat(np.arange(world.size), [len(part[0]) for part in parts])
        sites = np.concatenate([part[1] for part in parts])
        bricks, row = np.unique(keys, return_inverse=True)
        bits = np.zeros((len(bricks), self.words), np.uint32)
        np.bitwise_or.at(bits, (row, ranks // 32), np.uint32(1) << (ranks % 32).astype(np.uint32))
        order = np.lexsort((-ranks, sites))  # the last one counts: most sites, the lowest rank among equals
        most = np.zeros(len(bricks), np.int64)
        most[row[order]] = ranks[order]
        found, number = np.unique(np.column_stack([bits, most]), axis=0, return_inverse=True)
        self.ranks = np.ascontiguousarray(found[:, :-1].astype(np.uint32))
        self.homes = found[:, -1].astype(np.int32)
        self.sets = np.full(int(np.prod(self.extent + 1)), -1, np.int32)
        self.sets[bricks] = number.reshape(-1)
        self.known = self._around(own)

    def key(self, brick: npt.NDArray[np.int64]) -> Keys:
        """Return the keys of bricks (n, 3), x fastest."""
        along_x, along_y = self.extent[0] + 1, self.extent[1] + 1
        return np.asarray((brick[:, 2] * along_y + brick[:, 1]) * along_x + brick[:, 0], np.int64)

    def place(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the bricks (n, 3) of keys."""
        rest, x = np.divmod(keys, self.extent[0] + 1)
        return np.stack([x, rest % (self.extent[1] + 1), rest // (self.extent[1] + 1)], axis=1)

    def home(self, centers: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """Return the ranks where points (n, 3) are, -1 where there is no site."""
        sites = np.floor(centers + 0.5).astype(np.int64)
        inside = np.ones(len(sites), bool)
        for axis, extent in enumerate(self.shape):
            if self.region.sites.periodic[axis]:
                sites[:, axis] %= extent
            inside &= (sites[:, axis] >= 0) & (sites[:, axis] < extent)
        number = np.full(len(sites), -1, np.int32)
        number[inside] = self.sets[self.key(sites[inside] // BRICK)]
        return np.where(number >= 0, self.homes[number], np.int32(-1))

    def _around(self, own: Keys) -> Keys:
        """Return the keys of bricks with sites that a stencil with a site in one of the bricks `own` may have."""
        place, columns = self.place(own), []
        for axis, extent in enumerate(self.shape):
            begin = place[:, axis] * BRICK
            reached = begin[:, None] + np.arange(-_REACH, BRICK + _REACH)
            beyond = reached >= np.minimum(begin + BRICK, extent)[:, None] + _REACH
            reached = np.where(beyond, begin[:, None], reached)
            if self.region.sites.periodic[axis]:
                reached = reached % extent
            else:
                reached = np.clip(reached, 0, extent - 1)
            columns.append(np.sort(reached // BRICK, axis=1))
        # A few different bricks along an axis: the first, the last and those between them.
        several = [np.stack([column[:, k] for k in _distinct(column)], axis=1) for column in columns]
        found = [self.key(np.stack([x, y, z], axis=1)) for x, y, z in product(*(list(column.T) for column in several))]
        keys = np.unique(np.concatenate(found))
        return np.asarray(keys[self.sets[keys] >= 0])

    def fluid(self, rows: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.uint8]:
        """Return what is fluid in `count` bricks, (count, 512), whose rows are found by their keys (-1: not wanted)."""
        fluid = np.zeros((count, BRICK**3), np.uint8)
        coords = self.region.sites.coords
        wanted = np.asarray((rows.reshape(self.extent[::-1] + 1) >= 0).any(axis=(0, 1)))
        for begin in range(0, len(coords), _CHUNK):
            part = coords[begin : begin + _CHUNK]
            if not wanted[part[0, 0] // BRICK : part[-1, 0] // BRICK + 1].any():  # sites ascend along the first axis
                continue
            brick, inside = np.divmod(part.astype(np.int64), BRICK)
            row = rows[self.key(brick)]
            here = row >= 0
            lane = inside[:, 0] + BRICK * (inside[:, 1] + BRICK * inside[:, 2])
            fluid[row[here], lane[here]] = 1
        return fluid


def _distinct(column: npt.NDArray[np.int64]) -> list[int]:
    """Return the columns in which some row of a sorted array has another number than before."""
    changes = (column[:, 1:] != column[:, :-1]).any(axis=0)
    return [0, *(np.flatnonzero(changes) + 1).tolist()]


def halo_sites(region: Region, support: int) -> npt.NDArray[np.int64]:
    """Return the sites of other ranks whose velocity this rank needs, ascending global numbers.

    A vertex is interpolated where the fluid site closest to it is: the others lie support // 2 sites from it at most,
    or support - 1 if the closest site of the lattice is no fluid, which then lies beside the closest fluid site.
    """
    if not len(region.owned):
        return np.zeros(0, np.int64)
    reach, pad = support - 1, support
    low, high = region.coords.min(axis=0) - reach, region.coords.max(axis=0) + reach + 1
    area = int(np.prod(high[1:] - low[1:] + 2 * pad))
    thick, parts = max(_SLAB // area, 1), [np.zeros(0, np.int64)]
    for begin in range(int(low[0]), int(high[0]), thick):
        first = np.array([begin, low[1], low[2]]) - pad
        last = np.array([min(begin + thick, int(high[0])), high[1], high[2]]) + pad
        table = _table(region.sites, first, last - first)
        fluid = table >= 0
        owned = fluid & (region.owner[np.where(fluid, table, 0)] == region.rank)
        beside = owned & _spread(~fluid, 1)
        wanted = (_spread(owned, support // 2) | _spread(beside, reach)) & fluid & ~owned
        wanted[:pad], wanted[len(wanted) - pad :] = False, False
        parts.append(np.unique(table[wanted]).astype(np.int64))
    return np.unique(np.concatenate(parts))


def _table(sites: SiteSet, low: npt.NDArray[np.int64], extent: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the site at every place of a box, -1 where there is none; periodic sides go on."""
    table = np.full(tuple(int(n) for n in extent), -1, np.int32)
    shape = np.array(sites.shape)
    turns = [range(-2, 3) if periodic else range(1) for periodic in sites.periodic]
    for turn in product(*turns):
        shift = np.array(turn) * shape
        if np.any(shift >= low + extent) or np.any(shift + shape <= low):
            continue
        x = low[0] - shift[0]
        begin, end = np.searchsorted(sites.coords[:, 0], [x, x + extent[0]])
        for first in range(int(begin), int(end), _CHUNK):
            part = sites.coords[first : min(first + _CHUNK, int(end))]
            place, inside = np.zeros(len(part), np.int64), np.ones(len(part), bool)
            for axis, length in enumerate(extent):
                along = part[:, axis] + (shift[axis] - low[axis])
                inside &= (along >= 0) & (along < length)
                place = place * length + along
            here = np.flatnonzero(inside)
            table.reshape(-1)[place[here]] = first + here
    return table


def _spread(mask: npt.NDArray[np.bool_], reach: int) -> npt.NDArray[np.bool_]:
    """Return which places of a box have one of `mask` within `reach` along every axis."""
    for axis in range(3):
        source, mask = np.moveaxis(mask, axis, 0), mask.copy()
        target = np.moveaxis(mask, axis, 0)
        for step in range(1, reach + 1):
            target[step:] |= source[:-step]
            target[:-step] |= source[step:]
    return mask
