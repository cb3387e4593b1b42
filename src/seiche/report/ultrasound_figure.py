# SPDX-License-Identifier: BSD-3-Clause
"""The figure of an ultrasound run: fields with contours of the medium, in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.report.color_range import MAPS, color_top
from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style, save

#: Relative difference in sound speed above which contours are drawn.
_CONTRAST = 0.05


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


def ultrasound_figure(
    path: Path,
    name: str,
    coordinates: Sequence[npt.NDArray[np.float64]],
    panels: Sequence[Panel],
    *,
    sound_speed: npt.NDArray[Any] | None,
    title: str = "",
) -> None:
    """Draw the panels to `path` in the format given by the suffix of `name`; contours show the sound speed.

    A colour scale ends at the 99.8th percentile where the maximum is more than twice as large, as at a source; it is
    symmetric for pressures of both signs.
    `coordinates` are the coordinates (m) along the first one or two axes.
    """
    with paper_style():
        count = len(panels)
        height = 2.6
        if len(coordinates) == 2:
            width = 0.55 * DOUBLE_COLUMN / count  # of the drawing, without labels and colour bar
            height = min(8.0, width * float(np.ptp(coordinates[1]) / np.ptp(coordinates[0])) + (1.2 if title else 0.9))
        figure = new_figure(DOUBLE_COLUMN, height)
        if title:
            figure.suptitle(title)
        axes = figure.subplots(1, count, squeeze=False)[0]
        scaled = [1e3 * coordinate for coordinate in coordinates]
        for panel_axes, panel in zip(axes, panels, strict=True):
            panel_axes.set_title(panel.title)
            panel_axes.set_xlabel("x (mm)")
            if len(scaled) == 1:
                panel_axes.plot(scaled[0], panel.values)
                panel_axes.set_ylabel(panel.label)
                continue
            panel_axes.set_ylabel("y (mm)")
            high, is_clipped = color_top(panel.values, MAPS)
            low = -high if panel.both_signs else float(panel.values.min())
            extend = ("both" if panel.both_signs else "max") if is_clipped else "neither"
            cmap = "RdBu_r" if panel.both_signs else "inferno"
            style = {"cmap": cmap, "vmin": low, "vmax": high, "shading": "nearest", "rasterized": True}
            colors = panel_axes.pcolormesh(scaled[0], scaled[1], panel.values.T, **style)
            if sound_speed is not None and np.ptp(sound_speed) > _CONTRAST * sound_speed.min():
                levels = np.linspace(sound_speed.min(), sound_speed.max(), 4)[1:-1]
                panel_axes.contour(scaled[0], scaled[1], sound_speed.T, levels=levels, colors="0.7", linewidths=0.5)
            for mark in panel.marks:
                x, y = (1e3 * c for c in mark.position[:2])
                panel_axes.plot(x, y, "+", color="cyan", markersize=6, markeredgewidth=0.8)
            if panel.marks:
                text = "\n".join(mark.text.replace(", ", "\n", 1) for mark in panel.marks)
                panel_axes.text(0.98, 0.03, text, transform=panel_axes.transAxes, color="white", fontsize=4, ha="right")
            panel_axes.set_aspect("equal")
            color_bar(panel_axes, colors, panel.label, extend)
        save(figure, path, name)
