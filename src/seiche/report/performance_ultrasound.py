# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about ultrasound: the rows of `seiche bench ultrasound`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from seiche.errors import FormatError
from seiche.report.bench_ultrasound import Row
from seiche.report.table import markdown

_INTRODUCTION = """\
# Ultrasound

Steps of the k-space solver (`seiche bench ultrasound --json benchmarks/results/NAME.json`) on cubes, in water
(homogeneous), two lossless layers (lossless), or two layers that absorb by a power law, with nonlinearity (full). A
source of velocity acts in every step. *Transforms* are those of a library over the whole grid, or of lines in the
kernels themselves ([tuning](tuning.md)). Bytes a point are those that `seiche check` states, and what the device's
memory grew by.
"""
_COLUMNS = ("program", "scheme", "medium", "precision", "transforms", "points", "ms a step", "ns a point", "B a point")


@dataclass(frozen=True)
class UltrasoundResult:
    """One file: what was measured where and when; `copy` in bytes a second."""

    path: Path
    device: str
    date: str
    commit: str
    copy: float
    rows: tuple[Row, ...]


def read_ultrasound(folder: Path) -> list[UltrasoundResult]:
    """Return the ultrasound benchmarks among the JSON files of `folder`, by file name.

    Raises:
        FormatError: a file lacks something that such a benchmark must hold.
    """
    needed = {field.name: field.default is MISSING and field.default_factory is MISSING for field in fields(Row)}
    found = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        if not isinstance(document, dict) or document.get("benchmark") != "ultrasound":
            continue
        try:
            rows = tuple(
                Row(**{name: row[name] for name, must in needed.items() if must or name in row})
                for row in document["rows"]
            )
            device, date, commit = (str(document[name]) for name in ("device", "date", "commit"))
            found.append(UltrasoundResult(path, device, date, commit, float(document["copy_bytes_per_second"]), rows))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(path, "rows", f"not an ultrasound benchmark: {error}") from None
    return found


def ultrasound_part(results: Sequence[UltrasoundResult]) -> str:
    """Return the text about ultrasound; nothing without results."""
    return "\n".join([_INTRODUCTION, *map(_section, results)]) if results else ""


def _section(result: UltrasoundResult) -> str:
    head = (
        f"## {result.device}: {result.path.stem}\n\n"
        f"{result.date}, commit {result.commit}, copy {result.copy / 1e9:.1f} GB/s, "
        f"data in `benchmarks/results/{result.path.name}`.\n\n"
    )
    lines = [
        (
            *(row.program, row.scheme, row.physics, row.precision, row.transforms, f"{row.size}^3"),
            *(f"{row.milliseconds:.2f}", f"{row.nanoseconds_a_point:.3f}"),
            f"{row.bytes_told:.1f}, {row.bytes_taken:.1f}" if row.bytes_told else "",
        )
        for row in result.rows
    ]
    return head + markdown(_COLUMNS, lines, text_columns=5)
