# SPDX-License-Identifier: BSD-3-Clause
"""Figures for papers: a vessel with its flow, and validation plots (profile, convergence).

Input is in SI units; lengths are drawn in mm, flow rates in readable units.
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

from seiche.report.display_units import display_unit
from seiche.report.plane_panel import PlaneSlice, SliceEnd, draw_plane, mark_axes, set_limits
from seiche.report.style import (
    COLORS,
    DOUBLE_COLUMN,
    SINGLE_COLUMN,
    new_figure,
    paper_style,
    store,
)
from seiche.report.surface import DrawnSurface, draw_surface, screen_axes, surface_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DrawnSurface",
    "FlowHistory",
    "PlaneSlice",
    "SliceEnd",
    "convergence_figure",
    "observed_order",
    "plane_slice",
    "profile_figure",
    "shares_figure",
    "vessel_figure",
]

Floats = npt.NDArray[np.floating[Any]]

#: Ratio of height and width of a vessel below which its panels are drawn below each other.
_LYING = 0.6


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

    `coords` (n, 3); `values` (n,) or (n, 3), drawn as magnitudes with arrows. The longer side of the slice is vertical,
    and positions are those of a lattice with its first site at the origin.

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
    vectors = None
    if size.ndim == 2:
        vectors = np.full((*image.shape, 2), np.nan)
        vectors[row, column] = size[:, [column_axis, row_axis]]
    start = spacing * np.array([coords[inside, axis].min() for axis in (column_axis, row_axis)])
    origin = (float(start[0]), float(start[1]))
    return PlaneSlice(image, spacing, label, column_axis, row_axis, vectors, origin)


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
        plane: left panel, or upper panel of a vessel that is much wider than high.
        surface: right panel, or the panel below; its default view is that of the plane, slightly rotated. In exactly
            the view of the plane, both are drawn at the same scale.
        flow: lower panel; omitted by default.
        time: time of the upper panels, marked in the lower one, seconds.
        limit: size in bytes above which a PNG is stored with 256 colours.

    Raises:
        OSError: the picture cannot be written.
    """
    view, up = surface.view or plane.view()[0], surface.up or plane.view()[1]
    surface = replace(surface, view=view, up=up)
    limits = np.stack([plane.limits, surface_limits(surface)])
    is_same_view = np.allclose(screen_axes(view, up), screen_axes(*plane.front()))
    if is_same_view:  # both panels at the same scale and place
        limits[:] = np.stack([limits[:, 0].min(axis=0), limits[:, 1].max(axis=0)])
    aspects = (limits[:, 1, 1] - limits[:, 0, 1]) / (limits[:, 1, 0] - limits[:, 0, 0])
    is_lying = float(aspects.max()) < _LYING
    height = max(1.2, (DOUBLE_COLUMN - 1.6) * (float(aspects.max()) + 0.17)) if is_lying else 3.3
    heights = [height] * (2 if is_lying else 1) + ([1.1] if flow is not None else [])
    figure = new_figure(DOUBLE_COLUMN, sum(heights) + 0.5)
    grid = figure.add_gridspec(len(heights), 1 if is_lying else 2, height_ratios=heights, wspace=0.08, hspace=0.1)
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0] if is_lying else grid[0, 1])
    draw_plane(left, plane, limits[0])
    draw_surface(right, surface)
    set_limits(right, limits[1])
    if is_same_view:
        mark_axes(right, (plane.column_axis, plane.row_axis), limits[1])
    panels = [left, right]
    if flow is not None:
        panels.append(figure.add_subplot(grid[-1, :]))
        _draw_flow(panels[-1], flow, time)
    for letter, axes in zip("abc", panels, strict=False):
        axes.set_title(letter, loc="left", fontweight="bold")
    store(figure, path, limit)


def _draw_flow(axes: Axes, flow: FlowHistory, time: float | None) -> None:
    span = float(np.ptp(flow.times)) if len(flow.times) else 0.0
    unit, factor = ("ms", 1e3) if 0 < span < 1.0 else ("s", 1.0)
    largest = max((float(np.abs(rates).max(initial=0.0)) for rates in flow.rates.values()), default=0.0)
    rate_factor, rate_unit = display_unit(largest, "m^3/s")
    times = np.asarray(flow.times) * factor
    axes.axhline(0.0, color="0.75", linewidth=0.6, zorder=0)
    if time is not None:
        axes.axvline(time * factor, color="0.45", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for color, (name, rates) in zip(cycle(COLORS), flow.rates.items(), strict=False):
        drawn = np.asarray(rates) * rate_factor
        axes.plot(times, drawn, color=color, label=name)
        if time is not None and len(times):
            flow_rate = np.interp(time * factor, times, drawn)
            axes.plot([time * factor], [flow_rate], "o", color=color, markersize=3.5, zorder=3)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(f"flow rate into\nthe vessel ({rate_unit})")
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
