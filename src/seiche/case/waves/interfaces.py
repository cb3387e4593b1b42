# SPDX-License-Identifier: BSD-3-Clause
"""Elements that are cut by the boundaries of media."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from seiche.domain.solids import SolidBody

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Relative difference of a property within an element above which the element counts as cut.
CUT = 0.01


def crossed(where: SolidBody, lower: Floats, upper: Floats) -> Flags:
    """Return whether the boundary of a region may be inside each box, (boxes,), with corners (boxes, dim)."""
    return where.cuts(list(lower.T), list(upper.T))


def planes(regions: Iterable[SolidBody], dim: int) -> list[list[float]]:
    """Return, for each axis, the coordinates of the plane boundaries that are normal to it."""
    solids = list(regions)
    return [sorted({plane for where in solids for plane in where.planes(axis, dim)}) for axis in range(dim)]


def varying(values: Floats) -> Flags:
    """Return whether a property varies by more than a hundredth in each element, from values (3, elements, nodes)."""
    maximum = values.max(2)
    spread = np.divide(maximum - values.min(2), maximum, out=np.zeros_like(maximum), where=maximum > 0)
    return np.asarray((spread > CUT).any(0))
