# SPDX-License-Identifier: BSD-3-Clause
"""Keys of rows of three integers, which sort ten times faster than the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

#: Upper bound of the keys.
_KEY_LIMIT = 1 << 63


def keys_of(rows: npt.NDArray[Any]) -> Indices:
    """Return an integer key for each row (n, 3); keys compare like the rows."""
    minima = rows.min(axis=0, initial=0).astype(np.int64)
    extent = [int(high) - int(low) + 1 for high, low in zip(rows.max(axis=0, initial=0), minima, strict=True)]
    if math.prod(extent) >= _KEY_LIMIT:
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    x, y, z = (rows[:, axis] - minima[axis] for axis in range(3))
    return np.asarray((x * extent[1] + y) * extent[2] + z, np.int64)


def first_occurrences(rows: npt.NDArray[Any]) -> Indices:
    """Return the first index of each distinct row of `rows` (n, 3), in the order of the distinct rows."""
    return np.asarray(np.unique(keys_of(rows), return_index=True)[1], np.int64)


def distinct(coords: Indices) -> tuple[Indices, Indices]:
    """Return the distinct rows of `coords` (n, 3, not negative), ascending, and the inverse index (n,)."""
    extent = coords.max(axis=0, initial=0) + 1
    keys = keys_of(coords)
    if math.prod(extent.tolist()) <= len(keys):  # a table of flags is then cheaper than sorting
        present = np.zeros(int(extent.prod()), bool)
        present[keys] = True
        unique, inverse = np.flatnonzero(present), (np.cumsum(present) - 1)[keys]
    else:
        unique, inverse = np.unique(keys, return_inverse=True)
    rows = (unique // (extent[1] * extent[2]), unique // extent[2] % extent[1], unique % extent[2])
    return np.stack(rows, axis=1), inverse
