# SPDX-License-Identifier: BSD-3-Clause
"""Passes over fields on the host, on all threads of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads, pieces_of

#: Values below which one thread is faster.
_FEW = 1 << 16


def reduced(reduction: Callable[..., Any], function: Callable[..., Any], *fields: npt.ArrayLike) -> float:
    """Return the minimum (np.min) or maximum (np.max) over all points of a function of fields."""
    arrays = [np.asarray(field) for field in fields]
    if max(array.size for array in arrays) < _FEW:
        return float(reduction(function(*arrays)))
    values: list[float] = []

    def compute(piece: slice) -> None:
        values.append(float(reduction(function(*(array[piece] if array.ndim else array for array in arrays)))))

    on_threads(compute, pieces_of(max(len(array) for array in arrays if array.ndim)))
    return float(reduction(values))


def extremes(field: npt.ArrayLike) -> tuple[float, float]:
    """Return the minimum and the maximum of a field; both are NaN if any value is."""
    return reduced(np.min, np.asarray, field), reduced(np.max, np.asarray, field)


def converted(field: npt.ArrayLike, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a field over the grid as a contiguous array (*shape) of a type."""
    full = np.broadcast_to(np.asarray(field), shape)
    if full.dtype == dtype and full.flags.c_contiguous:
        return full
    result = np.empty(shape, dtype)

    def copy(piece: slice) -> None:
        result[piece] = full[piece]

    on_threads(copy, pieces_of(shape[0]))
    return result


def scale(field: npt.NDArray[Any], factor: float) -> None:
    """Multiply a field by a number in place."""

    def multiply(piece: slice) -> None:
        field[piece] *= factor

    on_threads(multiply, pieces_of(len(field)))
