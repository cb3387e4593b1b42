# SPDX-License-Identifier: BSD-3-Clause
"""The wall of an arterial tree as a triangulated surface, from the branches of `artery_tree`.

The wall is the zero level of a smooth union of tubes. Only the blocks of the meshing grid through which it passes are
evaluated, so that the work grows with the area of the wall and not with the box around the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.artery_tree import Branch, artery_branches
from seiche.domain.sites import IoletPlane
from seiche.domain.surface import Floats, Surface
from seiche.domain.tube_union import CenterlineTube, is_rim_of, smooth_minimum, triple
from seiche.errors import CaseError

Integers = npt.NDArray[np.int64]

#: Cells of the meshing grid along each side of a block, and largest number of nodes in blocks at the wall.
_BLOCK, _MAX_NODES = 8, 1 << 27
#: Default spacing of the meshing grid relative to the radius of the outlets, and width of the blend relative to the
#: radius of a branch.
RESOLUTION, BLEND = 0.15, 0.3
#: Corners of a cell, in the order of marching cubes (x fastest around the lower, then the upper face).
_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])


def tree_surface(
    radius: float,
    outlets: int = 38,
    *,
    length_ratio: float = 8.0,
    seed: int = 1,
    open_ends: bool = True,
    resolution: float | None = None,
) -> tuple[Surface, tuple[IoletPlane, ...]]:
    """Return the surface (metres) of a tree, and its openings "inlet" and "outlet1", "outlet2" ...

    Args:
        radius: radius of the inlet, which is at the origin; blood enters along +x (metres).
        outlets: number of outlets.
        length_ratio: length of each branch relative to its radius.
        seed: seed of the random shape.
        open_ends: whether the rims of the openings lie exactly in their planes; otherwise they are capped.
        resolution: spacing of the meshing grid (metres), by default 0.15 of the radius of the outlets.

    Raises:
        CaseError: the values give no tree, or too fine a mesh.
    """
    branches = artery_branches(radius, outlets, length_ratio, seed)
    ends = [branch for branch in branches if branch.outlets == 1]
    inlet = IoletPlane("inlet", "inlet", triple(branches[0].start), triple(branches[0].direction), radius)
    planes = [inlet] + [
        IoletPlane(f"outlet{number}", "outlet", triple(branch.end), triple(-branch.direction), branch.radius)
        for number, branch in enumerate(ends, start=1)
    ]
    surface = mesh([_extended(branch) for branch in branches], resolution or RESOLUTION * ends[0].radius)
    surface = _clipped(surface, planes)
    loops = surface.boundary_loops()
    if len(loops) != len(planes) or not all(any(is_rim_of(plane, loop) for loop in loops) for plane in planes):
        raise CaseError("these sizes do not give a round opening for each outlet; increase length_ratio or change seed")
    return surface if open_ends else surface.capped(loops), tuple(planes)


def _extended(branch: Branch) -> CenterlineTube:
    """Return the tube of a branch, which extends beyond its opening if it has one."""
    start, end = branch.start, branch.end
    if branch.parent < 0:
        start = start - 0.8 * branch.radius * branch.direction
    if branch.outlets == 1:
        end = end + 0.8 * branch.radius * branch.direction
    return CenterlineTube(np.stack([start, end]), branch.radius)


def _clipped(surface: Surface, planes: Sequence[IoletPlane]) -> Surface:
    """Cut a surface at its openings. Each cut treats only the triangles near its opening, in which no other one is."""
    is_untouched = np.ones(len(surface.faces), bool)
    vertices, faces = [surface.vertices], []
    for plane in planes:
        radius = 2.2 * (plane.radius or 0.0)
        is_near = np.zeros(len(surface.vertices), bool)
        is_near[surface.vertices_near(plane.center, radius)] = True
        affected = surface.faces_within(is_near)
        is_untouched[affected] = False
        part = Surface.from_triangles(surface.vertices[surface.faces[affected]])
        piece = part.clipped(plane.center, plane.normal, radius)
        faces.append(piece.faces + sum(map(len, vertices)))
        vertices.append(piece.vertices)
    return Surface.merged(np.concatenate(vertices), np.concatenate([surface.faces[is_untouched], *faces]))


@dataclass(frozen=True)
class _MeshBlocks:
    """Blocks of cells of a grid with `spacing`, whose node (0, 0, 0) is at `origin`; `shape` is in blocks."""

    origin: Floats
    spacing: float
    shape: tuple[int, int, int]

    def blocks_at(self, tube: CenterlineTube, reach: float) -> Integers:
        """Return the indices (n,) of the blocks whose center is within `reach` of the wall of a tube or inside it."""
        side = _BLOCK * self.spacing
        low, high = tube.points.min(axis=0) - tube.radius - reach, tube.points.max(axis=0) + tube.radius + reach
        first = np.maximum(((low - self.origin) / side).astype(np.int64), 0)
        last = np.minimum(((high - self.origin) / side).astype(np.int64) + 1, self.shape)
        index = np.stack(np.meshgrid(*map(np.arange, first, last), indexing="ij"), axis=-1).reshape(-1, 3)
        centers = self.origin + side * (index + 0.5)
        return np.asarray(np.ravel_multi_index(tuple(index[tube.distance(centers) <= reach].T), self.shape))


def mesh(tubes: Sequence[CenterlineTube], spacing: float) -> Surface:
    """Mesh the smooth union of `tubes` by marching cubes on a grid of `spacing`.

    Raises:
        CaseError: the grid is too fine.
    """
    import igl

    widths = [BLEND * tube.radius for tube in tubes]
    margin = max(widths) + 3.0 * spacing
    low = np.min([tube.points.min(axis=0) - tube.radius for tube in tubes], axis=0) - margin
    high = np.max([tube.points.max(axis=0) + tube.radius for tube in tubes], axis=0) + margin
    nx, ny, nz = (int(count) for count in np.ceil((high - low) / (spacing * _BLOCK)))
    grid = _MeshBlocks(low, spacing, (nx, ny, nz))
    blocks, values = _field(grid, tubes, widths)
    nodes, corners = _crossed_cells(grid, blocks, values)
    vertices, faces, _ = igl.marching_cubes(nodes[1], nodes[0], corners, 0.0)
    surface = Surface(vertices, faces.astype(np.int32))
    return surface if surface.volume > 0.0 else Surface(surface.vertices, np.ascontiguousarray(surface.faces[:, ::-1]))


def _field(grid: _MeshBlocks, tubes: Sequence[CenterlineTube], widths: Sequence[float]) -> tuple[Integers, Floats]:
    """Return the blocks (b,) at the wall and the signed distances (b, n, n, n) of their nodes.

    A tube that is further away from a block than the width of its blend does not affect the wall there.
    """
    half_diagonal = 0.5 * np.sqrt(3.0) * _BLOCK * grid.spacing
    reaches = [half_diagonal + width + grid.spacing for width in widths]
    near = [grid.blocks_at(tube, reach) for tube, reach in zip(tubes, reaches, strict=True)]
    blocks = np.unique(np.concatenate(near))
    side = _BLOCK * grid.spacing
    centers = grid.origin + side * (np.stack(np.unravel_index(blocks, grid.shape), axis=1) + 0.5)
    depth = np.full(len(blocks), np.inf)
    for tube, index in zip(tubes, near, strict=True):
        rows = np.searchsorted(blocks, index)
        depth[rows] = np.minimum(depth[rows], tube.distance(centers[rows]))
    at_wall = depth >= -half_diagonal - grid.spacing
    blocks, centers = blocks[at_wall], centers[at_wall]
    nodes = _BLOCK + 1
    if len(blocks) * nodes**3 > _MAX_NODES:
        raise CaseError(f"a meshing grid of {grid.spacing:g} m is too fine for this tree; choose a larger resolution")
    offsets = grid.spacing * (np.indices((nodes,) * 3).reshape(3, -1).T - 0.5 * _BLOCK)
    values = np.full((len(blocks), nodes**3), np.inf)
    for tube, width, index in zip(tubes, widths, near, strict=True):
        rows = np.searchsorted(blocks, index)
        rows = rows[(rows < len(blocks)) & (blocks[np.minimum(rows, len(blocks) - 1)] == index)]
        distance = tube.distance((centers[rows, None] + offsets).reshape(-1, 3)).reshape(len(rows), -1)
        known = np.isfinite(values[rows])
        values[rows] = np.where(
            known, smooth_minimum(np.where(known, values[rows], distance), distance, width), distance
        )
    return blocks, values.reshape(-1, nodes, nodes, nodes)


def _crossed_cells(grid: _MeshBlocks, blocks: Integers, values: Floats) -> tuple[tuple[Floats, Floats], Integers]:
    """Return the nodes ((p, 3), (p,)), positions and values, of the cells through which the wall passes, and the cells.

    Cells are rows (c, 8) of indices of nodes.
    """
    nx, ny, nz = (_BLOCK * count + 1 for count in grid.shape)
    inside = values < 0.0
    any_inside, all_inside = np.zeros((len(blocks), *(_BLOCK,) * 3), bool), np.ones((len(blocks), *(_BLOCK,) * 3), bool)
    for i, j, k in _CORNERS:
        corner = inside[:, i : i + _BLOCK, j : j + _BLOCK, k : k + _BLOCK]
        any_inside |= corner
        all_inside &= corner
    block, *cell = np.nonzero(any_inside & ~all_inside)
    local = np.stack(cell, axis=1)[:, None] + _CORNERS  # (c, 8, 3)
    first = _BLOCK * np.stack(np.unravel_index(blocks[block], grid.shape), axis=1)[:, None]
    key = np.ravel_multi_index(tuple(np.moveaxis(first + local, 2, 0)), (nx, ny, nz))
    keys, where, corners = np.unique(key.reshape(-1), return_index=True, return_inverse=True)
    flat = values[block[:, None], local[..., 0], local[..., 1], local[..., 2]].reshape(-1)
    positions = grid.origin + grid.spacing * np.stack(np.unravel_index(keys, (nx, ny, nz)), axis=1)
    return (positions, flat[where]), np.ascontiguousarray(corners.reshape(-1, 8), np.int64)
