# SPDX-License-Identifier: BSD-3-Clause
"""Stored benchmark results: the JSON files of a folder, read into rows, and the headings of their sections."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seiche.errors import FormatError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Former names of columns in stored rows.
_FORMER_COLUMNS = {
    "bytes_told": "predicted_bytes",
    "bytes_taken": "measured_bytes",
    "least_milliseconds": "min_milliseconds",
    "milliseconds_alone": "milliseconds_one_rank",
    "not_hidden": "exposed",
    "ps_a_node_a_stage": "picoseconds_per_node_stage",
    "times_of_fused": "time_over_fused",
    "words_a_node": "words_per_node",
}

#: Labels of cases of scaling in results until 2026-11-28, by the names in stored rows.
_SCALING_CASES = {
    "strong": "box 384x384x448, strong scaling",
    "vessel": "tube, strong scaling",
    "weak": "box 272^3 per rank, weak scaling",
}

RowT = TypeVar("RowT", bound="DataclassInstance")


@dataclass(frozen=True)
class Result(Generic[RowT]):
    """The results of one file; `copy` is the copy bandwidth in bytes per second, None for benchmarks without it."""

    path: Path
    device: str
    date: str
    commit: str
    copy: float | None
    rows: tuple[RowT, ...]

    @property
    def on_gpu(self) -> bool:
        """Return whether the device is a GPU."""
        return "(cuda" in self.device

    @property
    def reproducible(self) -> bool:
        """Return whether its commit is known and had no uncommitted changes."""
        return origin_of(self.commit) == f"commit {self.commit}"

    @property
    def head(self) -> str:
        """Return the heading of its section and a line with its origin."""
        copy = "" if self.copy is None else f"copy {self.copy / 1e9:.1f} GB/s, "
        origin = f"{self.date}, {origin_of(self.commit)}, {copy}data in `benchmarks/results/{self.path.name}`."
        return f"## {self.device}: {self.path.stem}\n\n{origin}\n\n"


def origin_of(commit: str) -> str:
    """Return how a page names the commit of a result."""
    name, separator, _ = commit.partition("-dirty")
    if name in ("", "unknown"):
        return "commit not recorded"
    return f"commit {name}, with uncommitted changes" if separator else f"commit {name}"


def case_label(case: str) -> str:
    """Return the label of a stored case in a table: "weak, 1 ranks" is "box 272^3 per rank, weak scaling, 1 rank"."""
    counted = re.fullmatch(r"(\w+), (\d+) ranks", case)
    if counted is None:
        return case
    return f"{_SCALING_CASES.get(counted[1], counted[1])}, {counted[2]} {'rank' if counted[2] == '1' else 'ranks'}"


def read_documents(folder: Path, benchmark: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the results of a benchmark among the JSON files of `folder`, by file name.

    Raises:
        FormatError: a file is not JSON.
    """
    documents = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text())
        except ValueError as error:
            raise FormatError(path, "whole file", f"not JSON: {error}") from None
        if isinstance(document, dict) and document.get("benchmark") == benchmark:
            documents.append((path, document))
    return documents


def read_results(folder: Path, benchmark: str, row: type[RowT]) -> list[Result[RowT]]:
    """Return the results of a benchmark among the JSON files of `folder`, by file name, their rows as `row`.

    Raises:
        FormatError: a file is not JSON, or a value is missing.
    """
    return [_result(path, document, row) for path, document in read_documents(folder, benchmark)]


def unfit(path: Path, document: dict[str, Any], error: Exception) -> FormatError:
    """Return the error for an exception raised while a result was read."""
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return FormatError(path, "rows", f"not a result of the benchmark {document['benchmark']}: {reason}")


def former_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored row with the present names of its columns."""
    return {_FORMER_COLUMNS.get(key, key): value for key, value in row.items()}


def _result(path: Path, document: dict[str, Any], row: type[RowT]) -> Result[RowT]:
    # Columns added later have defaults, because older results do not have them.
    required = {column.name: column.default is MISSING and column.default_factory is MISSING for column in fields(row)}
    try:
        stored_rows = document["rows"]
        rows = tuple(
            row(**{name: entry[name] for name, must in required.items() if must or name in entry})
            for entry in map(former_names, stored_rows)
        )
        device, date, commit = (str(document[name]) for name in ("device", "date", "commit"))
        copy = document.get("copy_bytes_per_second")
        return Result(path, device, date, commit, None if copy is None else float(copy), rows)
    except (KeyError, TypeError, ValueError) as error:
        raise unfit(path, document, error) from None
