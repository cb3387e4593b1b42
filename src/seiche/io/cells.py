# SPDX-License-Identifier: BSD-3-Clause
"""The shapes that fields are drawn on: one voxel a fluid site, or the triangles of a surface."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.io.parallel import rows_before

_VTK_VOXEL = 11
#: Corners of a voxel in VTK's order: x fastest, then y, then z.
_CORNERS = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], np.int64)


@dataclass(frozen=True)
class MeshRows:
    """This rank's rows of the geometry in the file.

    Shapes: `points` (p, 3) float64, `connectivity` (c, k) int64 with indices into the points of **all** ranks, of which
    `first_point` belong to lower ranks; `cell_type` is VTK's number, None for the polygons of a surface.
    """

    points: npt.NDArray[np.float64]
    connectivity: npt.NDArray[np.int64]
    first_point: int
    cell_type: int | None


class CellGeometry(Protocol):
    """What a `FieldSeries` needs of a geometry."""

    def mesh(self, world: World) -> MeshRows:
        """Return this rank's part of the geometry (collective)."""

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of rows of this rank's field arrays."""


@dataclass(frozen=True, eq=False)
class VoxelCells:
    """A voxel around every fluid site that this rank owns; neighbours share corners, across ranks too.

    `shape` is the box in sites, `coords` (n, 3) the sites of all ranks, `spacing` and `origin` the lattice in the
    length unit of the picture (site position = origin + spacing * coords), `owned` (n_owned,) indices into `coords`,
    None: all.
    """

    shape: tuple[int, int, int]
    coords: npt.NDArray[np.int32]
    spacing: float = 1.0
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    owned: npt.NDArray[np.int64] | None = None

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of owned sites.

        Raises:
            ValueError: `on` is "points"; fields of sites belong to cells.
        """
        if on != "cells":
            raise ValueError("fields on voxels belong to the cells: use on='cells'")
        return len(self.coords) if self.owned is None else len(self.owned)

    def mesh(self, world: World) -> MeshRows:
        """Return voxels whose corners are numbered by their place in the box, the same for any number of ranks."""
        coords = self.coords if self.owned is None else self.coords[self.owned]
        ny, nz = self.shape[1] + 1, self.shape[2] + 1
        corners = (self.shape[0] + 1) * ny * nz
        # The place of every corner of every voxel in the box of corners, z fastest.
        keys = ((coords[:, None, 0] + _CORNERS[:, 0]) * ny + coords[:, None, 1] + _CORNERS[:, 1]) * nz
        keys += coords[:, None, 2] + _CORNERS[:, 2]
        local, inverse = np.unique(keys, return_inverse=True)
        here, first, numbers = _number_corners(world, local, corners)
        # Corner (0, 0, 0) of a voxel lies half a spacing before its site.
        places = np.stack([here // (ny * nz), here // nz % ny, here % nz], axis=1)
        points = np.asarray(self.origin, np.float64) + self.spacing * (places - 0.5)
        return MeshRows(points, numbers[inverse.reshape(keys.shape)], first, _VTK_VOXEL)


def _number_corners(
    world: World, keys: npt.NDArray[np.int64], corners: int
) -> tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int64]]:
    """Number the corners that the ranks touch by ascending key; no rank ever holds them all.

    Rank r keeps the corners of the r-th slab of the box, so that each rank asks the keeper of a corner for its number.

    Returns:
        Keys of the corners kept here, number of the first of them, numbers of `keys`.
    """
    if world.comm is None:
        return keys, 0, np.arange(len(keys), dtype=np.int64)
    bounds = np.arange(world.size + 1, dtype=np.int64) * corners // world.size
    cuts = np.searchsorted(keys, bounds)
    asked: list[npt.NDArray[np.int64]] = world.comm.alltoall([keys[a:b] for a, b in pairwise(cuts)])
    kept = np.unique(np.concatenate(asked))
    first, _ = rows_before(world, len(kept))
    answers = world.comm.alltoall([first + np.searchsorted(kept, wanted) for wanted in asked])
    return kept, first, np.concatenate(answers).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Triangles:
    """This rank's part of a triangulated surface: `vertices` (v, 3) and `faces` (f, 3) indices into them.

    A rank may hold none of it. Vertices on the seam of two ranks appear once for each.
    """

    vertices: npt.NDArray[np.floating[Any]]
    faces: npt.NDArray[np.integer[Any]]

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of triangles or vertices here."""
        return len(self.faces) if on == "cells" else len(self.vertices)

    def mesh(self, world: World) -> MeshRows:
        """Return the triangles with vertices numbered through all ranks."""
        first, _ = rows_before(world, len(self.vertices))
        points = np.asarray(self.vertices, np.float64).reshape(-1, 3)
        return MeshRows(points, np.asarray(self.faces, np.int64).reshape(-1, 3) + first, first, None)
