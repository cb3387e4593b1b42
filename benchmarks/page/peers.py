# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about other programs: the rows of `python -m benchmarks.peers`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchmarks.page.stored import Result
from benchmarks.peers.row import PeerRow
from seiche.report.table import markdown

_INTRODUCTION = """\
# Beside other programs

The same work by Seiche and by other programs (`python -m benchmarks.peers --output benchmarks/results/NAME.json`): each
program runs in a process of its own, and the processes take turns. *Faster* is the speed of Seiche divided by that of
the other program, by medians. The names of works are explained below each table.
"""


def peers_part(results: Sequence[Result[PeerRow]]) -> str:
    """Return the text about other programs; nothing without results."""
    return "\n".join([_INTRODUCTION, *map(_section, results)]) if results else ""


def _section(result: Result[PeerRow]) -> str:
    content = json.loads(result.path.read_text())
    works = {work["name"]: work for work in content["works"]}
    own = {row.work: row.median for row in result.rows if row.program == "seiche"}
    columns = ("work", "program", "unit", "remark", "median", "least", "greatest", "faster")
    lines = []
    for row in result.rows:
        seiche, figures = own.get(row.work), ("", "", "")
        ratio = ""
        if row.median is not None and row.least is not None and row.greatest is not None:
            figures = tuple(f"{value:.4g}" for value in (row.median, row.least, row.greatest))
            if seiche is not None and row.program != "seiche":
                larger = works[row.work]["larger_is_better"]
                ratio = f"{seiche / row.median if larger else row.median / seiche:.2f}"
        details = ", ".join(f"{name} {_text(value)}" for name, value in row.details.items())
        name = f"{row.program} {row.version}".strip()
        lines.append((row.work, name, row.unit, row.reason or details, *figures, ratio))
    explained = "\n".join(
        f"- `{name}`: {work['text']}." for name, work in works.items() if name in {row.work for row in result.rows}
    )
    return f"{result.head}{markdown(columns, lines, text_columns=4)}\n{explained}\n"


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
