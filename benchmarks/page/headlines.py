# SPDX-License-Identifier: BSD-3-Clause
"""A few results of every solver: their values at all commits at which they were measured, kept in history.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.page.stored import former_names, origin_of, read_documents

_H100, _XEON = "NVIDIA H100 80GB HBM3 (cuda:0)", "Intel(R) Xeon(R) Processor, 2 threads"


@dataclass(frozen=True)
class Series:
    """A measurement that is repeated: the rows of a benchmark on a device whose columns have the values of `match`."""

    name: str
    benchmark: str
    device: str
    column: str
    unit: str
    match: Mapping[str, Any] = field(default_factory=dict)
    higher_is_better: bool = False

    def value(self, row: Mapping[str, Any]) -> float | None:
        """Return the value of a stored row, None if it is another measurement."""
        return (
            float(row[self.column]) if all(row.get(key, value) == value for key, value in self.match.items()) else None
        )


def _flow(name: str, device: str, case: str, storage: tuple[str, str], layout: str) -> Series:
    match = {
        "case": case,
        "compute": storage[0],
        "storage": storage[1],
        "layout": layout,
        "ranks": 1,
        "rheology": "newtonian",
    }
    return Series(name, "flow", device, "mlups", "MLUPS", match, higher_is_better=True)


def _ultrasound(name: str, device: str, scheme: str, physics: str, size: int) -> Series:
    match = {"scheme": scheme, "physics": physics, "precision": "float32", "size": size, "program": "seiche"}
    return Series(name, "ultrasound", device, "milliseconds", "ms per step", match)


def _waves(name: str, device: str, medium: str, precision: str) -> Series:
    match = {"medium": medium, "flux": "upwind", "precision": precision, "variant": "fused", "nodes": 8, "ranks": 1}
    return Series(name, "waves", device, "picoseconds_per_node_stage", "ps per node and stage", match)


def _blood(name: str, device: str, layout: str) -> Series:
    match = {"cells": 1124, "support": 4, "layout": layout}
    return Series(name, "blood", device, "step_microseconds", "us per step", match)


SERIES = (
    _flow("flow: box 384^3, float32, H100", _H100, "box 384^3", ("float32", "float32"), "tiles-8"),
    _flow("flow: box 384^3, float16 storage, H100", _H100, "box 384^3", ("float32", "float16"), "tiles-8"),
    _flow("flow: tube, float32, two cores", _XEON, "tube", ("float32", "float32"), "list-aa"),
    _blood("blood: hematocrit 0.4, 256^3, H100", _H100, "moments"),
    _ultrasound("ultrasound: exact, full medium, 256^3, H100", _H100, "exact", "full", 256),
    _ultrasound("ultrasound: separable, lossless, 512^3, H100", _H100, "separable", "lossless", 512),
    _ultrasound("ultrasound: exact, full medium, 128^3, two cores", _XEON, "exact", "full", 128),
    _waves("waves: acoustic, float32, H100", _H100, "acoustic", "float32"),
    _waves("waves: elastic, float32, H100", _H100, "elastic", "float32"),
    _waves("waves: elastic, float64, H100", _H100, "elastic", "float64"),
)


@dataclass(frozen=True, order=True)
class Point:
    """A value of a series, its date ("2026-11-21 07:02") and its commit."""

    date: str
    commit: str
    value: float


History = dict[str, list[Point]]


def points_of(documents: Sequence[Mapping[str, Any]]) -> History:
    """Return the points of all series in stored documents; those without a clean commit are left out."""
    result: History = {series.name: [] for series in SERIES}
    for document in documents:
        commit = str(document.get("commit", ""))
        if origin_of(commit) != f"commit {commit}":
            continue
        for series in SERIES:
            if (document.get("benchmark"), document.get("device")) != (series.benchmark, series.device):
                continue
            for row in document["rows"]:
                value = series.value(former_names(row))
                if value is not None:
                    result[series.name].append(Point(str(document["date"])[:16], commit[:12], value))
    return result


def read_history(path: Path) -> History:
    """Return the stored points; none if there is no file."""
    if not path.is_file():
        return {}
    stored = json.loads(path.read_text())["series"]
    return {name: [Point(*point) for point in points] for name, points in stored.items()}


def merged(*histories: History) -> History:
    """Return the points of all histories, in order of time, each once."""
    return {
        series.name: sorted({point for history in histories for point in history.get(series.name, [])})
        for series in SERIES
    }


def history_text(history: History) -> str:
    """Return the content of the file of a history."""
    series = ",\n".join(
        f"  {json.dumps(name)}: [\n"
        + ",\n".join(f"   {json.dumps([p.date, p.commit, p.value])}" for p in points)
        + "\n  ]"
        for name, points in history.items()
        if points
    )
    comment = "Written by python -m benchmarks.page: date, commit, value."
    return f'{{\n "comment": "{comment}",\n "series": {{\n{series}\n }}\n}}\n'


def current_history(root: Path) -> History:
    """Return the stored history with the points of the current results."""
    results = root / "benchmarks" / "results"
    documents = [
        document for name in ("flow", "blood", "ultrasound", "waves") for _, document in read_documents(results, name)
    ]
    return merged(read_history(root / "benchmarks" / "history.json"), points_of(documents))
