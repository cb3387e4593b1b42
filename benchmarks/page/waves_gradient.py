# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about gradients: the rows of `seiche bench waves --gradient`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.page.stored import Result
from seiche.bench.waves_gradient import GradientRow
from seiche.report.table import markdown

_INTRODUCTION = """\
# Gradients of a waveform misfit

The cost of a gradient (`seiche bench waves --gradient --json benchmarks/results/NAME.json`) in a cube with absorbing
sides, a force and nine receivers: the time of `Experiment.gradient` divided by that of `Experiment.simulate`, both from
the medium to the result. *Predicted* is the same ratio by the words moved ([theory](../theory/waves.md), section 10).
"""


def gradient_part(results: Sequence[Result[GradientRow]]) -> str:
    """Return the text about gradients; nothing without results."""
    return "\n".join([_INTRODUCTION, *map(_section, results)]) if results else ""


def _section(result: Result[GradientRow]) -> str:
    columns = (
        *("medium", "by", "precision", "n", "elements", "ranks", "steps", "stored states"),
        *("run, s", "gradient, s", "ratio", "predicted"),
    )
    lines = [
        (
            *(row.medium, "node" if row.by_node else "element", row.precision, str(row.nodes), f"{row.elements:,}"),
            *(str(row.ranks), f"{row.steps:,}", f"{row.snapshots:,}"),
            *(f"{row.seconds_of_run:.3f}", f"{row.seconds_of_gradient:.3f}"),
            *(f"{row.ratio:.2f}", f"{row.predicted:.2f}"),
        )
        for row in result.rows
    ]
    return result.head + markdown(columns, lines, text_columns=3)
