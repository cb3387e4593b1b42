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

Periodic cubes (`seiche bench waves --json benchmarks/results/NAME.json`), *n* nodes a direction. A stage is one
evaluation of the right-hand side with its integration: five make a step of Runge-Kutta, one a step of leapfrog. *Words*
are what an inner stage moves a node by the [model](../theory/waves.md), section 8; *of copy* is what the mean of the
stages makes of the copy bandwidth, *of fused* the time over that of the fused kernel. With several ranks *efficiency*
is the time of one device alone over that of all: the rest is what messages cost.
"""
_RATIO = """\
How many times faster the GPU does a stage of a node, fused kernels. Hanindhito et al. (2022,
doi:10.1145/3524059.3532373) give 84 on the average of the same six configurations, one V100 against two POWER9
processors of 20 cores.
"""


def waves_part(results: Sequence[Result[WavesRow]]) -> str:
    """Return the text about waves; nothing without results."""
    if not results:
        return ""
    return "\n".join([_INTRODUCTION, *map(_section, results), *_ratios(results)])


def _section(result: Result[WavesRow]) -> str:
    several = any(row.ranks > 1 for row in result.rows)
    columns = ["medium", "flux", "precision", "kernels", "n", "elements", "words", "ps a node a stage"]
    columns += ["of fused", "of copy"] + (["ghosts", "ranks", "kB a stage", "error", "efficiency"] if several else [])
    lines = []
    for row in result.rows:
        line = [row.medium, row.flux, row.precision, row.variant, str(row.nodes), f"{row.elements:,}"]
        line += [f"{row.words_a_node:.1f}", f"{row.ps_a_node_a_stage:,.1f}", f"{row.times_of_fused:.2f}"]
        line += [f"{row.share_of_copy:.0%}"]
        if several:
            ranks = f"{row.ranks}{', one cube' if row.strong else ''}"
            line += [row.ghosts, ranks, f"{row.message_bytes / 1e3:,.1f}", f"{row.error:.1e}", f"{row.efficiency:.3f}"]
        lines.append(tuple(line))
    return result.head + markdown(tuple(columns), lines, text_columns=4)


def _ratios(results: Sequence[Result[WavesRow]]) -> Iterator[str]:
    """Yield a table for every pair of a GPU and a CPU that measured the same configurations."""
    for gpu in (result for result in results if result.on_gpu):
        for cpu in (result for result in results if not result.on_gpu):
            slow = {_key(row): row for row in cpu.rows if _alone(row)}
            pairs = [(row, slow[_key(row)]) for row in gpu.rows if _alone(row) and _key(row) in slow]
            if pairs:
                ratios = [two.ps_a_node_a_stage / one.ps_a_node_a_stage for one, two in pairs]
                lines = [
                    (
                        *(one.medium, one.flux, one.precision, str(one.nodes), f"{ratio:,.0f}"),
                        *(f"{one.share_of_copy:.0%}", f"{two.share_of_copy:.0%}"),
                    )
                    for (one, two), ratio in zip(pairs, ratios, strict=True)
                ]
                lines.append(("mean", "", "", "", f"{np.mean(ratios):,.0f}", "", ""))
                columns = ("medium", "flux", "precision", "n", "times faster", "GPU of copy", "CPU of copy")
                yield f"## Waves: {gpu.device} over {cpu.device}\n\n{_RATIO}\n" + markdown(
                    columns, lines, text_columns=3
                )


def _alone(row: WavesRow) -> bool:
    return row.ranks == 1 and row.variant == "fused"


def _key(row: WavesRow) -> tuple[str, str, str, int]:
    return row.medium, row.flux, row.precision, row.nodes
