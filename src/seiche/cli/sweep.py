# SPDX-License-Identifier: BSD-3-Clause
"""Command `seiche sweep`: many runs of a case with different values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from seiche.cli.options import DpiOption, SizeOption, output_folder, world_of_command
from seiche.errors import CaseError
from seiche.report.page_size import page, page_of


def sweep(
    case: Annotated[Path, typer.Argument(help="Case file (TOML, or XML of HemeLB).", metavar="CASE")],
    *,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=A,B", help="Values of a key; several make a grid.")
    ] = None,
    values: Annotated[
        Path | None, typer.Option("--list", metavar="FILE", help="CSV with keys, then one row for each run.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", parser=output_folder, help='Folder; "sweep" next to the case by default.'
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of simultaneous runs.")] = 1,
    device: Annotated[str | None, typer.Option(help='"cpu", "cuda" or "cuda:1"; by default that of the case.')] = None,
    plot: Annotated[
        list[str] | None, typer.Option(metavar="RESULT", help="Column to draw; several are allowed.")
    ] = None,
    dpi: DpiOption = None,
    size: SizeOption = None,
) -> None:
    """Run a case for many values of its keys and write a table of the results; repeat the command to continue."""
    from seiche.case.sweep import grid_of, list_of, plan_sweep, writing_tables
    from seiche.case.sweep_runs import SweepRuns, table_of
    from seiche.report.sweep_table import write_tables

    if world_of_command(single_rank=True).size > 1:
        raise CaseError("sweep: start it without mpiexec; each run has one rank, --jobs sets the simultaneous runs")
    if (settings is None) == (values is None):
        raise CaseError("sweep: give either --set KEY=A,B, or --list FILE")
    requested = page_of(dpi, size)
    folder = output if output is not None else case.parent / "sweep"
    rows = list_of(values) if values is not None else grid_of(settings or ())
    runs = plan_sweep(case, rows, folder, device=device, report=lambda line: print(f"seiche: {line}", file=sys.stderr))
    batch = SweepRuns(case, runs, jobs=jobs, device=device)
    batch.execute(lambda line: print(f"seiche: {line}", flush=True))
    with writing_tables(folder), page(requested):
        written = write_tables(table_of(runs), folder, plot or ())
    states = [run.state for run in runs]
    print(f"seiche: {states.count('done')} of {len(runs)} runs are done; wrote {', '.join(map(str, written))}")
    if batch.stopped or "stopped" in states:
        print("seiche: stopped; run the same command to continue")
    elif failed := [run for run in runs if run.state != "done"]:
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise CaseError(
            f"sweep: {failed[0].folder.name}{more} failed: see {failed[0].log}; "
            "run the command again to retry the failed runs"
        )
