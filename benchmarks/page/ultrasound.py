# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about ultrasound: the rows of `seiche bench ultrasound` on one and more ranks."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.page.stored import Result
from seiche.bench.ultrasound import UltrasoundRow
from seiche.bench.ultrasound_ranks import UltrasoundRanksRow
from seiche.report.table import markdown

_INTRODUCTION = """\
# Ultrasound

Steps of the k-space solver (`seiche bench ultrasound --json benchmarks/results/NAME.json`) on cubes, with a velocity
source in every step. The media are water (homogeneous), two lossless layers (lossless), and two layers with power-law
absorption and nonlinearity (full). *Transforms* are library transforms of the whole grid, or transforms of lines in the
kernels ([tuning](tuning.md)). The two values of bytes per point are the estimate of `seiche check` and the measured
increase of device memory.
"""
_RANKS = """\
On several ranks (`mpiexec -n 4 seiche bench ultrasound --json benchmarks/results/NAME.json`), each rank has one cube.

- *Cubes*: number of cubes along each axis.
- *Width*: width of the overlaps, empty for transforms of the whole grid.
- *Efficiency*: the time of a step of one cube on one rank, divided by the time of this step.
- *After work*: the same efficiency if all points that a rank computes, including overlaps, count as work.
- *Messages*: the share of a step spent on sending, receiving and transposing.
"""
_COLUMNS = (
    *("program", "scheme", "medium", "precision", "transforms"),
    *("points", "ms per step", "ns per point", "B per point"),
)
_RANKS_COLUMNS = (
    *(
        "scheme",
        "medium",
        "precision",
        "basis",
        "transport",
        "transforms",
        "points per rank",
        "ranks",
        "cubes",
        "width",
    ),
    *("ms on one rank", "ms per step", "efficiency", "after work", "messages"),
)


def ultrasound_part(results: Sequence[Result[UltrasoundRow]], ranks: Sequence[Result[UltrasoundRanksRow]] = ()) -> str:
    """Return the text about ultrasound; nothing without results."""
    if not results and not ranks:
        return ""
    several = [_RANKS, *map(_ranks_section, ranks)] if ranks else []
    return "\n".join([_INTRODUCTION, *map(_section, results), *several])


def _section(result: Result[UltrasoundRow]) -> str:
    lines = [
        (
            *(row.program, row.scheme, row.physics, row.precision, row.transforms, f"{row.size}^3"),
            *(f"{row.milliseconds:.2f}", f"{row.nanoseconds_per_point:.3f}"),
            f"{row.predicted_bytes:.1f}, {row.measured_bytes:.1f}" if row.predicted_bytes else "",
        )
        for row in result.rows
    ]
    return result.head + markdown(_COLUMNS, lines, text_columns=5)


def _ranks_section(result: Result[UltrasoundRanksRow]) -> str:
    lines = [
        (
            *(row.scheme, row.physics, row.precision, row.basis, row.transport, row.transforms, f"{row.size}^3"),
            *(
                str(row.ranks),
                row.split or f"{row.ranks}x1x1",
                str(row.width or ""),
                f"{row.milliseconds_one_rank:.2f}",
                f"{row.milliseconds:.2f}",
            ),
            *(f"{row.efficiency:.2f}", f"{row.efficiency_after_redundant_work:.2f}", f"{row.share_of_messages:.1%}"),
        )
        for row in result.rows
    ]
    return result.head + markdown(_RANKS_COLUMNS, lines, text_columns=6)
