# SPDX-License-Identifier: BSD-3-Clause
"""The command `seiche`: run, check, predict, convert, report, bench and validate.

Exit status: 0 done, or stopped by SIGTERM, SIGINT or the wall-clock limit with a valid checkpoint; 1 a validation did
not pass; 2 an error, said in one line on the standard error of one rank.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from seiche.case.agreement import end_of_rank
from seiche.cli import movement as movement  # its commands join `bench`
from seiche.cli.bench import bench
from seiche.cli.options import world_of_command
from seiche.cli.validate import validate
from seiche.errors import CaseError, SeicheError

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
app.add_typer(bench, name="bench")
app.add_typer(validate, name="validate")

CaseFile = Annotated[Path, typer.Argument(help="Case file (TOML, or XML of HemeLB).", metavar="CASE")]
Device = Annotated[str | None, typer.Option(help='"cpu", "cuda" or "cuda:1"; the case\'s own by default.')]
Changes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the case.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from seiche import __version__

        print(f"seiche {__version__}")
        raise typer.Exit


@app.command()
def run(
    case: CaseFile,
    *,
    device: Device = None,
    restart: Annotated[Path | None, typer.Option(metavar="CHECKPOINT", help="Continue from this checkpoint.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the outputs.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the results of an earlier run there.")] = False,
    changes: Changes = None,
    transport: Annotated[str | None, typer.Option(help="How messages travel; the case's own by default.")] = None,
    ranks_info: Annotated[bool, typer.Option("--ranks-info", help="Print the share of every rank.")] = False,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a time line for ui.perfetto.dev.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show the progress on a page on this machine only.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of that page; any free one by default.")] = 0,
) -> None:
    """Run a case; under `mpiexec -n 4 seiche run CASE` on four ranks."""
    from seiche.case.account import print_shares
    from seiche.case.loading import load

    if port and not serve:
        raise CaseError(f"--port {port}: goes with --serve")
    overrides = [*(changes or ()), *([f"run.transport={transport}"] if transport else [])]
    timeline = [f"output.trace={trace.absolute()}"] if trace is not None else []
    world = world_of_command()
    simulation = load(
        case,
        device=device,
        overrides=[*overrides, *timeline],
        restart=restart,
        output=output,
        replace=replace,
        world=world,
    )
    with simulation:
        _print_notes(world, simulation.notes())
        if ranks_info:
            print_shares(world, simulation.solver.items, simulation.solver.item)
        outcome = simulation.run(serve=port if serve else None)
        report = simulation.report()
        if world.rank != 0:
            return
        print(report)
        for line in (*simulation.solver.decisions, *outcome.lines):
            print(f"seiche: {line}")
        where = f"step {outcome.step:,} ({simulation.time:.4g} s)"
        if outcome.stopped is None:
            print(f"seiche: done: {where} after {outcome.seconds:.1f} s; results in {simulation.folder}")
            return
        last_of = {change.partition("=")[0].strip(): change for change in overrides}
        options = [("--device", device), ("--output", output), *(("--set", change) for change in last_of.values())]
        given = " ".join(f"{name} {quote(str(value))}" for name, value in options if value is not None)
        again = f"seiche run {quote(str(case))} --restart {quote(str(simulation.checkpoints.path))} {given}".rstrip()
        # The first decision comes after one step.
        late = outcome.stopped.startswith("wall-clock") and outcome.step <= simulation.first_step + 1
        note = ", before which no step was completed," if late else ""
        print(f"seiche: stopped by {outcome.stopped}{note} at {where}; continue with: {again}")


def _print_notes(world: World, notes: Sequence[str]) -> None:
    for note in notes if world.rank == 0 else ():
        print(f"seiche: note: {note}", file=sys.stderr)


@app.command()
def check(
    case: CaseFile,
    *,
    device: Device = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="Ranks to divide the memory by.")] = None,
    changes: Changes = None,
) -> None:
    """Say what a case is and what it will cost, without allocating its fields."""
    from seiche.case.kinds import kind_of
    from seiche.case.load import read_source

    world = world_of_command()
    source = read_source(case, changes or (), device)
    lines = kind_of(source).check(source, world, ranks or world.size)
    if world.rank == 0:
        print("\n".join(lines))


@app.command()
def predict(
    case: CaseFile,
    *,
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help='Machine file, "summit" or "lassen"; machine.json by default.')
    ] = None,
    ranks: Annotated[str, typer.Option(metavar="LIST", help="Such as 1,2,4, or 1..512, which doubles.")] = "1..8",
    device: Device = None,
    changes: Changes = None,
    a_node: Annotated[
        int | None, typer.Option("--per-node", min=1, help="Ranks on a node; one a GPU or core by default.")
    ] = None,
    run: Annotated[Path | None, typer.Option(metavar="RUN", help="A run of the case: how fast its stages are.")] = None,
    run_on: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file of that run; as --machine.")] = None,
    rest: Annotated[Path | None, typer.Option("--with", metavar="FILE", help="Machine file for what is lacking.")] = (
        None
    ),
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also store the numbers here.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw strong and weak scaling here.")] = None,
) -> None:
    """Say how long steps of a case take on a machine, on any number of ranks, without running it."""
    if _idle():
        return
    from seiche.case.predictions import main as predict_ranks

    predict_ranks(
        case,
        machine=machine,
        ranks=ranks,
        device=device,
        overrides=changes or (),
        a_node=a_node,
        run=run,
        run_on=run_on,
        rest=rest,
        output=json,
        figure=figure,
    )


def _idle() -> bool:
    """Return whether this is a further rank of a command that one process does: all would write the same files."""
    return world_of_command().rank != 0


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run with cells or waves.", metavar="RUN")],
    *,
    film: Annotated[bool, typer.Option("--film", help="A GIF or MP4 of all states, not a picture of the last.")] = (
        False
    ),
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; beside the cells.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Take every so many states for a film.")] = 1,
    series: Annotated[str | None, typer.Option(metavar="NAME", help="Which cells or snapshots, by file.")] = None,
) -> None:
    """Draw the cells of a run, coloured by velocity, or its waves in a plane."""
    if _idle():
        return
    from seiche.case.render import render as draw

    print(draw(folder, moving=film, output=output, every=every, series=series))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A case (.toml, .xml), .gmy, .gmy+ or .stl file.", metavar="IN")],
    target: Annotated[Path, typer.Argument(help="A .gmy, .gmy+, .vtkhdf or .stl file.", metavar="OUT")],
    spacing: Annotated[str | None, typer.Option(help='Distance of sites, such as "0.1 mm".')] = None,
    unit: Annotated[str | None, typer.Option(help='Length of one unit of an STL file, such as "1 mm".')] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Convert a geometry."""
    if _idle():
        return
    from seiche.case.flow.convert import convert as convert_file

    print(convert_file(source, target, spacing=spacing, unit=unit, force=force))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folder of a run; two with --compare.", metavar="RUN...")],
    *,
    compare: Annotated[bool, typer.Option("--compare", help="Two runs side by side, the first as reference.")] = False,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file for predictions.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="The page to write.")] = None,
) -> None:
    """Write a page that says where the time of a run went, and why."""
    if _idle():
        return
    from seiche.report.run_report import main as write

    print(f"seiche: wrote {write(runs, compare=compare, machine=machine, output=output)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process by default) and return the exit status.

    Whatever fails on purpose becomes one line on the standard error, whatever the number of ranks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no UTF-8
    # Making the world asks every rank: one that fails alone could not do it any more to tell the others.
    world = world_of_command()
    try:
        status = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except (SeicheError, OSError, MemoryError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        return end_of_rank(world, _line(error))
    except BaseException:
        if world.size == 1:
            raise
        # A defect on one rank: its traceback, and an end for the ranks that would wait for it.
        return end_of_rank(world, traceback.format_exc())


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


if __name__ == "__main__":
    sys.exit(main())
