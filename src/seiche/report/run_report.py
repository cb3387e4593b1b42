# SPDX-License-Identifier: BSD-3-Clause
"""`seiche report`: one page with settings, time, losses and their causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.errors import CaseError
from seiche.io.files import check_output_folder
from seiche.machine.laws.file import Machine, read_machine
from seiche.observe.progress import unit_of_rate
from seiche.report import charts, compare_report
from seiche.report.display_units import display
from seiche.report.html import (
    bars,
    cards,
    check_replaceable,
    escape,
    number,
    page,
    png,
    section,
    share,
    table,
    write_page,
)
from seiche.report.losses import host_sentences, hybrid_sentences, losses, range_text
from seiche.report.motion import is_motion, read_motion, snapshot_png
from seiche.report.predicted import compare_with_prediction, memory_roof
from seiche.report.processor import processor_section
from seiche.report.summary import find_summary, read_summary, summary_errors
from seiche.report.target_section import target_section

Summary = Mapping[str, Any]

#: Maximum number of ranks drawn; of a larger run, a sample from the least busy to the busiest rank is drawn.
_MAX_RANKS = 32


def main(runs: Sequence[Path], *, compare: bool, machine: Path | None, output: Path | None) -> Path:
    """Write the report of a run, or the comparison of several, and return its path.

    Args:
        runs: folders of runs, or their summary files.
        compare: whether runs are compared.
        machine: machine file for predictions; by default `machine.json` in the folder of the summary, if it exists.
        output: file to write; by default `report.html` or `compare.html` in the folder of the (last) summary.

    Raises:
        CaseError: a wrong number of runs, a missing summary, runs that cannot be compared, or a page that would
            replace another file.
        FormatError: a file is invalid.
        OSError: a file cannot be read or written.
    """
    if compare and len(runs) < 2:
        raise CaseError("report: --compare needs at least two runs")
    if not compare and len(runs) > 1:
        raise CaseError(f"report: got {len(runs)} runs; expected one (several with --compare)")
    paths = [find_summary(run) for run in runs]
    if output is not None:
        check_output_folder(output)
    target = output or paths[-1].parent / ("compare.html" if compare else "report.html")
    check_replaceable(target)
    summaries = [read_summary(path) for path in paths]
    if compare:
        with summary_errors(*paths):
            comparison = compare_report.text(summaries, [str(run) for run in runs])
        write_page(target, comparison)
        return target
    default_machine = paths[0].parent / "machine.json"
    machine = default_machine if machine is None and default_machine.exists() else machine
    machine_data = read_machine(machine) if machine is not None else None
    with summary_errors(*paths):
        content = text(summaries[0], machine_data, folder=paths[0].parent)
    write_page(target, content)
    return target


def text(summary: Summary, machine: Machine | None = None, *, folder: Path | None = None) -> str:
    """Return the page of a run, with pictures of the snapshots in its `folder`."""
    movement, efficiency = summary.get("movement") or {}, summary.get("efficiency") or {}
    body = [_header(summary), target_section(summary.get("details", {}), folder)]
    body += [_time(summary, movement, efficiency), _stages(summary), _set_up(summary)]
    if movement:
        body.append(_ranks(movement))
    if efficiency.get("host"):
        body.append(_host("Processes that drive the GPUs", host_sentences(efficiency["host"])))
    if efficiency.get("hybrid"):
        body.append(_host("Processes and GPUs together", hybrid_sentences(efficiency["hybrid"])))
    body += [_prediction(summary, machine), _roofline(summary, machine)]
    if movement:
        body += [_messages(movement, summary["ranks"]), _memory(movement)]
        body += [processor_section(movement), _outside_steps(movement)]
    body += [_results(summary), *(_snapshots(summary, folder) if folder is not None else []), _footer(summary)]
    return page(f"{summary['case']}: run report", [part for part in body if part])


def _header(summary: Summary) -> str:
    status = f"stopped before its end: {summary['stopped']}" if summary.get("stopped") else "complete"
    values = [
        ("wall time", f"{number(summary['seconds'], 4)} s"),
        ("rate", f"{number(summary['mlups'], 4)} {unit_of_rate(summary.get('item', 'sites'))}"),
        ("steps", f"{summary['steps']:,}"),
        (summary.get("item", "sites"), f"{summary['sites']:,}"),
        ("ranks × threads", f"{summary['ranks']} × {summary['threads']}"),
    ]
    efficiency = summary.get("efficiency") or {}
    if "parallel" in efficiency:
        values.append(("parallel efficiency", share(efficiency["parallel"])))
    return (
        f"<h1>{escape(summary['case'])}</h1>\n"
        f"<p>{escape(summary['device'])}; {escape(summary['date'])}; {escape(status)}.</p>\n"
        f"<p>Storage {escape(summary['layout'])}, {escape(summary['precision'])}"
        f"; messages by {escape((summary.get('movement') or {}).get('transport', 'none'))}.</p>\n{cards(values)}"
    )


def _time(summary: Summary, movement: Mapping[str, Any], efficiency: Mapping[str, Any]) -> str:
    losses_of_run = losses(efficiency, movement, summary.get("solver", "flow"), summary.get("item", "sites"))
    if not losses_of_run:
        return section(
            "Where the time went",
            "<p>No step of this run was timed: the run was too short, or an older version wrote it.</p>",
        )
    bar = bars(
        [("an average rank", [loss.seconds for loss in losses_of_run], f"{number(summary['seconds'])} s")],
        [loss.name for loss in losses_of_run],
        float(efficiency["elapsed_s"]),
    )
    rows = [
        (
            loss.name,
            number(loss.seconds),
            share(loss.share),
            f"{loss.factor.replace('_', ' ')} {loss.value:.2f}",
            loss.sentence,
        )
        for loss in losses_of_run
    ]
    names = (*compare_report.FACTORS, "computation_scaling", "global")
    factors = [(name.replace("_", " "), f"{efficiency[name]:.3f}") for name in names if name in efficiency]
    note = (
        "<p>parallel = load balance × communication; communication = serialisation × transfer = device × orchestration;"
        " global = parallel × computation scaling. The reference is this run; compare with a run on fewer ranks by"
        " <code>seiche report --compare</code>.</p>"
    )
    return section(
        "Where the time went",
        bar,
        table(("part", "s", "share", "factor", "why"), rows, text_columns=(4,)),
        cards(factors),
        note,
    )


def _stages(summary: Summary) -> str:
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
    head = ("stage", "s", "share", "µs per step", "min – max", "GB/s", "share of copy")
    return section("Stages", table(head, rows), "<p>Means over ranks and timed steps.</p>")


def _set_up(summary: Summary) -> str:
    rows = [(name, number(seconds)) for name, seconds in (summary.get("set_up") or {}).items()]
    note = "<p>Before the first step, of the slowest rank for each stage.</p>"
    return section("Set-up", table(("stage", "s"), rows), note) if rows else ""


def _ranks(movement: Mapping[str, Any]) -> str:
    stages: Mapping[str, Sequence[float]] = movement["stages"]
    count = len(movement["useful_s"])
    if not stages or not count:
        return ""
    order = sorted(range(count), key=lambda rank: movement["useful_s"][rank])
    shown = (
        range(count)
        if count <= _MAX_RANKS
        else sorted(order[k * (count - 1) // (_MAX_RANKS - 1)] for k in range(_MAX_RANKS))
    )
    by_total = sorted(stages, key=lambda name: -sum(stages[name]))
    names, omitted = by_total[:5], by_total[5:]
    totals = [sum(values[rank] for values in stages.values()) for rank in range(count)]
    rows = []
    for rank in shown:
        values = [stages[name][rank] for name in names]
        values += [sum(stages[name][rank] for name in omitted)] if omitted else []
        rows.append((f"rank {rank}", values, f"{number(totals[rank] * 1e6)} µs"))
    note = f"<p>{_MAX_RANKS} of {count} ranks, from the least busy to the busiest.</p>" if count > _MAX_RANKS else ""
    return section("Ranks: a timed step", bars(rows, names + (["other stages"] if omitted else []), max(totals)), note)


def _host(title: str, factors: Sequence[tuple[str, float, str]]) -> str:
    rows = [(name.replace("_", " "), f"{value:.3f}", text) for name, value, text in factors]
    return section(title, table(("factor", "value", "meaning"), rows, text_columns=(2,)))


def _prediction(summary: Summary, machine: Machine | None) -> str:
    if machine is None:
        hint = "create one with <code>seiche bench machine</code> and pass it with <code>--machine</code>"
        return section("Prediction", f"<p>No machine file: {hint}.</p>")
    rows = [
        (
            row.name,
            number(row.measured * 1e6),
            number(row.predicted * 1e6) if row.predicted is not None else "",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            row.reason,
        )
        for row in compare_with_prediction(summary, machine)
    ]
    if not rows:
        return section("Prediction", "<p>No stage of this run declares its bytes.</p>")
    note = (
        f"<p>Machine file {escape(machine.name)}: stages at memory bandwidth, messages by their fitted model."
        " Ratio above one: slower than memory or network; below one: data in a cache.</p>"
    )
    return section(
        "Prediction", table(("stage", "measured µs", "predicted µs", "ratio", ""), rows, text_columns=(4,)), note
    )


def _roofline(summary: Summary, machine: Machine | None) -> str:
    message_stages = set((summary.get("movement") or {}).get("message_stages", []))
    points = [
        (row["name"], row["bandwidth"] * row["mean"], row["bandwidth"])
        for row in summary["stages"]
        if row["bandwidth"] and row["name"] not in message_stages
    ]
    rate, launch_time = memory_roof(summary, machine) if machine is not None else (None, 0.0)
    rate = rate or summary.get("copy_bandwidth")
    plot = charts.roofline_plot(points, rate, launch_time) if rate else ""
    return section("Roofline", plot) if plot else ""


def _outside_steps(movement: Mapping[str, Any]) -> str:
    """Return a table of set-up, host work between steps and writing of files over the ranks."""
    groups = {"set_up": "set-up", "host_overhead": "between steps", "writing": "writing"}
    rows = []
    for key, group in groups.items():
        for name, seconds in movement.get(key, {}).items():
            if seconds and max(seconds) > 0:
                slowest = max(range(len(seconds)), key=lambda rank: seconds[rank])
                mean, greatest = sum(seconds) / len(seconds), seconds[slowest]
                rows.append(
                    (f"{group}: {name}", number(mean), number(greatest), str(slowest), f"{mean / greatest:.2f}")
                )
    note = "<p>Files are written beside the steps, by a thread of each rank. Balance: mean over slowest.</p>"
    head = ("activity", "mean s", "slowest s", "rank", "balance")
    return section("Set-up, output and checkpoints by rank", table(head, rows), note) if rows else ""


def _messages(movement: Mapping[str, Any], ranks: int) -> str:
    rows = movement["messages"]
    if not rows:
        return section("Messages", "<p>None: a single rank, or ranks without neighbours.</p>")
    count, size = sum(row[2] for row in rows), sum(row[3] for row in rows)
    partners = [sum(1 for row in rows if row[0] == rank) for rank in range(ranks)]
    totals = f"{count:.0f} messages and {size:,.0f} B per step; {range_text(partners)} partners per rank"
    note = f"<p>{totals}. Bytes per step:</p>"
    return section("Messages", note, charts.message_matrix(rows, ranks))


def _memory(movement: Mapping[str, Any]) -> str:
    megabytes = [value / 1e6 for value in movement["memory_B"]]
    if not megabytes:
        return ""
    gpu = "" if movement.get("device") != "gpu" else " GPU memory is not included."
    peak = range_text([round(value) for value in megabytes])
    note = f"<p>Peak {peak} MB per process, {number(sum(megabytes) / 1e3)} GB in total.{gpu}</p>"
    rows = [(f"rank {rank}", [value], f"{value:.0f} MB") for rank, value in enumerate(megabytes[:_MAX_RANKS])]
    return section("Memory", note, bars(rows, ["process memory"], max(megabytes)))


def _results(summary: Summary) -> str:
    rows = [
        (name.replace("_", " "), f"{value:.6g}") for name, value in summary["invariants"].items() if value is not None
    ]
    rows += [
        (f"flow through {name}, m³/s", f"{value:.6g}")
        for name, value in summary["flow_rates"].items()
        if value is not None
    ]
    rows += [
        (f"{name.replace('_', ' ')}, {entry['unit']}", f"{entry['value']:.6g}")
        for name, entry in summary.get("details", {}).items()
        if isinstance(entry, Mapping) and {"value", "unit"} <= entry.keys() and entry["value"] is not None
    ]
    return section("Results", table(("quantity", "value"), rows)) if rows else ""


def _snapshots(summary: Summary, folder: Path) -> list[str]:
    """Return a section with the last state of each file of snapshots that the run wrote to the folder."""
    names = (Path(str(name)).name for name in summary.get("details", {}).get("files", []))
    parts = []
    for path in (folder / name for name in names if name.endswith(".h5")):
        if not is_motion(path):
            continue
        motion = read_motion(path)
        count, largest = len(motion.times), display(float(abs(motion.values).max()), motion.unit)
        first, last = (display(float(motion.times[k]), "s") for k in (0, -1))
        states = f"{count} states from {first} to {last}" if count > 1 else f"one state at {last}"
        caption = f"{path.name}: {states}, largest {motion.name} {largest}; drawn: the last state"
        parts += [f"<p>{escape(caption)}</p>", png(snapshot_png(motion, count - 1), caption)]
    return [section("Snapshots", *parts)] if parts else []


def _footer(summary: Summary) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    return f"<footer>{escape(versions)}</footer>"
