# SPDX-License-Identifier: BSD-3-Clause
"""Points of the grid of an ultrasound case."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import Field

from seiche.case.quantities import Position, PositiveLength
from seiche.case.tables import Table
from seiche.errors import CaseError
from seiche.ultrasound import Grid

Floats = npt.NDArray[np.float64]


class Ball(Table):
    """A disc (2D) or ball, or its boundary."""

    center: Position = Field(description="centre")
    radius: PositiveLength = Field(description="radius")


def along(grid: Grid, axis: str) -> Floats:
    """Return the coordinates along an axis, in a shape that broadcasts to the grid."""
    number = grid.axes.index(axis)
    return grid.positions(axis).reshape([-1 if k == number else 1 for k in range(len(grid.shape))])


def distance(grid: Grid, center: tuple[float, ...]) -> Floats:
    """Return the distance (m) of all points from `center`."""
    squares = sum((along(grid, axis) - c) ** 2 for axis, c in zip(grid.axes, center, strict=True))
    return np.asarray(np.sqrt(squares))


def check_axes(name: str, position: tuple[float, ...], grid: Grid) -> None:
    """Raise a CaseError unless `position` has one coordinate for each axis."""
    if len(position) != len(grid.shape):
        raise CaseError(f"{name}: has {len(position)} coordinates, the grid has {len(grid.shape)} axes")
