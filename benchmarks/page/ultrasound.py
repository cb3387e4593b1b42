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

Steps of the k-space solver (`seiche bench ultrasound --json benchmarks/results/NAME.json`) on cubes, in water
(homogeneous), two lossless layers (lossless), or two layers that absorb by a power law, with nonlinearity (full). A
source of velocity acts in every step. *Transforms* are those of a library over the whole grid, or of lines in the
kernels themselves ([tuning](tuning.md)). Bytes a point are those that `seiche check` states, and what the device's
memory grew by.
"""
_RANKS = """\
Several ranks (`mpiexec -n 4 seiche bench ultrasound --json benchmarks/results/NAME.json`) have a cube each, in a row.
*Width* is that of the overlaps, none where transforms cover the whole grid. *Efficiency* is the time of one cube on one
rank over that of a step; *after work* counts all points that a rank computes, overlaps included, as its work.
*Messages* is the share of a step in sending, receiving and transposing.
"""
_COLUMNS = ("program", "scheme", "medium", "precision", "transforms", "points", "ms a step", "ns a point", "B a point")
_RANKS_COLUMNS = (
    *("scheme", "medium", "precision", "basis", "transport", "transforms", "points a rank", "ranks", "width"),
    *("ms alone", "ms a step", "efficiency", "after work", "messages"),
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
            *(f"{row.milliseconds:.2f}", f"{row.nanoseconds_a_point:.3f}"),
            f"{row.bytes_told:.1f}, {row.bytes_taken:.1f}" if row.bytes_told else "",
        )
        for row in result.rows
    ]
    return result.head + markdown(_COLUMNS, lines, text_columns=5)


def _ranks_section(result: Result[UltrasoundRanksRow]) -> str:
    lines = [
        (
            *(row.scheme, row.physics, row.precision, row.basis, row.transport, row.transforms, f"{row.size}^3"),
            *(str(row.ranks), str(row.width or ""), f"{row.milliseconds_alone:.2f}", f"{row.milliseconds:.2f}"),
            *(f"{row.efficiency:.2f}", f"{row.efficiency_after_redundant_work:.2f}", f"{row.share_of_messages:.1%}"),
        )
        for row in result.rows
    ]
    return result.head + markdown(_RANKS_COLUMNS, lines, text_columns=6)
