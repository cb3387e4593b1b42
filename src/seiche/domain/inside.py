# SPDX-License-Identifier: BSD-3-Clause
"""Which nodes of a lattice lie inside a surface, by the generalised winding number (Jacobson et al. 2013).

The winding number of a closed surface is 1 inside and 0 outside; a hole only smears it, so "above one half" still says
which side a node is on. It is harmonic away from the surface, so a block of nodes that the surface does not come near
takes the value of its middle; only blocks near the surface, or near one half, are evaluated node by node.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Floats, Surface, subdivided

#: Nodes along the edge of a block.
BLOCK = 4
#: Points handed to the winding number at once.
CHUNK = 1 << 18
#: A block is evaluated node by node when its middle is closer to one half than this.
UNDECIDED = 0.25
#: A node closer to the surface than this (in spacings) is on it, and so not in the fluid: STL keeps seven digits.
ON_SURFACE = 1e-4


def nodes_inside(
    surface: Surface, spacing: float, origin: Floats, shape: tuple[int, int, int]
) -> npt.NDArray[np.int32]:
    """Return the nodes (n, 3), ascending, of the lattice origin + spacing*(i, j, k) that are inside `surface`.

    `surface` and `origin` in metres; openings of the surface should be capped.
    """
    import igl

    scaled = Surface((surface.vertices - origin) / spacing, surface.faces)
    faces = scaled.faces.astype(np.int64)
    tree = igl.FastWindingNumberBVH()
    tree.init(scaled.vertices, faces)
    blocks = tuple(-(-extent // BLOCK) for extent in shape)
    near = _blocks_near(scaled, blocks)
    far = np.flatnonzero(~near.reshape(-1))
    middle = np.empty(len(far))
    for start in range(0, len(far), CHUNK):
        part = far[start : start + CHUNK]
        corner = np.stack(np.unravel_index(part, blocks), axis=1) * BLOCK
        middle[start : start + CHUNK] = tree.winding_number(corner + 0.5 * (BLOCK - 1))
    full = far[middle >= 0.5 + UNDECIDED]
    undecided = far[np.abs(middle - 0.5) < UNDECIDED]
    careful = np.union1d(np.flatnonzero(near), undecided)

    distance = igl.AABB()
    distance.init(scaled.vertices, faces)
    found = [_nodes_of(full, blocks, shape)]
    step = CHUNK // BLOCK**3
    for start in range(0, len(careful), step):
        nodes = _nodes_of(careful[start : start + step], blocks, shape)
        points = nodes.astype(np.float64)
        winding = tree.winding_number(points)
        inside = winding > 0.5
        doubtful = np.flatnonzero(inside & (winding < 0.98))
        if len(doubtful):
            squared = distance.squared_distance(scaled.vertices, faces, points[doubtful])[0]
            inside[doubtful[squared < ON_SURFACE**2]] = False
        found.append(nodes[inside])
    nodes = np.concatenate(found)
    return np.ascontiguousarray(nodes[np.lexsort(nodes.T[::-1])])


def _blocks_near(scaled: Surface, blocks: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Flag the blocks that a triangle comes within one spacing of."""
    pieces, _ = subdivided(scaled.corners(), 0.5 * BLOCK)
    low = np.floor((pieces.min(axis=1) - 1.0) / BLOCK).astype(np.int64)
    high = np.floor((pieces.max(axis=1) + 1.0) / BLOCK).astype(np.int64)
    last = np.array(blocks) - 1
    ends = np.clip(np.stack([low, high]), 0, last)
    near = np.zeros(blocks, bool)
    for corner in np.ndindex(2, 2, 2):  # a piece with its margin is no larger than a block: its corners tell all
        near[ends[corner[0], :, 0], ends[corner[1], :, 1], ends[corner[2], :, 2]] = True
    return near


def _nodes_of(
    numbers: npt.NDArray[np.int64], blocks: tuple[int, ...], shape: tuple[int, int, int]
) -> npt.NDArray[np.int32]:
    """Return the nodes (p, 3) of the blocks `numbers` that lie inside `shape`."""
    corner = np.stack(np.unravel_index(numbers, blocks), axis=1).astype(np.int32) * BLOCK
    local = np.indices((BLOCK,) * 3, dtype=np.int32).reshape(3, -1).T
    nodes = (corner[:, None, :] + local).reshape(-1, 3)
    inside: npt.NDArray[np.int32] = nodes[np.all(nodes < np.array(shape, np.int32), axis=1)]
    return inside
