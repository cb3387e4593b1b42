# SPDX-License-Identifier: BSD-3-Clause
"""Continuation of fields beyond both ends of a radial axis (theory/ultrasound, section 15).

In the half plane of an axisymmetric problem the pressure is even about the axis of symmetry, and the radial velocity is
odd. With a condition at the outer end, fields have a definite symmetry about that end as well, and are then periodic.
Transforms along the radius are those of this period. The combinations are called WSWS and WSWA by Treeby, Wise,
Kuklis, Jaros and Cox (2020, doi 10.1121/10.0002177).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

#: "rigid": the radial velocity is zero at the last point (WSWS). "pressure-release": the pressure is zero one spacing
#: beyond the last point (WSWA).
OuterEnd = Literal["rigid", "pressure-release"]
OUTER_ENDS: tuple[OuterEnd, ...] = ("rigid", "pressure-release")
#: Symmetry of a field: "even" at points of the grid (pressure, density, axial velocity), "odd" at half points (radial
#: velocity), "quotient" at half points (radial velocity over the radius, even about the axis).
Parity = Literal["even", "odd", "quotient"]
Table: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]


def continued_points(points: int, outer_end: OuterEnd) -> int:
    """Return the number of points of the period of a radial axis of `points` points."""
    return 2 * points - 2 if outer_end == "rigid" else 4 * points


def continuation(points: int, outer_end: OuterEnd, parity: Parity) -> Table:
    """Return, for each point of the period, the index of a point of the axis and the sign of its value."""
    whole, half = np.arange(points), np.arange(points)
    sign = -1 if parity == "odd" else 1
    if outer_end == "rigid":
        if parity == "even":
            index, signs = np.r_[whole, whole[-2:0:-1]], np.ones(2 * points - 2)
        else:
            index, signs = np.r_[half[:-1], half[-2::-1]], np.repeat([1.0, sign], points - 1)
    elif parity == "even":
        # The value one spacing beyond the last point is zero, and so is its mirror image.
        index = np.r_[whole, 0, whole[:0:-1], whole, 0, whole[:0:-1]]
        signs = np.r_[np.ones(points), 0, -np.ones(points - 1), -np.ones(points), 0, np.ones(points - 1)]
    else:
        index = np.r_[half, half[::-1], half, half[::-1]]
        signs = np.repeat([1.0, -sign, -1.0, sign], points)
    return index.astype(np.uint32), signs


def first_continued(points: int, outer_end: OuterEnd, parity: Parity) -> int:
    """Return the first point of the period whose value is that of another point of the axis."""
    return points - 1 if outer_end == "rigid" and parity != "even" else points
