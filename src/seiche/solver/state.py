# SPDX-License-Identifier: BSD-3-Clause
"""The state of a solver (`io/state.py` says what it is), and its check before a restart."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.errors import CaseError
from seiche.io.state import Attribute as Attribute
from seiche.io.state import Rows as Rows
from seiche.io.state import RowSet as RowSet
from seiche.io.state import State as State


def refuse_misshapen(rows: RowSet | None, needed: Mapping[str, tuple[int, ...]], count: int, item: str) -> None:
    """Refuse a row set that lacks an array of `count` rows of the shapes `needed`.

    Raises:
        CaseError: an array is missing or has another shape.
    """
    for name, shape in needed.items():
        found = rows.arrays[name].shape if rows is not None and name in rows.arrays else None
        if found != (count, *shape):
            text = "is missing" if found is None else f"has shape {found}"
            raise CaseError(f"state: the array {name!r} of the {item} {text}; expected {(count, *shape)}")
