# SPDX-License-Identifier: BSD-3-Clause
"""Graded fields of element sizes, and leaves generated from them by each rank alone (theory/waves, section 6).

A box is split while its side exceeds the smallest size in it. With |h(x) - h(y)| <= max_a |x_a - y_a| this yields a
balanced forest. A rank therefore generates only the leaves of its interval of the curve. It finds the neighbours
across its border by evaluating the field there, so no rank stores the whole mesh.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.waves.forest import Brick, Forest, Integers, Keys, morton_keys

Floats = npt.NDArray[np.float64]

#: Elements per wavelength for phase and damping errors below 1e-2, 1e-3, 1e-4 per wavelength, by nodes per direction
#: (upwind flux; theory/waves, table 2).
ELEMENTS_PER_WAVELENGTH = {
    2: (64.1, 203.0, 643.0),
    3: (6.64, 11.97, 21.3),
    4: (2.74, 4.10, 6.08),
    5: (1.63, 2.23, 3.01),
    6: (1.13, 1.47, 1.88),
    7: (0.87, 1.08, 1.33),
    8: (0.69, 0.84, 1.02),
    9: (0.58, 0.69, 0.82),
    10: (0.49, 0.58, 0.68),
}

#: Number of boxes of a size field from which nearby boxes are searched, and maximum number of groups of points.
_GROUPED_SEARCH_BOXES, _MAX_GROUPS = 64, 256
#: Number of pairs of points and boxes that are compared at a time.
_PAIRS = 1 << 18


def elements_per_wavelength(nodes: int, error: float) -> float:
    """Return the elements per wavelength for an error per wavelength below `error` (1e-5 to 0.1).

    Raises CaseError for a number of nodes that is not tabulated and for an error out of range.
    """
    if nodes not in ELEMENTS_PER_WAVELENGTH:
        raise CaseError(f"refinement by wavelength: {nodes} nodes per direction, expected 2 to 10")
    if not 1e-5 <= error <= 0.1:
        raise CaseError(f"refinement by wavelength: error {error:g} per wavelength must be between 1e-5 and 0.1")
    log_elements = np.log(ELEMENTS_PER_WAVELENGTH[nodes])
    decade = -np.log10(error) - 2.0
    piece = 0 if decade < 1.0 else 1
    return float(np.exp(log_elements[piece] + (decade - piece) * (log_elements[piece + 1] - log_elements[piece])))


class SizeField:
    """h(x) = min over boxes k of size_k + distance(x, box_k) in the maximum norm; graded by construction."""

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike, size: npt.ArrayLike) -> None:
        """Store the corners (k, dim), (k, dim) of boxes and the sizes in them (k,), in units of the side of a tree.

        Raises:
            CaseError: no box, a box with a lower corner above its upper one, or a size that is not positive.
        """
        self.lower = np.atleast_2d(np.asarray(lower, np.float64))
        self.upper = np.atleast_2d(np.asarray(upper, np.float64))
        self.size = np.atleast_1d(np.asarray(size, np.float64))
        if self.lower.shape != self.upper.shape or len(self.size) != len(self.lower) or not len(self.size):
            raise CaseError("element sizes: the numbers of lower corners, upper corners and sizes of boxes differ")
        if np.any(self.lower > self.upper):
            raise CaseError("element sizes: the lower corner of a box is above its upper corner")
        if not np.all(self.size > 0):
            raise CaseError(f"element sizes: {self.size.min():g} is not positive")

    @staticmethod
    def uniform(size: float, dim: int) -> SizeField:
        """Return the field of one size everywhere."""
        return SizeField(np.full((1, dim), -np.inf), np.full((1, dim), np.inf), [size])

    def with_images(self, brick: Brick) -> SizeField:
        """Return the field with the boxes repeated beyond periodic boundaries; infinite ones end there."""
        wraps = np.array(brick.periodic)
        lower = np.where(wraps & np.isinf(self.lower), np.minimum(0.0, self.upper), self.lower)
        upper = np.where(wraps & np.isinf(self.upper), np.maximum(np.array(brick.trees), self.lower), self.upper)
        shifts = [
            (-count, 0, count) if repeats else (0,) for count, repeats in zip(brick.trees, brick.periodic, strict=True)
        ]
        images = np.array(list(itertools.product(*shifts)), np.float64)
        dim = brick.dim
        lower, upper = ((corners + images[:, None]).reshape(-1, dim) for corners in (lower, upper))
        size = np.tile(self.size, len(images))
        # A box farther away than the side of a tree splits none; boxes that are not images are retained.
        used = size + np.maximum(np.maximum(lower - brick.trees, -upper).max(1), 0.0) < 1.0
        used[len(images) // 2 * len(self.size) :][: len(self.size)] = True
        return SizeField(lower[used], upper[used], size[used])

    def below(self, lower: Floats, side: float) -> npt.NDArray[np.bool_]:
        """Return whether the smallest size in each of the closed boxes [lower, lower + side] is below `side`, (n,).

        Boxes of the field that are too far from a whole group of the closed boxes are skipped.
        """
        result = np.zeros(len(lower), np.bool_)
        for rows in _groups(lower, side) if len(self.size) > _GROUPED_SEARCH_BOXES else [np.arange(len(lower))]:
            low, high = lower[rows], lower[rows] + side
            gap = np.maximum(self.lower - high.max(0), low.min(0) - self.upper).max(1)
            close = np.nonzero(self.size + np.maximum(gap, 0.0) < side)[0]
            step = max(1, _PAIRS // max(1, len(close)))
            for first in range(0, len(rows), step):
                group, distance = slice(first, first + step), np.zeros((1, 1))
                for axis in range(lower.shape[1]):
                    below, above = self.lower[close, axis], self.upper[close, axis]
                    distance = np.maximum(
                        distance, np.maximum(below - high[group, axis, None], low[group, axis, None] - above)
                    )
                result[rows[group]] = np.any(self.size[close] + distance < side, axis=1)
        return result


def _groups(lower: Floats, side: float) -> list[npt.NDArray[np.int64]]:
    """Return the rows of points in the cells of the finest grid, of sides `side` times a power of two, with few."""
    while True:
        cells = np.floor((lower - lower.min(0)) / side).astype(np.int64)
        _, group = np.unique(np.ravel_multi_index(list(cells.T), cells.max(0) + 1), return_inverse=True)
        if group.max() < _MAX_GROUPS:
            order = np.argsort(group, kind="stable")
            return np.split(order, np.nonzero(np.diff(group[order]))[0] + 1)
        side *= 2.0


class Generator:
    """Generates the leaves of a size field, for any interval of the curve."""

    def __init__(self, brick: Brick, sizes: SizeField) -> None:
        """Store the field with its periodic images."""
        self.brick, self.sizes = brick, sizes.with_images(brick)
        self._unit = 1.0 / (1 << brick.depth)

    def _splits(self, corner: Integers, level: int) -> npt.NDArray[np.bool_]:
        split = self.sizes.below(np.asarray(corner * self._unit, np.float64), 2.0**-level)
        if level == self.brick.depth and split.any():
            raise CaseError(f"element sizes: smaller than 2^-{level} of a tree, the finest level")
        return split

    def leaves(self, low: int = 0, high: int = 1 << 63) -> Forest:
        """Return the leaves with keys in [low, high), descending only into boxes that meet the interval."""
        dim, depth = self.brick.dim, self.brick.depth

        def meets(corner: Integers, level: int) -> npt.NDArray[np.bool_]:
            key = morton_keys(corner)
            last = key + np.uint64((1 << dim * (depth - level)) - 1)
            return np.asarray((key < np.uint64(high)) & (last >= np.uint64(low)))

        leaves = self._leaves(self.brick.roots(), meets)
        in_range = np.asarray((leaves.key >= np.uint64(low)) & (leaves.key < np.uint64(high)))
        return leaves if in_range.all() else Forest(self.brick, leaves.corner[in_range], leaves.level[in_range])

    def leaves_in(self, lower: Integers, upper: Integers, limit: int | None = None) -> Forest:
        """Return the leaves that meet one of the boxes [lower, upper), (boxes, dim) in integer coordinates.

        The leaves of levels from which more than `limit` boxes would be examined are omitted.
        """

        def meets(corner: Integers, level: int) -> npt.NDArray[np.bool_]:
            first, last = corner[:, None], corner[:, None] + (np.int64(1) << (self.brick.depth - level))
            return np.asarray(np.all((first < upper) & (last > lower), axis=2).any(1))

        depth, roots = self.brick.depth, []
        for low, high in zip(np.maximum(lower, 0), np.minimum(upper, self.brick.extent), strict=True):
            trees = [np.arange(a >> depth, -(-b >> depth)) for a, b in zip(low, high, strict=True)]
            roots.append(np.stack([axis.ravel() for axis in np.meshgrid(*trees, indexing="ij")], 1) << depth)
        return self._leaves(np.unique(np.concatenate(roots), axis=0), meets, limit)

    def _leaves(
        self,
        roots: Integers,
        meets: Callable[[Integers, int], npt.NDArray[np.bool_]],
        limit: int | None = None,
    ) -> Forest:
        """Return the leaves in those boxes, with corners at a level, that `meets` accepts, beginning with `roots`."""
        dim, depth = self.brick.dim, self.brick.depth
        corner, corners, levels = roots, [], []
        for level in range(depth + 1):
            corner = corner[meets(corner, level)]
            if not len(corner) or (limit is not None and len(corner) > limit):
                break
            split = self._splits(corner, level)
            corners.append(corner[~split])
            levels.append(np.full(int((~split).sum()), level, np.int64))
            half = np.int64(1) << max(depth - level - 1, 0)
            corner = (corner[split][:, None] + self.brick.children * half).reshape(-1, dim)
        lower, level_of = np.concatenate(corners), np.concatenate(levels)
        order = np.argsort(morton_keys(lower), kind="stable")
        return Forest(self.brick, lower[order], level_of[order])

    def leaves_of(self, points: Integers) -> tuple[Integers, Integers]:
        """Return corners and levels of the leaves that contain integer points of the brick, (n, dim) and (n,)."""
        depth = self.brick.depth
        corner, level = points >> depth << depth, np.zeros(len(points), np.int64)
        active = np.arange(len(points))
        for fine in range(depth + 1):
            if not len(active):
                break
            boxes, inverse = np.unique(corner[active], axis=0, return_inverse=True)
            active = active[self._splits(boxes, fine)[inverse.reshape(-1)]]
            shift = depth - fine - 1
            corner[active] = points[active] >> max(shift, 0) << max(shift, 0)
            level[active] = fine + 1
        return corner, level

    def estimated_leaves(self) -> float:
        """Return the number of leaves, from those that contain 20,000 random points, the same on every call."""
        brick = self.brick
        points = np.random.default_rng(1).integers(0, brick.extent, (20_000, brick.dim))
        _, levels = self.leaves_of(points)
        return float(np.prod(np.array(brick.trees, np.float64)) * np.mean(2.0 ** (brick.dim * levels)))

    def boxes(self, minimum: int) -> Keys:
        """Return the first keys of boxes that cover the brick, at least `minimum` of them if the depth permits."""
        corner, level = self.brick.roots(), 0
        while len(corner) < minimum and level < self.brick.depth:
            half = np.int64(1) << (self.brick.depth - level - 1)
            corner = (corner[:, None] + self.brick.children * half).reshape(-1, self.brick.dim)
            level += 1
        return morton_keys(corner)


def slabs(tops: Sequence[float], sizes: Sequence[float], axis: int, dim: int) -> SizeField:
    """Return the field of layers: `sizes[k]` between `tops[k]` and `tops[k + 1]` along `axis`, in tree units.

    Raises CaseError unless the boundaries increase and are one more than the sizes.
    """
    if len(tops) != len(sizes) + 1 or np.any(np.diff(tops) <= 0):
        raise CaseError(f"element sizes: layer boundaries {list(tops)} must increase and be one more than the layers")
    lower, upper = np.full((len(sizes), dim), -np.inf), np.full((len(sizes), dim), np.inf)
    lower[:, axis], upper[:, axis] = tops[:-1], tops[1:]
    return SizeField(lower, upper, sizes)
