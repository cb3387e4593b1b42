# SPDX-License-Identifier: BSD-3-Clause
"""Cells of VTK files: one voxel for each fluid site, or the triangles of a surface."""

from __future__ import annotations

from collections.abc import Callable
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


#: Voxels whose corners are located at once.
_BLOCK = 1 << 17
#: Maximum number of corners in a message.
_MESSAGE = 1 << 24


@dataclass(frozen=True, eq=False)
class MeshRows:
    """This rank's rows of the geometry in the file, which are computed block by block.

    Attributes:
        points: number of points of this rank.
        cells: number of its cells.
        corners: number of corners of a cell.
        first_point: number of points of lower ranks.
        cell_type: VTK's number, None for the polygons of a surface.
        points_of: function that returns a range of the points, (p, 3).
        connectivity_of: function that returns the corners of a range of cells, (c, corners), as indices into the points
            of **all** ranks.
    """

    points: int
    cells: int
    corners: int
    first_point: int
    cell_type: int | None
    points_of: Callable[[slice], npt.NDArray[np.float64]]
    connectivity_of: Callable[[slice], npt.NDArray[np.int64]]


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
        ny, nz = self.shape[1] + 1, self.shape[2] + 1
        corners, cells = (self.shape[0] + 1) * ny * nz, self.rows("cells")
        local = _united([self._corners(slice(k, k + _BLOCK)) for k in range(0, cells, _BLOCK)])
        stored, first, numbers = _number_corners(world, local, corners)

        def points_of(rows: slice) -> npt.NDArray[np.float64]:
            keys = stored[rows]
            coords = np.stack([keys // (ny * nz), keys // nz % ny, keys % nz], axis=1)
            # Corner (0, 0, 0) of a voxel is half a spacing before its site.
            return np.asarray(self.origin, np.float64) + self.spacing * (coords - 0.5)

        def connectivity_of(rows: slice) -> npt.NDArray[np.int64]:
            keys = self._first_corners(rows)
            # The corners of consecutive voxels along z are consecutive.
            begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1] + 1]))
            offsets = np.arange(len(keys)) - np.repeat(begins, np.diff(begins, append=len(keys)))
            positions = np.empty((len(keys), len(_CORNERS)), np.int64)
            for k, (x, y, z) in enumerate(_CORNERS[: len(_CORNERS) // 2]):
                found = np.searchsorted(local, keys[begins] + (x * ny + y) * nz + z)
                positions[:, k] = np.repeat(found, np.diff(begins, append=len(keys))) + offsets
            positions[:, len(_CORNERS) // 2 :] = positions[:, : len(_CORNERS) // 2] + 1
            return np.asarray(positions if numbers is None else numbers[positions])

        return MeshRows(len(stored), cells, len(_CORNERS), first, _VTK_VOXEL, points_of, connectivity_of)

    def _first_corners(self, rows: slice) -> npt.NDArray[np.int64]:
        """Return the positions (c,) of the corners (0, 0, 0) of a range of voxels in the box of corners, z fastest."""
        coords = (self.coords[rows] if self.owned is None else self.coords[self.owned[rows]]).astype(np.int64)
        return (coords[:, 0] * (self.shape[1] + 1) + coords[:, 1]) * (self.shape[2] + 1) + coords[:, 2]

    def _corners(self, rows: slice) -> npt.NDArray[np.int64]:
        """Return the sorted positions of all corners of a range of voxels, each once."""
        keys = _united([self._first_corners(rows)])
        for stride in (1, self.shape[2] + 1, (self.shape[1] + 1) * (self.shape[2] + 1)):
            keys = _united([keys, keys + stride])
        return keys


def _united(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the numbers of all parts, sorted, each once; sorted parts are merged in linear time."""
    numbers = np.sort(np.concatenate([np.zeros(0, np.int64), *parts]), kind="stable")
    return np.asarray(numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])[: len(numbers)]], np.int64)


def _number_corners(
    world: World, keys: npt.NDArray[np.int64], corners: int
) -> tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int64] | None]:
    """Return the keys of the corners stored by this rank, the number of the first of them, and the numbers of `keys`.

    The corners of all ranks are numbered by ascending key. Rank r numbers those of the r-th slab of the box, so no rank
    stores all of them. On one rank, the numbers are the positions in `keys`, for which None is returned.
    """
    if world.comm is None:
        return keys, 0, None
    bounds = np.arange(world.size + 1, dtype=np.int64) * corners // world.size
    bounds_of_slabs = np.searchsorted(keys, bounds)
    requests = _exchanged(world, [keys[a:b] for a, b in pairwise(bounds_of_slabs)])
    stored_corners = _united(requests)
    first, _ = rows_before(world, len(stored_corners))
    replies = _exchanged(world, [first + np.searchsorted(stored_corners, request) for request in requests])
    return stored_corners, first, np.concatenate(replies)


def _exchanged(world: World, arrays: list[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
    """Send `arrays[k]` to rank k in messages of limited size; return the arrays received, in rank order."""
    size = max(1, _MESSAGE // world.size)
    rounds = max(world.allgather(max(-(-len(array) // size) for array in arrays)))
    received = [world.alltoall([array[k * size : (k + 1) * size] for array in arrays]) for k in range(rounds)]
    empty = np.zeros(0, np.int64)
    return [np.concatenate([empty, *(parts[rank] for parts in received)]) for rank in range(world.size)]


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
        faces = np.asarray(self.faces, np.int64).reshape(-1, 3)
        return MeshRows(
            len(points), len(faces), 3, first, None, lambda rows: points[rows], lambda rows: faces[rows] + first
        )
