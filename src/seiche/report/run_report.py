# SPDX-License-Identifier: BSD-3-Clause
"""`seiche report`: one page that says what ran, where the time went, what was lost and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.errors import CaseError
from seiche.machine.laws.file import Machine, read_machine
from seiche.observe.progress import unit_of_rate
from seiche.report import charts, compare_report
from seiche.report.html import bars, cards, escape, number, page, refuse_foreign, section, share, table, write_page
from seiche.report.losses import host_sentences, losses, spread
from seiche.report.predicted import memory_roof, predicted_beside_measured
from seiche.report.summary import find_summary, read_summary, whole_summaries

Summary = Mapping[str, Any]

#: Ranks that are drawn one by one; of more, the busiest, the idlest and some between.
_RANKS = 32


def main(runs: Sequence[Path], *, compare: bool, machine: Path | None, output: Path | None) -> Path:
    """Write the report of a run, or of two side by side, and return its path.

    Args:
        runs: folders of runs, or their summary files.
        compare: whether there are two of them.
        machine: machine file for predictions; `machine.json` beside the summary if there is one.
        output: where to write; `report.html` or `compare.html` beside the (last) summary by default.

    Raises:
        CaseError: not one run, or not two to compare; no summary there; the page would replace another file.
        FormatError: a file is broken.
        OSError: a file cannot be read or written.
    """
    if len(runs) != (2 if compare else 1):
        wanted = "--compare needs two runs" if compare else "one run at a time (two with --compare)"
        raise CaseError(f"report: {len(runs)} runs are given; {wanted}")
    paths = [find_summary(run) for run in runs]
    target = output or paths[-1].parent / ("compare.html" if compare else "report.html")
    refuse_foreign(target)
    summaries = [read_summary(path) for path in paths]
    if compare:
        with whole_summaries(*paths):
            both = compare_report.text(summaries, [str(run) for run in runs])
        write_page(target, both)
        return target
    beside = paths[0].parent / "machine.json"
    known = machine if machine is not None else beside if beside.exists() else None
    read = read_machine(known) if known is not None else None
    with whole_summaries(*paths):
        content = text(summaries[0], read)
    write_page(target, content)
    return target


def text(summary: Summary, machine: Machine | None = None) -> str:
    """Return the page of a run."""
    movement, efficiency = summary.get("movement") or {}, summary.get("efficiency") or {}
    body = [_header(summary), _where(summary, movement, efficiency), _stages(summary, machine)]
    if movement:
        body.append(_ranks(movement))
    if efficiency.get("host"):
        body.append(_host(efficiency["host"]))
    body += [_prediction(summary, machine), _roofline(summary, machine)]
    if movement:
        body += [_messages(movement, summary["ranks"]), _memory(movement)]
    body += [_numbers(summary), _footer(summary)]
    return page(f"{summary['case']}: run report", [part for part in body if part])


def _header(summary: Summary) -> str:
    state = f"stopped before its end: {summary['stopped']}" if summary.get("stopped") else "complete"
    shown = [
        ("wall time", f"{number(summary['seconds'], 4)} s"),
        ("rate", f"{number(summary['mlups'], 4)} {unit_of_rate(summary.get('item', 'sites'))}"),
        ("steps", f"{summary['steps']:,}"),
        (summary.get("item", "sites"), f"{summary['sites']:,}"),
        ("ranks × threads", f"{summary['ranks']} × {summary['threads']}"),
    ]
    efficiency = summary.get("efficiency") or {}
    if "parallel" in efficiency:
        shown.append(("parallel efficiency", share(efficiency["parallel"])))
    return (
        f"<h1>{escape(summary['case'])}</h1>\n"
        f"<p>{escape(summary['device'])}; {escape(summary['date'])}; {escape(state)}.</p>\n"
        f"<p>Storage {escape(summary['layout'])}, {escape(summary['precision'])}"
        f"; messages by {escape((summary.get('movement') or {}).get('transport', 'none'))}.</p>\n{cards(shown)}"
    )


def _where(summary: Summary, movement: Mapping[str, Any], efficiency: Mapping[str, Any]) -> str:
    parts = losses(efficiency, movement, summary.get("solver", "flow"), summary.get("item", "sites"))
    if not parts:
        return section(
            "Where the time went", "<p>No step of this run was timed: it was too short, or is of an older Seiche.</p>"
        )
    bar = bars(
        [("a mean rank", [part.seconds for part in parts], f"{number(summary['seconds'])} s")],
        [part.name for part in parts],
        float(efficiency["elapsed_s"]),
    )
    rows = [
        (
            part.name,
            number(part.seconds),
            share(part.share),
            f"{part.factor.replace('_', ' ')} {part.value:.2f}",
            part.sentence,
        )
        for part in parts
    ]
    names = (
        "load_balance",
        "serialisation",
        "transfer",
        "communication",
        "device",
        "orchestration",
        "parallel",
        "computation_scaling",
        "global",
    )
    shown = [(name.replace("_", " "), f"{efficiency[name]:.3f}") for name in names if name in efficiency]
    note = (
        "<p>parallel = load balance × communication; communication = serialisation × transfer = device × orchestration;"
        " global = parallel × computation scaling. The run is its own reference; compare it with one on fewer ranks by"
        " <code>seiche report --compare</code>.</p>"
    )
    return section(
        "Where the time went", bar, table(("part", "s", "share", "factor", "why"), rows, words=(4,)), cards(shown), note
    )


def _stages(summary: Summary, machine: Machine | None) -> str:
    del machine
    rows = []
    for row in summary["stages"]:
        speed, copy = row["bandwidth"], row["copy_share"]
        rows.append(
            (
                row["name"],
                number(row["seconds"]),
                share(row["share"]),
                number(row["mean"] * 1e6) if row["mean"] else "",
                f"{number(row['minimum'] * 1e6)} – {number(row['maximum'] * 1e6)}" if row["mean"] else "",
                number(speed * 1e-9) if speed else "",
                f"{copy:.0%}" if copy else "",
            )
        )
    head = ("stage", "s", "share", "µs a step", "least – most", "GB/s", "of copy")
    return section("Stages", table(head, rows), "<p>Means over ranks and over the steps that were timed.</p>")


def _ranks(movement: Mapping[str, Any]) -> str:
    stages: Mapping[str, Sequence[float]] = movement["stages"]
    count = len(movement["useful_s"])
    if not stages or not count:
        return ""
    order = sorted(range(count), key=lambda rank: movement["useful_s"][rank])
    taken = range(count) if count <= _RANKS else sorted(order[k * (count - 1) // (_RANKS - 1)] for k in range(_RANKS))
    largest = sorted(stages, key=lambda name: -sum(stages[name]))
    names, rest = largest[:5], largest[5:]
    totals = [sum(values[rank] for values in stages.values()) for rank in range(count)]
    rows = []
    for rank in taken:
        values = [stages[name][rank] for name in names]
        values += [sum(stages[name][rank] for name in rest)] if rest else []
        rows.append((f"rank {rank}", values, f"{number(totals[rank] * 1e6)} µs"))
    left = f"<p>{_RANKS} of {count} ranks, from the idlest to the busiest.</p>" if count > _RANKS else ""
    return section("Ranks: a timed step", bars(rows, names + (["other stages"] if rest else []), max(totals)), left)


def _host(host: Mapping[str, Any]) -> str:
    rows = [(name.replace("_", " "), f"{value:.3f}", text) for name, value, text in host_sentences(host)]
    return section("Processes that drive the GPUs", table(("factor", "value", "what is lost"), rows, words=(2,)))


def _prediction(summary: Summary, machine: Machine | None) -> str:
    if machine is None:
        how = "measure one by <code>seiche bench machine</code> and pass it by <code>--machine</code>"
        hint = f"<p>No machine file: {how}.</p>"
        return section("Predicted beside measured", hint)
    rows = [
        (
            row.name,
            number(row.measured * 1e6),
            number(row.predicted * 1e6) if row.predicted is not None else "",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            row.why,
        )
        for row in predicted_beside_measured(summary, machine)
    ]
    if not rows:
        return section("Predicted beside measured", "<p>No stage of this run has bytes to predict from.</p>")
    note = (
        f"<p>By the machine file {escape(machine.name)}: stages at the rate of its memory, messages by their law."
        " Above one: slower than the memory or the network alone would be; below: what moves stays in a cache.</p>"
    )
    return section(
        "Predicted beside measured",
        table(("stage", "measured µs", "predicted µs", "ratio", ""), rows, words=(4,)),
        note,
    )


def _roofline(summary: Summary, machine: Machine | None) -> str:
    useless = set((summary.get("movement") or {}).get("not_useful", []))
    points = [
        (row["name"], row["bandwidth"] * row["mean"], row["bandwidth"])
        for row in summary["stages"]
        if row["bandwidth"] and row["name"] not in useless
    ]
    rate, start = memory_roof(summary, machine) if machine is not None else (None, 0.0)
    rate = rate or summary.get("copy_bandwidth")
    plot = charts.roofline_plot(points, rate, start) if rate else ""
    return section("Roofline", plot) if plot else ""


def _messages(movement: Mapping[str, Any], ranks: int) -> str:
    rows = movement["messages"]
    if not rows:
        return section("Messages", "<p>None: one rank, or ranks without neighbours.</p>")
    count, size = sum(row[2] for row in rows), sum(row[3] for row in rows)
    partners = [sum(1 for row in rows if row[0] == rank) for rank in range(ranks)]
    said = f"<p>{count:.0f} messages and {size:,.0f} B a step; {spread(partners)} partners a rank. Bytes a step:</p>"
    return section("Messages", said, charts.message_matrix(rows, ranks))


def _memory(movement: Mapping[str, Any]) -> str:
    used = [value / 1e6 for value in movement["memory_B"]]
    if not used:
        return ""
    note = "" if movement.get("device") != "gpu" else " That of the GPUs is not in it."
    most = spread([round(value) for value in used])
    said = f"<p>{most} MB a process at its most, {number(sum(used) / 1e3)} GB together.{note}</p>"
    rows = [(f"rank {rank}", [value], f"{value:.0f} MB") for rank, value in enumerate(used[:_RANKS])]
    return section("Memory", said, bars(rows, ["held by the process"], max(used)))


def _numbers(summary: Summary) -> str:
    rows = [
        (name.replace("_", " "), f"{value:.6g}") for name, value in summary["invariants"].items() if value is not None
    ]
    rows += [
        (f"flow through {name}, m³/s", f"{value:.6g}")
        for name, value in summary["flow_rates"].items()
        if value is not None
    ]
    rows += [
        (f"{name.replace('_', ' ')}, {found['unit']}", f"{found['value']:.6g}")
        for name, found in summary.get("details", {}).items()
        if isinstance(found, Mapping) and {"value", "unit"} <= found.keys() and found["value"] is not None
    ]
    return section("Numbers of the run", table(("what", "value"), rows)) if rows else ""


def _footer(summary: Summary) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    return f"<footer>{escape(versions)}</footer>"
