# SPDX-License-Identifier: BSD-3-Clause
"""Positions of the trees of a brick in space: along each axis of equal or of individual widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.waves.forest import Brick, Integers, sequence_of

Floats = npt.NDArray[np.float64]
#: The side of all trees, one side for each axis, or for an axis the widths of its trees.
TreeSize = Sequence[float | Sequence[float]] | float

#: Maximum ratio of the widths of neighbouring trees on a stretched axis. Beyond it, waves that the elements no longer
#: resolve are reflected (theory/waves, section 9).
_MAX_WIDTH_RATIO = 2.0


def stretched(count: int, width: float, beyond: tuple[int, int], growth: float = 1.2) -> list[float]:
    """Return widths of trees along an axis: equal in the middle, growing outwards (theory/waves, section 9).

    Args:
        count: number of trees in the middle.
        width: width of these trees.
        beyond: number of trees before and after them.
        growth: ratio of the widths of an outer tree and of its neighbour towards the middle.

    Raises:
        CaseError: no trees in the middle, or a growth that is not between 1 and 2.
    """
    if count < 1 or min(beyond) < 0:
        raise CaseError(f"stretched axis: {count} trees are too few for {beyond[0]} before and {beyond[1]} after")
    if not 1.0 <= growth <= _MAX_WIDTH_RATIO:
        raise CaseError(f"stretched axis: growth {growth:g} must be between 1 and {_MAX_WIDTH_RATIO:g}")
    lower_widths, upper_widths = ([width * growth ** (index + 1) for index in range(number)] for number in beyond)
    return [*reversed(lower_widths), *(width,) * count, *upper_widths]


class Trees:
    """The map between positions in units of trees and space, linear in every tree.

    Attributes:
        origin: lower corner of the brick, (dim,).
        edges: coordinates of the trees' sides along each axis, dim arrays (trees + 1,).
        widths: the trees' widths along each axis, dim arrays (trees,).
    """

    def __init__(self, brick: Brick, tree_size: TreeSize, origin: Sequence[float] | float) -> None:
        """Compute the edges; CaseError for a tree without extent, or numbers that differ from those of the brick."""
        self.origin = sequence_of(origin, brick.dim, "mesh: origin")
        sides: Sequence[float | Sequence[float]]
        if isinstance(tree_size, int | float) or all(np.ndim(side) == 0 for side in tree_size):
            sides = sequence_of(tree_size, brick.dim, "mesh: sides of a tree").tolist()  # type: ignore[arg-type]
        else:
            sides = list(tree_size)
        if len(sides) != brick.dim:
            raise CaseError(f"mesh: sides of trees along {len(sides)} axes, but the brick has {brick.dim}")
        self.widths: list[Floats] = []
        for axis, (side, count) in enumerate(zip(sides, brick.trees, strict=True)):
            widths = np.full(count, side) if np.ndim(side) == 0 else np.asarray(side, np.float64)
            if widths.shape != (count,):
                raise CaseError(f"mesh: {widths.size} widths along axis {axis}, but the brick has {count} trees there")
            self.widths.append(widths)
        if not np.isfinite(self.origin).all():
            raise CaseError(f"mesh: origin {self.origin.tolist()} must be finite")
        if not all(np.all((widths > 0) & np.isfinite(widths)) for widths in self.widths):
            raise CaseError(f"mesh: sides of a tree {sides} must be positive")
        axes = zip(self.origin, self.widths, strict=True)
        self.edges = [start + np.concatenate([[0.0], np.cumsum(widths)]) for start, widths in axes]

    def sizes(self, corner: Integers, level: Integers, depth: int) -> Floats:
        """Return the sides of leaves by their integer corners (n, dim) and levels (n,), (n, dim)."""
        tree = corner >> depth
        widths = [axis_widths[tree[:, axis]] for axis, axis_widths in enumerate(self.widths)]
        return np.asarray(np.stack(widths, 1) * 2.0 ** -level[:, None])

    def positions(self, corner: Integers, depth: int) -> Floats:
        """Return the positions of integer corners (n, dim), (n, dim)."""
        tree = corner >> depth
        relative_corner = (corner - (tree << depth)) / (1 << depth)
        axes = zip(self.edges, self.widths, tree.T, relative_corner.T, strict=True)
        return np.asarray(np.stack([edges[tree] + widths[tree] * offset for edges, widths, tree, offset in axes], 1))

    def in_units(self, points: Floats) -> Floats:
        """Return points (..., dim) in units of trees from the lower corner, extrapolated outside the brick."""
        result = np.empty(points.shape)
        for axis, (edges, widths) in enumerate(zip(self.edges, self.widths, strict=True)):
            tree = np.clip(np.searchsorted(edges, points[..., axis], side="right") - 1, 0, len(widths) - 1)
            result[..., axis] = tree + (points[..., axis] - edges[tree]) / widths[tree]
        return result
