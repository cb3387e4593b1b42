# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the elements of a size field, from which costs and limits of a large mesh are estimated without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.waves.forest import Brick, Forest, Integers, Keys, morton_keys
from seiche.waves.mesh import LOCAL, NONE, Mesh
from seiche.waves.sizes import Generator, SizeField
from seiche.waves.trees import Trees, TreeSize

Floats = npt.NDArray[np.float64]

#: Distance from a source, in the largest element that touches it, up to which all elements are in the sample: boxes
#: around sources reach 2.1 elements, and elements at their faces may be twice as large.
_SOURCE_DISTANCE = 4.2
#: Number of boxes of one level around a source, above which smaller elements are not in the sample.
_MAX_AROUND = 50_000
_SEED = 1


class SampledMesh(Mesh):
    """Elements at random and at given points, with their neighbours, in place of all elements of a mesh.

    `total` is the estimated number of elements. `neighbours` is -1 also where the neighbour is not in the sample.

    Attributes:
        shares: number of elements of the mesh that each one represents, (count,); 0 for those that were not chosen at
            random.
    """

    shares: Floats

    @staticmethod
    def sample(
        brick: Brick,
        sizes: SizeField,
        number: int,
        *,
        positions: Floats,
        sources: Floats,
        tree_size: TreeSize,
        origin: Sequence[float],
    ) -> SampledMesh:
        """Return the leaves that contain `number` random points or any of the `positions`, and those near `sources`.

        Positions are (n, dim), sources (m, dim), in space. The same sample is returned on every call.
        """
        generator, trees, dim = Generator(brick, sizes), Trees(brick, tree_size, origin), brick.dim
        random = np.random.default_rng(_SEED).integers(0, brick.extent, (number, dim))
        sample_points = np.concatenate([random, _integers(positions, trees, brick)])
        corner, level = generator.leaves_of(sample_points)
        first = np.nonzero(np.arange(len(sample_points)) < number)[0]
        volumes = np.prod(np.array(brick.trees, np.float64)) * 2.0 ** (dim * level[first])
        next_to = _neighbours(Forest(brick, corner, level), generator)
        nearby_leaves = [_leaves_around(point, generator) for point in _integers(sources, trees, brick)]
        corners = np.concatenate([corner, next_to[0], *(leaves.corner for leaves in nearby_leaves)])
        levels = np.concatenate([level, next_to[1], *(leaves.level for leaves in nearby_leaves)])
        _, rows, inverse = np.unique(morton_keys(corners), return_index=True, return_inverse=True)
        mesh = SampledMesh(
            Forest(brick, corners[rows], levels[rows]),
            generator.leaves_of,
            np.zeros(1, np.uint64),
            rank=0,
            first=0,
            total=round(generator.estimated_leaves()),
            tree_size=tree_size,
            origin=origin,
        )
        counts = np.bincount(inverse.reshape(-1)[first], volumes / number, minlength=len(rows))
        mesh.shares = np.asarray(counts, np.float64)
        return mesh

    def _build(self, leaves: Forest, locate: object, cut_keys: Keys, rank: int) -> None:
        """Find the neighbours that are in the sample."""
        children = 1 << (self.dim - 1)
        self.level, self.corner = leaves.level, leaves.corner
        self.neighbours = np.full((self.count, self.faces, children), -1, np.int32)
        self.kinds = np.full(self.neighbours.shape, NONE, np.int8)
        self.child = np.full((self.count, self.faces), -1, np.int8)
        self.ghost_owner = np.zeros(0, np.int64)
        for face in range(self.faces):
            points, outside = self.brick.wrap(self._across(leaves, face, 0))
            inner_rows = np.nonzero(~outside)[0]
            self.kinds[inner_rows, face, 0] = LOCAL
            indices = _find(leaves, points[inner_rows])
            self.neighbours[inner_rows, face, 0] = indices
            large = inner_rows[(indices >= 0) & (leaves.level[indices] == leaves.level[inner_rows] + 1)]
            for child in range(1, children):
                points, _ = self.brick.wrap(self._across(leaves, face, child)[large])
                self.kinds[large, face, child] = LOCAL
                self.neighbours[large, face, child] = _find(leaves, points)


def _integers(points: Floats, trees: Trees, brick: Brick) -> Integers:
    """Return the integer coordinates of points in space, moved to the nearest of the brick."""
    fine = np.floor(trees.in_units(np.asarray(points, np.float64).reshape(-1, brick.dim)) * (1 << brick.depth))
    return np.clip(fine, 0, brick.extent - 1).astype(np.int64)


def _find(leaves: Forest, points: Integers) -> npt.NDArray[np.int64]:
    """Return the leaf of a sample that contains each integer point, -1 for none."""
    leaf = np.maximum(leaves.leaf_of(points), 0)
    offset = points - leaves.corner[leaf]
    return np.where(((offset >= 0) & (offset < leaves.side[leaf, None])).all(1), leaf, -1)


def _neighbours(leaves: Forest, generator: Generator) -> tuple[Integers, Integers]:
    """Return corners and levels of all leaves that share a face with one of these."""
    brick, side = leaves.brick, leaves.side
    neighbour_points = []
    for face in range(2 * brick.dim):
        tangents = [axis for axis in range(brick.dim) if axis != face // 2]
        for child in range(1 << len(tangents)):
            points = leaves.corner.copy()
            points[:, face // 2] += side if face % 2 else -1
            for bit, tangent in enumerate(tangents):
                points[:, tangent] += (child >> bit & 1) * (side >> 1)
            points, is_outside = brick.wrap(points)
            neighbour_points.append(points[~is_outside])
    return generator.leaves_of(np.unique(np.concatenate(neighbour_points), axis=0))


def _leaves_around(point: Integers, generator: Generator) -> Forest:
    """Return the leaves around an integer point, also across periodic sides.

    Where elements near the source are many times smaller than its own, as in a slow layer, these are omitted.
    """
    brick = generator.brick
    around = np.clip(point + brick.children - 1, 0, brick.extent - 1)
    _, levels = generator.leaves_of(around)
    reach = int(_SOURCE_DISTANCE * 2.0 ** (brick.depth - levels.min()))
    shifts = [(-1, 0, 1) if wraps else (0,) for wraps in brick.periodic]
    images = np.stack([axis.ravel() for axis in np.meshgrid(*shifts, indexing="ij")], 1) * brick.extent
    return generator.leaves_in(point + images - reach, point + images + reach, _MAX_AROUND)
