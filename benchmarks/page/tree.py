# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about flow in an artery tree on several ranks, with efficiencies of POP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.page.stored import origin_of, unfit
from seiche.report.table import markdown

_INTRODUCTION = """\
# Flow in an artery tree

A generated tree with 39 openings on one and on several ranks, without and with output of pressure and velocity of all
sites four times in the run (`python -m benchmarks.several_gpus flow-tree`). *Efficiency* is the rate of a rank divided
by that of one rank without output. The other efficiencies are those of [POP](../howto/explain-a-run.md).
"""
#: Efficiencies of a summary, as columns of the table.
_POP = ("load_balance", "serialisation", "transfer", "orchestration", "parallel")


def tree_part(documents: Sequence[tuple[Path, dict[str, Any]]]) -> str:
    """Return the text about trees; nothing without results.

    Raises:
        FormatError: a value is missing.
    """
    return "\n".join([_INTRODUCTION, *(_section(*document) for document in documents)]) if documents else ""


def _section(path: Path, document: dict[str, Any]) -> str:
    try:
        names = [name.replace("_", " ") for name in _POP]
        columns = ("ranks", "output", "sites", "MLUPS", "efficiency", *names, "set-up (s)")
        lines = [
            (
                *(f"{row['ranks']}", "yes" if row["output"] else "no", f"{row['sites']:,}", f"{row['mlups']:,.1f}"),
                f"{row['efficiency']:.3f}",
                *(_share(row["pop"].get(name)) for name in _POP),
                f"{sum(row['set_up'].values()):.1f}",
            )
            for row in document["rows"]
        ]
        origin = f"{document['date']}, {origin_of(str(document['commit']))}, data in `benchmarks/results/{path.name}`."
        head = f"## {document['device']}: {path.stem}\n\n{origin}\n\n"
    except (KeyError, TypeError, ValueError) as error:
        raise unfit(path, document, error) from None
    return head + markdown(columns, lines, text_columns=0)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
