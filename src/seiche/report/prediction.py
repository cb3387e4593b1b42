# SPDX-License-Identifier: BSD-3-Clause
"""Output of `seiche predict`: tables of predicted steps, JSON, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seiche.machine.laws.steps import StepTime
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, store

#: Schema version, increased when a key changes its meaning.
SCHEMA = "seiche-prediction-1"
#: First characters of stored predictions.
FIRST_CHARACTERS = f'{{\n "schema": "{SCHEMA}"'
#: Stages below this fraction of a step are omitted from the table.
_MIN_STAGE_SHARE = 0.002


@dataclass(frozen=True)
class ScalingPrediction:
    """Predicted steps of a case on a machine for several numbers of ranks.

    Attributes:
        case, machine: names.
        gpu: whether the run is on GPUs.
        item, items: kind and total number of items.
        layout: storage layout; "" if there is only one.
        steps: number of steps of the run.
        strong: the same case on each number of ranks.
        weak: constant items per rank, those of the first number of ranks.
        omitted: reasons why numbers of ranks have no prediction.
        notes: remarks for the reader.
        set_up: seconds of the stages of the set-up by this process, on this host; one rank did all of it.
    """

    case: str
    machine: str
    gpu: bool
    item: str
    items: int
    layout: str
    steps: int
    strong: Sequence[StepTime]
    weak: Sequence[StepTime]
    omitted: dict[int, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    set_up: Mapping[str, float] = field(default_factory=dict)

    def strong_efficiency(self, index: int) -> float:
        """Return T_0 P_0 / (T P) of entry `index`."""
        first, entry = self.strong[0], self.strong[index]
        return first.seconds * first.ranks / (entry.seconds * entry.ranks)

    def weak_efficiency(self, index: int) -> float:
        """Return T_0 / T of entry `index`."""
        return self.weak[0].seconds / self.weak[index].seconds


def as_json(prediction: ScalingPrediction) -> dict[str, Any]:
    """Return all values, SI units."""
    head = {name: getattr(prediction, name) for name in ("case", "machine", "gpu", "item", "items", "layout", "steps")}
    return {
        "schema": SCHEMA,
        **head,
        "strong": [_row(step, prediction.strong_efficiency(k)) for k, step in enumerate(prediction.strong)],
        "weak": [_row(step, prediction.weak_efficiency(k)) for k, step in enumerate(prediction.weak)],
        "left_out": {str(ranks): reason for ranks, reason in prediction.omitted.items()},
        "notes": list(prediction.notes),
        "set_up_s": dict(prediction.set_up),
    }


def _row(step: StepTime, scaling: float) -> dict[str, Any]:
    return {
        "ranks": step.ranks,
        "step_s": step.seconds,
        "interval_s": [step.low, step.high],
        "exchange_s": step.exchange,
        "load_balance": step.load_balance,
        "communication": step.communication,
        "parallel": step.parallel,
        "scaling": scaling,
        "memory_bytes": max(step.memory),
        "transport": step.transport,
        "slowest_rank": step.slowest,
        "limit": step.limit,
        "parts_s": step.parts,
        "computing_s": step.computing,
        "waiting_s": step.waiting,
        "useful_s": list(step.useful),
    }


def as_text(prediction: ScalingPrediction) -> str:
    """Return the tables as text."""
    head = f"{prediction.case} on {prediction.machine}: {prediction.items:,} {prediction.item}"
    head += f", {'GPUs' if prediction.gpu else 'CPUs'}{f', layout {prediction.layout}' if prediction.layout else ''}"
    rows: list[tuple[str, ...]] = [
        ("ranks", "step", "interval", "exchange", "balance", "comm.", "parallel", "scaling", "weak", "memory", "")
    ]
    for index, step in enumerate(prediction.strong):
        rows.append(
            (
                str(step.ranks),
                _time(step.seconds),
                f"{_time(step.low)} - {_time(step.high)}",
                f"{_time(step.exchange)} {step.transport}" if step.exchange else "-",
                *(f"{value:.3f}" for value in (step.load_balance, step.communication, step.parallel)),
                f"{prediction.strong_efficiency(index):.3f}",
                f"{prediction.weak_efficiency(index):.3f}",
                _bytes(max(step.memory)),
                f"rank {step.slowest}: {step.limit}",
            )
        )
    lines = [head, "", *_aligned(rows), "", *_aligned(_stage_rows(prediction.strong))]
    if prediction.set_up:
        stages = ", ".join(f"{name} {_time(seconds)}" for name, seconds in prediction.set_up.items())
        lines += ["", f"set-up, measured on this host with one rank: {stages}"]
    lines += [f"omitted: {ranks} ranks: {reason}" for ranks, reason in prediction.omitted.items()]
    lines += [f"note: {note}" for note in prediction.notes]
    return "\n".join(lines)


def _stage_rows(steps: Sequence[StepTime]) -> list[tuple[str, ...]]:
    """Return rows of the mean times of the relevant stages by number of ranks."""
    names = dict.fromkeys(name for step in steps for name in step.computing)
    rows = [("stage, ranks", *(str(step.ranks) for step in steps))]
    for name in names:
        seconds = [step.computing.get(name, 0.0) + step.waiting.get(name, 0.0) for step in steps]
        if any(value > _MIN_STAGE_SHARE * step.seconds for value, step in zip(seconds, steps, strict=True)):
            rows.append((name, *(_time(value) if value else "-" for value in seconds)))
    return rows


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(cells)).rstrip()
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"


def _bytes(count: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


@paper_style()
def prediction_figure(path: Path, prediction: ScalingPrediction) -> None:
    """Draw time per step with its interval, and efficiencies, over the number of ranks."""
    figure = new_figure(DOUBLE_COLUMN, 0.42 * DOUBLE_COLUMN)
    time_axes, efficiency_axes = figure.subplots(1, 2)
    ranks = [step.ranks for step in prediction.strong]
    for color, name, steps in zip(COLORS, ("strong", "weak"), (prediction.strong, prediction.weak), strict=False):
        time_axes.plot(ranks, [step.seconds for step in steps], "o-", color=color, markersize=3, label=name)
        low, high = [step.low for step in steps], [step.high for step in steps]
        time_axes.fill_between(ranks, low, high, color=color, alpha=0.2, linewidth=0)
    first = prediction.strong[0]
    ideal = [first.seconds * first.ranks / count for count in ranks]
    time_axes.plot(ranks, ideal, ":", color="0.4", label="ideal")
    time_axes.set_yscale("log")
    time_axes.set_ylabel("seconds per step")
    indices = range(len(ranks))
    curves = {
        "strong scaling": [prediction.strong_efficiency(k) for k in indices],
        "weak scaling": [prediction.weak_efficiency(k) for k in indices],
        "load balance": [step.load_balance for step in prediction.strong],
        "communication": [step.communication for step in prediction.strong],
    }
    for color, style, (name, values) in zip(COLORS, ("o-", "s-", "^--", "v--"), curves.items(), strict=False):
        efficiency_axes.plot(ranks, values, style, color=color, markersize=3, label=name)
    efficiency_axes.set_ylim(0.0, 1.05)
    efficiency_axes.set_ylabel("efficiency")
    for axes in (time_axes, efficiency_axes):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("ranks")
        axes.legend(fontsize=6)
    store(figure, path)
