# SPDX-License-Identifier: BSD-3-Clause
"""A panel with a record of a result over time: lines, an image of many sensors, or a record section."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.report.result_arrays import AXES, ResultArrays
from seiche.report.section_figure import Section, SectionStyle, draw_section, section_of
from seiche.report.sensor_axis import MAX_LINES, draw_lines, draw_traces, sensor_axis

Floats = npt.NDArray[np.float64]


def draw_record(panel: Any, result: ResultArrays, name: str) -> None:
    """Draw the record of several positions over time: lines, or a section or an image of many positions."""
    item, times = result.arrays[name], np.asarray(result.coordinates["record_time"].values, np.float64)
    series_dim = next(dim for dim in item.dims if dim != "record_time")
    values = np.moveaxis(item.values, item.dims.index("record_time"), -1)
    title = name.replace("_", " ")
    if series_dim == "receiver" and len(values) > MAX_LINES and (section := _section(result, name, times, values)):
        draw_section(panel, section, SectionStyle())
        return
    if len(values) > MAX_LINES:
        axis = sensor_axis(len(values), _places(result, series_dim), series_dim)
        mesh, label = draw_traces(panel, times, values, axis, (title, item.unit))
        panel.figure.colorbar(mesh, ax=panel, label=label, shrink=0.8)
        return
    names = result.coordinates[series_dim].values if series_dim in result.coordinates else np.arange(len(values))
    draw_lines(panel, times, values, [str(name) for name in names], (title, item.unit))
    panel.legend(title=series_dim)


def _places(result: ResultArrays, series_dim: str) -> Floats | None:
    """Return the positions (n, axes) in m of sensors or receivers; None if they are unknown."""
    names = [f"{series_dim}_{axis}" for axis in AXES if f"{series_dim}_{axis}" in result.coordinates]
    return np.stack([result.coordinates[name].values for name in names], axis=1) if names else None


def _section(result: ResultArrays, name: str, times: Floats, values: npt.NDArray[Any]) -> Section | None:
    """Return the record section of receivers (n, times); None if they are not on a line."""
    places = _places(result, "receiver")
    if places is None:
        return None
    return section_of(places, times, values, (name.replace("_", " "), result.arrays[name].unit))
