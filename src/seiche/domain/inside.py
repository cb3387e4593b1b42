# SPDX-License-Identifier: BSD-3-Clause
"""Lattice nodes inside a surface.

The winding number of a closed surface is 1 inside and 0 outside. It is counted along the lattice lines
(`kernels/sites/triangles.hpp`). For a surface with holes it is the generalised winding number (Jacobson et al. 2013): a
hole only blurs it, so a threshold of one half still separates the sides. Away from the surface it is harmonic, so the
value at the middle of a block of nodes is sufficient. Only blocks near the surface, or near one half, are evaluated
node by node.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.candidates import TOUCH_TOLERANCE
from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.set_up_ranks import own_share, set_up_world
from seiche.domain.site_rows import Coords, Indices, SiteRows, joined_rows, rows_of
from seiche.domain.surface import Floats, Surface, subdivided
from seiche.kernels.registry import sites as registry
from seiche.set_up import set_up_stage

#: Nodes along the edge of a block.
BLOCK = 4
#: Points per evaluation of the winding number.
CHUNK = 1 << 18
#: A block is evaluated node by node if its middle is closer than this to one half.
UNDECIDED_MARGIN = 0.25
#: A node closer than this (in spacings) to the surface is on it, and thus solid: STL has seven digits.
ON_SURFACE = 1e-4


@set_up_stage("voxelise")
def nodes_inside(
    surface: Surface,
    spacing: float,
    origin: Floats,
    shape: tuple[int, int, int],
    periodic: tuple[bool, bool, bool] = (False, False, False),
) -> SiteRows:
    """Return the nodes of the lattice origin + spacing*(i, j, k) inside `surface` (collective).

    `surface` and `origin` in metres; openings of the surface should be capped.
    """
    scaled = Surface((surface.vertices - origin) / spacing, surface.faces)
    rows = _by_crossings(scaled, shape, periodic) if surface.is_closed() else None
    if any(part is None for part in set_up_world().allgather(None if rows is None else 0)):
        rows = SiteRows.of_coords(shape, periodic, _by_winding_number(scaled, shape))
    assert rows is not None
    return joined_rows(rows)


def _by_crossings(scaled: Surface, shape: tuple[int, int, int], periodic: tuple[bool, bool, bool]) -> SiteRows | None:
    """Return the nodes of own layers inside a closed surface, None if its crossings with a line do not cancel."""
    layers = own_share(shape[0])
    own_rows = range(layers.start * shape[1], layers.stop * shape[1])
    scaled = _near_layers(scaled, layers)
    corners, faces = scaled.corners(), len(scaled.faces)
    common = {"surface": {"corners": corners, "vertices": scaled.faces}, "shape": shape}
    counts, none = np.empty(faces, np.int64), {"row": None, "height": None, "sign": None}
    run_pass(registry.line_crossings(fill=False), faces, first=None, counts=counts, **none, **common)
    first = offsets(counts)
    row, height, sign = np.empty(first[-1], np.int64), np.empty(first[-1]), np.empty(first[-1], np.int32)
    spec, crossings = registry.line_crossings(fill=True), {"row": row, "height": height, "sign": sign}
    run_pass(spec, faces, first=first, counts=None, **crossings, **common)
    own = np.flatnonzero((row >= own_rows.start) & (row < own_rows.stop))
    order = own[np.lexsort((height[own], row[own]))]
    of_row = offsets(np.bincount(row[own], minlength=shape[0] * shape[1]))
    rows = _wound(shape, periodic, of_row, height[order], sign[order])
    if rows is None:
        return None
    reach = {"reach": TOUCH_TOLERANCE}
    run_pass(registry.nodes_on_surface(fill=False), faces, first=None, counts=counts, nodes=None, **reach, **common)
    first = offsets(counts)
    nodes = np.empty(first[-1], np.int64)
    run_pass(registry.nodes_on_surface(fill=True), faces, first=first, counts=None, nodes=nodes, **reach, **common)
    coords = np.stack(np.unravel_index(np.unique(nodes), shape), axis=1).astype(np.int64)
    on_surface = rows.find(coords)
    return rows.without(on_surface[on_surface >= 0])


def _near_layers(scaled: Surface, layers: range) -> Surface:
    """Return the triangles that reach some layers of nodes along x, in the same order."""
    if set_up_world().size == 1:
        return scaled
    x = scaled.vertices[:, 0][scaled.faces]
    is_near = (x.min(axis=1) <= layers.stop) & (x.max(axis=1) >= layers.start - 1)
    return Surface(scaled.vertices, scaled.faces[is_near])


def _wound(
    shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], first: Indices, height: Floats, sign: Coords
) -> SiteRows | None:
    """Return the nodes with a positive winding number; row i has the crossings `first[i]` ... by ascending height."""
    count, common = len(first) - 1, {"first": first, "height": height, "sign": sign, "nz": shape[2]}
    counts, is_open, none = np.empty(count, np.int32), np.empty(count, np.uint8), {"begin": None, "end": None}
    run_pass(registry.wound_runs(fill=False), count, target=None, counts=counts, open=is_open, **none, **common)
    if is_open.any():
        return None
    target = offsets(counts)
    begin, end = np.empty(target[-1], np.int32), np.empty(target[-1], np.int32)
    spec = registry.wound_runs(fill=True)
    run_pass(spec, count, target=target, counts=None, open=None, begin=begin, end=end, **common)
    return rows_of(shape, periodic, target, begin, end)


def _by_winding_number(scaled: Surface, shape: tuple[int, int, int]) -> Coords:
    """Return the ascending nodes (n, 3) of own blocks inside a surface, by its generalised winding number.

    It is above one half there; nodes on the surface are excluded.
    """
    import igl

    faces = scaled.faces.astype(np.int64)
    tree = igl.FastWindingNumberBVH()
    tree.init(scaled.vertices, faces)
    blocks = tuple(-(-extent // BLOCK) for extent in shape)
    near_surface = _blocks_near(scaled, blocks)
    per_layer, layers = blocks[1] * blocks[2], own_share(blocks[0])
    own_blocks = np.arange(layers.start * per_layer, layers.stop * per_layer)
    own_near = near_surface.reshape(-1)[own_blocks]
    far_blocks = own_blocks[~own_near]
    middle = np.empty(len(far_blocks))
    for start in range(0, len(far_blocks), CHUNK):
        corner = np.stack(np.unravel_index(far_blocks[start : start + CHUNK], blocks), axis=1) * BLOCK
        middle[start : start + CHUNK] = tree.winding_number(corner + 0.5 * (BLOCK - 1))
    undecided = far_blocks[np.abs(middle - 0.5) < UNDECIDED_MARGIN]
    resolved_blocks = np.union1d(own_blocks[own_near], undecided)

    distance = igl.AABB()
    distance.init(scaled.vertices, faces)
    accepted = [_nodes_of(far_blocks[middle >= 0.5 + UNDECIDED_MARGIN], blocks, shape)]
    blocks_per_pass = CHUNK // BLOCK**3
    for start in range(0, len(resolved_blocks), blocks_per_pass):
        nodes = _nodes_of(resolved_blocks[start : start + blocks_per_pass], blocks, shape)
        points = nodes.astype(np.float64)
        winding = tree.winding_number(points)
        inside = winding > 0.5
        uncertain = np.flatnonzero(inside & (winding < 0.98))
        if len(uncertain):
            squared = distance.squared_distance(scaled.vertices, faces, points[uncertain])[0]
            inside[uncertain[squared < ON_SURFACE**2]] = False
        accepted.append(nodes[inside])
    nodes = np.concatenate(accepted)
    return np.ascontiguousarray(nodes[np.lexsort(nodes.T[::-1])])


def _blocks_near(scaled: Surface, blocks: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Flag the blocks within one spacing of a triangle."""
    pieces, _ = subdivided(scaled.corners(), 0.5 * BLOCK)
    low = np.floor((pieces.min(axis=1) - 1.0) / BLOCK).astype(np.int64)
    high = np.floor((pieces.max(axis=1) + 1.0) / BLOCK).astype(np.int64)
    ends = np.clip(np.stack([low, high]), 0, np.array(blocks) - 1)
    near = np.zeros(blocks, bool)
    for corner in np.ndindex(2, 2, 2):  # a piece with its margin is at most as large as a block: corners suffice
        near[ends[corner[0], :, 0], ends[corner[1], :, 1], ends[corner[2], :, 2]] = True
    return near


def _nodes_of(
    block_numbers: npt.NDArray[np.int64], blocks: tuple[int, ...], shape: tuple[int, int, int]
) -> npt.NDArray[np.int32]:
    """Return the nodes (p, 3) of the blocks `block_numbers` inside `shape`."""
    corner = np.stack(np.unravel_index(block_numbers, blocks), axis=1).astype(np.int32) * BLOCK
    offsets = np.indices((BLOCK,) * 3, dtype=np.int32).reshape(3, -1).T
    nodes = (corner[:, None, :] + offsets).reshape(-1, 3)
    return np.asarray(nodes[np.all(nodes < np.array(shape, np.int32), axis=1)])
