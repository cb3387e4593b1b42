# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about cells in flow: rates of every stage, and GPU over CPU at equal physics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.page.stored import Result
from seiche.bench import blood_ranks as bench_blood_ranks
from seiche.bench.blood import CELL_STAGES, CONTACT, FEM, INTERPOLATE, SPREAD, BloodRow, draw
from seiche.report.table import markdown

_INTRODUCTION = """\
# Cells in flow

Red cells in a periodic cube (`seiche bench blood --json benchmarks/results/NAME.json`). The rate of a stage is the
number of vertices times steps per second, in millions; the rate of the sweep counts sites instead. *Ratio to flow* is
the time of a step with cells, divided by the time of a step of the flow alone. The
[theory](../theory/coupling.md#2-a-step) describes the stages.
"""
_RANKS = """\
## Several ranks

These tables show weak scaling, with the same load on every rank (`seiche bench blood --weak`), and strong scaling
(`--strong`), both with a hematocrit of 0.40. The load `resolved` has 256^3 sites with a spacing of 0.25 um, and
`coarse` has 2.1*10^7 with 1 um. Times are in microseconds per step.

- *Copies*: the number of ghost cells divided by the number of owned cells.
- *Exposed*: the time that messages add to a step, as a share of the step.
- *Efficiency*: the time of a step on one rank, divided by the time of this step, in strong scaling also by the number
  of ranks.
"""
_RATIO = """\
The table gives the ratio of the rates of GPU and CPU for equal physics (hematocrit, delta function, mesh, collision,
precision). Rates count sites for a whole step with all stages and for the sweep, vertices for all other stages. The CPU
has the number of threads in the heading: a few cores, not a node.
"""
_BOXES = """\
The boxes differ ({gpu:,} and {cpu:,} sites), because each device needs a certain size for full load. The ratios are
therefore those of rates, not of times.
"""
_COARSE = """
Stages of a step in ms, and their shares, with the mesh of Ames et al. (2020, doi:10.1016/j.jocs.2020.101153) at their
spacing of 1 um. The step includes lists that are rebuilt now and then.

"""
#: Vertices of a cell in that mesh.
COARSE_VERTICES = 162
#: Hematocrits closer than this count as equal, since boxes contain whole cells.
_SAME = 0.01
#: Stage names of a step by column of the tables.
_STAGES = {"membranes": FEM, "interpolation": INTERPOLATE, "spreading": SPREAD, "contact": CONTACT}


def blood_part(results: Sequence[Result[BloodRow]]) -> str:
    """Return the text about cells; nothing without results."""
    if not results:
        return ""
    sections = [_section(result) for result in results]
    sections += [_compared(gpu, cpu, pairs) for gpu, cpu, pairs in compared(results)]
    return "\n".join([_INTRODUCTION, *sections])


def ranks_part(results: Sequence[Result[bench_blood_ranks.BloodRanksRow]]) -> str:
    """Return the text about several ranks; nothing without results."""
    counts = ("load", "partition", "ranks", "transport", "support", "cells", "copies", "MB per step")
    columns = (*counts, "flow", "step", "without messages", "exposed", "efficiency")
    sections = []
    for result in results:
        lines = [
            (
                *(f"{row.load}{', strong' if row.strong else ''}", "" if row.ranks == 1 else row.partition),
                *(f"{row.ranks}", row.transport, f"{row.support}", f"{row.cells:,}", f"{row.copies:.1%}"),
                *(f"{row.message_bytes / 1e6:.1f}", f"{row.flow_microseconds:,.0f}", f"{row.step_microseconds:,.0f}"),
                *(f"{row.compute_microseconds:,.0f}", f"{row.exposed:.1%}", f"{row.efficiency:.3f}"),
            )
            for row in result.rows
        ]
        sections.append(result.head.replace("## ", "### ", 1) + markdown(columns, lines, text_columns=2))
    return "\n".join([_RANKS, *sections]) if sections else ""


def draw_compared(results: Sequence[Result[BloodRow]], path: Path) -> bool:
    """Draw the shares of the stages of the first GPU and CPU of equal physics; return whether both exist."""
    for gpu, cpu, pairs in compared(results):
        draw(path, {gpu.device: [fast for fast, _ in pairs], cpu.device: [slow for _, slow in pairs]})
        return True
    return False


def compared(
    results: Sequence[Result[BloodRow]],
) -> Iterator[tuple[Result[BloodRow], Result[BloodRow], list[tuple[BloodRow, BloodRow]]]]:
    """Yield results of a GPU and a CPU with their rows of equal physics."""
    for gpu in (result for result in results if result.on_gpu):
        for cpu in (result for result in results if not result.on_gpu):
            pairs = [(fast, slow) for fast in gpu.rows for slow in cpu.rows if _equal(fast, slow)]
            if pairs:
                yield gpu, cpu, pairs


def sweep(row: BloodRow) -> float:
    """Return the microseconds that a step spends in the sweep over the sites."""
    return sum(value for name, value in row.stages.items() if name not in CELL_STAGES)


def _equal(first_row: BloodRow, second_row: BloodRow) -> bool:
    """Return whether two rows have the same physics. Moment storage uses a different collision."""
    first, second = (
        (row.vertices, row.points, row.delta, row.precision, row.layout == "moments") for row in (first_row, second_row)
    )
    return first == second and abs(first_row.hematocrit - second_row.hematocrit) < _SAME


def _section(result: Result[BloodRow]) -> str:
    columns = ("layout", "Ht", "support", "points", "sites", "cells", "step (ms)", "ratio to flow", "sweep", *_STAGES)
    lines = [
        (
            *(row.layout, f"{row.hematocrit:.2f}", f"{row.support}", f"{row.points}"),
            *(f"{row.sites:,}", f"{row.cells:,}"),
            f"{row.step_microseconds / 1e3:.3g}",
            f"{row.ratio:.2f}",
            _rate(row.sites / sweep(row)),
            *(_rate(row.cells * row.vertices / row.stages[stage]) for stage in _STAGES.values()),
        )
        for row in result.rows
    ]
    coarse = [row for row in result.rows if row.vertices == COARSE_VERTICES]
    return result.head + markdown(columns, lines, text_columns=1) + _stages(coarse)


def _stages(rows: Sequence[BloodRow]) -> str:
    """Return the milliseconds of each stage in a step with cells at a coarse spacing, and its share of all stages."""
    if not rows:
        return ""
    lines = []
    for row in rows:
        total = sum(row.stages.values())
        times = {"sweep": sweep(row), **{name: row.stages[stage] for name, stage in _STAGES.items()}}
        times["lists"] = total - sum(times.values())
        lines.append(
            (
                *(f"{row.support}", f"{row.sites:,}", f"{row.cells:,}", f"{row.step_microseconds / 1e3:.1f}"),
                *(f"{value / 1e3:.2f} ({value / total:.0%})" for value in times.values()),
                f"{row.bytes_per_cell / 1e3:.1f}",
            )
        )
    columns = ("support", "sites", "cells", "step", "sweep", *_STAGES, "lists", "kB per cell")
    return _COARSE + markdown(columns, lines, text_columns=0)


def _rate(millions: float) -> str:
    return f"{millions:,.0f}" if millions >= 100 else f"{millions:.1f}"


def _compared(gpu: Result[BloodRow], cpu: Result[BloodRow], pairs: Sequence[tuple[BloodRow, BloodRow]]) -> str:
    head = f"## {gpu.device} over {cpu.device}\n\n{_RATIO}"
    fast, slow = pairs[0]
    if fast.sites != slow.sites:
        head += _BOXES.format(gpu=fast.sites, cpu=slow.sites)
    columns = ("Ht", "support", "points", "step", "sweep", *_STAGES)
    lines = []
    for fast, slow in pairs:
        sites, vertices = fast.sites / slow.sites, fast.cells * fast.vertices / (slow.cells * slow.vertices)
        lines.append(
            (
                *(f"{fast.hematocrit:.2f}", f"{fast.support}", f"{fast.points}"),
                f"{slow.step_microseconds / fast.step_microseconds * sites:.0f}",
                f"{sweep(slow) / sweep(fast) * sites:.0f}",
                *(f"{slow.stages[stage] / fast.stages[stage] * vertices:.0f}" for stage in _STAGES.values()),
            )
        )
    return f"{head}\n{markdown(columns, lines, text_columns=0)}"
