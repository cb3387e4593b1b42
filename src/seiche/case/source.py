# SPDX-License-Identifier: BSD-3-Clause
"""A case file before its tables are validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CaseFile:
    """The unchecked tables of a case.

    Attributes:
        path: name of the case file.
        tables: its content after changes.
        notes: notes of a translation from another format, one line each.
        checkpoint: attributes of the checkpoint from which the run continues; empty without a restart.
    """

    path: Path
    tables: dict[str, Any]
    notes: tuple[str, ...] = ()
    checkpoint: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Return the folder of the file; names of input files are relative to it."""
        return self.path.parent

    @property
    def solver(self) -> Any:
        """Return the unchecked value of `solver`."""
        return self.tables.get("solver")

    def continued(self, checkpoint: Mapping[str, Any]) -> CaseFile:
        """Return the case of a restart from a checkpoint with these attributes."""
        return replace(self, checkpoint=checkpoint)

    def changed(self, table: str, **values: Any) -> CaseFile:
        """Return the case with `values` replaced in a table."""
        return replace(self, tables={**self.tables, table: {**self.tables.get(table, {}), **values}})
