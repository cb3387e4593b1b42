# SPDX-License-Identifier: BSD-3-Clause
"""The commands that measure what moving data costs: `seiche bench machine`, `choice`, `predict` and `collectives`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seiche.cli.bench import bench
from seiche.cli.options import JsonFile, Plots, world_of_command

AnyDevice = Annotated[str, typer.Option(help='"auto", "cpu", "cuda" or "cuda:1".')]


@bench.command("machine")
def bench_machine(
    *,
    device: AnyDevice = "auto",
    seconds: Annotated[float, typer.Option(min=1.0, help="About how long to measure.")] = 60.0,
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to try writing files.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the machine; the host's by default.")] = None,
    json: Annotated[Path, typer.Option("--json", metavar="FILE", help="The machine file to write.")] = Path(
        "machine.json"
    ),
) -> None:
    """Measure what moving data costs on these ranks and write a machine file."""
    from seiche.bench.machine import main as measure

    measure(device=device, seconds=seconds, folder=folder, name=name, output=json, world=world_of_command())


@bench.command("choice")
def bench_choice(
    *,
    machine: Annotated[Path, typer.Argument(metavar="FILE", help="Machine file to choose by.")],
    device: AnyDevice = "auto",
    size: Annotated[
        list[int] | None, typer.Option(min=1, help="Bytes of a message; 16 to 16,777,216 by default.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Time halo exchanges by every transport, and what the choice by a machine file costs."""
    from seiche.bench.choice import main as measure

    measure(machine=machine, device=device, output=json, sizes=size or (), world=world_of_command())


@bench.command("predict")
def bench_predict(
    *,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file; measured now by default.")] = None,
    device: AnyDevice = "auto",
    example: Annotated[list[str] | None, typer.Option(help="flow, blood, ultrasound or waves; all by default.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Of steps of each.")] = 2.0,
    earlier: Annotated[
        list[Path] | None, typer.Option("--from", metavar="FILE", help="What this stored on fewer ranks.")
    ] = None,
    size: Annotated[str | None, typer.Option(help='"small" or "large"; large on GPUs by default.')] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep in the machine file what stages took.")] = False,
    json: JsonFile = None,
) -> None:
    """Compare predicted and measured steps and exchanges of a case of each solver on these ranks."""
    from seiche.bench.predict import main as compare

    compare(
        machine=machine,
        device=device,
        names=example or (),
        seconds=seconds,
        earlier=earlier or (),
        size=size,
        keep=keep,
        output=json,
        world=world_of_command(),
    )


@bench.command("collectives")
def bench_collectives(
    *,
    device: Annotated[str, typer.Option(help='Of the arrays: "auto", "cpu", "cuda".')] = "auto",
    processes: Annotated[int, typer.Option(min=1, help="Ranks that share the messages of one array.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.0, help="About how long to measure.")] = 60.0,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file to predict from.")] = None,
    json: JsonFile = None,
    plots: Plots = None,
) -> None:
    """Time Alltoall and Alltoallv by every way in which their data can travel."""
    from seiche.bench.collectives import main as measure

    measure(
        device=device,
        processes=processes,
        seconds=seconds,
        machine=machine,
        output=json,
        plots=plots,
        world=world_of_command(),
    )
