# SPDX-License-Identifier: BSD-3-Clause
"""The state of a run: all data needed to continue it on any number of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Attribute = str | float | int


class Rows(Protocol):
    """An array of rows that may be computed on access, in any thread."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and shape of a row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]:
        """Return the rows of a slice."""


@dataclass(frozen=True, eq=False)
class RowSet:
    """Arrays with one row for each item: sites, elements, points, sensors, cells.

    Attributes:
        keys: global numbers of this rank's items, (n,) int64; over all ranks every number below `total` once.
        total: number of items of all ranks.
        arrays: values by name, (n, ...).
        derived: names of arrays that follow from the others and are not stored in a checkpoint.
    """

    keys: npt.NDArray[np.int64]
    total: int
    arrays: Mapping[str, Rows]
    derived: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class State:
    """A state after `step` steps.

    Attributes:
        step: number of steps done.
        rows: row sets by the name of their items; every rank has its owned rows.
        replicated: arrays that are the same on every rank, by name.
        attributes: single numbers and texts that are the same on every rank, by name.
    """

    step: int
    rows: Mapping[str, RowSet]
    replicated: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        """Return whether there is an array `name`."""
        return name in self.replicated or any(name in rows.arrays for rows in self.rows.values())

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the array `name`: a replicated one, or the rows of this rank."""
        if name in self.replicated:
            return self.replicated[name]
        return np.asarray(next(rows.arrays[name][:] for rows in self.rows.values() if name in rows.arrays))

    def joined(self, other: State) -> State:
        """Return the union of this state and `other`; row sets of the same name are merged."""
        rows = dict(self.rows)
        for name, other_rows in other.rows.items():
            own_rows = rows.get(name)
            if own_rows is not None:
                arrays, derived = {**own_rows.arrays, **other_rows.arrays}, own_rows.derived | other_rows.derived
                other_rows = replace(other_rows, arrays=arrays, derived=derived)
            rows[name] = other_rows
        return State(self.step, rows, {**self.replicated, **other.replicated}, {**self.attributes, **other.attributes})
