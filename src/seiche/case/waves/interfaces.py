# SPDX-License-Identifier: BSD-3-Clause
"""Elements that are cut by the boundaries of media, and jumps of media in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seiche.domain.solids import SolidBody

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Relative difference of a property within an element above which the element counts as cut.
CUT = 0.01
#: Relative difference in impedance between neighbouring points of a file above which it counts as a jump.
JUMP = 0.1


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


def jumps(axes: Sequence[Floats], impedance: Floats) -> tuple[float, float, float]:
    """Return the fraction of neighbours in a grid that differ by more than `JUMP`, the largest difference, its spacing.

    Differences are relative to the larger value.
    """
    count, pairs, largest, spacing = 0, 0, 0.0, 0.0
    for number, axis in enumerate(axes):
        along = np.moveaxis(impedance, number, 0)
        change = abs(np.diff(along, axis=0)) / np.maximum(along[1:], along[:-1])
        count, pairs = count + int((change > JUMP).sum()), pairs + change.size
        if change.max() > largest:
            row = np.unravel_index(int(change.argmax()), change.shape)[0]
            largest, spacing = float(change.max()), float(axis[row + 1] - axis[row])
    return count / pairs, largest, spacing


def jump_notes(name: str, axes: Sequence[Floats], impedance: Floats) -> list[str]:
    """Return a note on the medium `name` if its impedance jumps between neighbouring points of its file."""
    fraction, largest, spacing = jumps(axes, impedance)
    if largest <= JUMP:
        return []
    return [
        f'material["{name}"]: the impedance in its file jumps by up to {100 * largest:.3g} % between neighbouring'
        f" points (by more than {100 * JUMP:g} % in {100 * fraction:.2g} % of the pairs). Interpolation spreads the"
        f" largest jump over {spacing:g} m, and media from files are not averaged: in larger elements the error is of"
        " first order; describe sharp interfaces by regions (where)"
    ]
