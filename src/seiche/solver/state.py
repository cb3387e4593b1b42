# SPDX-License-Identifier: BSD-3-Clause
"""The state of a solver (defined in `io/state.py`), and its check before a restart."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.errors import CaseError
from seiche.io.state import Attribute as Attribute
from seiche.io.state import Rows as Rows
from seiche.io.state import RowSet as RowSet
from seiche.io.state import State as State


def check_row_shapes(rows: RowSet | None, needed: Mapping[str, tuple[int, ...]], count: int, item: str) -> None:
    """Check that a row set has arrays with `count` rows of the shapes `needed`.

    Raises:
        CaseError: an array is missing or has another shape.
    """
    for name, shape in needed.items():
        present = rows.arrays[name].shape if rows is not None and name in rows.arrays else None
        if present != (count, *shape):
            text = "is missing" if present is None else f"has shape {present}"
            raise CaseError(f"state: the array {name!r} of the {item} {text}; expected {(count, *shape)}")
