# SPDX-License-Identifier: BSD-3-Clause
"""The sides of a wave case, the trees of its mesh, and those of a margin beyond absorbing sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.case.waves.schema import WaveCase
from seiche.waves import Brick
from seiche.waves.trees import Trees, stretched

Floats = npt.NDArray[np.float64]


def sides_of(case: WaveCase) -> tuple[str, ...]:
    """Return the kinds of the sides x-, x+, y-, ...; those of periodic axes have no effect."""
    boundary = case.boundary
    lower, upper = (sides or ("absorbing",) * case.dim for sides in (boundary.lower, boundary.upper))
    return tuple(side for pair in zip(lower, upper, strict=True) for side in pair)


def absorbing_sides(case: WaveCase) -> npt.NDArray[np.bool_]:
    """Return which sides are absorbing and not periodic, (dim, 2)."""
    kinds, periodic = np.array(sides_of(case)).reshape(-1, 2), np.array(case.mesh.periodic or (False,) * case.dim)
    return np.asarray((kinds == "absorbing") & ~periodic[:, None])


@dataclass(frozen=True, eq=False)
class Roots:
    """The trees of a case, in the box of its mesh and in the margin.

    Attributes:
        brick: the number of trees along each axis.
        sides: sides of a tree in the box, (dim,).
        widths: for each axis the side of all trees, or the widths of its trees.
        origin: lower corner of all trees, (dim,).
        margin: least thickness (m) of the margin at an absorbing side; 0 without a margin.
    """

    brick: Brick
    sides: Floats
    widths: tuple[float | list[float], ...]
    origin: tuple[float, ...]
    margin: float = 0.0

    def in_units(self, points: Floats) -> Floats:
        """Return points (n, dim) in units of trees from the lower corner of all trees."""
        if not self.margin:
            return np.asarray((points - np.array(self.origin)) / self.sides)
        return Trees(self.brick, self.widths, self.origin).in_units(points)


def roots_of(case: WaveCase) -> Roots:
    """Return the trees of a case, whose margin, if it has one, needs an absorbing side."""
    table, dim = case.mesh, case.dim
    periodic = table.periodic or (False,) * dim
    counts = np.array(table.trees or (1,) * dim)
    sides = (np.array(table.upper) - np.array(table.lower)) / counts
    margin = case.boundary.margin
    if margin is None:
        brick = Brick(tuple(int(count) for count in counts), periodic)
        return Roots(brick, sides, tuple(sides.tolist()), table.lower)
    absorbing = absorbing_sides(case)
    margin_trees = margin.trees * absorbing.astype(int)
    widths = [
        stretched(int(count), float(side), (int(before), int(after)), margin.growth)
        for count, side, (before, after) in zip(counts, sides, margin_trees, strict=True)
    ]
    outer = [sum(width * margin.growth ** (index + 1) for index in range(margin.trees)) for width in sides]
    origin = tuple(
        float(low - thickness * side[0]) for low, thickness, side in zip(table.lower, outer, absorbing, strict=True)
    )
    thickness = min(float(t) for t, side in zip(outer, absorbing, strict=True) if side.any())
    return Roots(Brick(tuple(map(len, widths)), periodic), sides, tuple(widths), origin, thickness)
