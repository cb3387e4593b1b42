# SPDX-License-Identifier: BSD-3-Clause
"""Graded fields of element sizes, and leaves generated from them by each rank alone (theory/waves, section 6).

A box is split while its side exceeds the smallest size in it. With |h(x) - h(y)| <= max_a |x_a - y_a| this yields a
balanced forest. A rank therefore generates only the leaves of its interval of the curve. It finds the neighbours
across its border by evaluating the field there, so no rank stores the whole mesh.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

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


def elements_per_wavelength(nodes: int, error: float) -> float:
    """Return the elements per wavelength for an error per wavelength below `error` (1e-5 to 0.1).

    Raises CaseError for a number of nodes that is not tabulated and for an error out of range.
    """
    if nodes not in ELEMENTS_PER_WAVELENGTH:
        raise CaseError(f"refinement by wavelength: {nodes} nodes per direction, but only 2 to 10 are tabulated")
    if not 1e-5 <= error <= 0.1:
        raise CaseError(f"refinement by wavelength: error {error:g} per wavelength must be between 1e-5 and 0.1")
    numbers = np.log(ELEMENTS_PER_WAVELENGTH[nodes])
    at = -np.log10(error) - 2.0
    piece = 0 if at < 1.0 else 1
    return float(np.exp(numbers[piece] + (at - piece) * (numbers[piece + 1] - numbers[piece])))


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
            raise CaseError("element sizes: lower corners, upper corners and sizes of the boxes differ in number")
        if np.any(self.lower > self.upper):
            raise CaseError("element sizes: the lower corner of a box is above its upper corner")
        if not np.all(self.size > 0):
            raise CaseError(f"element sizes: {self.size.min():g} is not positive")

    @staticmethod
    def uniform(size: float, dim: int) -> SizeField:
        """Return the field of one size everywhere."""
        return SizeField(np.full((1, dim), -np.inf), np.full((1, dim), np.inf), [size])

    def with_images(self, brick: Brick) -> SizeField:
        """Return the field with the boxes repeated beyond periodic boundaries."""
        shifts = [
            (-count, 0, count) if wraps else (0,) for count, wraps in zip(brick.trees, brick.periodic, strict=True)
        ]
        images = np.array(list(itertools.product(*shifts)), np.float64)
        dim = brick.dim
        return SizeField(
            (self.lower + images[:, None]).reshape(-1, dim),
            (self.upper + images[:, None]).reshape(-1, dim),
            np.tile(self.size, len(images)),
        )

    def smallest(self, lower: Floats, side: Floats) -> Floats:
        """Return the smallest size in each of the closed boxes [lower, lower + side], (n,)."""
        result = np.full(len(lower), np.inf)
        for first, last, size in zip(self.lower, self.upper, self.size, strict=True):
            gap = np.maximum(first - (lower + side[:, None]), lower - last).max(1)
            np.minimum(result, size + np.maximum(gap, 0.0), out=result)
        return result


class Generator:
    """Generates the leaves of a size field, for any interval of the curve."""

    def __init__(self, brick: Brick, sizes: SizeField) -> None:
        """Store the field with its periodic images."""
        self.brick, self.sizes = brick, sizes.with_images(brick)
        self._unit = 1.0 / (1 << brick.depth)

    def _splits(self, corner: Integers, level: int) -> npt.NDArray[np.bool_]:
        side = np.full(len(corner), 2.0**-level)
        split = self.sizes.smallest(np.asarray(corner * self._unit, np.float64), side) < side
        if level == self.brick.depth and split.any():
            raise CaseError(f"element sizes: smaller than 2^-{level} of a tree, the finest level")
        return split

    def leaves(self, low: int = 0, high: int = 1 << 63) -> Forest:
        """Return the leaves with keys in [low, high), descending only into boxes that meet the interval."""
        dim, depth = self.brick.dim, self.brick.depth
        corner, corners, levels = self.brick.roots(), [], []
        for level in range(depth + 1):
            key = morton_keys(corner)
            last = key + np.uint64((1 << dim * (depth - level)) - 1)
            corner = corner[(key < np.uint64(high)) & (last >= np.uint64(low))]
            if not len(corner):
                break
            split = self._splits(corner, level)
            key = morton_keys(corner[~split])
            own = (key >= np.uint64(low)) & (key < np.uint64(high))
            corners.append(corner[~split][own])
            levels.append(np.full(int(own.sum()), level, np.int64))
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

    def boxes(self, least: int) -> Keys:
        """Return the first keys of boxes that cover the brick, at least `least` of them if the depth permits."""
        corner, level = self.brick.roots(), 0
        while len(corner) < least and level < self.brick.depth:
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
