# SPDX-License-Identifier: BSD-3-Clause
"""The table of a sweep: inputs and main results of its runs, as CSV, as netCDF and as a picture."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.report.display_units import display_unit
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, store

#: Result columns drawn without a choice of the caller.
_PANELS = 6
#: Longer lists in a summary are not main results.
_MAX_LIST_LENGTH = 6
#: Entries of the summary that are not results.
_OMITTED_KEYS = ("history", "files", "notes", "points")
#: Prefix of the volume flow rates (m^3/s), and prefixes of further results of the physics.
_FLOW_PREFIX, _PHYSICS = "flow_m3_s.", ("greatest_", "foci.", "cells.", "forces.", "peak")
#: Prefixes and parts of the names of quantities of the method, or that follow from the case alone.
_NUMERICS = ("tau_", "density_", "time_", "spacing_", "mach", "mass_", "reynolds", "elements", "step")
_CASE_PARTS = (".types.", "_wanted", "edges_sites", "_change")
#: SI units by the end of a name, or of the name before the number of a component.
_UNIT_ENDS = {"_m": "m", "_s": "s", "_kg": "kg", "_Pa": "Pa", "_m3_s": "m^3/s", "_N": "N", "_Hz": "Hz"}
#: Smaller relative differences between runs are not drawn.
_RELATIVE_TOLERANCE = 1e-9

#: Returns number and unit of the text of an input, None if it is not a number.
Number: TypeAlias = Callable[[str], "tuple[float, str] | None"]


@dataclass(frozen=True)
class SweepRow:
    """A run: name, state ("done", "stopped", "failed", "interrupted", "" before its start), inputs, summary."""

    name: str
    state: str
    inputs: Mapping[str, str]
    summary: Mapping[str, Any]

    def results(self) -> dict[str, float]:
        """Return the numbers in its summary by name: wall time, warnings, invariants, flow rates and details (SI)."""
        if not self.summary:
            return {}
        content = self.summary
        warning_count = sum(1 for estimate in content.get("estimates", ()) if estimate.get("warning"))
        results = {
            "seconds": float(content["seconds"]),
            "mlups": float(content["mlups"]),
            "warnings": float(warning_count),
        }
        results |= dict(_numbers(content.get("invariants", {}), ""))
        results |= dict(_numbers(content.get("flow_rates", {}), _FLOW_PREFIX))
        return results | dict(_numbers(content.get("details", {}), ""))


class SweepTable:
    """Inputs and results of all runs of a sweep.

    Attributes:
        rows: the runs.
        inputs: names of the changed keys.
        results: names of the numbers that at least one run has.
    """

    def __init__(self, rows: Sequence[SweepRow], number: Number) -> None:
        """Combine the runs; `number` returns number and unit of an input."""
        self.rows, self._number = rows, number
        self.inputs = list(dict.fromkeys(key for row in rows for key in row.inputs))
        self._results = [row.results() for row in rows]
        self.results = list(dict.fromkeys(name for results_of_run in self._results for name in results_of_run))

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a result of all runs, NaN where there is none."""
        return np.array([results.get(name, math.nan) for results in self._results])

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one row for each run: name, state, inputs, results in SI units."""
        with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["run", "state", *self.inputs, *self.results])
            for row, results in zip(self.rows, self._results, strict=True):
                values = [repr(results[name]) if name in results else "" for name in self.results]
                writer.writerow([row.name, row.state, *(row.inputs.get(key, "") for key in self.inputs), *values])

    def axes(self) -> dict[str, list[str]]:
        """Return the inputs with several values and these values, in order."""
        values = {key: list(dict.fromkeys(row.inputs[key] for row in self.rows)) for key in self.inputs}
        return {key: texts for key, texts in values.items() if len(texts) > 1}

    def coordinate(self, texts: Sequence[str]) -> tuple[list[Any], str]:
        """Return the values of an input as numbers of one SI unit, and this unit, or the texts themselves and ""."""
        numbers = [self._number(text) for text in texts]
        units = {item[1] for item in numbers if item is not None}
        if None in numbers or len(units) != 1:
            return list(texts), ""
        return [item[0] for item in numbers if item is not None], units.pop()

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset` with a dimension for each varied input, or one of runs without a full grid."""
        import xarray

        axes, count = self.axes(), len(self.rows)
        if count > 1 and axes and math.prod(map(len, axes.values())) == count:
            shape, dims = tuple(map(len, axes.values())), tuple(axes)
            indices = [tuple(texts.index(row.inputs[key]) for key, texts in axes.items()) for row in self.rows]
        else:
            shape, dims, indices = (count,), ("run",), [(number,) for number in range(count)]
            axes = {key: [row.inputs[key] for row in self.rows] for key in self.inputs}
        coordinates = {}
        for key, texts in axes.items():
            values, unit = self.coordinate(texts)
            coordinates[key] = ((key if dims != ("run",) else "run",), values, {"units": unit} if unit else {})
        data = {}
        for name in self.results:
            values_of_runs = np.full(shape, np.nan)
            for index, value in zip(indices, self.column(name), strict=True):
                values_of_runs[index] = value
            data[name] = (dims, values_of_runs)
        for name, texts in (("run_name", [row.name for row in self.rows]), ("state", [row.state for row in self.rows])):
            texts_of_runs = np.full(shape, "", f"U{max(1, *map(len, texts))}")
            for index, text in zip(indices, texts, strict=True):
                texts_of_runs[index] = text
            data[name] = (dims, texts_of_runs)
        return xarray.Dataset(data, coordinates)

    def write_netcdf(self, path: str | os.PathLike[str]) -> bool:
        """Write the dataset as netCDF (version 3); return False if xarray is not installed."""
        try:
            dataset = self.to_xarray()
        except ModuleNotFoundError:
            return False
        with replacing(path) as temporary:
            dataset.to_netcdf(temporary, engine="scipy")
        return True

    def drawn(self, names: Sequence[str] = ()) -> list[str]:
        """Return the results to draw: `names`, or the first that differ between runs, flow rates first.

        Numbers of the method, such as Mach numbers, are drawn only if no other results differ.

        Raises:
            CaseError: an unknown name.
        """
        for name in names:
            if name not in self.results:
                raise CaseError(f"--plot {name}: no run has this result; expected one of {', '.join(self.results)}")
        if names:
            return list(names)
        speed = ("seconds", "mlups", "warnings")
        varied = sorted((name for name in self.results if name not in speed and self._varies(name)), key=_rank)
        best = _rank(varied[0]) if varied else 0
        # Quantities of the method are drawn only if there are no others.
        return [name for name in varied if _rank(name) < _METHOD or best == _METHOD][:_PANELS]

    def described(self, name: str) -> tuple[str, str]:
        """Return the title and the SI unit of a result, "" if it has none."""
        if name.startswith(_FLOW_PREFIX):
            return f"flow rate of {name.removeprefix(_FLOW_PREFIX)}", "m^3/s"
        parts = name.split(".")
        if parts[-1] == "value":
            entries = (row.summary["details"][parts[0]] for row in self.rows if _has(row, parts[0]))
            entry: Mapping[str, Any] = next(entries, {})
            return parts[0].replace("greatest_", "maximum of ").replace("_", " "), str(entry.get("unit", ""))
        axis = f" {'xyz'[int(parts.pop())]}" if parts[-1] in ("0", "1", "2") else ""
        end = next((end for end in sorted(_UNIT_ENDS, key=len, reverse=True) if parts[-1].endswith(end)), "")
        parts[-1] = parts[-1].removesuffix(end)
        title = " ".join(part.replace("place", "position").replace("_", " ") for part in parts)
        return title.replace("greatest ", "maximum of ") + axis, _UNIT_ENDS.get(end, "")

    def _varies(self, name: str) -> bool:
        values = self.column(name)
        values = values[np.isfinite(values)]
        return len(values) > 1 and float(np.ptp(values)) > _RELATIVE_TOLERANCE * float(np.abs(values).max())

    def draw(self, path: str | os.PathLike[str], names: Sequence[str] = ()) -> bool:
        """Draw results over the input with most values, a line for each combination of the others; False without any.

        Raises:
            CaseError: an unknown name.
        """
        drawn, axes = self.drawn(names), self.axes()
        if not drawn or not axes:
            return False
        key = max(axes, key=lambda name: (self._is_numeric(axes[name]), len(axes[name])))
        other_axes = [name for name in axes if name != key]
        lines: dict[tuple[str, ...], list[int]] = {}
        for number, row in enumerate(self.rows):
            lines.setdefault(tuple(row.inputs[name] for name in other_axes), []).append(number)
        columns = min(3, len(drawn))
        rows = math.ceil(len(drawn) / columns)
        with paper_style():
            figure = new_figure(DOUBLE_COLUMN, 2.0 * rows + 0.4)
            panels = list(figure.subplots(rows, columns, squeeze=False).flat)
            for panel, name in zip(panels, drawn, strict=False):
                self._draw_panel(panel, name, key, lines)
            for panel in panels[len(drawn) :]:
                panel.set_visible(False)
            if 1 < len(lines) <= 2 * len(COLORS):
                handles, labels = panels[0].get_legend_handles_labels()
                figure.legend(handles, labels, loc="outside lower center", ncols=3, title=", ".join(other_axes))
            store(figure, path)
        return True

    def _as_given(self, texts: Sequence[str]) -> tuple[list[Any], str]:
        """Return the values of an input in its own unit if all have the same one, otherwise as `coordinate` does."""
        words = [text.strip().strip("\"'").split(maxsplit=1) for text in texts]
        units = {word[1] for word in words if len(word) == 2}
        positions, unit = self.coordinate(texts)
        if unit and len(units) == 1 and all(len(word) == 2 for word in words):
            return [float(word[0]) for word in words], units.pop()
        return positions, unit

    def _is_numeric(self, texts: Sequence[str]) -> bool:
        return isinstance(self.coordinate(texts)[0][0], float)

    def _draw_panel(self, panel: Any, name: str, key: str, lines: Mapping[tuple[str, ...], Sequence[int]]) -> None:
        """Draw the result `name` over the input `key`, a line for each group of runs."""
        texts, values = self.axes()[key], self.column(name)
        title, unit = self.described(name)
        factor, value_unit = display_unit(float(np.abs(values[np.isfinite(values)]).max(initial=0.0)), unit)
        positions, unit = self._as_given(texts)
        for number, (label, members) in enumerate(lines.items()):
            points = [
                (positions[texts.index(self.rows[member].inputs[key])], factor * values[member]) for member in members
            ]
            if isinstance(positions[0], float):
                points.sort()
            x, y = zip(*points, strict=True)
            panel.plot(x, y, "o-", ms=3, color=COLORS[number % len(COLORS)], label=", ".join(label))
        panel.set_title(title)
        if value_unit:
            panel.set_ylabel(value_unit)
        panel.set_xlabel(f"{key} ({unit})" if unit else key)


#: Ranks of results: flow rates, further physics, others, numbers of the method.
_METHOD = 3


def _rank(name: str) -> int:
    """Return the rank of a result in a picture, the smallest first."""
    if name.startswith(_NUMERICS) or any(part in name for part in _CASE_PARTS):
        return _METHOD
    return 0 if name.startswith(_FLOW_PREFIX) else 1 if name.startswith(_PHYSICS) else 2


def _has(row: SweepRow, name: str) -> bool:
    return isinstance(row.summary.get("details", {}).get(name), Mapping)


def _numbers(content: Any, name: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers in nested tables and short lists, with their path as name."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key not in _OMITTED_KEYS:
                yield from _numbers(value, f"{name}.{key}" if name and not name.endswith(".") else f"{name}{key}")
    elif isinstance(content, list) and len(content) <= _MAX_LIST_LENGTH:
        for number, value in enumerate(content):
            yield from _numbers(value, f"{name}.{number}")
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield name, float(content)


def write_tables(table: SweepTable, folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write `sweep.csv`, `sweep.nc` (with xarray) and `sweep.png` into `folder`; return those that were written."""
    table.drawn(names)
    table.write_csv(folder / "sweep.csv")
    written = [folder / "sweep.csv"]
    if table.write_netcdf(folder / "sweep.nc"):
        written.append(folder / "sweep.nc")
    if table.draw(folder / "sweep.png", names):
        written.append(folder / "sweep.png")
    return written
