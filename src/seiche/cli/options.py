# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seiche.domain.world import World


def _for_results(path: Path | None) -> Path | None:
    """Return the file of a benchmark, which may replace results of benchmarks only."""
    from seiche.report.stored import refuse_output

    refuse_output(path)
    return path


def _for_checks(path: Path | None) -> Path | None:
    """Return the file of checks, which may replace results of checks only."""
    from seiche.report.stored import CHECKS, refuse_foreign_results

    refuse_foreign_results(path, CHECKS)
    return path


Device = Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Also store the results here.", callback=_for_results)
]
ChecksFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Also store the results here.", callback=_for_checks)
]
Only = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help="Only checks with this in their family's name; repeatable.")
]
Plots = Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the comparisons here.")]
RankThreads = Annotated[int | None, typer.Option(min=1, help="Threads of each rank (cpu).")]
Seconds = Annotated[float, typer.Option(min=0.0, help="Time of each measurement.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads (cpu).")]
Transport = Annotated[str, typer.Option(help="How messages travel between ranks.")]


@cache
def world_of_command() -> World:
    """Return the ranks of this run; made once, because making it asks every rank."""
    from seiche.domain.world import World

    return World.from_mpi()
