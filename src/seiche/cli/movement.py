# SPDX-License-Identifier: BSD-3-Clause
"""Commands for measuring data movement: `seiche bench machine`, `choice`, `predict` and `collectives`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seiche.cli.bench import bench
from seiche.cli.options import DpiOption, FigureSizeOption, JsonFile, Plots, world_of_command
from seiche.errors import CaseError
from seiche.report.page_size import page, page_of

#: Duration of the measurements of a machine, s.
_SECONDS, _QUICK_SECONDS = 60.0, 10.0

AnyDevice = Annotated[str, typer.Option(help='"auto", "cpu", "cuda" or "cuda:1".')]


@bench.command("machine")
def bench_machine(
    *,
    device: AnyDevice = "auto",
    seconds: Annotated[
        float | None, typer.Option(min=1.0, help="Approximate duration of all measurements, s; 60 by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure for 10 s, for a first look at a machine.")] = False,
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for tests of file writing.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the machine; the host's by default.")] = None,
    json: Annotated[Path, typer.Option("--json", metavar="FILE", help="Machine file to write.")] = Path("machine.json"),
) -> None:
    """Measure the cost of data movement on these ranks and write a machine file."""
    from seiche.bench.machine import main as measure

    if quick and seconds is not None:
        raise CaseError("bench machine: --quick and --seconds exclude each other")
    duration = seconds if seconds is not None else (_QUICK_SECONDS if quick else _SECONDS)
    measure(device=device, seconds=duration, folder=folder, name=name, output=json, world=world_of_command())


@bench.command("benchpress")
def bench_benchpress(
    ping_pong: Annotated[Path, typer.Argument(metavar="FILE", help="Output of `ping_pong`.")],
    *,
    memcpy: Annotated[Path | None, typer.Option(metavar="FILE", help="Output of `memcpy`: copies to GPUs.")] = None,
    node_pong: Annotated[Path | None, typer.Option(metavar="FILE", help="Output of `node_pong`: injection.")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Ranks, and GPUs, of a node.")] = 6,
    sockets: Annotated[int, typer.Option(min=1, help="Sockets of a node.")] = 2,
    name: Annotated[str, typer.Option(help="Name of the machine.")] = "benchpress",
    json: Annotated[Path, typer.Option("--json", metavar="FILE", help="Machine file to write.")] = Path("machine.json"),
) -> None:
    """Write a machine file from job outputs of the BenchPress suite."""
    if world_of_command(single_rank=True).rank:
        return
    from seiche.bench.benchpress import main as convert

    convert(ping_pong, memcpy=memcpy, node_pong=node_pong, gpus=gpus, sockets=sockets, name=name, output=json)


@bench.command("choice")
def bench_choice(
    *,
    machine: Annotated[Path, typer.Argument(metavar="FILE", help="Machine file for the choice.")],
    device: AnyDevice = "auto",
    size: Annotated[list[int] | None, typer.Option(min=1, help="Message sizes, bytes; by default 16 to 16777216.")] = (
        None
    ),
    json: JsonFile = None,
) -> None:
    """Time halo exchanges with every transport, and compare the transport chosen by a machine file with the fastest."""
    from seiche.bench.choice import main as measure

    measure(machine=machine, device=device, output=json, sizes=size or (), world=world_of_command())


@bench.command("predict")
def bench_predict(
    *,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file; measured now by default.")] = None,
    device: AnyDevice = "auto",
    example: Annotated[list[str] | None, typer.Option(help="flow, blood, ultrasound or waves; all by default.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Duration of the steps of each case, s.")] = 2.0,
    earlier: Annotated[list[Path] | None, typer.Option("--from", metavar="FILE", help="Results on fewer ranks.")] = (
        None
    ),
    size: Annotated[str | None, typer.Option(help='"small" or "large"; large on GPUs by default.')] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Store the stage times in the machine file.")] = False,
    json: JsonFile = None,
) -> None:
    """Compare predicted and measured times of steps and exchanges of one case per solver on these ranks."""
    from seiche.bench.predict import main as compare

    options: dict[str, Any] = {"names": example or (), "earlier": earlier or (), "size": size, "keep": keep}
    compare(machine=machine, device=device, seconds=seconds, output=json, world=world_of_command(), **options)


@bench.command("collectives")
def bench_collectives(
    *,
    device: Annotated[str, typer.Option(help='Device of the arrays: "auto", "cpu", "cuda".')] = "auto",
    processes: Annotated[int, typer.Option(min=1, help="Ranks that share the messages of one array.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.0, help="Approximate duration of all measurements, s.")] = 60.0,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file for predictions.")] = None,
    json: JsonFile = None,
    plots: Plots = None,
    dpi: DpiOption = None,
    figure_size: FigureSizeOption = None,
) -> None:
    """Time Alltoall and Alltoallv with every algorithm."""
    from seiche.bench.collectives import main as measure

    world = world_of_command()
    options: dict[str, Any] = {"device": device, "processes": processes, "seconds": seconds, "machine": machine}
    with page(page_of(dpi, figure_size)):
        measure(output=json, plots=plots, world=world, **options)
