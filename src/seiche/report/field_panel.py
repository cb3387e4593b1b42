# SPDX-License-Identifier: BSD-3-Clause
"""A panel with a field of a result in a plane: on a grid with cells and media, or at the nodes of elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.io.surface_file import CellSurfaces
from seiche.report.color_range import NODES, WAVES, color_top
from seiche.report.display_units import display_unit, length_scale
from seiche.report.periodic_images import with_images
from seiche.report.result_arrays import (
    AXES,
    NamedArray,
    ResultArrays,
    axes_of,
    is_at_nodes,
    node_positions,
    node_values,
    nodes_along,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]

#: Relative difference in sound speed above which media are separated by lines.
_CONTRAST = 0.05
#: Distance from a source, in sides of an element, up to which values do not determine the colour scale.
_NEAR_SOURCE = 2.5
#: Fraction of its largest value below which the smallest value of a field does not begin the colour scale.
_FROM_ZERO = 0.3


@dataclass(frozen=True, eq=False)
class PlaneField:
    """Scalars of a field in a plane or along a line, with their units and colours.

    `points` are the positions (m) along each axis of a grid, or x and y of nodes, which then have `triangles`. `limits`
    (2, axes) bound the drawn part; `normal` is the number of the axis across the plane and its position. `speed` is the
    sound speed in the plane.
    """

    label: str
    axes: tuple[str, ...]
    points: tuple[Floats, ...]
    scalars: Floats
    limits: Floats
    style: dict[str, Any]
    extend: str = "neither"
    triangles: Integers | None = None
    normal: tuple[int, float] | None = None
    speed: Floats | None = None

    @property
    def is_line(self) -> bool:
        """Return whether there is one axis only."""
        return len(self.axes) == 1

    @property
    def aspect(self) -> float:
        """Return the ratio of height and width."""
        width, height = self.limits[1] - self.limits[0]
        return float(height / width)


def plane_field(result: ResultArrays, name: str, decibels: float | None) -> PlaneField:
    """Return the field `name` in the plane that is drawn."""
    return _nodes(result, name) if is_at_nodes(result.arrays[name]) else _grid(result, name, decibels)


def _magnitude(name: str, item: NamedArray, values: npt.NDArray[Any], components: bool) -> tuple[Floats, str]:
    """Return scalars to draw and their name; the last axis of `values` may have components."""
    title = "speed" if components and name == "velocity" else name.replace("_", " ")
    return np.asarray(np.linalg.norm(values, axis=-1) if components else values, np.float64), title


def _in_units(title: str, item: NamedArray, top: float) -> tuple[float, str]:
    """Return the factor of the scalars and their label."""
    scale, unit = display_unit(top, item.unit)
    return scale, title if unit in ("", "1") else f"{title} ({unit})"


def _colors(values: Floats, quantile: float = WAVES) -> tuple[dict[str, Any], str, float]:
    """Return colour map and limits, which ends of the colour bar are pointed, and the largest drawn absolute value.

    The map is diverging around zero for values of both signs. A few large values are clipped.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {"cmap": "viridis"}, "neither", 0.0
    top, is_clipped = color_top(values, quantile)
    low = float(finite.min())
    if low < 0 < finite.max():
        return {"cmap": "RdBu_r", "vmin": -top, "vmax": top}, "both" if is_clipped else "neither", top
    limits = {"vmax": top} if is_clipped else {}
    if 0 <= low < _FROM_ZERO * top:
        limits = {"vmin": 0.0, "vmax": top}
    return {"cmap": "viridis", **limits}, "max" if is_clipped else "neither", top


def _scaled(style: dict[str, Any], scale: float) -> dict[str, Any]:
    return {key: value * scale if key in ("vmin", "vmax") else value for key, value in style.items()}


def to_decibels(values: Floats, down_to: float) -> Floats:
    """Return absolute values in dB of their maximum, 20 log10(|v| / max |v|), at least -`down_to`; NaN stays NaN."""
    amplitudes = np.abs(values)
    largest = float(np.nanmax(amplitudes, initial=0.0))
    lowest = 10.0 ** (-down_to / 20.0)
    relative = amplitudes / largest if largest > 0.0 else np.where(np.isnan(amplitudes), np.nan, lowest)
    return np.asarray(20.0 * np.log10(np.maximum(relative, lowest)))


def _grid(result: ResultArrays, name: str, decibels: float | None) -> PlaneField:
    item = result.arrays[name]
    axes, values = axes_of(item), item.values
    scalars, title = _magnitude(name, item, values, values.ndim > len(axes))
    medium = result.arrays.get("sound_speed") if name != "sound_speed" else None
    speed = None if medium is None or medium.dims != axes else np.asarray(medium.values, np.float64)
    ticks = [np.asarray(result.coordinates[axis].values, np.float64) for axis in axes]
    normal = None
    if decibels is not None:
        scalars = to_decibels(scalars, decibels)
    if len(axes) == 3:
        across = min(range(3), key=lambda k: (np.ptp(ticks[k]), -k))
        row = _fullest(scalars, across)
        normal = across, float(ticks[across][row])
        speed = None if speed is None else np.take(speed, row, across)
        scalars = np.take(scalars, row, across)
        axes, ticks = (tuple(axes[k] for k in range(3) if k != across), [ticks[k] for k in range(3) if k != across])
    if decibels is not None:
        style, extend = {"cmap": "inferno", "vmin": -decibels, "vmax": 0.0}, "min"
        label = f"{name.replace('_', ' ')} (dB of the maximum)"
    else:
        style, extend, top = _colors(scalars)
        scale, label = _in_units(title, item, top)
        scalars, style = scalars * scale, _scaled(style, scale)
    halves = [0.5 * (values[1] - values[0]) if len(values) > 1 else 0.5 for values in ticks]
    low, high = ([end(values) for values in ticks] for end in (np.min, np.max))
    limits = np.array([np.subtract(low, halves), np.add(high, halves)])
    return PlaneField(label, axes, tuple(ticks), scalars, limits, style, extend, None, normal, speed)


def _fullest(values: Floats, across: int) -> int:
    """Return the row along an axis with most finite values, the one in the middle of several."""
    counts = np.isfinite(np.moveaxis(values, across, 0)).reshape(values.shape[across], -1).sum(axis=1)
    rows = np.flatnonzero(counts == counts.max())
    return int(rows[len(rows) // 2])


def _nodes(result: ResultArrays, name: str) -> PlaneField:
    """Return values at the nodes of elements, in two dimensions all of them, in three those of the top.

    The absorbing layer beyond the box of the case is not drawn.
    """
    item, positions = result.arrays[name], node_positions(result)
    scalars, title = _magnitude(name, item, node_values(item), item.values.ndim == 3)
    dim = positions.shape[2]
    n = nodes_along(positions.shape[1], dim)
    normal = None
    if dim == 3:
        top = float(positions[..., 2].max())
        at_top = np.isclose(positions[:, -1, 2], top, rtol=0.0, atol=1e-9 * np.ptp(positions[..., 2]))
        positions, scalars, normal = positions[at_top, -n * n :, :2], scalars[at_top, -n * n :], (2, top)
    inner = inner_box(result)
    limits = np.array([positions.min(axis=(0, 1)), positions.max(axis=(0, 1))]) if inner is None else inner[:, :2]
    lower, upper = positions.min(axis=1), positions.max(axis=1)
    inside = ((upper > limits[0]) & (lower < limits[1])).all(axis=1)
    positions, scalars = positions[inside], scalars[inside]
    usual = _far_from_sources(result, positions)
    style, extend, largest = _colors(scalars[usual] if usual.any() else scalars, NODES)
    if "vmax" not in style and usual.any() and not usual.all():
        style = {**style, "vmin": float(scalars[usual].min()), "vmax": float(scalars[usual].max())}
    if float(np.abs(scalars).max(initial=0.0)) > largest and extend == "neither":
        extend = "both" if style.get("vmin", 0.0) < 0 else "max"
    scale, label = _in_units(title, item, largest)
    first = np.arange(n * n).reshape(n, n)[:-1, :-1].reshape(-1)
    triangles = np.concatenate([first[:, None] + [0, 1, n + 1], first[:, None] + [0, n + 1, n]])
    all_triangles = (triangles + n * n * np.arange(len(positions))[:, None, None]).reshape(-1, 3)
    x, y = positions.reshape(-1, 2).T
    values, colors = scalars.reshape(-1) * scale, _scaled(style, scale)
    return PlaneField(label, tuple(AXES[:2]), (x, y), values, limits, colors, extend, all_triangles, normal)


def _far_from_sources(result: ResultArrays, positions: Floats) -> npt.NDArray[np.bool_]:
    """Return the elements (n,) with nodes `positions` (n, nodes, 2) that no point source disturbs."""
    names = [f"source_{axis}" for axis in AXES[:2]]
    if not all(name in result.coordinates for name in names) or not len(result.coordinates[names[0]].values):
        return np.ones(len(positions), bool)
    from scipy.spatial import cKDTree

    sources = np.stack([result.coordinates[name].values for name in names], axis=1)
    lower, upper = positions.min(axis=1), positions.max(axis=1)
    distance = cKDTree(sources).query(0.5 * (lower + upper), p=np.inf)[0]
    return np.asarray(distance > _NEAR_SOURCE * (upper - lower).max(axis=1))


def inner_box(result: ResultArrays) -> Floats | None:
    """Return the ends (2, axes) in m of the part without absorbing layers; None if it is all of the result."""
    names = ("inner_lower", "inner_upper")
    if not all(name in result.coordinates for name in names):
        return None
    return np.array([result.coordinates[name].values for name in names], np.float64)


def draw_profile(panel: Any, field: PlaneField) -> None:
    """Draw a field along a line."""
    size, unit = length_scale(float(np.ptp(field.points[0])))
    panel.plot(field.points[0] / size, field.scalars)
    panel.set_xlabel(f"{field.axes[0]} ({unit})")
    panel.set_ylabel(field.label)


def draw_plane(panel: Any, result: ResultArrays, field: PlaneField) -> None:
    """Draw a field in a plane, with the outlines of cells and media and the border of the absorbing layer."""
    size, unit = length_scale(float((field.limits[1] - field.limits[0]).max()))
    x, y = (points / size for points in field.points)
    if field.triangles is not None:
        mesh = panel.tripcolor(x, y, field.triangles, field.scalars, shading="gouraud", rasterized=True, **field.style)
    else:
        mesh = panel.pcolormesh(x, y, field.scalars.T, shading="nearest", rasterized=True, **field.style)
        if field.normal is not None and "vertex_position" in result.arrays:
            _draw_cells(panel, result, field.normal, size)
        if field.speed is not None:
            _outline_media(panel, x, y, field.speed)
        _mark_layer(panel, result, field, size)
    if field.normal is not None:
        panel.set_title(f"{AXES[field.normal[0]]} = {field.normal[1] / size:.4g} {unit}")
    (left, low), (right, high) = field.limits / size
    panel.set_xlim(left, right)
    panel.set_ylim(low, high)
    panel.set_aspect("equal")
    panel.set_xlabel(f"{field.axes[0]} ({unit})")
    panel.set_ylabel(f"{field.axes[1]} ({unit})")
    panel.figure.colorbar(mesh, ax=panel, label=field.label, shrink=0.9, extend=field.extend)


def _outline_media(panel: Any, x: Floats, y: Floats, speed: Floats) -> None:
    """Draw lines between media whose sound speeds differ by more than 5 %."""
    if np.ptp(speed) > _CONTRAST * speed.min():
        levels = np.linspace(speed.min(), speed.max(), 4)[1:-1]
        panel.contour(x, y, speed.T, levels=levels, colors="0.6", linewidths=0.6)


def _mark_layer(panel: Any, result: ResultArrays, field: PlaneField, size: float) -> None:
    """Draw the border of an absorbing layer inside the grid as a dashed line."""
    box = inner_box(result)
    if box is None:
        return
    shown = [AXES.index(axis) for axis in field.axes]
    (left, low), (right, high) = box[:, shown] / size
    x, y = [left, right, right, left, left], [low, low, high, high, low]
    panel.plot(x, y, "--", color="0.5", linewidth=0.7, label="absorbing layer")


def _draw_cells(panel: Any, result: ResultArrays, normal: tuple[int, float], size: float) -> None:
    """Draw the lines in which the surfaces of the cells, and of their images in periodic vessels, meet a plane."""
    from matplotlib.collections import LineCollection

    vertices, faces = (result.arrays[key].values for key in ("vertex_position", "triangle_vertices"))
    cells = with_images(CellSurfaces(0.0, vertices, faces, periodic_box=_periodic_box(result)))
    lines = cuts(np.asarray(cells.vertices[cells.faces], np.float64), *normal)
    panel.add_collection(LineCollection(list(lines / size), colors="white", linewidths=0.8))


def _periodic_box(result: ResultArrays) -> Floats | None:
    """Return the ends (2, 3) of the periodic axes of the grid, infinite along others; None without periodic axes."""
    if "period" not in result.coordinates:
        return None
    period = np.asarray(result.coordinates["period"].values, np.float64)
    ticks = [np.asarray(result.coordinates[axis].values, np.float64) for axis in AXES]
    middle = np.array([0.5 * (values[0] + values[-1]) for values in ticks])
    return np.where(period > 0, middle + np.array([[-0.5], [0.5]]) * period, [[-np.inf], [np.inf]])


def cuts(corners: Floats, normal_axis: int, position: float) -> Floats:
    """Return the lines (n, 2, 2) in which triangles (f, 3, 3) meet the plane at `position` of the axis `normal_axis`.

    Coordinates are those of the two other axes.
    """
    height = corners[:, :, normal_axis] - position
    above = height > 0
    cut = (above.sum(axis=1) % 3) != 0
    corners, height, above = corners[cut], height[cut], above[cut]
    # The corner alone on its side: the edges from it to the other two cross the plane.
    single = np.where(above.sum(axis=1) == 1, above.argmax(axis=1), (~above).argmax(axis=1))
    rows, points = np.arange(len(corners)), []
    for step in (1, 2):
        next_corner = (single + step) % 3
        share = height[rows, single] / (height[rows, single] - height[rows, next_corner])
        points.append(corners[rows, single] + share[:, None] * (corners[rows, next_corner] - corners[rows, single]))
    return np.delete(np.stack(points, axis=1), normal_axis, axis=2)
