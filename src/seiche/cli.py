# SPDX-License-Identifier: BSD-3-Clause
"""The command `seiche`: run, check, convert, report, bench and validate.

Exit status: 0 done, or stopped by SIGTERM, SIGINT or the wall-clock limit with a valid checkpoint; 1 a validation did
not pass; 2 an error, said in one line on the standard error of one rank.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seiche.errors import SeicheError

if TYPE_CHECKING:
    from seiche.domain.world import World

app = typer.Typer(
    name="seiche",
    help="Flow and waves on many GPUs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
bench = typer.Typer(help="Measure speed and store it as JSON.", no_args_is_help=True, rich_markup_mode=None)
validate = typer.Typer(
    help="Compare with exact solutions: pass or fail for each.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(bench, name="bench")
app.add_typer(validate, name="validate")

CaseFile = Annotated[Path, typer.Argument(help="Case file (TOML, or XML of HemeLB).", metavar="CASE")]
Device = Annotated[str | None, typer.Option(help='"cpu", "cuda" or "cuda:1"; the case\'s own by default.')]
Changes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the case.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also store the results here.")]


class Shape(StrEnum):
    """Geometries that the benchmark knows."""

    TUBE = "tube"
    BOX = "box"


class Layout(StrEnum):
    """Storage layouts of the flow solver."""

    LIST_AB = "list-ab"
    LIST_AA = "list-aa"
    TILES_4 = "tiles-4"
    TILES_8 = "tiles-8"
    MOMENTS = "moments"


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from seiche import __version__

        print(f"seiche {__version__}")
        raise typer.Exit


@app.command()
def run(
    case: CaseFile,
    device: Device = None,
    restart: Annotated[Path | None, typer.Option(metavar="CHECKPOINT", help="Go on from this checkpoint.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the outputs.")] = None,
    changes: Changes = None,
    transport: Annotated[str | None, typer.Option(help="How messages travel; the case's own by default.")] = None,
    ranks_info: Annotated[bool, typer.Option("--ranks-info", help="Print the share of every rank.")] = False,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a time line for ui.perfetto.dev.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show the progress on a page on this machine only.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of that page; any free one by default.")] = 0,
) -> None:
    """Run a case; under `mpiexec -n 4 seiche run CASE` on four ranks."""
    from seiche.case.simulation import load

    world = _world()
    overrides = [*(changes or ()), *([f"run.transport={transport}"] if transport else [])]
    overrides += [f"output.trace={trace.absolute()}"] if trace is not None else []
    simulation = load(case, device=device, overrides=overrides, restart=restart, output=output, world=world)
    if ranks_info:
        shares = world.gather((world.rank, len(simulation.solver.owned), os.uname().nodename))
        for rank, sites, host in shares or ():
            print(f"rank {rank} on {host}: {sites:,} sites")
    if world.rank == 0 and case.suffix.lower() == ".xml":
        for note in simulation.setup.vessel.notes:
            print(f"seiche: note: {note}", file=sys.stderr)
    outcome = simulation.run(serve=port if serve else None)
    report = simulation.report()
    if world.rank != 0:
        return
    print(report)
    for decision in simulation.solver.halo.decisions:
        print(f"seiche: {decision.describe()}")
    if outcome.stopped is None:
        print(
            f"seiche: done: step {outcome.step:,} ({simulation.time:.4g} s) after {outcome.seconds:.1f} s; "
            f"results in {simulation.folder}"
        )
    else:
        print(
            f"seiche: stopped by {outcome.stopped} at step {outcome.step:,}; "
            f"go on with --restart {simulation.outputs.checkpoint_path}"
        )


@app.command()
def check(
    case: CaseFile,
    device: Device = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="Ranks to divide the memory by.")] = None,
    changes: Changes = None,
) -> None:
    """Say what a case is and what it will cost, without allocating its fields."""
    from seiche.case.check import describe
    from seiche.case.limits import refuse_impossible, refuse_too_many_states
    from seiche.case.rims import rim_lines
    from seiche.case.simulation import prepare

    world = _world()
    if world.rank == 0:  # said even if the iolets do not fit: the rims tell why
        for line in rim_lines(case, changes or ()):
            print(line)
    setup = prepare(case, [*(changes or ()), *([f"run.device={device}"] if device else [])], world)
    refuse_impossible(setup, ranks or world.size)
    refuse_too_many_states(setup)
    if world.rank == 0:
        print("\n".join(describe(setup, ranks or world.size)))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A case (.toml, .xml), .gmy, .gmy+ or .stl file.", metavar="IN")],
    target: Annotated[Path, typer.Argument(help="A .gmy, .gmy+, .vtkhdf or .stl file.", metavar="OUT")],
    spacing: Annotated[str | None, typer.Option(help='Distance of sites, such as "0.1 mm".')] = None,
    unit: Annotated[str | None, typer.Option(help='Length of one unit of an STL file, such as "1 mm".')] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Convert a geometry."""
    from seiche.case.convert import convert as convert_file

    print(convert_file(source, target, spacing=spacing, unit=unit, force=force))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folder of a run; two with --compare.", metavar="RUN...")],
    compare: Annotated[bool, typer.Option("--compare", help="Two runs side by side, the first as reference.")] = False,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file for predictions.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="The page to write.")] = None,
) -> None:
    """Write a page that says where the time of a run went, and why."""
    from seiche.report.run_report import main as write

    print(f"seiche: wrote {write(runs, compare=compare, machine=machine, output=output)}")


@bench.command("flow")
def bench_flow(
    device: Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')] = "cpu",
    shape: Annotated[list[Shape] | None, typer.Option(help="What to fill; a tube by default.")] = None,
    layout: Annotated[list[Layout] | None, typer.Option(help="Storage layouts; all by default.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Edge of the box, million sites of the tube.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time of each measurement.")] = 2.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each rank (cpu).")] = None,
    transport: Annotated[str, typer.Option(help="How messages travel between ranks.")] = "auto",
    partition: Annotated[str, typer.Option(help="How sites are shared among ranks.")] = "metis",
    weak: Annotated[bool, typer.Option("--weak", help="Every rank gets the size, not all together.")] = False,
    json: JsonFile = None,
) -> None:
    """Measure site updates a second of storage layouts and precisions, against the copy bandwidth."""
    from seiche.report.bench_flow import main as measure

    measure(
        device=device,
        names=shape or [Shape.TUBE],
        layouts=layout or list(Layout),
        size=size,
        seconds=seconds,
        threads=threads,
        transport=transport,
        partition=partition,
        weak=weak,
        output=json,
    )


@bench.command("machine")
def bench_machine(
    device: Annotated[str, typer.Option(help='"auto", "cpu", "cuda" or "cuda:1".')] = "auto",
    seconds: Annotated[float, typer.Option(min=1.0, help="About how long to measure.")] = 60.0,
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to try writing files.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the machine; the host's by default.")] = None,
    json: Annotated[Path, typer.Option("--json", metavar="FILE", help="The machine file to write.")] = Path(
        "machine.json"
    ),
) -> None:
    """Measure what moving data costs on these ranks and write a machine file."""
    from seiche.report.bench_machine import main as measure

    measure(device=device, seconds=seconds, folder=folder, name=name, output=json, world=_world())


@bench.command("choice")
def bench_choice(
    machine: Annotated[Path, typer.Argument(metavar="FILE", help="Machine file to choose by.")],
    device: Annotated[str, typer.Option(help='"auto", "cpu", "cuda".')] = "auto",
    json: JsonFile = None,
) -> None:
    """Time halo exchanges by every transport, and what the choice by a machine file costs."""
    from seiche.report.bench_choice import main as measure

    measure(machine=machine, device=device, output=json, world=_world())


@bench.command("collectives")
def bench_collectives(
    device: Annotated[str, typer.Option(help='Of the arrays: "auto", "cpu", "cuda".')] = "auto",
    processes: Annotated[int, typer.Option(min=1, help="Ranks that share the messages of one array.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.0, help="About how long to measure.")] = 60.0,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file to predict from.")] = None,
    json: JsonFile = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the comparisons here.")] = None,
) -> None:
    """Time Alltoall and Alltoallv by every way in which their data can travel."""
    from seiche.report.bench_collectives import main as measure

    measure(
        device=device,
        processes=processes,
        seconds=seconds,
        machine=machine,
        output=json,
        plots=plots,
        world=_world(),
    )


@validate.command("flow")
def validate_flow(
    device: Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: minutes instead of an hour.")] = False,
    json: JsonFile = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the comparisons here.")] = None,
) -> None:
    """Run the flow solver against exact solutions; exit status 1 if one does not pass."""
    from seiche.report.validate_flow import main as compare

    raise typer.Exit(compare(device=device, quick=quick, json=json, plots=plots) or 0)


@validate.command("cells")
def validate_cells(
    device: Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller meshes.")] = False,
    json: JsonFile = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the comparisons here.")] = None,
) -> None:
    """Run the membranes of cells against exact and measured values; exit status 1 if one does not pass."""
    from seiche.report.validate_cells import main as compare

    raise typer.Exit(compare(device=device, quick=quick, json=json, plots=plots) or 0)


@validate.command("machine")
def validate_machine(
    device: Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer tries, shorter measurements.")] = False,
    json: JsonFile = None,
) -> None:
    """Check the models of data movement against known parameters and tables; exit status 1 if one does not pass."""
    from seiche.report.validate_machine import main as compare

    raise typer.Exit(compare(device=device, quick=quick, json=json) or 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process by default) and return the exit status.

    Whatever fails on purpose becomes one line on the standard error, whatever the number of ranks.
    """
    try:
        status = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except (SeicheError, OSError, MemoryError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        return _fail(_line(error))
    except BaseException:
        if _world().size == 1:
            raise
        # A defect on one rank: its traceback, and an end for the ranks that would wait for it.
        return _fail(traceback.format_exc())


def _line(error: BaseException) -> str:
    if isinstance(error, typer.TyperException):
        text = error.format_message()
        if error.exit_code == 2 and "Usage:" in text:  # `seiche` alone asks for the help
            return text
    elif isinstance(error, MemoryError):
        text = "not enough memory; `seiche check` says how much a case needs"
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        text = "interrupted"
    else:
        text = str(error)
    return f"seiche: error: {' '.join(text.split())}"


@cache
def _world() -> World:
    """Return the ranks of this run; made once, because making it asks every rank."""
    from seiche.domain.world import World

    return World.from_mpi()


def _fail(message: str) -> int:
    from seiche.case.agreement import end_of_rank

    return end_of_rank(_world(), message)


if __name__ == "__main__":
    sys.exit(main())
