# SPDX-License-Identifier: BSD-3-Clause
"""The commands that compare with exact solutions: `seiche validate ...`."""

from __future__ import annotations

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


@validate.command("flow")
def validate_flow(
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: minutes instead of an hour.")] = False,
    json: ChecksFile = None,
    plots: Plots = None,
    only: Only = None,
) -> None:
    """Run the flow solver against exact solutions; exit status 1 if one does not pass."""
    from seiche.validate import flow, suite

    raise typer.Exit(suite.main(flow.FAMILIES, device=device, quick=quick, json=json, plots=plots, only=only or ()))


@validate.command("cells")
def validate_cells(
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller meshes.")] = False,
    json: ChecksFile = None,
    plots: Plots = None,
    only: Only = None,
) -> None:
    """Run the membranes of cells against exact and measured values; exit status 1 if one does not pass."""
    from seiche.validate import cells, suite

    raise typer.Exit(suite.main(cells.FAMILIES, device=device, quick=quick, json=json, plots=plots, only=only or ()))


@validate.command("ultrasound")
def validate_ultrasound(
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller grids; the whole sizes want a GPU.")] = False,
    json: ChecksFile = None,
    plots: Plots = None,
    only: Only = None,
) -> None:
    """Run the ultrasound solver against exact solutions; exit status 1 if one does not pass."""
    from seiche.validate import suite, ultrasound

    raise typer.Exit(
        suite.main(ultrasound.FAMILIES, device=device, quick=quick, json=json, plots=plots, only=only or ())
    )


@validate.command("waves")
def validate_waves(
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer orders, smaller boxes.")] = False,
    json: ChecksFile = None,
    plots: Plots = None,
    only: Only = None,
) -> None:
    """Run the wave solver against exact solutions; exit status 1 if one does not pass."""
    from seiche.validate import suite, waves

    raise typer.Exit(suite.main(waves.FAMILIES, device=device, quick=quick, json=json, plots=plots, only=only or ()))


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
