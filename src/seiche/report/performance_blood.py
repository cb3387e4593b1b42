# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about cells in flow: rates of every stage, and GPU over CPU at equal physics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seiche.errors import FormatError
from seiche.report.bench_blood import CELL_STAGES, CONTACT, FEM, INTERPOLATE, SPREAD, Row, draw, read_rows
from seiche.report.table import markdown

_INTRODUCTION = """\
# Cells in flow

Red cells in a periodic cube (`seiche bench blood --json benchmarks/results/NAME.json`). Rates are vertices times steps
over the seconds of a stage, in millions; of the sweep they are sites times steps. *Over the flow* is the time of a step
with cells over that of the flow alone. What the stages do is in the [theory](../theory/coupling.md#2-a-step).
"""
_RATIO = """\
Both with the same cells in the same box: how many times faster the GPU is. The step has all stages, and lists that are
made anew now and then.
"""
#: Stages of the tables by the names of a step.
_STAGES = {"membranes": FEM, "interpolation": INTERPOLATE, "spreading": SPREAD, "contact": CONTACT}


@dataclass(frozen=True)
class BloodResult:
    """One file: what was measured where and when."""

    path: Path
    device: str
    date: str
    commit: str
    rows: tuple[Row, ...]

    @property
    def on_gpu(self) -> bool:
        """Tell whether it is a GPU's."""
        return "(cuda" in self.device


def read_blood(folder: Path) -> list[BloodResult]:
    """Return the blood benchmarks among the JSON files of `folder`, by file name.

    Raises:
        FormatError: a file lacks something that a blood benchmark must hold.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        if not isinstance(document, dict) or document.get("benchmark") != "blood":
            continue
        rows = tuple(read_rows(path))
        try:
            found.append(BloodResult(path, document["device"], document["date"], document["commit"], rows))
        except KeyError as error:
            raise FormatError(path, "whole file", f"not a blood benchmark: {error} is missing") from None
    return found


def blood_part(results: Sequence[BloodResult]) -> str:
    """Return the text about cells; nothing without results."""
    if not results:
        return ""
    sections = [_section(result) for result in results]
    sections += [_compared(gpu, cpu, pairs) for gpu, cpu, pairs in compared(results)]
    return "\n".join([_INTRODUCTION, *sections])


def draw_compared(results: Sequence[BloodResult], path: Path) -> bool:
    """Draw the shares of the stages of the first GPU and CPU with the same cells; tell whether there are two."""
    for gpu, cpu, pairs in compared(results):
        draw(path, {gpu.device: [fast for fast, _ in pairs], cpu.device: [slow for _, slow in pairs]})
        return True
    return False


def compared(results: Sequence[BloodResult]) -> Iterator[tuple[BloodResult, BloodResult, list[tuple[Row, Row]]]]:
    """Yield results of a GPU and a CPU with their rows of equal physics: box, cells, meshes, delta and precision."""
    for gpu in (result for result in results if result.on_gpu):
        for cpu in (result for result in results if not result.on_gpu):
            slow = {_physics(row): row for row in cpu.rows}
            pairs = [(row, slow[_physics(row)]) for row in gpu.rows if _physics(row) in slow]
            if pairs:
                yield gpu, cpu, pairs


def sweep(row: Row) -> float:
    """Return the microseconds that a step spends in the sweep over the sites."""
    return sum(value for name, value in row.stages.items() if name not in CELL_STAGES)


def _physics(row: Row) -> tuple[object, ...]:
    return row.sites, row.cells, row.vertices, row.points, row.delta, row.precision


def _section(result: BloodResult) -> str:
    head = (
        f"## {result.device}: {result.path.stem}\n\n"
        f"{result.date}, commit {result.commit}, data in `benchmarks/results/{result.path.name}`.\n\n"
    )
    columns = ("Ht", "support", "points", "sites", "cells", "step (ms)", "over the flow", "sweep", *_STAGES)
    lines = [
        (
            *(f"{row.hematocrit:.2f}", f"{row.support}", f"{row.points}", f"{row.sites:,}", f"{row.cells:,}"),
            f"{row.step_microseconds / 1e3:.3g}",
            f"{row.ratio:.2f}",
            f"{row.sites / sweep(row):,.4g}",
            *(f"{row.cells * row.vertices / row.stages[stage]:,.4g}" for stage in _STAGES.values()),
        )
        for row in result.rows
    ]
    return head + markdown(columns, lines, text_columns=0)


def _compared(gpu: BloodResult, cpu: BloodResult, pairs: Sequence[tuple[Row, Row]]) -> str:
    head = f"## {gpu.device} over {cpu.device}\n\n{_RATIO}\n"
    columns = ("Ht", "support", "points", "step", "sweep", *_STAGES)
    lines = [
        (
            *(f"{fast.hematocrit:.2f}", f"{fast.support}", f"{fast.points}"),
            f"{slow.step_microseconds / fast.step_microseconds:.0f}",
            f"{sweep(slow) / sweep(fast):.0f}",
            *(f"{slow.stages[stage] / fast.stages[stage]:.0f}" for stage in _STAGES.values()),
        )
        for fast, slow in pairs
    ]
    return head + markdown(columns, lines, text_columns=0)
