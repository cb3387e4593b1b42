# SPDX-License-Identifier: BSD-3-Clause
"""Options shared by several commands."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seiche.domain.world import World


def _checked_benchmark_path(path: Path | None) -> Path | None:
    """Return `path`; raise CaseError if the file exists and does not contain benchmark results."""
    from seiche.report.stored import check_output_path

    check_output_path(path)
    return path


def _validated_results_path(path: Path | None) -> Path | None:
    """Return `path`; raise CaseError if the file exists and does not contain results of checks."""
    from seiche.report.stored import CHECKS_START, check_replaceable_results

    check_replaceable_results(path, CHECKS_START)
    return path


def output_folder(text: str | Path) -> Path:
    """Return the folder that an option names; BadParameter for an empty text, which would be the current folder."""
    if not str(text):
        raise typer.BadParameter('expected the name of a folder, not an empty string; "." is the current folder')
    return Path(text)


_STORE_HELP = "Also store the results here."
DpiOption = Annotated[
    int | None, typer.Option(metavar="N", help="Dots per inch of the picture, 30 to 1200; 300 by default.")
]
SizeOption = Annotated[
    str | None, typer.Option(metavar="WxH", help="Width and height of the picture in mm, such as 180x100.")
]
FigureSizeOption = Annotated[
    str | None, typer.Option(metavar="WxH", help="Width and height of figures in mm, such as 180x100.")
]
DeviceOption = Annotated[str, typer.Option(help='"cpu", "cuda" or "cuda:1".')]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help=_STORE_HELP, callback=_checked_benchmark_path)
]
ChecksFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help=_STORE_HELP, callback=_validated_results_path)
]
FamilyFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help="Run only check families named TEXT, else those with TEXT in their name; repeatable."
    ),
]
Plots = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for plots of the comparisons.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep the results in the --json file; run only missing families.")
]
RankThreads = Annotated[int | None, typer.Option(min=1, help="Threads per rank (cpu).")]
Seconds = Annotated[float, typer.Option(min=0.0, help="Duration of each measurement, s.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads (cpu).")]
TransportsOption = Annotated[
    list[str] | None,
    typer.Option("--transport", help="Transport of messages between ranks; repeatable; auto by default."),
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option("--partition", help="Partition of the sites: metis, curve, bisection or slabs; repeatable."),
]
RanksOption = Annotated[list[int] | None, typer.Option("--ranks", min=1, help="Only these numbers of ranks.")]


def world_of_command(*, single_rank: bool = False) -> World:
    """Return the world to which this process belongs.

    Raises:
        TransportError: the launcher started several processes that MPI does not connect, unless `single_rank` allows
            each of them to be the only rank of its world.
    """
    from seiche.domain.world import check_connected

    world = _world_of_process()
    if not single_rank:
        check_connected(world)
    return world


@cache
def _world_of_process() -> World:
    """Return the world of this process; the result is cached, because the first call is collective."""
    from seiche.domain.world import World

    return World.from_mpi(single_rank=True)
