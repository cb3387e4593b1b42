# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about ultrasound: the rows of `seiche bench ultrasound`."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.report.bench_ultrasound import Row
from seiche.report.stored import Result
from seiche.report.table import markdown

_INTRODUCTION = """\
# Ultrasound

Steps of the k-space solver (`seiche bench ultrasound --json benchmarks/results/NAME.json`) on cubes, in water
(homogeneous), two lossless layers (lossless), or two layers that absorb by a power law, with nonlinearity (full). A
source of velocity acts in every step. *Transforms* are those of a library over the whole grid, or of lines in the
kernels themselves ([tuning](tuning.md)). Bytes a point are those that `seiche check` states, and what the device's
memory grew by.
"""
_COLUMNS = ("program", "scheme", "medium", "precision", "transforms", "points", "ms a step", "ns a point", "B a point")


def ultrasound_part(results: Sequence[Result[Row]]) -> str:
    """Return the text about ultrasound; nothing without results."""
    return "\n".join([_INTRODUCTION, *map(_section, results)]) if results else ""


def _section(result: Result[Row]) -> str:
    lines = [
        (
            *(row.program, row.scheme, row.physics, row.precision, row.transforms, f"{row.size}^3"),
            *(f"{row.milliseconds:.2f}", f"{row.nanoseconds_a_point:.3f}"),
            f"{row.bytes_told:.1f}, {row.bytes_taken:.1f}" if row.bytes_told else "",
        )
        for row in result.rows
    ]
    return result.head + markdown(_COLUMNS, lines, text_columns=5)
