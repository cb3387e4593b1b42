# SPDX-License-Identifier: BSD-3-Clause
"""Command `seiche`: run, sweep, calibrate, check, new, schema, predict, convert, report, bench and validate.

Exit status: 0 if done, or stopped by SIGTERM, SIGINT or the wall-clock limit with a valid checkpoint; 1 if a validation
failed; 2 after an error; 130 after a second SIGINT; 130 (SIGINT) or 143 (SIGTERM) after a signal before the first step
of a run or during another command. An error or such an end is one line on the standard error of one rank.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seiche.case.agreement import report_failure
from seiche.case.stop_signals import InterruptError, command_signals
from seiche.cli import movement as movement  # adds commands to `bench`
from seiche.cli.bench import bench
from seiche.cli.calibrate import calibrate
from seiche.cli.options import DpiOption, SizeOption, output_folder, world_of_command
from seiche.cli.start import new, schema
from seiche.cli.sweep import sweep
from seiche.cli.validate import validate
from seiche.errors import CaseError, SeicheError
from seiche.report.page_size import page, page_of
from seiche.start import rare_collections

if TYPE_CHECKING:
    from seiche.case.outcome import Outcome
    from seiche.case.simulation import Simulation
    from seiche.domain.world import World

app = typer.Typer(
    name="seiche",
    help="Flow and waves on many GPUs.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bench, name="bench")
app.add_typer(validate, name="validate")

CaseArgument = Annotated[Path, typer.Argument(help="Case file (TOML, or XML of HemeLB).", metavar="CASE")]
DeviceOption = Annotated[str | None, typer.Option(help='"cpu", "cuda" or "cuda:1"; by default that of the case.')]
Changes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the case.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from seiche import __version__

        print(f"seiche {__version__}")
        raise typer.Exit


@app.command()
def run(
    case: CaseArgument,
    *,
    device: DeviceOption = None,
    restart: Annotated[Path | None, typer.Option(metavar="CHECKPOINT", help="Continue from this checkpoint.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", parser=output_folder, help="Output folder.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the results of an earlier run there.")] = False,
    changes: Changes = None,
    transport: Annotated[str | None, typer.Option(help="Transport of messages; by default that of the case.")] = None,
    ranks_info: Annotated[
        bool,
        typer.Option("--ranks-info", help="Print MPI, launcher, hosts; items, cores and GPU of each rank."),
    ] = False,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve a status page, on this host only.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the status page; any free one by default.")] = 0,
) -> None:
    """Run a case; `mpiexec -n 4 seiche run CASE` runs it on four ranks."""
    with rare_collections():
        from seiche.case.loading import load
        from seiche.case.rank_places import print_places, report_lines

    if port and not serve:
        raise CaseError(f"--port {port}: requires --serve")
    world = world_of_command()
    overrides = [*(changes or ()), *([f"run.transport={transport}"] if transport else [])]
    all_overrides = [*overrides, *([f"output.trace={trace.absolute()}"] if trace is not None else [])]
    try:
        options: dict[str, Any] = {"restart": restart, "output": output, "replace": replace, "world": world}
        with _set_up_lines(world), rare_collections():
            simulation = load(case, device=device, overrides=all_overrides, **options)
    except InterruptError as error:
        text = "stopped by signal {} before the first step; nothing was written"
        raise InterruptError(error.number, text) from None
    with simulation, _second_interrupt(simulation):
        for note in simulation.notes() if world.rank == 0 else ():
            print(f"seiche: note: {note}", file=sys.stderr)
        if ranks_info:
            print_places(world, simulation.solver.backend, simulation.solver.items, simulation.solver.item)
        outcome = simulation.run(serve=port if serve else None)
        if simulation.is_complete:
            if world.rank == 0:
                print(f"seiche: {outcome.lines[0]}")
            return
        report = "\n".join([simulation.report(), *report_lines(world, simulation.solver.backend)])
        if world.rank == 0:
            for line in outcome.lines:
                print(f"seiche: {line}")
            print(report)
            for line in simulation.solver.decisions:
                print(f"seiche: {line}")
            repeated = [("--device", device), ("--output", output)]
            print(f"seiche: {_end_of_run(simulation, outcome, case, repeated, overrides)}")


@contextmanager
def _set_up_lines(world: World) -> Iterator[None]:
    """Write the present stage every few seconds of a long set-up, on rank 0."""
    from seiche.backend.ranges import profiler_ranges
    from seiche.observe.elapsed_time import announced
    from seiche.set_up import record_set_up

    if world.rank > 0:
        yield
        return
    with announced("set-up") as show, record_set_up(lambda name: show(f"set-up: {name}"), profiler_ranges()):
        yield


@contextmanager
def _second_interrupt(simulation: Simulation) -> Iterator[None]:
    """Turn KeyboardInterrupt into an InterruptError that names the last checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        last = simulation.checkpoints.describe()
        text = f"ended by a second {{}} after step {simulation.step}, without a checkpoint of this step; {last}"
        raise InterruptError(signal.SIGINT, text) from None


def _shown(path: Path) -> Path:
    """Return a path as it is shown: relative to the working directory if it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _end_of_run(
    simulation: Simulation,
    outcome: Outcome,
    case: Path,
    options: Sequence[tuple[str, object]],
    overrides: Sequence[str],
) -> str:
    """Return the line that states how a run ended; for a stopped one with the command that continues it."""
    position = f"step {outcome.step:,} ({simulation.time:.4g} s)"
    if outcome.stopped is None:
        return f"done: {position} after {outcome.seconds:.1f} s; results in {_shown(simulation.folder)}"
    last_changes = {change.partition("=")[0].strip(): change for change in overrides}.values()
    options = [*options, *(("--set", change) for change in last_changes)]
    option_text = " ".join(f"{name} {quote(str(value))}" for name, value in options if value is not None)
    checkpoint = _shown(simulation.checkpoints.path)
    command = f"seiche run {quote(str(case))} --restart {quote(str(checkpoint))} {option_text}".rstrip()
    size = simulation.world.size
    launcher = f"mpiexec -n {size} " if size > 1 else ""
    # The wall clock is first checked after one step.
    one_step = outcome.stopped.startswith("wall-clock") and outcome.step <= simulation.first_step + 1
    note = ", which includes the set-up, after only one step," if one_step else ""
    return f"stopped by {outcome.stopped}{note} at {position}; continue with: {launcher}{command}"


@app.command()
def check(
    case: CaseArgument,
    *,
    device: DeviceOption = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="Number of ranks; by default that of mpiexec.")] = None,
    first_run: Annotated[
        bool, typer.Option("--first-run", help="Also print a checklist of this machine; on several ranks always.")
    ] = False,
    changes: Changes = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw geometry, media, openings, sources and sensors here.")
    ] = None,
    dpi: DpiOption = None,
    size: SizeOption = None,
) -> None:
    """Print resolution, limits, memory and cost of a case, without allocating its fields."""
    from seiche.case.kinds import kind_of
    from seiche.case.load import read_source

    world, requested = world_of_command(single_rank=True), page_of(dpi, size)
    source = read_source(case, changes or (), device)
    if picture is not None and world.rank == 0:
        from seiche.case.pictures import draw_case

        with page(requested):
            print(f"picture: {draw_case(source, picture)}")
    lines = kind_of(source).check(source, world, ranks or world.size)
    if first_run or world.size > 1:
        from seiche.case.first_run import first_run_lines

        lines = [*lines, *first_run_lines(world, source)]
    if world.rank == 0:
        print("\n".join(lines))


app.command()(new)
app.command()(schema)
app.command()(sweep)
app.command()(calibrate)


@app.command()
def predict(
    case: CaseArgument,
    *,
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help='Machine file, "summit" or "lassen"; machine.json by default.')
    ] = None,
    ranks: Annotated[str, typer.Option(metavar="LIST", help="Such as 1,2,4, or 1..512 (doubling).")] = "1..8",
    device: DeviceOption = None,
    changes: Changes = None,
    per_node: Annotated[int | None, typer.Option(min=1, help="Ranks per node; by default one per GPU or core.")] = None,
    run: Annotated[Path | None, typer.Option(metavar="RUN", help="Run of the case whose stage times are used.")] = None,
    run_on: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file of that run; as --machine.")] = None,
    fallback_machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Machine file for missing data.")
    ] = None,
    former_fallback: Annotated[Path | None, typer.Option("--with", hidden=True)] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also store the results here.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw strong and weak scaling here.")] = None,
    dpi: DpiOption = None,
    size: SizeOption = None,
) -> None:
    """Predict the time of a step of a case on a machine, for several numbers of ranks, without running it."""
    if _is_other_rank():
        return
    from seiche.case.predictions import main as predict_ranks

    if former_fallback is not None:
        print("note: --with is now called --fallback-machine", file=sys.stderr)
    fallback = fallback_machine or former_fallback
    paths = {"machine": machine, "run": run, "run_on": run_on, "fallback": fallback, "output": json, "figure": figure}
    with page(page_of(dpi, size)):
        predict_ranks(case, ranks=ranks, device=device, overrides=changes or (), ranks_per_node=per_node, **paths)


def _is_other_rank() -> bool:
    """Return whether this rank does not execute a serial command; rank 0 does."""
    return world_of_command(single_rank=True).rank != 0


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run.", metavar="RUN")],
    *,
    film: Annotated[bool, typer.Option("--film", help="Draw a GIF or MP4 of all states, not only the last.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; by default next to the data.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Interval of states in a film.")] = 1,
    series: Annotated[str | None, typer.Option(metavar="NAME", help="File of the cells, snapshots or fields.")] = None,
    field: Annotated[str | None, typer.Option(metavar="NAME", help="Field to draw, such as pressure.")] = None,
    section: Annotated[
        str | None, typer.Option(metavar="NAME", help="Draw a record section of this unknown, such as vz.")
    ] = None,
    gain: Annotated[str, typer.Option(help='Gain of a section: "common", or "trace" for each trace.')] = "common",
    clip: Annotated[float, typer.Option(metavar="PERCENT", help="Percentile of samples that a section clips.")] = 99.0,
    style: Annotated[str | None, typer.Option(help='"wiggle" or "image"; by number of traces by default.')] = None,
    dpi: DpiOption = None,
    size: SizeOption = None,
) -> None:
    """Draw the cells of a run, its waves or a field of its flow in a plane, or a record section of its receivers."""
    if _is_other_rank():
        return
    if section is not None:
        from seiche.case.render import render_section
        from seiche.report.section_figure import SectionStyle

        with page(page_of(dpi, size)):
            print(render_section(folder, section, SectionStyle(gain, clip, style), output=output, moving=film))
        return
    from seiche.case.render import render as draw

    with page(page_of(dpi, size)):
        print(draw(folder, moving=film, output=output, every=every, series=series, field=field))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A case (.toml, .xml), .gmy, .gmy+ or .stl file.", metavar="IN")],
    target: Annotated[
        Path, typer.Argument(help="A .gmy, .gmy+, .vtkhdf or .stl file; .toml for a HemoCell case.", metavar="OUT")
    ],
    spacing: Annotated[str | None, typer.Option(help='Spacing of sites, such as "0.1 mm".')] = None,
    unit: Annotated[str | None, typer.Option(help='Length of one unit of an STL file, such as "1 mm".')] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Convert a geometry, or a case of HemoCell."""
    if _is_other_rank():
        return
    if target.suffix.lower() == ".toml":
        from seiche.case.blood.convert import convert_hemocell as convert_file
    else:
        from seiche.case.flow.convert import convert as convert_file

    print(convert_file(source, target, spacing=spacing, unit=unit, force=force))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folder of a run; several with --compare.", metavar="RUN...")],
    *,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare runs of one kind; the first is the reference.")
    ] = False,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Machine file for predictions.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Page to write.")] = None,
    talp: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the stages as JSON like TALP.")] = None,
    otf2: Annotated[Path | None, typer.Option(metavar="DIR", help="Also convert the trace to OTF2, in DIR.")] = None,
) -> None:
    """Write a page that analyses the performance of a run, or compares runs."""
    if _is_other_rank():
        return
    from seiche.report.run_report import main as write

    if compare and (talp or otf2):
        raise CaseError("report: --talp and --otf2 export a single run, without --compare")
    print(f"seiche: wrote {write(runs, compare=compare, machine=machine, output=output)}")
    if talp or otf2:
        from seiche.report.exports import export

        for path in export(runs[0], talp=talp, otf2=otf2):
            print(f"seiche: wrote {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments`, by default those of the process, and return the exit status.

    An expected error is reported in one line on the standard error, on any number of ranks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names need not be UTF-8
    # This is collective, so it cannot be done after the failure of a single rank.
    world = world_of_command(single_rank=True)
    try:
        with command_signals():
            status = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except InterruptError as error:
        return report_failure(world, f"seiche: {error}", error.status)
    except (SeicheError, OSError, MemoryError, typer.TyperException, typer.Abort, KeyboardInterrupt) as error:
        return report_failure(world, _error_line(error))
    except BaseException:
        if world.size == 1:
            raise
        # An unexpected error on one rank: its traceback is printed, and the ranks that would wait for it are
        # terminated.
        return report_failure(world, traceback.format_exc())


def _error_line(error: BaseException) -> str:
    if isinstance(error, typer.TyperException):
        text = error.format_message()
        if error.exit_code == 2 and "Usage:" in text:  # `seiche` without arguments prints the help
            return text
    elif isinstance(error, MemoryError):
        text = "not enough memory; `seiche check` prints the memory that a case needs"
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        text = "interrupted"
    else:
        text = str(error)
    return f"seiche: error: {' '.join(text.split())}"


if __name__ == "__main__":
    sys.exit(main())
