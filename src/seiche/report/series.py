# SPDX-License-Identifier: BSD-3-Clause
"""Runs of one kind as a series: speed-up, scaling and efficiencies of each relative to the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from seiche.errors import CaseError
from seiche.observe.efficiency import Efficiency

Kind = Literal["strong", "weak", "same", "mixed"]

#: Work per unit of runs of weak scaling may differ by this fraction: extents are whole numbers of items.
_WEAK_TOLERANCE = 0.05
#: Hematocrits of runs with equal work may differ by this fraction.
_CELL_TOLERANCE = 0.02


@dataclass(frozen=True)
class Entry:
    """One run of a series.

    Attributes:
        name: as given by the user.
        summary: content of its `summary.json`.
        unit: the execution unit, "GPU" or "core" (a thread of a rank).
        units: number of execution units.
        work: items updated per step.
        seconds: wall seconds per step, output included.
        tree: efficiencies per step, with the computation scaling of eq. (29); None if no step was timed.
        speedup: items per second relative to the first run of the series.
        scaling: speed-up per unit relative to the first run with this unit and device; 1 for that run.
    """

    name: str
    summary: Mapping[str, Any]
    unit: str
    units: int
    work: float
    seconds: float
    tree: Efficiency | None = None
    speedup: float = 1.0
    scaling: float = 1.0

    @property
    def rate(self) -> float:
        """Return items per second."""
        return self.work / self.seconds

    @property
    def device(self) -> str:
        """Return what the run was executed on; runs on different devices do not scale."""
        return f"{self.unit} {self.summary['device']}"


@dataclass(frozen=True)
class RunSeries:
    """Runs of one solver in the given order, and how their work depends on the number of units."""

    entries: Sequence[Entry]
    kind: Kind

    @property
    def sentence(self) -> str:
        """Return what kind of series this is."""
        item = self.entries[0].summary.get("item", "sites")
        return {
            "strong": f"Strong scaling: all runs update the same number of {item}.",
            "weak": f"Weak scaling: all runs update about the same number of {item} per execution unit.",
            "same": "All runs do the same work on the same number of execution units: they differ in their settings.",
            "mixed": f"The problems differ: compare only the rates in {item} per second.",
        }[self.kind]


def series_of(summaries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> RunSeries:
    """Return the series of at least two runs.

    Raises:
        CaseError: the runs cannot be compared.
    """
    _check_comparable(summaries, names)
    entries = [_entry(summary, name) for summary, name in zip(summaries, names, strict=True)]
    first, firsts = entries[0], dict[str, Entry]()
    result = []
    for entry in entries:
        base = firsts.setdefault(entry.device, entry)
        scaling = entry.rate / base.rate * base.units / entry.units
        tree = entry.tree
        if tree is not None and base.tree is not None:
            tree = tree.against(base.tree, work=entry.work / base.work)
        result.append(replace(entry, tree=tree, speedup=entry.rate / first.rate, scaling=scaling))
    return RunSeries(result, _kind(result))


def _check_comparable(summaries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    first = summaries[0]
    for summary, name in zip(summaries, names, strict=True):
        if summary["steps"] < 1 or not summary["seconds"] > 0 or summary["sites"] < 1:
            raise CaseError(f"report: {name} has no completed step; it cannot be compared")
        if summary["solver"] != first["solver"]:
            raise CaseError(
                f"report: {names[0]} is a run of {first['solver']}, {name} one of {summary['solver']}; runs of "
                "different kinds cannot be compared"
            )


def _entry(summary: Mapping[str, Any], name: str) -> Entry:
    stored, steps = summary.get("efficiency") or {}, summary["steps"]
    on_gpu = (summary.get("movement") or {}).get("device") == "gpu"
    # A rank has one GPU, or a team of threads that share its work.
    units = summary["ranks"] * (1 if on_gpu else max(1, summary["threads"]))
    tree = None
    if stored.get("parallel"):
        keys = ("load_balance", "communication", "serialisation", "transfer", "device", "orchestration")
        factors: dict[str, Any] = {key: stored.get(key) for key in keys}
        tree = Efficiency(units, stored["elapsed_s"] / steps, **factors)
    seconds = summary["seconds"] / steps
    return Entry(name, summary, "GPU" if on_gpu else "core", units, float(summary["sites"]), seconds, tree)


def _kind(entries: Sequence[Entry]) -> Kind:
    if not _close([_cells(entry) for entry in entries], _CELL_TOLERANCE):
        return "mixed"
    if len({entry.work for entry in entries}) == 1:
        return "strong" if len({entry.units for entry in entries}) > 1 else "same"
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.device, []).append(entry)
    loads = [[entry.work / entry.units for entry in group] for group in groups.values()]
    units = {entry.units for entry in entries}
    return "weak" if len(units) > 1 and all(_close(group, _WEAK_TOLERANCE) for group in loads) else "mixed"


def _cells(entry: Entry) -> float:
    """Return the hematocrit, which determines the work of cells per site; 0 without cells."""
    cells = (entry.summary.get("details") or {}).get("cells") or {}
    return float(cells.get("hematocrit") or 0.0)


def _close(values: Sequence[float], tolerance: float) -> bool:
    return max(values) <= min(values) * (1 + tolerance)
