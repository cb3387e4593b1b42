# SPDX-License-Identifier: BSD-3-Clause
"""Sites of other ranks: their bricks, the fluid next to owned sites, and the halo of velocities (decision 19)."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.region import Region
from seiche.kernels.registry.ibm import BRICK
from seiche.kernels.registry.resident import MAX_RANKS

Keys = npt.NDArray[np.int64]

#: Maximum distance between two sites of a stencil along an axis.
_REACH = 3
#: Number of points in each of the boxes that are searched for the halo of velocities.
_SLAB = 1 << 25
#: Number of sites processed at a time.
_CHUNK = 1 << 20


class Territory:
    """Bricks of all ranks, by their keys in a box that is extended by one brick along each axis.

    `sets` (box) is, for each brick, the number of the set of ranks that have sites in it, -1 without sites. `ranks`
    (sets, words) are these sets as bits, and `homes` (sets,) are the ranks with the most sites of a brick. `needed` are
    the keys of the bricks whose fluid mask this rank needs.
    """

    def __init__(self, region: Region, world: World) -> None:
        """Gather the bricks of all ranks (collective).

        Raises:
            CaseError: there are too many ranks.
        """
        if world.size > MAX_RANKS:
            raise CaseError(f"cells in flow on {world.size} ranks: the maximum is {MAX_RANKS} ranks")
        self.region, self.shape = region, region.sites.shape
        self.extent = np.array([-(-extent // BRICK) for extent in self.shape])
        own_keys, counts = np.unique(self.key(region.coords // BRICK), return_counts=True)
        keys_of, counts_of = zip(*world.allgather((own_keys, counts)), strict=True)
        self.words = -(-world.size // 32)
        ranks = np.repeat(np.arange(world.size), [len(keys) for keys in keys_of])
        sites = np.concatenate(counts_of)
        bricks, row = np.unique(np.concatenate(keys_of), return_inverse=True)
        bits = np.zeros((len(bricks), self.words), np.uint32)
        np.bitwise_or.at(bits, (row, ranks // 32), np.uint32(1) << (ranks % 32).astype(np.uint32))
        order = np.lexsort(
            (-ranks, sites)
        )  # the last assignment is retained: the rank with most sites, then the lowest rank
        largest_share = np.zeros(len(bricks), np.int64)
        largest_share[row[order]] = ranks[order]
        sets, number = np.unique(np.column_stack([bits, largest_share]), axis=0, return_inverse=True)
        self.ranks = np.ascontiguousarray(sets[:, :-1].astype(np.uint32))
        self.homes = sets[:, -1].astype(np.int32)
        self.sets = np.full(int(np.prod(self.extent + 1)), -1, np.int32)
        self.sets[bricks] = number.reshape(-1)
        self.needed = self._around(own_keys)

    def key(self, brick: npt.NDArray[np.int64]) -> Keys:
        """Return the keys of bricks (n, 3), with x as the fastest index."""
        along_x, along_y = self.extent[0] + 1, self.extent[1] + 1
        return np.asarray((brick[:, 2] * along_y + brick[:, 1]) * along_x + brick[:, 0], np.int64)

    def brick_coordinates(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the coordinates (n, 3) of the bricks with these keys."""
        row, x = np.divmod(keys, self.extent[0] + 1)
        z, y = np.divmod(row, self.extent[1] + 1)
        return np.stack([x, y, z], axis=1)

    def home(self, centers: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """Return the rank of the brick that contains each point (n, 3); -1 if the brick has no site."""
        sites = np.floor(centers + 0.5).astype(np.int64)
        inside = np.ones(len(sites), bool)
        for axis, extent in enumerate(self.shape):
            if self.region.sites.periodic[axis]:
                sites[:, axis] %= extent
            inside &= (sites[:, axis] >= 0) & (sites[:, axis] < extent)
        number = np.full(len(sites), -1, np.int32)
        number[inside] = self.sets[self.key(sites[inside] // BRICK)]
        return np.where(number >= 0, self.homes[number], np.int32(-1))

    def _around(self, own_keys: Keys) -> Keys:
        """Return the keys of the bricks in reach of a stencil that has a site in one of the bricks `own_keys`."""
        bricks_of_keys, columns = self.brick_coordinates(own_keys), []
        for axis, extent in enumerate(self.shape):
            begin = bricks_of_keys[:, axis] * BRICK
            points = begin[:, None] + np.arange(-_REACH, BRICK + _REACH)
            is_outside = points >= np.minimum(begin + BRICK, extent)[:, None] + _REACH
            points = np.where(is_outside, begin[:, None], points)
            periodic = self.region.sites.periodic[axis]
            points = points % extent if periodic else np.clip(points, 0, extent - 1)
            bricks = np.sort(points // BRICK, axis=1)
            # Only columns that differ from the previous column in some row.
            differs = np.concatenate([[True], (bricks[:, 1:] != bricks[:, :-1]).any(axis=0)])
            columns.append(list(bricks[:, differs].T))
        keys = np.unique(np.concatenate([self.key(np.stack(xyz, axis=1)) for xyz in product(*columns)]))
        return np.asarray(keys[self.sets[keys] >= 0])

    def fluid(self, rows: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.uint8]:
        """Return the fluid mask (count, 512) of bricks; `rows` (box) are the rows by key, -1 for other bricks."""
        fluid = np.zeros((count, BRICK**3), np.uint8)
        coords = self.region.sites.coords
        needed = np.asarray((rows.reshape(self.extent[::-1] + 1) >= 0).any(axis=(0, 1)))
        for begin in range(0, len(coords), _CHUNK):
            chunk = coords[begin : begin + _CHUNK]
            if not needed[
                chunk[0, 0] // BRICK : chunk[-1, 0] // BRICK + 1
            ].any():  # sites are sorted along the first axis
                continue
            brick, inside = np.divmod(chunk.astype(np.int64), BRICK)
            row = rows[self.key(brick)]
            listed = row >= 0
            lane = inside[:, 0] + BRICK * (inside[:, 1] + BRICK * inside[:, 2])
            fluid[row[listed], lane[listed]] = 1
        return fluid


def halo_sites(region: Region, support: int) -> npt.NDArray[np.int64]:
    """Return the ascending global numbers of the sites of other ranks whose velocity this rank needs.

    A vertex is interpolated on the rank of the fluid site closest to it. The other sites are within support // 2 sites
    of this site, or support - 1 if an adjacent site without fluid is closer to the vertex.
    """
    if not len(region.owned):
        return np.zeros(0, np.int64)
    reach, pad = support - 1, support
    low, high = region.coords.min(axis=0) - reach, region.coords.max(axis=0) + reach + 1
    area = int(np.prod(high[1:] - low[1:] + 2 * pad))
    thickness, site_lists = max(_SLAB // area, 1), [np.zeros(0, np.int64)]
    for begin in range(int(low[0]), int(high[0]), thickness):
        first = np.array([begin, low[1], low[2]]) - pad
        last = np.array([min(begin + thickness, int(high[0])), high[1], high[2]]) + pad
        table = _table(region.sites, first, last - first)
        fluid = table >= 0
        owned = fluid & (region.owner[np.where(fluid, table, 0)] == region.rank)
        at_wall = owned & _dilated(~fluid, 1)
        halo = (_dilated(owned, support // 2) | _dilated(at_wall, reach)) & fluid & ~owned
        halo[:pad], halo[len(halo) - pad :] = False, False
        site_lists.append(np.unique(table[halo]).astype(np.int64))
    return np.unique(np.concatenate(site_lists))


def _table(sites: SiteSet, low: npt.NDArray[np.int64], extent: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the site at each point of a box, with periodic images; -1 if there is none."""
    table = np.full(tuple(int(n) for n in extent), -1, np.int32)
    shape = np.array(sites.shape)
    for image in product(*(range(-2, 3) if periodic else range(1) for periodic in sites.periodic)):
        shift = np.array(image) * shape
        if np.any(shift >= low + extent) or np.any(shift + shape <= low):
            continue
        x = low[0] - shift[0]
        begin, end = np.searchsorted(sites.coords[:, 0], [x, x + extent[0]])
        for first in range(int(begin), int(end), _CHUNK):
            chunk = sites.coords[first : min(first + _CHUNK, int(end))]
            flat_index, is_inside = np.zeros(len(chunk), np.int64), np.ones(len(chunk), bool)
            for axis, length in enumerate(extent):
                coordinate = chunk[:, axis] + (shift[axis] - low[axis])
                is_inside &= (coordinate >= 0) & (coordinate < length)
                flat_index = flat_index * length + coordinate
            rows = np.flatnonzero(is_inside)
            table.reshape(-1)[flat_index[rows]] = first + rows
    return table


def _dilated(mask: npt.NDArray[np.bool_], reach: int) -> npt.NDArray[np.bool_]:
    """Return the mask dilated by a cube with an edge of 2 `reach` + 1 points."""
    for axis in range(3):
        source, mask = np.moveaxis(mask, axis, 0), mask.copy()
        target = np.moveaxis(mask, axis, 0)
        for step in range(1, reach + 1):
            target[step:] |= source[:-step]
            target[:-step] |= source[step:]
    return mask
