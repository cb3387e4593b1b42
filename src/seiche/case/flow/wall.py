# SPDX-License-Identifier: BSD-3-Clause
"""Values on the vessel wall, a triangulated surface, as averages over nearby wall sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.case.flow.contour import fluid_contour
from seiche.domain.sites import LinkKind, SiteSet
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.surface import Surface
    from seiche.domain.world import World

Floats = npt.NDArray[np.float64]

#: Number of wall sites per triangle: enough to smooth the lattice steps, but few enough for a local average.
NEIGHBOURS = 24
#: Standard deviation (spacings) of the weights; with half-way bounce-back, the stress is discontinuous at lattice
#: steps.
WIDTH = 1.5
#: Height (spacings) above an opening up to which the smoothed wall is removed, because it bends around the edge.
RIM = 1.5
#: Distance (spacings) inside the plane of an opening at which the wall of a picture ends.
_INSIDE = 0.01


def wall_surface(sites: SiteSet) -> Surface:
    """Return a smooth surface around `sites`, in metres, with normals out of the fluid.

    It is open at the iolets and at the ends of periodic axes, and its rims lie in their planes. The indicator function
    of the fluid is smoothed over about one site, and its contour at one half is computed. Raises CaseError if the box
    around the sites is too large.
    """
    surface = fluid_contour(sites)
    for plane in sites.iolets:
        normal = np.asarray(plane.normal)
        inner = np.asarray(plane.center) + RIM * sites.spacing * normal
        surface = _cut(surface, inner, normal, plane.radius, sites.spacing)
    surface = _extended(surface, sites)
    for center, normal in _periodic_ends(sites):
        surface = _cut(surface, center, normal, None, sites.spacing)
    return surface


def open_surface(surface: Surface, sites: SiteSet) -> Surface:
    """Return a surface in metres, without the parts in and outside the openings and periodic ends of `sites`.

    It is cut a hundredth of a spacing inside their planes, so that its rims are plane.
    """
    planes: list[tuple[Floats, Floats, float | None]] = [
        (np.asarray(plane.center), np.asarray(plane.normal), plane.radius) for plane in sites.iolets
    ]
    planes += [(center, normal, None) for center, normal in _periodic_ends(sites)]
    for center, normal, radius in planes:
        surface = _cut(surface, center + _INSIDE * sites.spacing * normal, normal, radius, sites.spacing)
    return surface


def _cut(surface: Surface, center: Floats, normal: Floats, radius: float | None, spacing: float) -> Surface:
    """Return the surface without its part behind a plane, within the radius of an opening; None: everywhere."""
    if not len(surface.faces):
        return surface
    far = 2.0 * float(np.linalg.norm(surface.vertices - center, axis=1).max())
    within = far if radius is None else float(np.hypot(radius + 2.0 * spacing, 3.0 * spacing))
    return surface.clipped(center, normal, within)


def _periodic_ends(sites: SiteSet) -> Iterator[tuple[Floats, Floats]]:
    """Yield a point of each end plane of the periodic axes, half a spacing outside the outermost sites, and its normal.

    Normals point inwards.
    """
    for axis in np.flatnonzero(sites.periodic):
        for end, sign in ((-0.5, 1.0), (sites.shape[axis] - 0.5, -1.0)):
            unit = np.eye(3)[axis]
            yield np.asarray(sites.origin) + sites.spacing * end * unit, sign * unit


def _extended(surface: Surface, sites: SiteSet) -> Surface:
    """Return the surface with each rim near an iolet extended straight to the plane of the iolet."""
    from seiche.domain.surface import Surface

    vertices, faces = [surface.vertices], [surface.faces]
    count = len(surface.vertices)
    for loop in surface.boundary_loops():
        rim = surface.vertices[loop.vertices]
        heights = [(rim - plane.center) @ np.asarray(plane.normal) for plane in sites.iolets]
        distances = [np.linalg.norm(np.subtract(loop.center, plane.center)) for plane in sites.iolets]
        near_iolets = [k for k, height in enumerate(heights) if np.abs(height).max() < 2.0 * RIM * sites.spacing]
        if not near_iolets:
            continue
        nearest = min(near_iolets, key=lambda k: float(distances[k]))
        vertices.append(rim - heights[nearest][:, None] * np.asarray(sites.iolets[nearest].normal))
        old, new = loop.vertices, count + np.arange(len(rim), dtype=np.int32)
        next_old, next_new = np.roll(old, -1), np.roll(new, -1)
        faces += [np.stack([old, next_old, next_new], axis=1), np.stack([old, next_new, new], axis=1)]
        count += len(rim)
    return Surface(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Wall:
    """Wall triangles of this rank, and the wall sites (of all ranks) over which values are averaged.

    `vertices` (v, 3) are in metres; `faces` (f, 3) index them. `sites` (w,) are the indices of the wall sites in the
    coordinates of the vessel. `neighbours` (f, k) are rows of `sites`, with `weights` (f, k) that add up to one in each
    row. `owned_rows` are the rows of `sites` that this rank owns, `field_rows` their rows in its fields.
    """

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int32]
    sites: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    owned_rows: npt.NDArray[np.int64]
    field_rows: npt.NDArray[np.int64]

    def sample(self, world: World, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean of `values` (n_owned,) or (n_owned, c) near each triangle of this rank (collective)."""
        return self.average(self.share(world, values[self.field_rows]))

    def share(self, world: World, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values at all wall sites, (w,) or (w, c), from those of this rank at `field_rows` (collective)."""
        all_values = np.zeros((len(self.sites), *values.shape[1:]))
        all_values[self.owned_rows] = values
        return np.asarray(world.allreduce_sum(all_values))

    def average(self, all_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean near each triangle of this rank; `all_values` is the result of `share`."""
        return np.asarray(np.einsum("fk,fk...->f...", self.weights, all_values[self.neighbours]), np.float64)


def make_wall(sites: SiteSet, surface: Surface, owned: npt.NDArray[np.int64], rank: int = 0, ranks: int = 1) -> Wall:
    """Return the part of `surface` (metres) for rank `rank`, without triangles that are far from all wall sites.

    Raises CaseError if the vessel has no wall.
    """
    from scipy.spatial import cKDTree

    wall = sites.boundary[(sites.link_kind == LinkKind.WALL).any(axis=1)]
    if not len(wall):
        raise CaseError("output.surface, output.averages: the geometry has no wall")
    tree = cKDTree(sites.coords[wall] * sites.spacing + np.asarray(sites.origin))
    count = min(NEIGHBOURS, len(wall))
    first, last = (len(surface.faces) * r // ranks for r in (rank, rank + 1))
    faces = np.asarray(surface.faces[first:last])
    distance, neighbours = tree.query(surface.vertices[faces].mean(axis=1), k=count)
    distance, neighbours = distance.reshape(-1, count), neighbours.reshape(-1, count)
    close = distance[:, 0] < 3.0 * sites.spacing
    distance, neighbours, faces = distance[close], neighbours[close], faces[close]
    weight = np.exp(-0.5 * ((distance - distance[:, :1]) / (WIDTH * sites.spacing)) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    used, renumbered = np.unique(faces, return_inverse=True)
    owned_rows = np.flatnonzero(np.isin(wall, owned, assume_unique=True))
    return Wall(
        vertices=np.asarray(surface.vertices)[used],
        faces=renumbered.reshape(-1, 3).astype(np.int32),
        sites=wall,
        neighbours=np.asarray(neighbours, np.int64),
        weights=weight,
        owned_rows=owned_rows,
        field_rows=np.searchsorted(owned, wall[owned_rows]),
    )
