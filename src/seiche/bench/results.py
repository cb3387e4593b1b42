# SPDX-License-Identifier: BSD-3-Clause
"""Functions shared by benchmarks: rows are printed as a table, and stored as JSON with their provenance."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

import seiche
from seiche.errors import FormatError
from seiche.io.arrays import one_line
from seiche.io.files import replacing
from seiche.observe.origin import commit

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RowT = TypeVar("RowT", bound="DataclassInstance")


def provenance(benchmark: str, device: str) -> dict[str, Any]:
    """Return the provenance of a stored result: benchmark, device, architecture of the CPU, date and commit."""
    return {
        "benchmark": benchmark,
        "device": device,
        "host": platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "seiche": seiche.__version__,
    }


def document(benchmark: str, device: str, rows: Sequence[DataclassInstance], **extra: Any) -> dict[str, Any]:
    """Return the document to store: provenance, `extra` entries, and the rows."""
    return {**provenance(benchmark, device), **extra, "rows": [asdict(row) for row in rows]}


def store(path: Path | None, content: Mapping[str, Any]) -> None:
    """Write a document as JSON if `path` is not None; an existing file is replaced only by a complete one."""
    if path is not None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_rows(path: Path, row_type: type[RowT], description: str) -> list[RowT]:
    """Return the rows of a stored result as objects of the type `row_type`.

    Raises:
        FormatError: the file is invalid; the message contains `description`, a description of its content.
    """
    try:
        return [row_type(**entry) for entry in json.loads(path.read_text())["rows"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(path, "rows", f"not {description}: {one_line(error)}") from None


def rank_counts(maximum: int) -> list[int]:
    """Return 1, 2, 4 ... and `maximum`."""
    return sorted({*(1 << k for k in range(maximum.bit_length()) if 1 << k <= maximum), maximum})


def show(
    title: str, columns: Mapping[str, str], rows: Sequence[object], *, text_columns: int = 0, width: int = 120
) -> None:
    """Print rows as a table.

    Args:
        title: title above the table.
        columns: headings, and format strings of the values, in which `{0}` is the row.
        rows: the rows, one per line.
        text_columns: number of leading columns that are aligned left.
        width: width of the table in characters.
    """
    lines = [[text.format(row) for text in columns.values()] for row in rows]
    show_lines(title, list(columns), lines, text_columns=range(text_columns), width=width)


def show_lines(
    title: str,
    headings: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    text_columns: Sequence[int] = (),
    width: int = 120,
) -> None:
    """Print rows of text below the column `headings`; the columns `text_columns` are aligned left."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, name in enumerate(headings):
        table.add_column(name, justify="left" if index in text_columns else "right")
    for line in lines:
        table.add_row(*line)
    Console(width=width, highlight=False).print(table)
