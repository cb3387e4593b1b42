# SPDX-License-Identifier: BSD-3-Clause
"""Figures of waves: seismograms and maps of peak velocity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.display_units import display, display_unit, length_scale
from seiche.report.style import COLORS, DOUBLE_COLUMN, SINGLE_COLUMN, color_bar, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
#: Maximum number of receivers in a plot of seismograms.
_MAX_TRACES = 24
#: Largest deviation of a trace, in distances between traces.
_AMPLITUDE = 0.9
#: Points along the longer side of a map.
_MAP_POINTS = 400


def seismogram_figure(
    path: Path, times: Floats, velocity: Floats, names: Sequence[str], components: Sequence[str]
) -> None:
    """Draw velocities (times, receivers, components) in m/s.

    Those of one receiver share a panel. Of several, each component has a panel with a line per receiver and a bar of
    the largest velocity. Of many receivers, an even selection is drawn. Raises OSError if the file cannot be written.
    """
    selected = np.unique(np.linspace(0, len(names) - 1, min(len(names), _MAX_TRACES)).round().astype(int))
    peak = float(np.abs(velocity).max()) or 1.0
    time_scale, time_unit = display_unit(float(times[-1]) if len(times) else 0.0, "s")
    with paper_style():
        if len(selected) == 1:
            scale, unit = display_unit(peak, "m/s")
            figure = new_figure(DOUBLE_COLUMN, 2.6)
            axes = figure.add_subplot(xlabel=f"time ({time_unit})", ylabel=f"velocity at {names[0]} ({unit})")
            for number, name in enumerate(components):
                color = COLORS[number % len(COLORS)]
                axes.plot(time_scale * times, scale * velocity[:, 0, number], color=color, label=name)
            axes.legend()
            store(figure, path)
            return
        figure = new_figure(DOUBLE_COLUMN, min(1.4 + 0.22 * len(selected), 7.5))
        panels = np.atleast_1d(figure.subplots(1, len(components), sharex=True, sharey=True))
        for number, (axes, name) in enumerate(zip(panels, components, strict=True)):
            for row, receiver in enumerate(selected):
                trace = velocity[:, receiver, number] / peak
                axes.plot(
                    time_scale * times, row + _AMPLITUDE * trace, color=COLORS[number % len(COLORS)], linewidth=0.6
                )
            axes.set_title(name, fontsize=8)
            axes.set_xlabel(f"time ({time_unit})")
        panels[0].set_yticks(range(len(selected)), [names[receiver] for receiver in selected])
        panels[0].set_ylabel("receiver")
        _draw_amplitude(panels[-1], display(peak, "m/s"))
        store(figure, path)


def _draw_amplitude(axes: Axes, label: str) -> None:
    """Draw a bar of the largest amplitude, from the line of the first receiver upwards, at the right."""
    transform = axes.get_yaxis_transform()
    axes.plot([1.03, 1.03], [0.0, _AMPLITUDE], color="0.1", linewidth=1.6, transform=transform, clip_on=False)
    axes.text(1.05, 0.5 * _AMPLITUDE, label, transform=transform, fontsize=7, va="center")


def map_figure(
    path: Path, positions: Floats, peaks: Floats, axes_names: Sequence[str], stations: Floats | None = None
) -> None:
    """Draw peak velocities at `positions` (n, 1 or 2) of a side; raise OSError if the file cannot be written."""
    lower, upper = positions.min(0), positions.max(0)
    size, unit = length_scale(float(np.max(upper - lower)))
    factor = 1.0 / size
    per_metre, speed = display_unit(float(peaks.max()), "m/s")
    peaks = peaks * per_metre
    with paper_style():
        figure = new_figure(SINGLE_COLUMN if positions.shape[1] == 1 else DOUBLE_COLUMN * 0.8, 3.0)
        axes = figure.add_subplot()
        axes.set_xlabel(f"{axes_names[0]} ({unit})")
        if positions.shape[1] == 1:
            order = np.argsort(positions[:, 0], kind="stable")
            axes.plot(positions[order, 0] * factor, peaks[order], color=COLORS[0])
            axes.set_ylabel(f"peak velocity ({speed})")
        else:
            extent = (lower[0] * factor, upper[0] * factor, lower[1] * factor, upper[1] * factor)
            raster = _raster(positions, peaks, lower, upper)
            image = axes.imshow(raster, origin="lower", extent=extent, cmap="viridis", vmin=0)
            axes.set_ylabel(f"{axes_names[1]} ({unit})")
            color_bar(axes, image, f"peak velocity ({speed})")
            if stations is not None:
                axes.plot(stations[:, 0] * factor, stations[:, 1] * factor, "^", color="white", markersize=3)
        store(figure, path)


def _raster(positions: Floats, values: Floats, lower: Floats, upper: Floats) -> npt.NDArray[Any]:
    """Return scattered values on a regular grid by linear interpolation."""
    from scipy.interpolate import LinearNDInterpolator

    unique, first = np.unique(positions.round(9), axis=0, return_index=True)
    counts = np.maximum(2, np.round(_MAP_POINTS * (upper - lower) / (upper - lower).max())).astype(int)
    x, y = (np.linspace(lower[a], upper[a], counts[a]) for a in range(2))
    scale = upper - lower
    points = np.stack(np.meshgrid(x / scale[0], y / scale[1]), -1).reshape(-1, 2)
    interpolated = LinearNDInterpolator(unique / scale, values[first])(points)
    return np.asarray(np.nan_to_num(interpolated).reshape(counts[1], counts[0]))
