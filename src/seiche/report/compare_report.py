# SPDX-License-Identifier: BSD-3-Clause
"""`seiche report --compare`: comparison of runs of one kind; the first is the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seiche.observe.efficiency import scaling
from seiche.observe.progress import unit_of_rate
from seiche.report.html import bars, cards, escape, number, page, section, table
from seiche.report.losses import losses
from seiche.report.processor import counts_of
from seiche.report.scaling_chart import efficiency_plot, speedup_plot
from seiche.report.series import Entry, RunSeries, series_of

_SETTINGS = ("case", "device", "ranks", "threads", "layout", "precision", "sites", "steps", "date", "stopped")
FACTORS = ("load_balance", "serialisation", "transfer", "communication", "device", "orchestration", "parallel")

#: Rows of the table of efficiencies: level of indentation, name, key in the tree of the run.
_TREE = (
    (0, "global", "overall"),
    (1, "parallel", "parallel"),
    (2, "load balance", "load_balance"),
    (2, "communication", "communication"),
    (3, "serialisation", "serialisation"),
    (3, "transfer", "transfer"),
    (3, "device", "device"),
    (3, "orchestration", "orchestration"),
    (1, "computation scaling", "computation_scaling"),
)
#: Curves of the plot of efficiencies.
_CURVES = ("overall", "parallel", "load_balance", "communication", "computation_scaling")

Run = Mapping[str, Any]


def text(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Return the page of summaries with titles `names`; two or more.

    Raises:
        CaseError: the runs cannot be compared.
    """
    series = series_of(runs, names)
    title = " and ".join(names) if len(names) == 2 else f"{len(names)} runs, {names[0]} to {names[-1]}"
    sentences = [verdict(*runs)] if len(runs) == 2 else [series.sentence]
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(sentence)}</p>" for sentence in sentences)]
    body += [_rates(*runs)] if len(runs) == 2 else []
    body += [_scaling(series), _efficiencies(series), _losses(runs, names), _stages(runs, names)]
    body += [_between_steps(runs, names), _settings(runs, names)]
    return page(title, [part for part in body if part])


def verdict(first: Run, second: Run) -> str:
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


def _rates(first: Run, second: Run) -> str:
    rows = [("rate", "mlups", unit_of_rate(first.get("item", "sites"))), ("wall time", "seconds", "s")]
    return cards((name, f"{number(first[key], 4)} → {number(second[key], 4)} {unit}") for name, key, unit in rows)


def _scaling(series: RunSeries) -> str:
    unit_of_rates = unit_of_rate(series.entries[0].summary.get("item", "sites"))
    head = ("run", "device", "units", f"{series.entries[0].summary.get('item', 'sites')} per unit", "ms per step")
    rows = [
        (
            entry.name,
            str(entry.summary["device"]),
            f"{entry.units} {entry.unit}{'' if entry.units == 1 else 's'}",
            number(entry.work / entry.units),
            number(entry.seconds * 1e3),
            number(entry.rate * 1e-6),
            f"{entry.speedup:.2f}",
            f"{entry.scaling:.3f}",
        )
        for entry in series.entries
    ]
    note = (
        "<p>The wall time per step includes output. The speed-up is the rate relative to the first run, and the scaling"
        " efficiency is the speed-up per unit relative to the first run on the same device.</p>"
    )
    rates = (unit_of_rates, "speed-up", "scaling efficiency")
    return section(
        "Scaling", f"<p>{escape(series.sentence)}</p>", table((*head, *rates), rows), speedup_plot(series), note
    )


def _efficiencies(series: RunSeries) -> str:
    entries = series.entries
    if not any(entry.tree for entry in entries):
        return section("Efficiencies", "<p>Not available: the runs have no timed steps.</p>")
    rows = [
        (f"{'– ' * level}{name}", *(_factor(getattr(entry.tree, key, None)) for entry in entries))
        for level, name, key in _TREE
    ]
    for group in ("host", "hybrid"):
        stored = [(entry.summary.get("efficiency") or {}).get(group) or {} for entry in entries]
        keys = dict.fromkeys(key for values in stored for key in values if key != "elements")
        rows += [(f"{group}: {key.replace('_', ' ')}", *(_factor(v.get(key)) for v in stored)) for key in keys]
    rows += _computation(entries) + _output_scaling(entries)
    missing = [entry.name for entry in entries if entry.tree is None]
    curves = {name: [getattr(entry.tree, key, None) for entry in entries] for _, name, key in _TREE if key in _CURVES}
    note = (
        "<p>global = parallel × computation scaling; parallel = load balance × communication; communication ="
        " serialisation × transfer = device × orchestration. The computation scaling is relative to the first run on"
        " the same device, per unit of work.</p>"
    )
    missing_note = f"<p>No step was timed in {escape(', '.join(missing))}.</p>" if missing else ""
    head = ("factor", *(entry.name for entry in entries))
    title = "Efficiencies, the first run as reference"
    return section(title, table(head, rows), efficiency_plot(series, curves), note, missing_note)


def _factor(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _computation(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return instructions per cycle, frequency and scaling of instructions, if every run counted them."""
    counts = [counts_of(entry.summary.get("movement") or {}) for entry in entries]
    per_work = [
        count.instructions / entry.summary["steps"] / entry.work
        for count, entry in zip(counts, entries, strict=True)
        if count is not None
    ]
    if len(per_work) < len(entries):
        return []
    known = [count for count in counts if count is not None]
    return [
        ("instructions per cycle", *(f"{count.ipc:.3f}" for count in known)),
        ("frequency, GHz", *(f"{count.frequency * 1e-9:.3f}" for count in known)),
        ("scaling of instructions", *(f"{scaling(per_work[0], value):.3f}" for value in per_work)),
    ]


def _output_scaling(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return the scaling of the summed host time between steps, and of writing, if every run has some."""
    rows = []
    for key, name in (("host_overhead", "host work between steps"), ("writing", "writing of files")):
        totals = [
            sum(sum(seconds) for seconds in (entry.summary.get("movement") or {}).get(key, {}).values())
            / entry.summary["steps"]
            / entry.work
            for entry in entries
        ]
        if all(total > 0 for total in totals):
            rows.append((f"scaling of {name}", *(f"{scaling(totals[0], total):.3f}" for total in totals)))
    return rows


def _losses(runs: Sequence[Run], names: Sequence[str]) -> str:
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


def _stages(runs: Sequence[Run], names: Sequence[str]) -> str:
    seconds = [{row["name"]: row["seconds"] / max(1, run["steps"]) for row in run["stages"]} for run in runs]
    return section("Stages, µs per step", _columns("stage", names, seconds, lambda value: number(value * 1e6)))


def _between_steps(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Return set-up, output and checkpoints: seconds of the slowest rank."""
    columns = []
    for run in runs:
        overheads = (run.get("movement") or {}).get("host_overhead", {})
        column = {f"set-up: {name}": seconds for name, seconds in (run.get("set_up") or {}).items()}
        column |= {name: max(seconds) for name, seconds in overheads.items() if seconds and max(seconds)}
        writing = (run.get("movement") or {}).get("writing", {})
        columns.append(column | {f"writing: {name}": max(seconds) for name, seconds in writing.items() if seconds})
    if not any(columns):
        return ""
    note = "<p>Of the slowest rank for each.</p>"
    return section("Set-up, output and checkpoints, s", _columns("activity", names, columns, number), note)


def _columns(
    head: str, names: Sequence[str], columns: Sequence[Mapping[str, float]], form: Callable[[float], str]
) -> str:
    """Return a table with one column per run, and the ratio of two runs."""
    ratio = ("second / first",) if len(names) == 2 else ()
    rows = []
    for name in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(name) for column in columns]
        row = [name, *("" if value is None else form(value) for value in values)]
        if ratio:
            first, second = values
            row.append(f"{second / first:.2f}" if first and second is not None else "")
        rows.append(row)
    return table((head, *names, *ratio), rows)


def _settings(runs: Sequence[Run], names: Sequence[str]) -> str:
    rows = []
    for key in _SETTINGS:
        values = [run.get(key) for run in runs]
        differ = "≠" if any(value != values[0] for value in values) else ""
        rows.append((key, *("" if value is None else str(value) for value in values), differ))
    return section("Settings", table(("", *names, ""), rows))
