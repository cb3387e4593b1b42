# SPDX-License-Identifier: BSD-3-Clause
"""Cells in a stored state: rows of cells, of which each rank reads a share, or one array in earlier checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.couple.suspension import Population
from seiche.errors import CaseError
from seiche.solver import RowSet


def stored_populations(
    description: Mapping[str, Any], rows: Sequence[RowSet] | None, values: npt.NDArray[np.float64]
) -> tuple[list[Population], int]:
    """Return the cells of each type, and the number of `values` that belong to them.

    Args:
        description: types and numbers of the cells.
        rows: the cells that this rank has read, by type; None if `values` contains all cells.
        values: the state of openings, after that of the cells in earlier checkpoints, (n,).

    Raises:
        CaseError: the rows lack an array.
    """
    if rows is not None:
        return [_population(own) for own in rows], 0
    populations, first = [], 0
    counts, vertices_by_type = description["cells"], description["vertices"]
    elements_by_type = description.get("relaxed", [0] * len(counts))  # absent in older checkpoints
    for count, vertices, elements in zip(counts, vertices_by_type, elements_by_type, strict=True):
        last = first + 2 * count * vertices * 3
        positions, velocities = values[first:last].reshape(2, count, vertices, 3).copy()
        ids = values[last : last + count].astype(np.int64)
        first, last = last + count, last + count + 3 * count * elements
        relaxed = values[first:last].reshape(count, elements, 3).copy() if elements else None
        populations.append(Population(positions, velocities, ids, relaxed))
        first = last
    return populations, first


def _population(rows: RowSet) -> Population:
    arrays = {name: np.asarray(array[:]) for name, array in rows.arrays.items()}
    if missing := {"place", "velocity", "id"} - arrays.keys():
        raise CaseError(f"--restart: the cells in the checkpoint lack the array {min(missing)!r}")
    velocity, ids = arrays["velocity"].astype(np.float64), arrays["id"].astype(np.int64)
    return Population(arrays["place"], velocity, ids, arrays.get("relaxed"), rows.keys, rows.total)
