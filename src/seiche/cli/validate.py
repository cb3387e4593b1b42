# SPDX-License-Identifier: BSD-3-Clause
"""The commands that compare with exact solutions: `seiche validate ...`."""

# Annotations are values here: those of the commands of `_add` are made when it is called.
from importlib import import_module
from typing import Annotated

import typer

from seiche.cli.options import ChecksFile, Device, Only, Plots, world_of_command

validate = typer.Typer(
    help="Compare with exact solutions: pass or fail for each.", no_args_is_help=True, rich_markup_mode=None
)


@validate.callback()
def _alone() -> None:
    from seiche.errors import CaseError

    ranks = world_of_command().size
    if ranks > 1:
        raise CaseError(f"validate runs on one rank, not on {ranks}: checks of several ranks start them themselves")


def _add(solver: str, quick_help: str, summary: str) -> None:
    """Add the command that runs the families of a solver."""

    def command(
        device: Device = "cpu",
        quick: Annotated[bool, typer.Option("--quick", help=quick_help)] = False,
        json: ChecksFile = None,
        plots: Plots = None,
        only: Only = None,
    ) -> None:
        from seiche.validate import suite

        families = import_module(f"seiche.validate.{solver}").FAMILIES
        raise typer.Exit(suite.main(families, device=device, quick=quick, json=json, plots=plots, only=only or ()))

    validate.command(solver, help=f"{summary}; exit status 1 if one does not pass.")(command)


_add("flow", "Smaller sizes: minutes instead of an hour.", "Run the flow solver against exact solutions")
_add("cells", "Smaller meshes.", "Run the membranes of cells against exact and measured values")
_add("ultrasound", "Smaller grids; the whole sizes want a GPU.", "Run the ultrasound solver against exact solutions")
_add("waves", "Fewer orders, smaller boxes.", "Run the wave solver against exact solutions")


@validate.command("machine")
def validate_machine(
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer tries, shorter measurements.")] = False,
    json: ChecksFile = None,
    only: Only = None,
) -> None:
    """Check the models of data movement against known parameters and tables; exit status 1 if one does not pass."""
    from seiche.validate import machine, suite

    raise typer.Exit(suite.main(machine.FAMILIES, device=device, quick=quick, json=json, only=only or ()))
