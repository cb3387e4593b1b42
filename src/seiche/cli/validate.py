# SPDX-License-Identifier: BSD-3-Clause
"""Commands that compare with exact solutions: `seiche validate ...`."""

# Annotations are evaluated at run time, since `_add_command` creates those of its commands when it is called.
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from seiche.cli.options import (
    ChecksFile,
    DeviceOption,
    DpiOption,
    FamilyFilter,
    Plots,
    Resume,
    SizeOption,
    world_of_command,
)

validate = typer.Typer(
    help="Compare with exact solutions; each check passes or fails.",
    no_args_is_help=True,
    invoke_without_command=True,
    rich_markup_mode=None,
)
#: What is validated, in the order of `--all`.
SUBJECTS = "flow", "cells", "ultrasound", "waves", "machine"


def _families(subject: str) -> Any:
    """Return the families of checks of a subject."""
    return import_module(f"seiche.validate.{subject}").FAMILIES


def _run(
    families: Sequence[Any], *, only: Sequence[str] | None, dpi: int | None, size: str | None, **options: Any
) -> None:
    """Run families of checks, with figures of a resolution and a size, and end the command with their exit status."""
    from seiche.report.page_size import page, page_of
    from seiche.validate import suite

    with page(page_of(dpi, size)):
        raise typer.Exit(suite.main(families, only=only or (), **options))


@validate.callback()
def validate_all(
    context: typer.Context,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run the checks of all subjects, one after the other.")] = False,
    device: DeviceOption = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes.")] = False,
    json: ChecksFile = None,
    plots: Plots = None,
    only: FamilyFilter = None,
    resume: Resume = False,
    names: Annotated[bool, typer.Option("--list", help="Print the names of all families instead.")] = False,
    dpi: DpiOption = None,
    size: SizeOption = None,
) -> None:
    """Compare with exact solutions; each check passes or fails."""
    from seiche.errors import CaseError

    ranks = world_of_command().size
    if ranks > 1:
        raise CaseError(f"validate: requires one rank, not {ranks}; checks that need several ranks start them")
    if context.invoked_subcommand is not None:
        if every or quick or json or plots or only or resume or names or dpi or size or device != "cpu":
            raise CaseError(f"validate: options follow the subject ({context.invoked_subcommand}); --all takes none")
        return
    if not (every or names):
        raise CaseError(f"validate: choose --all or one of {', '.join(SUBJECTS)}")
    from seiche.validate import suite

    families = [family for subject in SUBJECTS for family in _families(subject)]
    if names:
        print("\n".join(suite.label_of(family) for family in suite.selected_families(families, only or ())))
        return
    _run(families, device=device, quick=quick, json=json, plots=plots, only=only, resume=resume, dpi=dpi, size=size)


def _add_command(solver: str, quick_help: str, summary: str) -> None:
    """Add the command that runs the checks of a solver."""

    def command(
        *,
        device: DeviceOption = "cpu",
        quick: Annotated[bool, typer.Option("--quick", help=quick_help)] = False,
        json: ChecksFile = None,
        plots: Plots = None,
        only: FamilyFilter = None,
        resume: Resume = False,
        dpi: DpiOption = None,
        size: SizeOption = None,
    ) -> None:
        options: dict[str, Any] = {"device": device, "quick": quick, "json": json, "plots": plots, "resume": resume}
        _run(_families(solver), only=only, dpi=dpi, size=size, **options)

    validate.command(solver, help=f"{summary}; exit status 1 if one fails.")(command)


_add_command("flow", "Smaller sizes: minutes instead of an hour.", "Compare the flow solver with exact solutions")
_add_command("cells", "Smaller meshes.", "Compare cell membranes with exact and measured values")
_add_command(
    "ultrasound", "Smaller grids; full sizes need a GPU.", "Compare the ultrasound solver with exact solutions"
)
_add_command("waves", "Fewer orders, smaller boxes.", "Compare the wave solver with exact solutions")


@validate.command("machine")
def validate_machine(
    *,
    device: DeviceOption = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, shorter measurements.")] = False,
    json: ChecksFile = None,
    only: FamilyFilter = None,
    resume: Resume = False,
) -> None:
    """Compare the models of data movement with known parameters and tables; exit status 1 if one fails."""
    options: dict[str, Any] = {"device": device, "quick": quick, "json": json, "resume": resume}
    _run(_families("machine"), only=only, dpi=None, size=None, **options)


@validate.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results of some families each.")],
    json: ChecksFile,
) -> None:
    """Merge results of one commit, device and size into one file; exit status 1 if a check failed."""
    from seiche.validate import suite
    from seiche.validate.results import merge as merge_files

    order = [suite.label_of(family) for subject in SUBJECTS for family in _families(subject)]
    assert json is not None
    results, device = merge_files(files, json, order)
    raise typer.Exit(suite.report(results, device))
