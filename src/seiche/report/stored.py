# SPDX-License-Identifier: BSD-3-Clause
"""Stored results of benchmarks: the JSON files of a folder, read into rows, and the head of their sections."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seiche.errors import FormatError
from seiche.io.files import refuse_folder, refuse_foreign

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RowT = TypeVar("RowT", bound="DataclassInstance")

#: How results of benchmarks begin; `heading` has their first key.
BEGIN = '{\n "benchmark":'
#: How results of `seiche validate` begin.
CHECKS = '{\n  "version":'


@dataclass(frozen=True)
class Result(Generic[RowT]):
    """One file: what was measured where and when; `copy` in bytes a second, None for a benchmark without it."""

    path: Path
    device: str
    date: str
    commit: str
    copy: float | None
    rows: tuple[RowT, ...]

    @property
    def on_gpu(self) -> bool:
        """Tell whether it is a GPU's."""
        return "(cuda" in self.device

    @property
    def head(self) -> str:
        """Return the heading of its section, and a line that says where it is from."""
        copy = "" if self.copy is None else f"copy {self.copy / 1e9:.1f} GB/s, "
        origin = f"{self.date}, commit {self.commit}, {copy}data in `benchmarks/results/{self.path.name}`."
        return f"## {self.device}: {self.path.stem}\n\n{origin}\n\n"


def refuse_output(path: Path | None, begin: str = BEGIN) -> None:
    """Refuse to store results in the place of another file, or where nothing can be; before anything is measured.

    Args:
        path: file to write; None is no file.
        begin: how a file begins that may be replaced.

    Raises:
        CaseError: it is refused.
    """
    if path is not None:
        refuse_folder(path)
        refuse_foreign_results(path, begin)


def refuse_foreign_results(path: Path | None, begin: str) -> None:
    """Refuse to store results in the place of a file that begins otherwise.

    Raises:
        CaseError: it is refused.
    """
    if path is not None:
        present = f"{path} is there and holds no such results; name another file with --json"
        refuse_foreign(path, begin, f"cannot write {path}", present)


def read_documents(folder: Path, benchmark: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the results of a benchmark among the JSON files of `folder`, by file name.

    Raises:
        FormatError: a file is not JSON.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text())
        except ValueError as error:
            raise FormatError(path, "whole file", f"not JSON: {error}") from None
        if isinstance(document, dict) and document.get("benchmark") == benchmark:
            found.append((path, document))
    return found


def read_results(folder: Path, benchmark: str, row: type[RowT]) -> list[Result[RowT]]:
    """Return the results of a benchmark among the JSON files of `folder`, by file name, their rows as `row`.

    Raises:
        FormatError: a file is not JSON, or lacks something that such a result must hold.
    """
    return [_result(path, document, row) for path, document in read_documents(folder, benchmark)]


def unfit(path: Path, document: dict[str, Any], error: Exception) -> FormatError:
    """Return the error that says what a result lacks, from what was raised when it was used."""
    what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return FormatError(path, "rows", f"not a result of the benchmark {document['benchmark']}: {what}")


def _result(path: Path, document: dict[str, Any], row: type[RowT]) -> Result[RowT]:
    # Columns that came later have a default: results from before do not lack them.
    needed = {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(row)}
    try:
        rows = tuple(
            row(**{name: each[name] for name, must in needed.items() if must or name in each})
            for each in document["rows"]
        )
        device, date, commit = (str(document[name]) for name in ("device", "date", "commit"))
        copy = document.get("copy_bytes_per_second")
        return Result(path, device, date, commit, None if copy is None else float(copy), rows)
    except (KeyError, TypeError, ValueError) as error:
        raise unfit(path, document, error) from None
