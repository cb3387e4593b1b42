# SPDX-License-Identifier: BSD-3-Clause
"""Linear forests of octrees (quadtrees in two dimensions): leaves in Morton order (theory/waves, section 6).

A forest is a brick of cubic trees. A leaf is stored as its integer lower corner and its level. Leaves are sorted by
the Morton key of that corner. All operations are vectorised over leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Integers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

#: Bits of a coordinate: a key has `dim` times as many.
_BITS = {2: 31, 3: 21}
#: Shifts and masks that spread the bits of a coordinate over a key.
_SHIFTS = {2: (16, 8, 4, 2, 1), 3: (32, 16, 8, 4, 2)}
_MASKS = {
    2: (0x0000FFFF0000FFFF, 0x00FF00FF00FF00FF, 0x0F0F0F0F0F0F0F0F, 0x3333333333333333, 0x5555555555555555),
    3: (0x001F00000000FFFF, 0x001F0000FF0000FF, 0x100F00F00F00F00F, 0x10C30C30C30C30C3, 0x1249249249249249),
}


def morton_keys(coordinates: Integers) -> Keys:
    """Return the Morton keys of integer coordinates (n, dim): bit b of axis a becomes bit dim b + a."""
    dim = coordinates.shape[-1]
    keys = np.zeros(coordinates.shape[:-1], np.uint64)
    for axis in range(dim):
        bits = coordinates[..., axis].astype(np.uint64)
        for shift, mask in zip(_SHIFTS[dim], _MASKS[dim], strict=True):
            bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
        keys |= bits << np.uint64(axis)
    return keys


@dataclass(frozen=True)
class Brick:
    """The trees of a forest: their number along each axis, and which axes are periodic."""

    trees: tuple[int, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        """Raise CaseError unless there are two or three axes with a valid number of trees."""
        if len(self.trees) not in _BITS or len(self.periodic) != len(self.trees):
            raise CaseError(f"mesh: {self.trees} trees, periodic {self.periodic}: both require two or three entries")
        if min(self.trees) < 1 or max(self.trees) >= 1 << (_BITS[self.dim] - 4):
            raise CaseError(f"mesh: {self.trees} trees: 1 to {(1 << (_BITS[self.dim] - 4)) - 1} along each axis")

    @property
    def dim(self) -> int:
        """Return the number of axes."""
        return len(self.trees)

    @property
    def depth(self) -> int:
        """Return the finest level; a tree has 2^depth integer coordinates along an axis."""
        return min(19, _BITS[self.dim] - int(max(self.trees) - 1).bit_length())

    @property
    def extent(self) -> Integers:
        """Return the integer coordinates along each axis, (dim,)."""
        return np.array(self.trees, np.int64) << self.depth

    @property
    def children(self) -> Integers:
        """Return the corners of the children of a box of side 2, in Morton order, (2^dim, dim)."""
        return np.array([[c >> a & 1 for a in range(self.dim)] for c in range(1 << self.dim)], np.int64)

    def roots(self) -> Integers:
        """Return the corners of the trees in Morton order, (n, dim)."""
        grid = np.meshgrid(*(np.arange(count) for count in self.trees), indexing="ij")
        corners = np.stack([axis.ravel() for axis in grid], 1).astype(np.int64) << self.depth
        return np.asarray(corners[np.argsort(morton_keys(corners), kind="stable")])

    def wrap(self, corners: Integers) -> tuple[Integers, Flags]:
        """Return the corners moved into the brick along periodic axes, and which are outside it along others."""
        extent, periodic = self.extent, np.array(self.periodic)
        is_outside = (((corners < 0) | (corners >= extent)) & ~periodic).any(-1)
        return np.where(periodic, corners % extent, corners), is_outside


class Forest:
    """Leaves of a brick, all or an interval of the curve.

    Attributes:
        brick: the trees.
        corner: lower corners in integer coordinates, (n, dim).
        level: their levels, (n,); a leaf has the side 2^(depth - level).
        key: their keys, ascending.
    """

    def __init__(self, brick: Brick, corner: Integers, level: npt.NDArray[np.int64]) -> None:
        """Store leaves that are already sorted along the curve."""
        self.brick, self.corner, self.level = brick, corner, level
        self.key = morton_keys(corner)

    @staticmethod
    def uniform(brick: Brick, level: int) -> Forest:
        """Return the forest whose leaves all have one level."""
        forest = Forest(brick, brick.roots(), np.zeros(int(np.prod(brick.trees)), np.int64))
        for _ in range(level):
            forest = forest.refined(np.ones(len(forest), np.bool_))
        return forest

    def __len__(self) -> int:
        """Return the number of leaves."""
        return len(self.level)

    @property
    def side(self) -> Integers:
        """Return the sides of the leaves in integer coordinates, (n,)."""
        return np.int64(1) << (self.brick.depth - self.level)

    def refined(self, flags: Flags) -> Forest:
        """Return the forest with the flagged leaves split; CaseError for a flagged leaf of the finest level."""
        if np.any(flags & (self.level >= self.brick.depth)):
            raise CaseError(
                f"mesh: refinement beyond level {self.brick.depth}, the finest level of {self.brick.trees} trees"
            )
        children = self.brick.children
        copies = np.where(flags, len(children), 1)
        parent = np.repeat(np.arange(len(self)), copies)
        split = flags[parent]
        child = np.arange(len(parent)) - np.repeat(np.cumsum(copies) - copies, copies)
        half = np.where(split, self.side[parent] >> 1, 0)
        return Forest(self.brick, self.corner[parent] + children[child] * half[:, None], self.level[parent] + split)

    def leaf_of(self, corners: Integers) -> npt.NDArray[np.int64]:
        """Return the leaf that contains each of the integer points (n, dim) of the brick."""
        return np.asarray(np.searchsorted(self.key, morton_keys(corners), side="right") - 1)

    def neighbours(self, face: int) -> npt.NDArray[np.int64]:
        """Return for each leaf the one at the lower corner of its equal neighbour over `face`, -1 outside."""
        direction = np.zeros(self.brick.dim, np.int64)
        direction[face // 2] = 2 * (face % 2) - 1
        corners, outside = self.brick.wrap(self.corner + direction * self.side[:, None])
        return np.where(outside, -1, self.leaf_of(corners))

    def balanced(self) -> Forest:
        """Return the coarsest refinement in which leaves that share a face differ by one level at most."""
        forest = self
        while True:
            flags = np.zeros(len(forest), np.bool_)
            for face in range(2 * self.brick.dim):
                over = forest.neighbours(face)
                coarse = (over >= 0) & (forest.level[over] < forest.level - 1)
                flags[over[coarse]] = True
            if not flags.any():
                return forest
            forest = forest.refined(flags)

    def interval(self, first: int, last: int) -> Forest:
        """Return the leaves first ... last - 1 of the curve."""
        return Forest(self.brick, self.corner[first:last], self.level[first:last])


def cuts(weights: npt.NDArray[np.float64], ranks: int) -> npt.NDArray[np.int64]:
    """Return the first leaf of each rank, then the number of leaves, for equal shares of weight along the curve.

    With equal weights rank r owns the leaves floor(r N/P) ... floor((r + 1) N/P) - 1; every rank owns at least one.
    Raises CaseError for more ranks than leaves and for weights that are not positive.
    """
    count = len(weights)
    if count < ranks:
        raise CaseError(f"there are more ranks ({ranks}) than mesh elements ({count}); use fewer ranks")
    if not np.all(weights > 0):
        raise CaseError("partition: weights of elements must be positive")
    ends = np.cumsum(weights)
    targets = ends[-1] * np.arange(1, ranks) / ranks
    inner_ends = np.searchsorted(ends, targets * (1 + 1e-14), side="right")
    result = np.concatenate([[0], inner_ends, [count]]).astype(np.int64)
    for rank in range(1, ranks):
        result[rank] = min(max(result[rank], result[rank - 1] + 1), count - ranks + rank)
    return result


def sequence_of(values: Sequence[float] | float, dim: int, label: str) -> npt.NDArray[np.float64]:
    """Return `dim` numbers from one or `dim` values; CaseError for another number of values."""
    array = np.atleast_1d(np.asarray(values, np.float64))
    if array.shape not in ((1,), (dim,)):
        raise CaseError(f"{label}: {values} requires {dim} numbers")
    return np.repeat(array, dim // len(array))
