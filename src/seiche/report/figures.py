# SPDX-License-Identifier: BSD-3-Clause
"""Figures for papers: a vessel with its flow, and validation plots (profile, convergence).

Input is in SI units; lengths are drawn in mm, flow rates in mL/s.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.style import (
    COLORS,
    DOUBLE_COLUMN,
    SINGLE_COLUMN,
    color_bar,
    new_figure,
    paper_style,
    scale_bar,
    store,
)
from seiche.report.surface import Direction, DrawnSurface, draw_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DrawnSurface",
    "FlowHistory",
    "PlaneSlice",
    "convergence_figure",
    "observed_order",
    "plane_slice",
    "profile_figure",
    "shares_figure",
    "vessel_figure",
]

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class PlaneSlice:
    """Values on a regular slice: `values` (rows, columns) with NaN outside the fluid, `spacing` in metres.

    Columns and rows follow the lattice axes `column_axis` (right) and `row_axis` (up). `label` has quantity and unit.
    """

    values: Floats
    spacing: float
    label: str = "velocity magnitude (m/s)"
    column_axis: int = 0
    row_axis: int = 2

    def view(self) -> tuple[Direction, Direction]:
        """Return the directions to the viewer and upwards for a surface next to this slice, slightly rotated."""
        right, up = np.eye(3)[self.column_axis], np.eye(3)[self.row_axis]
        x, y, z = np.cross(right, up) + 0.4 * right + 0.2 * up
        return (float(x), float(y), float(z)), (float(up[0]), float(up[1]), float(up[2]))


@dataclass(frozen=True, eq=False)
class FlowHistory:
    """Volume flow in m^3/s through each iolet at `times` (t,) in seconds; `rates` by name, each (t,)."""

    times: Floats
    rates: Mapping[str, Floats]


def plane_slice(
    coords: npt.NDArray[np.integer[Any]],
    values: Floats,
    spacing: float,
    *,
    normal: int,
    index: int,
    label: str = "velocity magnitude (m/s)",
) -> PlaneSlice:
    """Return the slice of site values in the lattice plane `coords[:, normal] == index`.

    `coords` (n, 3); `values` (n,) or (n, 3), drawn as magnitudes. The longer side of the slice is vertical.

    Raises:
        ValueError: no site lies in that plane.
    """
    inside = coords[:, normal] == index
    if not inside.any():
        raise ValueError(f"no site has coordinate {index} along axis {normal}")
    column_axis, row_axis = (axis for axis in range(3) if axis != normal)
    extent = np.ptp(coords[inside], axis=0)
    if extent[column_axis] > extent[row_axis]:
        column_axis, row_axis = row_axis, column_axis
    column, row = (coords[inside, axis] - coords[inside, axis].min() for axis in (column_axis, row_axis))
    size = np.asarray(values[inside], np.float64)
    image = np.full((row.max() + 1, column.max() + 1), np.nan)
    image[row, column] = np.linalg.norm(size, axis=1) if size.ndim == 2 else size
    return PlaneSlice(image, spacing, label, column_axis, row_axis)


@paper_style()
def vessel_figure(
    path: str | os.PathLike[str],
    *,
    plane: PlaneSlice,
    surface: DrawnSurface,
    flow: FlowHistory | None = None,
    time: float | None = None,
    limit: int = 900 * 1024,
) -> None:
    """Draw velocity in a plane, wall shear stress on the vessel and the flow rates over time.

    Args:
        path: picture to write, in any format of matplotlib; it replaces an existing file when complete.
        plane: left panel.
        surface: right panel; its default view is that of the plane, slightly rotated.
        flow: lower panel; omitted by default.
        time: time of the upper panels, marked in the lower one, seconds.
        limit: size in bytes above which a PNG is stored with 256 colours.

    Raises:
        OSError: the picture cannot be written.
    """
    heights = [3.3, 1.1] if flow is not None else [3.3]
    figure = new_figure(DOUBLE_COLUMN, sum(heights) + 0.5)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights, wspace=0.08, hspace=0.1)
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])
    _draw_plane(left, plane)
    view, up = plane.view()
    draw_surface(right, replace(surface, view=surface.view or view, up=surface.up or up))
    panels = [left, right]
    if flow is not None:
        panels.append(figure.add_subplot(grid[1, :]))
        _draw_flow(panels[-1], flow, time)
    for letter, axes in zip("abc", panels, strict=False):
        axes.set_title(letter, loc="left", fontweight="bold")
    store(figure, path, limit)


def _draw_plane(axes: Axes, plane: PlaneSlice) -> None:
    from matplotlib.path import Path
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    margin = 5
    values = np.pad(np.asarray(plane.values, np.float64), margin, constant_values=np.nan)
    fluid = np.isfinite(values)
    # Extrapolate from the nearest fluid sites, for a smooth interpolation at the border.
    nearest = distance_transform_edt(~fluid, return_distances=False, return_indices=True)
    millimetre = plane.spacing * 1e3
    rows, columns = values.shape
    extent = (-0.5 * millimetre, (columns - 0.5) * millimetre, -0.5 * millimetre, (rows - 0.5) * millimetre)
    image = axes.imshow(
        values[tuple(nearest)],
        origin="lower",
        extent=extent,
        interpolation="bicubic",
        cmap="viridis",
        vmin=0.0 if np.nanmin(values) >= 0 else None,
        vmax=float(np.nanmax(values)) or 1.0,
    )
    # The outline is half a spacing outside the outermost sites, the wall of half-way bounce-back.
    smoothed = gaussian_filter(fluid.astype(float), 1.4)
    coordinates = [np.arange(count) * millimetre for count in (columns, rows)]
    outline = axes.contour(*coordinates, smoothed, levels=[0.5], colors="0.15", linewidths=0.7)
    image.set_clip_path(Path.make_compound_path(*outline.get_paths()), transform=axes.transData)
    axes.set_axis_off()
    axes.set_aspect("equal")
    color_bar(axes, image, plane.label)
    scale_bar(axes, columns * millimetre)


def _draw_flow(axes: Axes, flow: FlowHistory, time: float | None) -> None:
    span = float(np.ptp(flow.times)) if len(flow.times) else 0.0
    unit, factor = ("ms", 1e3) if 0 < span < 0.1 else ("s", 1.0)
    times = np.asarray(flow.times) * factor
    axes.axhline(0.0, color="0.75", linewidth=0.6, zorder=0)
    if time is not None:
        axes.axvline(time * factor, color="0.45", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for color, (name, rates) in zip(cycle(COLORS), flow.rates.items(), strict=False):
        in_millilitres = np.asarray(rates) * 1e6
        axes.plot(times, in_millilitres, color=color, label=name)
        if time is not None and len(times):
            flow_rate = np.interp(time * factor, times, in_millilitres)
            axes.plot([time * factor], [flow_rate], "o", color=color, markersize=3.5, zorder=3)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("flow rate into\nthe vessel (mL/s)")
    if len(times) > 1:
        axes.set_xlim(times[0], times[-1])
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), handlelength=1.4)


@paper_style()
def profile_figure(
    path: str | os.PathLike[str],
    *,
    exact: tuple[npt.ArrayLike, npt.ArrayLike],
    measured: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    x_label: str,
    y_label: str,
    exact_label: str = "exact",
) -> None:
    """Draw measured profiles (markers), by name as (x, y), over the exact one (line)."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    axes.plot(*_sorted_by_x(exact), color="0.2", label=exact_label, zorder=1)
    for index, (name, (x, y)) in enumerate(measured.items()):
        color, marker = COLORS[index % len(COLORS)], "os^Dv"[index % 5]
        axes.plot(x, y, marker, color=color, markerfacecolor="white", markersize=4, label=name, zorder=2)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend()
    store(figure, path)


@paper_style()
def shares_figure(
    path: str | os.PathLike[str],
    *,
    shares: Mapping[str, Mapping[str, Mapping[str, float]]],
    x_label: str,
    y_label: str = "share of a step",
) -> None:
    """Draw fractions of a step as stacked bars: panels by name, bars by label, values by name of the part."""
    figure = new_figure(SINGLE_COLUMN * min(2, len(shares)), 0.85 * SINGLE_COLUMN)
    panels = figure.subplots(1, len(shares), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(name for bars in shares.values() for bar in bars.values() for name in bar))
    for axes, (title, bars) in zip(panels, shares.items(), strict=True):
        labels, bottom = list(bars), np.zeros(len(bars))
        total = np.array([sum(bar.values()) for bar in bars.values()])
        for index, name in enumerate(names):
            height = np.array([bar.get(name, 0.0) for bar in bars.values()]) / total
            color = COLORS[index % len(COLORS)]
            axes.bar(labels, height, 0.75, bottom=bottom, color=color, edgecolor="white", linewidth=0.5, label=name)
            bottom += height
        axes.set_title(title)
        axes.set_xlabel(x_label)
    panels[0].set_ylabel(y_label)
    panels[0].set_ylim(0, 1)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(3, len(names)))
    store(figure, path)


def _sorted_by_x(line: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[Floats, Floats]:
    x, y = (np.asarray(values, np.float64) for values in line)
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def observed_order(sizes: npt.ArrayLike, errors: npt.ArrayLike) -> float:
    """Return the order p of errors ~ sizes**-p, fitted over all points (least squares of the logarithms)."""
    slope = np.polyfit(np.log(np.asarray(sizes, np.float64)), np.log(np.asarray(errors, np.float64)), 1)[0]
    return -float(slope)


@paper_style()
def convergence_figure(
    path: str | os.PathLike[str],
    *,
    sizes: npt.ArrayLike,
    errors: Mapping[str, npt.ArrayLike],
    order: float,
    x_label: str = "sites across",
    y_label: str = "relative error",
) -> None:
    """Draw errors (n,), by name, over `sizes` (n,) on logarithmic axes with a triangle of the expected `order`."""
    from matplotlib.ticker import NullLocator, ScalarFormatter

    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    x = np.asarray(sizes, np.float64)
    for index, (name, values) in enumerate(errors.items()):
        color, marker = COLORS[index % len(COLORS)], "os^Dv"[index % 5]
        label = f"{name} (order {observed_order(x, values):.2f})"
        axes.loglog(x, values, marker + "-", color=color, markerfacecolor="white", markersize=4, label=label)
    min_error = min(float(np.asarray(values)[np.argmax(x)]) for values in errors.values())
    _slope_triangle(axes, float(x.min()), float(x.max()), min_error, order)
    axes.set_xticks(x, [f"{size:g}" for size in x])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend()
    store(figure, path)


def _slope_triangle(axes: Axes, x_min: float, x_max: float, y_min: float, order: float) -> None:
    """Draw a right triangle of slope -order under the end of the y_min curve."""
    ratio = (x_max / x_min) ** 0.3
    right = x_max / (x_max / x_min) ** 0.12
    left = right / ratio
    bottom = 0.55 * y_min
    top = bottom * ratio**order
    axes.fill([left, right, left], [top, bottom, bottom], facecolor="0.92", edgecolor="0.4", linewidth=0.7)
    axes.text(left / 1.03, math.sqrt(top * bottom), f"{order:g}", ha="right", va="center", color="0.3")
    axes.text(math.sqrt(left * right), bottom / 1.08, "1", ha="center", va="top", color="0.3")
    axes.set_ylim(bottom=bottom / 2.2)
