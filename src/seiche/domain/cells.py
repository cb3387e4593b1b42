# SPDX-License-Identifier: BSD-3-Clause
"""Subdivision of cells along one axis, for averages over cells that are cut by interfaces between media."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def subdivide(low: Floats, high: Floats, cuts: Floats, parts: int) -> tuple[Floats, Floats]:
    """Return the midpoints and relative lengths of the segments of cells, (..., parts + cuts) each.

    Cells are divided into equal parts, and also at `cuts`. A cut outside its cell yields a segment of length 0.

    Args:
        low: lower ends of the cells, (...).
        high: upper ends of the cells.
        cuts: positions along the axis, in a shape that broadcasts to (..., cuts).
        parts: number of equal parts.
    """
    shape = np.broadcast_shapes(low.shape, cuts.shape[:-1])
    ends = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, parts + 1)
    ends = np.broadcast_to(ends, (*shape, parts + 1))
    if cuts.shape[-1]:
        inside = np.clip(cuts, low[..., None], high[..., None])
        ends = np.sort(np.concatenate([ends, inside], axis=-1), axis=-1)
    return (ends[..., 1:] + ends[..., :-1]) / 2, np.diff(ends, axis=-1) / (high - low)[..., None]
