# SPDX-License-Identifier: BSD-3-Clause
"""Cells of VTK files: one voxel for each fluid site, or the triangles of a surface."""

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

    `points` is (p, 3) float64. `connectivity` is (c, k) int64 with indices into the points of **all** ranks, of which
    `first_point` belong to lower ranks. `cell_type` is VTK's number, None for the polygons of a surface.
    """

    points: npt.NDArray[np.float64]
    connectivity: npt.NDArray[np.int64]
    first_point: int
    cell_type: int | None


class CellGeometry(Protocol):
    """The geometry of a `FieldSeries`."""

    def mesh(self, world: World) -> MeshRows:
        """Return this rank's part of the geometry (collective)."""

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of rows of this rank's field arrays."""


@dataclass(frozen=True, eq=False)
class VoxelCells:
    """A voxel around every fluid site that this rank owns; neighbours share corners, also across ranks.

    `shape` is the box in sites, `coords` (n, 3) the sites of all ranks. Site positions are origin + spacing * coords,
    in the length unit of the file. `owned` (n_owned,) are indices into `coords`, None for all.
    """

    shape: tuple[int, int, int]
    coords: npt.NDArray[np.int32]
    spacing: float = 1.0
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    owned: npt.NDArray[np.int64] | None = None

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of owned sites; ValueError if `on` is "points"."""
        if on != "cells":
            raise ValueError("fields on voxels belong to the cells; use on='cells'")
        return len(self.coords) if self.owned is None else len(self.owned)

    def mesh(self, world: World) -> MeshRows:
        """Return voxels whose corners are numbered by their position in the box, independently of the ranks."""
        coords = self.coords if self.owned is None else self.coords[self.owned]
        ny, nz = self.shape[1] + 1, self.shape[2] + 1
        corners = (self.shape[0] + 1) * ny * nz
        # Positions of the corners of all voxels in the box of corners, z fastest.
        keys = ((coords[:, None, 0] + _CORNERS[:, 0]) * ny + coords[:, None, 1] + _CORNERS[:, 1]) * nz
        keys += coords[:, None, 2] + _CORNERS[:, 2]
        local, inverse = np.unique(keys, return_inverse=True)
        stored, first, corner_numbers = _number_corners(world, local, corners)
        # Corner (0, 0, 0) of a voxel is half a spacing before its site.
        corner_coords = np.stack([stored // (ny * nz), stored // nz % ny, stored % nz], axis=1)
        points = np.asarray(self.origin, np.float64) + self.spacing * (corner_coords - 0.5)
        return MeshRows(points, corner_numbers[inverse.reshape(keys.shape)], first, _VTK_VOXEL)


def _number_corners(
    world: World, keys: npt.NDArray[np.int64], corners: int
) -> tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int64]]:
    """Return the keys of the corners stored by this rank, the number of the first of them, and the numbers of `keys`.

    The corners of all ranks are numbered by ascending key. Rank r numbers those of the r-th slab of the box, so no rank
    stores all of them.
    """
    if world.comm is None:
        return keys, 0, np.arange(len(keys), dtype=np.int64)
    bounds = np.arange(world.size + 1, dtype=np.int64) * corners // world.size
    bounds_of_slabs = np.searchsorted(keys, bounds)
    requests: list[npt.NDArray[np.int64]] = world.comm.alltoall([keys[a:b] for a, b in pairwise(bounds_of_slabs)])
    stored_corners = np.unique(np.concatenate(requests))
    first, _ = rows_before(world, len(stored_corners))
    replies = world.comm.alltoall([first + np.searchsorted(stored_corners, request) for request in requests])
    return stored_corners, first, np.concatenate(replies).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Triangles:
    """This rank's part, perhaps empty, of a triangulated surface: `vertices` (v, 3) and `faces` (f, 3).

    Faces are indices into the vertices of this rank. Vertices between two ranks appear once for each.
    """

    vertices: npt.NDArray[np.floating[Any]]
    faces: npt.NDArray[np.integer[Any]]

    def rows(self, on: Literal["cells", "points"]) -> int:
        """Return the number of triangles or vertices of this rank."""
        return len(self.faces) if on == "cells" else len(self.vertices)

    def mesh(self, world: World) -> MeshRows:
        """Return the triangles with global vertex numbers."""
        first, _ = rows_before(world, len(self.vertices))
        points = np.asarray(self.vertices, np.float64).reshape(-1, 3)
        return MeshRows(points, np.asarray(self.faces, np.int64).reshape(-1, 3) + first, first, None)
