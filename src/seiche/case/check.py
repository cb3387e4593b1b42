# SPDX-License-Identifier: BSD-3-Clause
"""Output lines of `seiche check`: a table, the estimates of the case, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seiche.solver import Estimate
from seiche.solver.estimate import warnings_of


def check_lines(rows: Iterable[tuple[str, str]], estimates: Sequence[Estimate], notes: Iterable[str]) -> list[str]:
    """Return a table of names and values, a table of the estimates, and notes and warnings as advice."""
    advice = [f"advice: {line}" for line in (*notes, *warnings_of(estimates))]
    return [*_table(list(rows)), *_table([estimate.row for estimate in estimates]), *advice]


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return (f"{name:<{width}}  {value}" for name, value in rows)
