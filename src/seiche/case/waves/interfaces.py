# SPDX-License-Identifier: BSD-3-Clause
"""Elements that are cut by the boundaries of media."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from seiche.case.waves.schema import BoxBody, Ellipsoid, Layer

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Region = Layer | BoxBody | Ellipsoid

#: Distance of a boundary from the side of an element, relative to its size, below which it is taken to be on the side.
_ON_SIDE = 1e-9
#: Relative difference of a property within an element above which the element counts as cut.
CUT = 0.01


def crossed(where: Region, lower: Floats, upper: Floats) -> Flags:
    """Return whether the boundary of a region is inside each box, (boxes,), with corners (boxes, dim)."""
    margin = _ON_SIDE * (upper - lower)
    low, high = lower + margin, upper - margin
    if isinstance(where, Layer):
        ends = np.array([where.bottom, where.top])
        return np.asarray(((ends > low[:, -1:]) & (ends < high[:, -1:])).any(1))
    if isinstance(where, BoxBody):
        first, last = np.array(where.lower), np.array(where.upper)
        return np.asarray(
            ((high > first) & (low < last)).all(1) & ~((lower >= first - margin) & (upper <= last + margin)).all(1)
        )
    centre, radii = np.array(where.center), np.array(where.radii)
    nearest = (np.clip(centre, low, high) - centre) / radii
    farthest = np.maximum(abs(low - centre), abs(high - centre)) / radii
    return np.asarray(((nearest**2).sum(1) < 1) & ((farthest**2).sum(1) > 1))


def planes(regions: Iterable[Region], dim: int) -> list[list[float]]:
    """Return, for each axis, the coordinates of the plane boundaries that are normal to it."""
    positions_by_axis: list[set[float]] = [set() for _ in range(dim)]
    for where in regions:
        if isinstance(where, Layer):
            positions_by_axis[-1] |= {where.bottom, where.top}
        elif isinstance(where, BoxBody):
            for axis in range(dim):
                positions_by_axis[axis] |= {where.lower[axis], where.upper[axis]}
    return [sorted(coordinates) for coordinates in positions_by_axis]


def varying(values: Floats) -> Flags:
    """Return whether a property varies by more than a hundredth in each element, from values (3, elements, nodes)."""
    maximum = values.max(2)
    spread = np.divide(maximum - values.min(2), maximum, out=np.zeros_like(maximum), where=maximum > 0)
    return np.asarray((spread > CUT).any(0))
