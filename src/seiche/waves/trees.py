# SPDX-License-Identifier: BSD-3-Clause
"""Where the trees of a brick lie in space: along each axis all of one side, or each with a width of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.waves.forest import Brick, Integers, sequence_of

Floats = npt.NDArray[np.float64]
#: The side of all trees, sides an axis, or for an axis the widths of its trees.
TreeSize = Sequence[float | Sequence[float]] | float

#: How much wider a tree of a stretched axis may be than the one before it: more, and waves that elements begin not to
#: resolve come back (theory/waves, table 4).
_STEEPEST = 2.0


def stretched(count: int, width: float, beyond: tuple[int, int], growth: float = 1.2) -> list[float]:
    """Return widths of trees along an axis: `count` of one width, `beyond` them others that grow (theory/waves, 9).

    Args:
        count: of the trees in the middle.
        width: theirs.
        beyond: numbers of trees before and after them.
        growth: width of each of these over that of its neighbour towards the middle.

    Raises:
        CaseError: nothing in the middle, or a growth that is not between 1 and 2.
    """
    if count < 1 or min(beyond) < 0:
        raise CaseError(f"stretched axis: {count} trees and {beyond[0]} and {beyond[1]} beyond: too few")
    if not 1.0 <= growth <= _STEEPEST:
        raise CaseError(f"stretched axis: growth {growth:g} has to lie between 1 and {_STEEPEST:g}")
    before, after = ([width * growth ** (place + 1) for place in range(number)] for number in beyond)
    return [*reversed(before), *(width,) * count, *after]


class Trees:
    """The map between places counted in trees and space, linear in every tree.

    Attributes:
        origin: lower corner of the brick, (dim,).
        edges: coordinates of the trees' sides along each axis, dim arrays (trees + 1,).
        widths: the trees' widths along each axis, dim arrays (trees,).
    """

    def __init__(self, brick: Brick, tree_size: TreeSize, origin: Sequence[float] | float) -> None:
        """Place the trees.

        Raises:
            CaseError: a tree without extent, or another number of axes or trees than the brick's.
        """
        self.origin = sequence_of(origin, brick.dim, "mesh: origin")
        sides: Sequence[float | Sequence[float]]
        if isinstance(tree_size, int | float) or all(np.ndim(side) == 0 for side in tree_size):
            sides = sequence_of(tree_size, brick.dim, "mesh: sides of a tree").tolist()  # type: ignore[arg-type]
        else:
            sides = list(tree_size)
        if len(sides) != brick.dim:
            raise CaseError(f"mesh: sides of trees along {len(sides)} axes, the brick has {brick.dim}")
        self.widths: list[Floats] = []
        for axis, (side, count) in enumerate(zip(sides, brick.trees, strict=True)):
            widths = np.full(count, side) if np.ndim(side) == 0 else np.asarray(side, np.float64)
            if widths.shape != (count,):
                raise CaseError(f"mesh: {widths.size} widths of trees along axis {axis}, the brick has {count} trees")
            self.widths.append(widths)
        if not np.isfinite(self.origin).all():
            raise CaseError(f"mesh: origin {self.origin.tolist()} has to be finite")
        if not all(np.all((widths > 0) & np.isfinite(widths)) for widths in self.widths):
            raise CaseError(f"mesh: sides of a tree {sides} have to be positive")
        self.edges = [
            start + np.concatenate([[0.0], np.cumsum(widths)])
            for start, widths in zip(self.origin, self.widths, strict=True)
        ]

    def sizes(self, corner: Integers, level: Integers, depth: int) -> Floats:
        """Return the sides of leaves by their integer corners (n, dim) and levels (n,), (n, dim)."""
        tree = corner >> depth
        widths = [along[tree[:, axis]] for axis, along in enumerate(self.widths)]
        return np.asarray(np.stack(widths, 1) * 2.0 ** -level[:, None])

    def places(self, corner: Integers, depth: int) -> Floats:
        """Return where integer corners (n, dim) lie, (n, dim)."""
        tree = corner >> depth
        within = (corner - (tree << depth)) / (1 << depth)
        axes = zip(self.edges, self.widths, tree.T, within.T, strict=True)
        return np.asarray(np.stack([edges[at] + widths[at] * part for edges, widths, at, part in axes], 1))

    def counted(self, points: Floats) -> Floats:
        """Return points (..., dim) counted in trees from the lower corner; beyond the brick its last trees go on."""
        result = np.empty(points.shape)
        for axis, (edges, widths) in enumerate(zip(self.edges, self.widths, strict=True)):
            tree = np.clip(np.searchsorted(edges, points[..., axis], side="right") - 1, 0, len(widths) - 1)
            result[..., axis] = tree + (points[..., axis] - edges[tree]) / widths[tree]
        return result
