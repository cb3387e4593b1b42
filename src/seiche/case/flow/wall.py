# SPDX-License-Identifier: BSD-3-Clause
"""Values on the vessel wall: a surface of triangles and the wall sites that each of them takes its value from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LinkKind, SiteSet
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.surface import Surface
    from seiche.domain.world import World

#: Wall sites that a triangle averages over: enough to hide the steps of the lattice, few enough to stay local.
NEIGHBOURS = 24
#: Width (standard deviation) in spacings of the average: half-way bounce-back makes the stress jump at lattice steps.
WIDTH = 1.5
#: Spacings over which the smoothed wall bends over the edge of an opening: cut away.
RIM = 1.5
#: Lattice points of the box in which the wall of a vessel without a surface is drawn.
MOST_POINTS = 400_000_000


def wall_surface(sites: SiteSet) -> Surface:
    """Return a smooth surface around `sites`, in metres, normals out of the fluid; open at the iolets.

    The indicator of the fluid is smoothed over about one site and contoured at one half.
    Raises CaseError when the box around the sites is too large for that.
    """
    import igl
    from scipy.ndimage import gaussian_filter

    from seiche.domain.surface import Surface

    low, high = sites.coords.min(0) - 3, sites.coords.max(0) + 4
    shape = tuple(int(n) for n in high - low)
    if np.prod(shape, dtype=np.float64) > MOST_POINTS:
        raise CaseError(f"the box of {shape} points around the sites is too large to draw a wall; give an STL surface")
    fluid = np.zeros(shape, np.float32)
    fluid[tuple((sites.coords - low).T)] = 1.0
    smooth = gaussian_filter(fluid, 0.8)
    grid = np.stack(np.meshgrid(*(np.arange(n, dtype=np.float64) for n in shape), indexing="ij"), -1)
    # The contouring wants x fastest.
    points = grid.transpose(2, 1, 0, 3).reshape(-1, 3)
    vertices, faces = igl.marching_cubes(smooth.T.reshape(-1).astype(np.float64), points, *shape, 0.5)[:2]
    corners = vertices[faces]
    volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum()
    ordered = np.asarray(faces[:, ::-1] if volume < 0 else faces)
    places = np.asarray(sites.origin) + sites.spacing * (vertices + low)
    centers = places[ordered].mean(axis=1)
    closing = np.zeros(len(ordered), bool)
    for plane in sites.iolets:
        height = (centers - plane.center) @ np.asarray(plane.normal)
        reach = np.inf if plane.radius is None else plane.radius + 2.0 * sites.spacing
        near = np.linalg.norm(centers - plane.center, axis=1) < reach
        closing |= near & (height < RIM * sites.spacing)
    used, renumbered = np.unique(ordered[~closing], return_inverse=True)
    open_wall = Surface(places[used], renumbered.reshape(-1, 3).astype(np.int32))
    return _drawn_to_the_planes(open_wall, sites)


def _drawn_to_the_planes(surface: Surface, sites: SiteSet) -> Surface:
    """Return the surface with every rim beside an iolet continued straight to the iolet's plane."""
    from seiche.domain.surface import Surface

    vertices, faces = [surface.vertices], [surface.faces]
    count = len(surface.vertices)
    for loop in surface.boundary_loops():
        rim = surface.vertices[loop.vertices]
        heights = [(rim - plane.center) @ np.asarray(plane.normal) for plane in sites.iolets]
        aside = [np.linalg.norm(np.subtract(loop.center, plane.center)) for plane in sites.iolets]
        near = [k for k, height in enumerate(heights) if np.abs(height).max() < 2.0 * RIM * sites.spacing]
        if not near:
            continue
        nearest = min(near, key=lambda k: float(aside[k]))
        vertices.append(rim - heights[nearest][:, None] * np.asarray(sites.iolets[nearest].normal))
        this, there = loop.vertices, count + np.arange(len(rim), dtype=np.int32)
        following, beyond = np.roll(this, -1), np.roll(there, -1)
        faces += [np.stack([this, following, beyond], axis=1), np.stack([this, beyond, there], axis=1)]
        count += len(rim)
    return Surface(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Wall:
    """Triangles of this rank and the rows of wall sites (of all ranks) that they average over.

    `vertices` (v, 3) metres; `faces` (f, 3); `wall` (w,) indices of the wall sites into `sites.coords`;
    `near` (f, k) rows of `wall` and `weight` (f, k), each row of sum one; `mine` rows of `wall` owned by this rank and
    `place` where they stand in its own fields.
    """

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int32]
    wall: npt.NDArray[np.int64]
    near: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    mine: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]

    def sample(self, world: World, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean of `values` (n_owned,) or (n_owned, c) near every triangle of this rank (collective)."""
        return self.average(self.share(world, values[self.place]))

    def share(self, world: World, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values of all wall sites (w,) or (w, c) from those of this rank's, at `place` (collective)."""
        everywhere = np.zeros((len(self.wall), *values.shape[1:]))
        everywhere[self.mine] = values
        return np.asarray(world.allreduce_sum(everywhere))

    def average(self, everywhere: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean near every triangle of this rank of what `share` returned."""
        return np.asarray(np.einsum("fk,fk...->f...", self.weight, everywhere[self.near]), np.float64)


def make_wall(sites: SiteSet, surface: Surface, owned: npt.NDArray[np.int64], rank: int = 0, ranks: int = 1) -> Wall:
    """Return rank `rank`'s share of `surface` (metres); triangles far from every wall site are left out.

    Raises CaseError when the vessel has no wall.
    """
    from scipy.spatial import cKDTree

    wall = sites.boundary[(sites.link_kind == LinkKind.WALL).any(axis=1)]
    if not len(wall):
        raise CaseError("output.surface, output.averages: the geometry has no wall")
    tree = cKDTree(sites.coords[wall] * sites.spacing + np.asarray(sites.origin))
    count = min(NEIGHBOURS, len(wall))
    first, last = (len(surface.faces) * r // ranks for r in (rank, rank + 1))
    faces = np.asarray(surface.faces[first:last])
    distance, near = tree.query(surface.vertices[faces].mean(axis=1), k=count)
    distance, near = distance.reshape(-1, count), near.reshape(-1, count)
    keep = distance[:, 0] < 3.0 * sites.spacing
    distance, near, faces = distance[keep], near[keep], faces[keep]
    weight = np.exp(-0.5 * ((distance - distance[:, :1]) / (WIDTH * sites.spacing)) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    used, renumbered = np.unique(faces, return_inverse=True)
    mine = np.flatnonzero(np.isin(wall, owned, assume_unique=True))
    return Wall(
        vertices=np.asarray(surface.vertices)[used],
        faces=renumbered.reshape(-1, 3).astype(np.int32),
        wall=wall,
        near=np.asarray(near, np.int64),
        weight=weight,
        mine=mine,
        place=np.searchsorted(owned, wall[mine]),
    )
