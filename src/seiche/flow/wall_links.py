# SPDX-License-Identifier: BSD-3-Clause
"""Links of interpolated and moving walls: wall points, interpolation weights and momentum terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.domain.world import World, raise_together
from seiche.errors import CaseError
from seiche.flow.model import MovingWall, Walls
from seiche.flow.region import Region
from seiche.flow.velocity_set import CS2

#: Maximum Mach number of a wall, since the equilibrium is an expansion in the Mach number.
MAX_MACH = 0.3
#: Tolerance for wall points in spacings, since link fractions are stored in single precision.
ROUNDING = 1e-6

Floats = npt.NDArray[np.float64]


def wall_points(sites: SiteSet, rows: npt.NDArray[np.int64], links: npt.NDArray[np.int64]) -> Floats:
    """Return the points where links meet the wall, (p, 3), in spacings from the coordinate origin of the geometry.

    `rows` (p,) are rows of the boundary arrays, `links` (p,) rows of `LINK_VECTORS`. Points beyond a periodic plane are
    mapped to the opposite side of the box, so that patches need not extend beyond the box.
    """
    first = np.asarray(sites.origin) / sites.spacing
    points = (
        first + sites.coords[sites.boundary[rows]] + sites.link_fraction[rows, links][:, None] * LINK_VECTORS[links]
    )
    for axis in np.flatnonzero(sites.periodic):
        offset = points[:, axis] - first[axis] + 0.5
        is_outside = (offset < -ROUNDING) | (offset > sites.shape[axis] + ROUNDING)
        points[is_outside, axis] -= (np.floor(offset / sites.shape[axis]) * sites.shape[axis])[is_outside]
    return np.asarray(points, np.float64)


def velocity_at(wall: MovingWall, points: Floats) -> Floats:
    """Return the velocity (p, 3) of `wall` at `points` (p, 3)."""
    return np.asarray(np.array(wall.velocity) + np.cross(np.array(wall.rotation), points - np.array(wall.center)))


def patches_of(walls: Sequence[MovingWall], points: Floats) -> npt.NDArray[np.int64]:
    """Return the number of the moving wall at each of `points` (p, 3), -1 at rest; CaseError if two walls overlap."""
    number = np.full(len(points), -1, np.int64)
    for k, wall in enumerate(walls):
        selected = np.ones(len(points), bool) if wall.patch is None else np.asarray(wall.patch(points), bool)
        overlapping = np.flatnonzero(selected & (number >= 0))
        if len(overlapping):
            coordinates = ", ".join(f"{value:.4g}" for value in points[overlapping[0]])
            names = f"{walls[number[overlapping[0]]].name!r} and {wall.name!r}"
            raise CaseError(f"moving walls {names} overlap at ({coordinates}) spacings")
        number[selected] = k
    return number


def check_moving(walls: Sequence[MovingWall], counts: npt.NDArray[np.int64], speeds: Floats) -> None:
    """Raise CaseError for walls that have no link or are too fast, from their link `counts` and maximum `speeds`."""
    for wall, count, speed in zip(walls, counts, speeds, strict=True):
        if not count:
            raise CaseError(f"moving wall {wall.name!r}: its patch contains no wall link")
        if not speed <= MAX_MACH * CS2**0.5:
            mach = f"{speed:.3g} sites/step is Mach {speed / CS2**0.5:.3g}"
            raise CaseError(f"moving wall {wall.name!r}: {mach}, out of range (<= {MAX_MACH})")


@dataclass(frozen=True)
class WallLinks:
    """Wall links of a rank: site, direction, weight of eqs. 36 and 37 (`weight`) and wall term of eq. 38 (`wall_term`).

    All arrays have the shape (p,); `row` is in the region. The second population of the interpolation is the incoming
    one along the link if `arrives` is set (wall before the midpoint); it is not used if `halfway` is set; an iolet
    replaces it after the collision if `after_iolets` is set. The first `interior` links need no data from other ranks.
    They are processed before any sweep, since the odd step of an in-place layout overwrites outgoing populations of
    neighbours. `component` is the fluid component of the site.
    """

    row: npt.NDArray[np.int64]
    q: npt.NDArray[np.int64]
    weight: Floats
    wall_term: Floats
    arrives: npt.NDArray[np.bool_]
    halfway: npt.NDArray[np.bool_]
    after_iolets: npt.NDArray[np.bool_]
    component: npt.NDArray[np.int64]
    interior: int

    def chosen(self, selection: npt.NDArray[np.bool_], item: npt.NDArray[np.int64], interior: int) -> WallLinks:
        """Return the links in `selection`, sorted by component, direction and item.

        Those at rank boundaries are last.
        """
        rows = np.flatnonzero(selection)
        items = item[self.row[rows]]
        edge = self.arrives[rows] & (items >= interior)
        order = rows[np.lexsort((items, self.q[rows], self.component[rows], edge))]
        arrays = {name: values[order] for name, values in vars(self).items() if name != "interior"}
        return WallLinks(**arrays, interior=int(np.count_nonzero(~edge)))


def links_of(
    region: Region, walls: Walls, world: World, component: npt.NDArray[np.int64]
) -> tuple[WallLinks, npt.NDArray[np.bool_]]:
    """Return all wall links of the rank, unordered, and flags of moving ones.

    Raises CaseError on all ranks together.
    """
    sites, lattice = region.sites, region.velocity_set
    columns = lattice.link_rows
    boundary_row, direction = np.nonzero(sites.link_kind[region.boundary_rows][:, columns] == LinkKind.WALL)
    row, q, link = region.boundary_sites[boundary_row], direction + 1, columns[direction]
    halfway, rim = np.ones(len(row), bool), np.zeros(len(row), bool)
    fraction = np.full(len(row), 0.5)
    if walls.kind == "bouzidi":
        fraction = sites.link_fraction[region.boundary_rows[boundary_row], link].astype(np.float64)
        for k in range(1, lattice.Q):
            rows = np.flatnonzero(q == k)
            opposite = int(lattice.opposite[k])
            rim[rows] = sites.link_kind[region.boundary_rows[boundary_row[rows]], columns[opposite - 1]] > LinkKind.WALL
            halfway[rows] = (region.neighbour(opposite, row[rows]) < 0) & ~rim[rows]
        halfway |= fraction == 0.5
        rim &= ~halfway
    twice_fraction = np.where(halfway, 1.0, 2.0 * fraction)
    is_after_iolets = rim & (twice_fraction > 1.0)
    wall_term, number = np.zeros(len(row)), np.full(len(row), -1, np.int64)
    problem, speed = None, np.zeros(len(walls.moving))
    if walls.moving:
        points = wall_points(sites, region.boundary_rows[boundary_row], link)
        try:
            number = patches_of(walls.moving, points)
        except CaseError as error:
            problem = str(error)
        halfway |= is_after_iolets & (number >= 0)
        is_after_iolets &= ~halfway
        twice_fraction[halfway] = 1.0
        for k, wall in enumerate(walls.moving):
            rows = np.flatnonzero(number == k)
            velocity = velocity_at(wall, points[rows])
            wall_term[rows] = -6.0 * lattice.weights[q[rows]] * np.sum(velocity * lattice.vectors[q[rows]], axis=1)
            wall_term[rows] /= np.maximum(twice_fraction[rows], 1.0)
            speed[k] = np.sqrt(np.sum(velocity**2, axis=1).max(initial=0.0))
        raise_together(world, problem, CaseError)
        counts = world.allreduce_sum(np.bincount(number[number >= 0], minlength=len(walls.moving)))
        check_moving(walls.moving, counts, world.allreduce_max(np.where(np.isfinite(speed), speed, np.inf)))
    weight = np.where(twice_fraction < 1.0, twice_fraction, 1.0 / twice_fraction)
    return WallLinks(
        row, q, weight, wall_term, ~halfway & ~rim & (twice_fraction < 1.0), halfway, is_after_iolets, component[row], 0
    ), number >= 0
