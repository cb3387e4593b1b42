# SPDX-License-Identifier: BSD-3-Clause
"""The page about data movement, made from machine files and stored results: paths, strategies, choices, predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.page.stored import read_documents, unfit

from seiche.machine.laws.file import Machine, read_machine
from seiche.report.table import markdown

_INTRODUCTION = """\
# Data movement, measured

Made by `python -m benchmarks.page` from the files in `benchmarks/machines/` and `benchmarks/results/`;
do not edit it by hand. Times are the smallest of the repetitions. What is behind them:
[how to measure](../howto/measure-the-machine.md), [theory](../theory/movement.md).
"""
#: Sizes of the tables, and how they are written.
_SIZES = {8: "8 B", 4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB", 1 << 24: "16 MiB", 1 << 26: "64 MiB"}
_PATHS = {
    "host": "`host`: MPI between host memories",
    "host_exchange": "`host_exchange`: whole exchange, both ways at once",
    "device_mpi": "`device_mpi`: MPI between GPU memories",
    "h2d": "`h2d`: pinned copy to the GPU, waited for",
    "d2h": "`d2h`: pinned copy from the GPU, waited for",
    "d2d": "`d2d`: within the GPU, queued",
    "peer_copy": "`peer_copy`: copy engine into the other GPU, queued",
    "peer_store": "`peer_store`: kernel that stores there, queued",
    "peer_exchange": "`peer_exchange`: whole exchange by such stores, in a graph",
    "nccl": "`nccl`: both ways at once, queued",
    "nccl_graph": "`nccl_graph`: the same, in a graph",
}


def movement_page(machines: Path, results: Path) -> str:
    """Return the text of the page.

    Raises:
        FormatError: a file is no machine file, or a result lacks what it must hold.
    """
    parts = [_INTRODUCTION]
    parts += [_machine_part(path, read_machine(path)) for path in sorted(machines.glob("*.json"))]
    kinds: tuple[tuple[str, str, Callable[[Sequence[dict[str, Any]]], str]], ...] = (
        ("flow halo", _HALO, _halo),
        ("collectives", _STRATEGIES, _strategies),
        ("choice", _CHOICE, _choice),
        ("predict", _PREDICTED, _predicted),
    )
    for name, heading, table in kinds:
        documents = read_documents(results, name)
        if documents:
            parts.append(heading)
            parts += [_section(path, document, table) for path, document in documents]
    return "\n".join(parts)


_HALO = """\
# What a halo adds to a step

Slabs of a periodic box in graphs, `benchmarks/flow_halo.py`: a step with its messages and without them, microseconds.
"""
_STRATEGIES = """\
# Alltoall(v) by each strategy

`seiche bench collectives`: an exchange between all arrays, the host waiting for its end; bytes from each to each,
microseconds, in brackets what the machine file predicts. With several processes an array they share its GPU.
"""
_CHOICE = """\
# What choosing costs

`seiche bench choice`: rings of messages, exchanges of all with all, and transposes in every way that works there, and
the time of what the machine file and the clock chose over that of the fastest.
"""
_PREDICTED = """\
# How good predictions are

`seiche bench predict`: a case of each solver, microseconds. *Predicted* is from the bytes of the stages and the rate of
the memory alone, *scaled* with what the stages took on another number of ranks. Exchanges are timed by themselves.
"""


def _section(path: Path, document: dict[str, Any], table: Callable[[Sequence[dict[str, Any]]], str]) -> str:
    try:
        where = f"{document['device']}, {document['date']}, commit {document['commit']}"
        return f"## {path.stem}\n\n{where}, data in `benchmarks/results/{path.name}`.\n\n{table(document['rows'])}"
    except (KeyError, TypeError, ValueError) as error:
        raise unfit(path, document, error) from None


def _machine_part(path: Path, machine: Machine) -> str:
    known = machine.hardware
    what = ", ".join(dict.fromkeys(known.get("gpus", []))) or str(known.get("cpu", "a machine"))
    lines = []
    for each in machine.paths:
        times = dict(zip(each.sizes, each.seconds, strict=True))
        cells = [_us(times[size]) if size in times else "" for size in _SIZES]
        last = each.pieces[-1]
        rate = f"{1e-9 / last.beta:,.4g} GB/s" if last.beta else "-"
        gap = f"{1e6 * each.gap:.2f}" if each.gap is not None else ""
        lines.append((_PATHS.get(each.path, each.path), each.locality, *cells, rate, gap))
    told = [
        f"{known.get('ranks', 1)} ranks on {what}; {known.get('mpi', 'no MPI').split(',')[0]};"
        f" measured {machine.date[:10]} in {machine.seconds:.0f} s."
    ]
    told += [
        f"Copies within {name} memory, all ranks together: {1e-9 * rate:,.0f} GB/s."
        for name, rate in machine.memory.items()
    ]
    for name, launch in machine.launch.items():
        inside = f", one more in a graph {1e6 * launch.graph_kernel:.2f} us" if launch.graph_kernel else ""
        told.append(f"A kernel launch ({name}) takes {1e6 * launch.kernel:.2f} us{inside}.")
    told += [
        f"A node injects {1e-9 * each.rate:.4g} GB/s over `{each.path}` {each.locality}." for each in machine.injection
    ]
    columns = ("path, microseconds", "class", *_SIZES.values(), "rate", "gap")
    head = f"## {machine.name}\n\n{' '.join(told)} File: `benchmarks/machines/{path.name}`.\n\n"
    return head + markdown(columns, lines, text_columns=2)


def _halo(rows: Sequence[dict[str, Any]]) -> str:
    columns = ("transport", "layout", "ranks", "sites", "neighbours", "bytes to each", "step", "without", "added")
    lines = [
        (
            row["transport"],
            row["layout"],
            str(row["ranks"]),
            f"{row['sites']:,}",
            str(row["neighbours"]),
            f"{row['message_bytes']:,}",
            f"{row['step_microseconds']:.1f}",
            f"{row['compute_microseconds']:.1f}",
            f"{row['step_microseconds'] - row['compute_microseconds']:.1f}",
        )
        for row in rows
    ]
    return markdown(columns, lines, text_columns=2)


def _strategies(rows: Sequence[dict[str, Any]]) -> str:
    sizes = sorted({row["size"] for row in rows})
    chosen = [sizes[k] for k in sorted({round(k * (len(sizes) - 1) / 4) for k in range(5)})]
    lines = []
    for key in dict.fromkeys((row["kind"], row["strategy"], row["arrays"], row["processes"]) for row in rows):
        mine = {
            row["size"]: row for row in rows if (row["kind"], row["strategy"], row["arrays"], row["processes"]) == key
        }
        lines.append((*map(str, key), *(_with_prediction(mine[size]) if size in mine else "" for size in chosen)))
    columns = ("exchange", "strategy", "arrays", "processes", *(_size(size) for size in chosen))
    return markdown(columns, lines, text_columns=2)


def _with_prediction(row: dict[str, Any]) -> str:
    said = f" ({_us(row['predicted'])})" if row.get("predicted") is not None else ""
    return _us(row["seconds"]) + said


def _choice(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for pattern in dict.fromkeys(row["pattern"] for row in rows):
        mine = [row for row in rows if row["pattern"] == pattern]
        lines.append((pattern, _counted(row["chosen"] for row in mine), *_costs(mine)))
    lines.append(("all", "", *_costs(rows)))
    columns = ("pattern", "chosen", "exchanges", "at most 1.05 of the best", "median", "largest")
    return markdown(columns, lines, text_columns=2)


def _costs(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    costs = [float(row["cost"]) for row in rows]
    good = sum(cost <= 1.05 for cost in costs) / len(costs)
    return str(len(costs)), f"{good:.0%}", f"{median(costs):.3f}", f"{max(costs):.2f}"


def _predicted(rows: Sequence[dict[str, Any]]) -> str:
    columns = ("case", "ranks", "transport", "step", "predicted", "scaled", "exchange", "predicted", "errors")
    lines = []
    for row in rows:
        errors = ", ".join(f"{name} {value:.0%}" for name, value in row["errors"].items())
        exchange = (_us(row["measured_exchange"]), _us(row["exchange"])) if row["ranks"] > 1 else ("", "")
        scaled = _us(row["step_scaled"]) if row["step_scaled"] is not None else ""
        name = f"{row['case']}, {row['size']}" if "size" in row else row["case"]
        times = (_us(row["measured_step"]), _us(row["step"]), scaled, *exchange)
        lines.append((name, str(row["ranks"]), row["transport"], *times, errors))
    names = dict.fromkeys(name for row in rows for name in row["errors"])
    medians = "; ".join(
        f"{name} {median(row['errors'][name] for row in rows if name in row['errors']):.0%}" for name in names
    )
    return markdown(columns, lines, text_columns=3) + f"\nMedian errors: {medians}.\n"


def _counted(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(f"{name} {every.count(name)}" for name in dict.fromkeys(every))


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:,.3g}" if seconds < 1e-3 else f"{1e6 * seconds:,.0f}"


def _size(size: int) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size} B"
