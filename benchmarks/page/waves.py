# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about waves: the rows of `seiche bench waves`, and GPU over CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.page.stored import Result
from seiche.bench.waves import WavesRow
from seiche.report.table import markdown

_INTRODUCTION = """\
# Waves

These are periodic cubes (`seiche bench waves --json benchmarks/results/NAME.json`) with *n* nodes per direction. A
stage is one evaluation of the right-hand side with its integration. A Runge-Kutta step has five stages, a leapfrog
step has one.

- *Words*: words moved per node in an inner stage, by the [model](../theory/waves.md), section 8.
- *Ratio to fused*: the time divided by the time of the fused kernel.
- *Share of copy*: the bandwidth of the mean stage divided by the bandwidth of a copy.
- *Efficiency*, on several ranks: the time on one device divided by the time on all. The loss is due to messages.
"""
_RATIO = """\
The table gives the rate of a stage per node on the GPU, divided by that on the CPU, with fused kernels. The CPU has the
number of threads in the heading: a few cores, not a node. The average of 84 of Hanindhito et al. (2022,
doi:10.1145/3524059.3532373), over the same six configurations, is for one V100 and two POWER9 processors of 20 cores
and is not comparable.
"""


def waves_part(results: Sequence[Result[WavesRow]]) -> str:
    """Return the text about waves; nothing without results."""
    if not results:
        return ""
    return "\n".join([_INTRODUCTION, *map(_section, results), *_ratios(results)])


def _section(result: Result[WavesRow]) -> str:
    several = any(row.ranks > 1 for row in result.rows)
    columns = ["medium", "flux", "precision", "kernels", "n", "elements", "words", "ps per node and stage"]
    columns += ["ratio to fused", "share of copy"] + (
        ["ghosts", "transport", "ranks", "kB per stage", "error", "efficiency"] if several else []
    )
    lines = []
    for row in result.rows:
        line = [row.medium, row.flux, row.precision, row.variant, str(row.nodes), f"{row.elements:,}"]
        line += [f"{row.words_per_node:.1f}", f"{row.picoseconds_per_node_stage:,.1f}", f"{row.time_over_fused:.2f}"]
        line += [f"{row.share_of_copy:.0%}"]
        if several:
            ranks = f"{row.ranks}{', one cube' if row.strong else ''}"
            transport = f"{row.transport}{'' if row.overlap else ', no overlap'}"
            line += [
                row.ghosts,
                transport,
                ranks,
                f"{row.message_bytes / 1e3:,.1f}",
                f"{row.error:.1e}",
                f"{row.efficiency:.3f}",
            ]
        lines.append(tuple(line))
    return result.head + markdown(tuple(columns), lines, text_columns=4)


def _ratios(results: Sequence[Result[WavesRow]]) -> Iterator[str]:
    """Yield a table for every pair of a GPU and a CPU that measured the same configurations."""
    for gpu in (result for result in results if result.on_gpu):
        for cpu in (result for result in results if not result.on_gpu):
            slow = {_key(row): row for row in cpu.rows if _alone(row)}
            pairs = [(row, slow[_key(row)]) for row in gpu.rows if _alone(row) and _key(row) in slow]
            if pairs:
                ratios = [
                    double.picoseconds_per_node_stage / single.picoseconds_per_node_stage for single, double in pairs
                ]
                lines = [
                    (
                        *(single.medium, single.flux, single.precision, str(single.nodes), f"{ratio:,.0f}"),
                        *(f"{single.share_of_copy:.0%}", f"{double.share_of_copy:.0%}"),
                    )
                    for (single, double), ratio in zip(pairs, ratios, strict=True)
                ]
                lines.append(("mean", "", "", "", f"{np.mean(ratios):,.0f}", "", ""))
                columns = (
                    "medium",
                    "flux",
                    "precision",
                    "n",
                    "times faster",
                    "share of copy, GPU",
                    "share of copy, CPU",
                )
                yield f"## Waves: {gpu.device} compared with {cpu.device}\n\n{_RATIO}\n" + markdown(
                    columns, lines, text_columns=3
                )


def _alone(row: WavesRow) -> bool:
    return row.ranks == 1 and row.variant == "fused"


def _key(row: WavesRow) -> tuple[str, str, str, int]:
    return row.medium, row.flux, row.precision, row.nodes
