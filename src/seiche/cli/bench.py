# SPDX-License-Identifier: BSD-3-Clause
"""Commands for benchmarks: `seiche bench ...`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from seiche.cli.options import (
    DeviceOption,
    DpiOption,
    FigureSizeOption,
    JsonFile,
    PartitionsOption,
    RanksOption,
    RankThreads,
    Seconds,
    Threads,
    TransportsOption,
    world_of_command,
)
from seiche.report.page_size import page, page_of

bench = typer.Typer(help="Measure performance and store it as JSON.", no_args_is_help=True, rich_markup_mode=None)

ShapeChoice = StrEnum("ShapeChoice", ["tube", "box"])
LayoutChoice = StrEnum(
    "LayoutChoice", {"ab": "list-ab", "aa": "list-aa", "tiles_4": "tiles-4", "tiles_8": "tiles-8", "moments": "moments"}
)

#: Storage of the populations; FP16 is computed in FP32.
StorageChoice = StrEnum("StorageChoice", ["float32", "float64", "float16"])
MediumChoice = StrEnum("MediumChoice", ["acoustic", "elastic"])
RealChoice = StrEnum("RealChoice", ["float64", "float32"])
PrecisionChoice = Literal["float32", "float64"]
SchemeChoice = StrEnum("SchemeChoice", ["exact", "separable", "local4"])
#: Load of each rank in `bench blood --weak`.
LoadChoice = StrEnum("LoadChoice", ["resolved", "coarse"])
OverlapChoice = StrEnum("OverlapChoice", ["on", "off"])
PhysicsChoice = StrEnum("PhysicsChoice", ["homogeneous", "lossless", "full", "relaxation"])


@bench.command("flow")
def bench_flow(
    *,
    device: DeviceOption = "cpu",
    shape: Annotated[list[ShapeChoice] | None, typer.Option(help="Domain; a tube by default.")] = None,
    layout: Annotated[list[LayoutChoice] | None, typer.Option(help="Storage layouts; all by default.")] = None,
    precision: Annotated[
        list[StorageChoice] | None, typer.Option(help="Storage of the populations; all of the device by default.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=1, help="Edge of the box in sites, or size of the tube in million sites.")
    ] = None,
    seconds: Seconds = 2.0,
    threads: RankThreads = None,
    transport: TransportsOption = None,
    partition: PartitionsOption = None,
    weak: Annotated[
        bool, typer.Option("--weak", help="`--size` is per rank, not the total; boxes are stacked in three directions.")
    ] = False,
    ranks: Annotated[
        list[int] | None, typer.Option(min=1, help="Only these numbers of ranks; all ranks by default.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Measure site updates per second of storage layouts and precisions, relative to the copy bandwidth."""
    from seiche.bench.flow import main as measure

    options: dict[str, Any] = {"device": device, "size": size, "seconds": seconds, "threads": threads}
    options |= {"transports": transport or ["auto"], "partitions": partition or ["metis"], "weak": weak}
    pairs = [("float32" if item == "float16" else item.value, item.value) for item in precision or ()]
    options |= {"sizes": ranks or (), "precisions": pairs or None, "output": json}
    measure(names=shape or ["tube"], layouts=layout or list(LayoutChoice), **options)


@bench.command("blood")
def bench_blood(
    *,
    device: DeviceOption = "cpu",
    hematocrit: Annotated[list[float] | None, typer.Option(min=0.01, max=0.45, help="0.1 to 0.45 by default.")] = None,
    support: Annotated[list[int] | None, typer.Option(min=2, max=4, help="2, 3 or 4; all by default.")] = None,
    precision: Annotated[PrecisionChoice, typer.Option(help="Precision of flow and cells.")] = "float32",
    size: Annotated[int | None, typer.Option(min=32, help="Edge of the box, sites.")] = None,
    spacing: Annotated[float, typer.Option(min=0.1, max=1.0, help="Spacing of the sites, um.")] = 0.25,
    vertices: Annotated[int, typer.Option(help="Vertices per cell: 162, 642 or 2562.")] = 642,
    points: Annotated[int, typer.Option(help="Integration points per element: 1 or 3.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each measurement.")] = None,
    layout: Annotated[
        str | None, typer.Option(help="Flow layout; moments (regularised) on a GPU, else tiles-8.")
    ] = None,
    threads: Threads = None,
    json: JsonFile = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the time per stage here.")] = None,
    dpi: DpiOption = None,
    figure_size: FigureSizeOption = None,
    weak: Annotated[bool, typer.Option("--weak", help="On 1, 2, 4 ... ranks with the same load per rank.")] = False,
    load: Annotated[
        list[LoadChoice] | None,
        typer.Option(help="On several ranks: 256^3 sites of 0.25 um, 2*10^7 of 1 um; both by default."),
    ] = None,
    strong: Annotated[bool, typer.Option("--strong", help="On 1, 2, 4 ... ranks that share one load.")] = False,
    ranks: RanksOption = None,
    transport: TransportsOption = None,
    partition: PartitionsOption = None,
) -> None:
    """Measure the stages of red cells in a periodic box, relative to the flow without cells; or on several ranks."""
    from seiche.bench.blood import DELTAS, HEMATOCRITS
    from seiche.bench.blood import main as measure
    from seiche.errors import CaseError

    world = world_of_command()
    options: dict[str, Any] = {"device": device, "precision": precision, "points": points, "steps": steps}
    options |= {"layout": layout, "threads": threads, "output": json}
    if weak and strong:
        raise CaseError("bench blood: --weak and --strong exclude each other")
    if weak or strong:
        from seiche.bench.blood_ranks import LOADS, Load
        from seiche.bench.blood_ranks import main as measure_ranks

        loads = [LOADS[name] for name in load or list(LoadChoice)]
        if size is not None:
            loads = [Load(f"{size}^3", (size, size, size), spacing, vertices, (hematocrit or [0.4])[0])]
        deltas = [DELTAS[number] for number in support or (3, 4)]
        options |= {"transports": transport or ["auto"], "partitions": partition or ["bisection"], "strong": strong}
        measure_ranks(**options, world=world, loads=loads, deltas=deltas, sizes=ranks or ())
        return
    if world.size > 1:
        raise CaseError(f"bench blood: several ranks ({world.size}) require --weak or --strong")
    options |= {"size": size, "spacing": spacing, "vertices": vertices, "figure": figure}
    deltas = [DELTAS[number] for number in support or sorted(DELTAS)]
    with page(page_of(dpi, figure_size)):
        measure(**options, hematocrits=hematocrit or HEMATOCRITS, deltas=deltas)


@bench.command("waves")
def bench_waves(
    *,
    device: DeviceOption = "cpu",
    ghost: Annotated[str, typer.Option(help='Data sent between ranks, or "all" to compare.')] = "traces",
    variant: Annotated[str, typer.Option(help='"fused", "fused-flux", "separate", "all" of these, or "leapfrog".')] = (
        "fused"
    ),
    size: Annotated[int | None, typer.Option(min=1, help="Elements per rank along each axis.")] = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(
            min=2,
            max=10,
            help="Nodes per element and direction; 8 by default. Meshes of several values have equal node counts.",
        ),
    ] = None,
    seconds: Seconds = 2.0,
    threads: RankThreads = None,
    medium: Annotated[list[MediumChoice] | None, typer.Option(help="Both by default.")] = None,
    precision: Annotated[list[RealChoice] | None, typer.Option(help="Both by default.")] = None,
    transport: TransportsOption = None,
    overlap: Annotated[
        list[OverlapChoice] | None,
        typer.Option(help="Compute inner elements while messages are in flight (on) or not (off); on by default."),
    ] = None,
    strong: Annotated[bool, typer.Option("--strong", help="Distribute one cube over all ranks.")] = False,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="Measure the gradient of a misfit and a run, in a cube of all ranks.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Measure a stage of the wave solver for each kernel variant, and the data sent between ranks."""
    from seiche.bench.waves import CONFIGURATIONS
    from seiche.bench.waves import main as measure
    from seiche.bench.waves_gradient import main as measure_gradient

    if gradient:
        measure_gradient(device=device, size=size, nodes=nodes or (6, 8), threads=threads, output=json)
        return
    options: dict[str, Any] = {"device": device, "size": size, "seconds": seconds, "threads": threads}
    options |= {"transports": transport or ["auto"], "strong": strong, "output": json}
    options["configurations"] = [item for item in CONFIGURATIONS if item[0] in (medium or list(MediumChoice))]
    options["precisions"] = [item.value for item in precision or list(RealChoice)]
    options["overlaps"] = [choice == OverlapChoice.on for choice in overlap or [OverlapChoice.on]]
    measure(ghosts=ghost, variant=variant, nodes=nodes or 8, **options)


@bench.command("ultrasound")
def bench_ultrasound(
    *,
    device: DeviceOption = "cpu",
    size: Annotated[
        list[int] | None, typer.Option(min=1, help="Edges of cubes; 64 and 128, on a GPU 256, 384.")
    ] = None,
    scheme: Annotated[list[SchemeChoice] | None, typer.Option(help="Temporal correction; exact by default.")] = None,
    physics: Annotated[
        list[PhysicsChoice] | None,
        typer.Option(
            help="Lossless water, lossless layers, or nonlinear layers with a power law (full) or relaxation; "
            "homogeneous and full by default."
        ),
    ] = None,
    precision: Annotated[PrecisionChoice, typer.Option(help="Precision of all fields.")] = "float32",
    threads: Threads = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Duration of each of three measurements, s.")] = 2.0,
    peer: Annotated[bool, typer.Option("--peer", help="Also time k-wave-python, if installed.")] = False,
    overlap: Annotated[
        list[int] | None,
        typer.Option(
            min=0, max=32, help="On several ranks: overlap widths, 0 for the global basis; 8, 16, 0 by default."
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="On several ranks: cubes along each axis, as in 4x2x1; the most even by default."),
    ] = None,
    ranks: RanksOption = None,
    transport: TransportsOption = None,
    json: JsonFile = None,
) -> None:
    """Measure the stages of an ultrasound step and its memory; on several ranks with one cube per rank."""
    from seiche.bench.splits import parse_split
    from seiche.bench.ultrasound import main as measure
    from seiche.bench.ultrasound_ranks import OVERLAPS
    from seiche.bench.ultrasound_ranks import main as measure_ranks
    from seiche.errors import CaseError

    world = world_of_command()
    options: dict[str, Any] = {"device": device, "sizes": size or (), "precision": precision, "threads": threads}
    options |= {"schemes": [item.value for item in scheme or [SchemeChoice.exact]], "seconds": seconds, "output": json}
    defaults = [PhysicsChoice.lossless if world.size > 1 else PhysicsChoice.homogeneous, PhysicsChoice.full]
    options["physics"] = [item.value for item in physics or defaults]
    if world.size > 1:
        if peer:
            raise CaseError("bench ultrasound: --peer requires one rank")
        options |= {"splits": [parse_split(text) for text in split or ()], "counts": ranks or ()}
        options |= {"overlaps": OVERLAPS if overlap is None else overlap, "transports": transport or ["auto"]}
        measure_ranks(world, **options)
        return
    if overlap is not None or transport or split or ranks:
        raise CaseError("bench ultrasound: --overlap, --split, --ranks and --transport require several ranks")
    measure(peer=peer, **options)


@bench.command("lfb")
def bench_lfb(
    *,
    device: DeviceOption = "cpu",
    overlap: Annotated[list[int] | None, typer.Option(help="Widths in points, 4 to 32; eight by default.")] = None,
    resolution: Annotated[
        list[float] | None, typer.Option(min=2.0, help="Points per wavelength; 3, 4, 6, 8 by default.")
    ] = None,
    json: JsonFile = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the error as a function of the width here.")
    ] = None,
    dpi: DpiOption = None,
    figure_size: FigureSizeOption = None,
) -> None:
    """Measure the error of the local Fourier basis as a function of its overlap width, on several ranks."""
    from seiche.bench.lfb import main as measure

    options: dict[str, Any] = {"widths": overlap or (), "resolutions": resolution or (), "figure": figure}
    with page(page_of(dpi, figure_size)):
        measure(device=device, output=json, world=world_of_command(), **options)
