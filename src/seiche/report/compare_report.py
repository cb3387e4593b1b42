# SPDX-License-Identifier: BSD-3-Clause
"""`seiche report --compare`: comparison of two runs; the first is the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seiche.observe.efficiency import Efficiency, scaling
from seiche.observe.progress import unit_of_rate
from seiche.report.html import bars, cards, escape, number, page, section, table
from seiche.report.losses import losses

_SETTINGS = ("case", "device", "ranks", "threads", "layout", "precision", "sites", "steps", "date")
FACTORS = ("load_balance", "serialisation", "transfer", "communication", "device", "orchestration", "parallel")


def text(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return the page of two summaries with titles `names`."""
    first, second = runs
    title = f"{names[0]} and {names[1]}"
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(verdict(first, second))}</p>", _rates(first, second)]
    body += [_settings(runs, names), _stages(runs, names), _losses(runs, names), _efficiencies(runs, names)]
    return page(title, [part for part in body if part])


def verdict(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Return a statement of which run is faster, and whether the problems are equal."""
    ratio = second["mlups"] / first["mlups"] if first["mlups"] else 0.0
    item = second.get("item", "sites")
    word = "faster" if ratio > 1 else "slower"
    text = "The rate is unknown."
    if ratio:
        text = f"The second run updates {ratio:.2f} times as many {item} per second as the first"
        text += f" ({max(ratio, 1 / ratio):.2f} times {word})."
    if (first["sites"], first["case"]) != (second["sites"], second["case"]):
        text += " The problems differ: interpret scaling with care."
    return text


def relative_efficiencies(runs: Sequence[Mapping[str, Any]]) -> list[Efficiency | None]:
    """Return the efficiencies of all runs per step, relative to the first."""
    trees: list[Efficiency | None] = []
    for run in runs:
        efficiencies, steps = run.get("efficiency") or {}, max(1, run["steps"])
        if "parallel" not in efficiencies:
            trees.append(None)
            continue
        elapsed = efficiencies["elapsed_s"] / steps
        tree = Efficiency(
            efficiencies["elements"], elapsed, efficiencies["load_balance"], efficiencies["communication"]
        )
        reference = trees[0] if trees else tree
        trees.append(tree.against(reference) if reference is not None else tree)
    return trees


def _rates(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    rows = [("rate", "mlups", unit_of_rate(first.get("item", "sites"))), ("wall time", "seconds", "s")]
    return cards((name, f"{number(first[key], 4)} → {number(second[key], 4)} {unit}") for name, key, unit in rows)


def _settings(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    rows = [(key, *(str(run[key]) for run in runs), "" if runs[0][key] == runs[1][key] else "≠") for key in _SETTINGS]
    return section("Settings", table(("", *names, ""), rows))


def _stages(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    stage_seconds = [{row["name"]: row["seconds"] / max(1, run["steps"]) for row in run["stages"]} for run in runs]
    rows = []
    for name in dict.fromkeys(name for run in stage_seconds for name in run):
        first, second = (run.get(name) for run in stage_seconds)
        cells = [number(value * 1e6) if value is not None else "" for value in (first, second)]
        rows.append((name, *cells, f"{second / first:.2f}" if first and second is not None else ""))
    return section("Stages, µs per step", table(("stage", *names, "second / first"), rows))


def _losses(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    trees = [(run.get("efficiency") or {}, run.get("movement") or {}) for run in runs]
    run_losses = [losses(*tree, item=run.get("item", "sites")) for tree, run in zip(trees, runs, strict=True)]
    if not all(run_losses):
        return ""
    rows, max_total = [], 0.0
    for run, name, split in zip(runs, names, run_losses, strict=True):
        step = [loss.seconds / max(1, run["steps"]) for loss in split]
        max_total = max(max_total, sum(step))
        rows.append((name, step, f"{number(sum(step) * 1e6)} µs"))
    return section("Step of an average rank", bars(rows, [loss.name for loss in run_losses[0]], max_total))


def _efficiencies(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    trees = relative_efficiencies(runs)
    if any(tree is None for tree in trees):
        return section("Efficiencies", "<p>Not available: one of the runs has no timed step.</p>")
    stored = [run["efficiency"] for run in runs]
    rows = [
        (name.replace("_", " "), *(f"{run[name]:.3f}" if name in run else "" for run in stored)) for name in FACTORS
    ]
    rows.append(("computation scaling", *(f"{tree.computation_scaling:.3f}" for tree in trees if tree)))
    rows.append(("global", *(f"{tree.overall:.3f}" for tree in trees if tree)))
    overheads = [
        sum(sum(seconds) for seconds in (run.get("movement") or {}).get("host_overhead", {}).values()) for run in runs
    ]
    if all(overhead > 0 for overhead in overheads):
        per_step = [overhead / max(1, run["steps"]) for overhead, run in zip(overheads, runs, strict=True)]
        rows.append(("scaling of host work between steps", "1.000", f"{scaling(per_step[0], per_step[1]):.3f}"))
    return section("Efficiencies, the first run as reference", table(("factor", *names), rows))
