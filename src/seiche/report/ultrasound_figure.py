# SPDX-License-Identifier: BSD-3-Clause
"""The figure of an ultrasound run: fields with contours of the medium, in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.report.color_range import MAPS, color_top
from seiche.report.display_units import length_scale
from seiche.report.sensor_axis import MAX_LINES, draw_lines, draw_traces, sensor_axis
from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

#: Relative difference in sound speed above which contours are drawn.
_CONTRAST = 0.05
#: Ratio of height and width of a field above which all panels are in one row.
_TALL = 1.4


class Mark(NamedTuple):
    """A marked position (m), drawn by its first two coordinates, and the text in the panel."""

    position: tuple[float, ...]
    text: str


@dataclass(frozen=True, eq=False)
class Panel:
    """A field (1D or 2D) with its title and the label of its colour bar."""

    title: str
    label: str
    values: npt.NDArray[Any]
    both_signs: bool = False
    marks: tuple[Mark, ...] = ()


def middle_slice(values: npt.NDArray[Any], through: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """Return the slice of a 3D field parallel to the first two axes, through `through` or the centre."""
    if values.ndim < 3:
        return values
    return np.asarray(values[:, :, values.shape[2] // 2 if through is None else through[2]])


@dataclass(frozen=True, eq=False)
class Traces:
    """Records (sensors, times) of the pressure in Pa at `times` (s), of sensors at `places` (sensors, axes) in m."""

    times: Floats
    values: npt.NDArray[Any]
    places: Floats | None = None


@dataclass(frozen=True, eq=False)
class UltrasoundPicture:
    """The contents of the figure: panels with fields, and records of sensors.

    `coordinates` are those (m) along the first one or two axes, `sound_speed` is drawn as contours.
    """

    coordinates: Sequence[npt.NDArray[np.float64]]
    panels: Sequence[Panel]
    sound_speed: npt.NDArray[Any] | None = None
    traces: Traces | None = None
    title: str = ""


def ultrasound_figure(path: Path, name: str, picture: UltrasoundPicture) -> None:
    """Draw the picture to `path` in the format given by the suffix of `name`.

    A colour scale ends at the 99.8th percentile where the maximum is more than twice as large, as at a source; it is
    symmetric for pressures of both signs.
    """
    coordinates, count = picture.coordinates, len(picture.panels) + (picture.traces is not None)
    aspect = float(np.ptp(coordinates[1]) / np.ptp(coordinates[0])) if len(coordinates) == 2 else 0.6
    columns = count if count < 3 or aspect > _TALL else 2
    rows = -(-count // columns)
    width = 0.55 * DOUBLE_COLUMN / columns  # of the drawing, without labels and colour bar
    heights = rows * (width * aspect + (0.9 if len(coordinates) == 2 else 1.1)) + (0.3 if picture.title else 0.0)
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, min(8.0, max(heights, 1.8)))
        if picture.title:
            figure.suptitle(picture.title)
        grid = figure.add_gridspec(rows, columns, wspace=0.1)
        axes = [figure.add_subplot(grid[divmod(number, columns)]) for number in range(count - 1)]
        row, column = divmod(count - 1, columns)
        axes.append(figure.add_subplot(grid[row, column:]))  # the last one fills its row
        size, unit = length_scale(max(float(np.ptp(coordinate)) for coordinate in coordinates))
        for panel_axes, panel in zip(axes, picture.panels, strict=False):
            _draw_panel(panel_axes, panel, picture, (size, unit))
        if picture.traces is not None:
            _draw_traces(axes[-1], picture.traces)
        save(figure, path, name)


def _draw_panel(axes: Axes, panel: Panel, picture: UltrasoundPicture, length: tuple[float, str]) -> None:
    size, unit = length
    axes.set_title(panel.title)
    axes.set_xlabel(f"x ({unit})")
    scaled = [coordinate / size for coordinate in picture.coordinates]
    if len(scaled) == 1:
        axes.plot(scaled[0], panel.values)
        axes.set_ylabel(panel.label)
        return
    axes.set_ylabel(f"y ({unit})")
    high, is_clipped = color_top(panel.values, MAPS)
    low = -high if panel.both_signs else float(panel.values.min())
    extend = ("both" if panel.both_signs else "max") if is_clipped else "neither"
    style: dict[str, Any] = {"cmap": "RdBu_r" if panel.both_signs else "inferno", "vmin": low, "vmax": high}
    colors = axes.pcolormesh(*scaled, panel.values.T, shading="nearest", rasterized=True, **style)
    speed = picture.sound_speed
    if speed is not None and np.ptp(speed) > _CONTRAST * speed.min():
        levels = np.linspace(speed.min(), speed.max(), 4)[1:-1]
        axes.contour(*scaled, speed.T, levels=levels, colors="0.7", linewidths=0.5)
    for mark in panel.marks:
        x, y = (c / size for c in mark.position[:2])
        axes.plot(x, y, "+", color="cyan", markersize=6, markeredgewidth=0.8)
    if panel.marks:
        text = "\n".join(mark.text.replace(", ", "\n", 1) for mark in panel.marks)
        axes.text(0.98, 0.03, text, transform=axes.transAxes, color="white", fontsize=4, ha="right")
    axes.set_aspect("equal")
    color_bar(axes, colors, panel.label, extend)


def _draw_traces(axes: Axes, traces: Traces) -> None:
    axes.set_title("pressure at the sensors")
    quantity = ("pressure", "Pa")
    if len(traces.values) <= MAX_LINES:
        names = [f"sensor {number}" for number in range(len(traces.values))]
        draw_lines(axes, traces.times, traces.values, names, quantity)
        axes.legend()
        return
    axis = sensor_axis(len(traces.values), traces.places)
    colors, label = draw_traces(axes, traces.times, traces.values, axis, quantity)
    color_bar(axes, colors, label)
