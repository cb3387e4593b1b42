# SPDX-License-Identifier: BSD-3-Clause
"""A case file that was read, before its tables are checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CaseFile:
    """The unchecked tables of a case.

    Attributes:
        path: name of the case file.
        tables: what it says, after changes.
        notes: what a translation from another format leaves to say, a line each.
    """

    path: Path
    tables: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Return the folder of the file, from which the files that it names are found."""
        return self.path.parent

    @property
    def solver(self) -> Any:
        """Return the value of `solver`, whatever it is."""
        return self.tables.get("solver")

    def changed(self, table: str, **values: Any) -> CaseFile:
        """Return the source with other values in a table."""
        return CaseFile(self.path, {**self.tables, table: {**self.tables.get(table, {}), **values}}, self.notes)
