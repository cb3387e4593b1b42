# SPDX-License-Identifier: BSD-3-Clause
"""The commands that measure: `seiche bench ...`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from seiche.cli.options import Device, JsonFile, RankThreads, Seconds, Threads, Transport, world_of_command

bench = typer.Typer(help="Measure speed and store it as JSON.", no_args_is_help=True, rich_markup_mode=None)


ShapeName = StrEnum("ShapeName", ["tube", "box"])
LayoutName = StrEnum(
    "LayoutName", {"ab": "list-ab", "aa": "list-aa", "tiles_4": "tiles-4", "tiles_8": "tiles-8", "moments": "moments"}
)
Real = Literal["float32", "float64"]
Scheme = StrEnum("Scheme", ["exact", "separable", "local4"])
#: What every rank is given by `bench blood --weak`.
BloodLoad = StrEnum("BloodLoad", ["resolved", "coarse"])


class SoundPhysics(StrEnum):
    """What the benchmark of the ultrasound solver computes."""

    HOMOGENEOUS = "homogeneous"
    LOSSLESS = "lossless"
    FULL = "full"


@bench.command("flow")
def bench_flow(
    *,
    device: Device = "cpu",
    shape: Annotated[list[ShapeName] | None, typer.Option(help="What to fill; a tube by default.")] = None,
    layout: Annotated[list[LayoutName] | None, typer.Option(help="Storage layouts; all by default.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Edge of the box, million sites of the tube.")] = None,
    seconds: Seconds = 2.0,
    threads: RankThreads = None,
    transport: Transport = "auto",
    partition: Annotated[str, typer.Option(help="How sites are shared among ranks.")] = "metis",
    weak: Annotated[bool, typer.Option("--weak", help="Every rank gets the size, not all together.")] = False,
    json: JsonFile = None,
) -> None:
    """Measure site updates a second of storage layouts and precisions, against the copy bandwidth."""
    from seiche.bench.flow import main as measure

    measure(
        device=device,
        names=shape or ["tube"],
        layouts=layout or list(LayoutName),
        size=size,
        seconds=seconds,
        threads=threads,
        transport=transport,
        partition=partition,
        weak=weak,
        output=json,
    )


@bench.command("blood")
def bench_blood(
    *,
    device: Device = "cpu",
    hematocrit: Annotated[list[float] | None, typer.Option(min=0.01, max=0.45, help="0.1 to 0.45 by default.")] = None,
    support: Annotated[list[int] | None, typer.Option(min=2, max=4, help="2, 3 or 4; all by default.")] = None,
    precision: Annotated[Real, typer.Option(help="Of flow and cells.")] = "float32",
    size: Annotated[int | None, typer.Option(min=32, help="Sites along the edge of the box.")] = None,
    spacing: Annotated[float, typer.Option(min=0.1, max=1.0, help="Spacing of the sites in um.")] = 0.25,
    vertices: Annotated[int, typer.Option(help="Vertices of a cell: 162, 642 or 2562.")] = 642,
    points: Annotated[int, typer.Option(help="Points of integration of an element: 1 or 3.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each measurement.")] = None,
    layout: Annotated[
        str | None, typer.Option(help="Of the flow; moments (with the regularised collision) on a GPU, else tiles-8.")
    ] = None,
    threads: Threads = None,
    json: JsonFile = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the shares of the stages here.")] = None,
    weak: Annotated[bool, typer.Option("--weak", help="On 1, 2, 4 ... ranks, each with the same load.")] = False,
    load: Annotated[
        list[BloodLoad] | None, typer.Option(help="With --weak: 256^3 sites of 0.25 um, 2*10^7 of 1 um; both.")
    ] = None,
    ranks: Annotated[list[int] | None, typer.Option(min=1, help="With --weak: on so many ranks only.")] = None,
    transport: Annotated[str, typer.Option(help="With --weak: how messages travel.")] = "auto",
) -> None:
    """Measure red cells in a periodic box, stage by stage, against the flow alone; or on several ranks."""
    from seiche.bench.blood import DELTAS, HEMATOCRITS
    from seiche.bench.blood import main as measure
    from seiche.errors import CaseError

    world = world_of_command()
    options: dict[str, Any] = {"device": device, "precision": precision, "points": points, "steps": steps}
    options |= {"layout": layout, "threads": threads, "output": json}
    if weak:
        from seiche.bench.blood_ranks import LOADS, Load
        from seiche.bench.blood_ranks import main as measure_ranks

        loads = [LOADS[name] for name in load or list(BloodLoad)]
        if size is not None:
            loads = [Load(f"{size}^3", (size, size, size), spacing, vertices, (hematocrit or [0.4])[0])]
        measure_ranks(
            **options,
            world=world,
            loads=loads,
            deltas=[DELTAS[number] for number in support or (3, 4)],
            transport=transport,
            sizes=ranks or (),
        )
        return
    if world.size > 1:
        raise CaseError(f"bench blood on {world.size} ranks: add --weak")
    measure(
        **options,
        hematocrits=hematocrit or HEMATOCRITS,
        deltas=[DELTAS[number] for number in support or sorted(DELTAS)],
        size=size,
        spacing=spacing,
        vertices=vertices,
        figure=figure,
    )


@bench.command("waves")
def bench_waves(
    *,
    device: Device = "cpu",
    ghost: Annotated[str, typer.Option(help='What ranks send each other, or "all" to compare.')] = "traces",
    variant: Annotated[
        str, typer.Option(help='"fused", "fused-flux", "separate", "all" to compare these, or "leapfrog".')
    ] = "fused",
    size: Annotated[int | None, typer.Option(min=1, help="Elements of a rank along each axis.")] = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(min=2, max=10, help="Of an element, a direction; 8. Several have equally many nodes."),
    ] = None,
    seconds: Seconds = 2.0,
    threads: RankThreads = None,
    transport: Transport = "auto",
    strong: Annotated[bool, typer.Option("--strong", help="All ranks share one cube.")] = False,
    json: JsonFile = None,
) -> None:
    """Measure the wave solver's stage by each variant of its kernels, and what ranks send each other."""
    from seiche.bench.waves import main as measure

    measure(
        device=device,
        ghosts=ghost,
        variant=variant,
        size=size,
        nodes=nodes or 8,
        seconds=seconds,
        threads=threads,
        transport=transport,
        strong=strong,
        output=json,
    )


@bench.command("ultrasound")
def bench_ultrasound(
    *,
    device: Device = "cpu",
    size: Annotated[
        list[int] | None, typer.Option(min=1, help="Edges of cubes; 64 and 128, on a GPU 256, 384.")
    ] = None,
    scheme: Annotated[list[Scheme] | None, typer.Option(help="Correction in time; exact by default.")] = None,
    physics: Annotated[
        list[SoundPhysics] | None,
        typer.Option(help="Lossless water, lossless layers, or layers with all physics; the first and last."),
    ] = None,
    precision: Annotated[Real, typer.Option(help="Of all fields.")] = "float32",
    threads: Threads = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time of each of three measurements.")] = 2.0,
    peer: Annotated[bool, typer.Option("--peer", help="Time k-wave-python, too, where it is installed.")] = False,
    overlap: Annotated[
        list[int] | None,
        typer.Option(min=0, max=32, help="On several ranks: widths of overlaps, 0 the global basis; 8, 16, 0."),
    ] = None,
    transport: Transport = "auto",
    json: JsonFile = None,
) -> None:
    """Measure a step of the ultrasound solver, stage by stage, and its memory; on several ranks, a cube for each."""
    from seiche.bench.ultrasound import main as measure
    from seiche.bench.ultrasound_ranks import OVERLAPS
    from seiche.bench.ultrasound_ranks import main as measure_ranks
    from seiche.errors import CaseError

    world = world_of_command()
    schemes = [one.value for one in scheme or [Scheme.exact]]
    if world.size > 1:
        if peer:
            raise CaseError("bench ultrasound: --peer goes with one rank")
        measure_ranks(
            world,
            device=device,
            sizes=size or (),
            schemes=schemes,
            physics=[one.value for one in physics or [SoundPhysics.LOSSLESS, SoundPhysics.FULL]],
            overlaps=OVERLAPS if overlap is None else overlap,
            precision=precision,
            threads=threads,
            seconds=seconds,
            transport=transport,
            output=json,
        )
        return
    if overlap is not None or transport != "auto":
        raise CaseError("bench ultrasound: --overlap and --transport go with several ranks")
    measure(
        device=device,
        sizes=size or (),
        schemes=schemes,
        physics=[one.value for one in physics or [SoundPhysics.HOMOGENEOUS, SoundPhysics.FULL]],
        precision=precision,
        threads=threads,
        seconds=seconds,
        peer=peer,
        output=json,
    )


@bench.command("lfb")
def bench_lfb(
    *,
    device: Device = "cpu",
    overlap: Annotated[list[int] | None, typer.Option(help="Widths in points, 4 to 32; eight of them.")] = None,
    resolution: Annotated[list[float] | None, typer.Option(min=2.0, help="Points per wavelength; 3, 4, 6, 8.")] = None,
    json: JsonFile = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw error over width here.")] = None,
) -> None:
    """Measure the error of the local Fourier basis against the width of its overlaps, on several ranks."""
    from seiche.bench.lfb import main as measure

    measure(
        device=device,
        widths=overlap or (),
        resolutions=resolution or (),
        output=json,
        figure=figure,
        world=world_of_command(),
    )
