# SPDX-License-Identifier: BSD-3-Clause
"""The state of a solver (defined in `io/state.py`), and its check before a restart."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.errors import CaseError
from seiche.io.state import Attribute as Attribute
from seiche.io.state import Rows as Rows
from seiche.io.state import RowSet as RowSet
from seiche.io.state import State as State


def check_row_shapes(rows: RowSet | None, shapes: Mapping[str, tuple[int, ...]], row_count: int, item: str) -> None:
    """Check that a row set has arrays with `row_count` rows of the shapes `shapes`.

    Raises:
        CaseError: an array is missing or has another shape.
    """
    for name, shape in shapes.items():
        present = rows.arrays[name].shape if rows is not None and name in rows.arrays else None
        if present != (row_count, *shape):
            text = "is missing" if present is None else f"has shape {present}"
            raise CaseError(f"state: the array {name!r} of the {item} {text}; expected {(row_count, *shape)}")
