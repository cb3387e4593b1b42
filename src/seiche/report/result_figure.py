# SPDX-License-Identifier: BSD-3-Clause
"""The default picture of a result: a field in a plane, with cells, and the records over time."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.io.cell_files import CellSurfaces
from seiche.report.color_range import color_top
from seiche.report.periodic_images import with_images
from seiche.report.result_arrays import (
    AXES,
    NamedArray,
    ResultArrays,
    axes_of,
    is_at_nodes,
    is_field,
    node_positions,
    node_values,
    nodes_along,
)
from seiche.report.section_figure import Section, SectionStyle, draw_section, section_of
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

#: Fields that are drawn without a choice of the caller, and records; the first that exists.
_FIELDS = ("p_max_all", "image", "velocity", "pressure")
_RECORDS = ("flow_rate", "p", "receiver_vz", "receiver_vy", "receiver_p")
#: Records are drawn as lines up to this number, and as an image above.
_LINES = 8
#: Relative difference in sound speed above which media are separated by lines.
_CONTRAST = 0.05
_LENGTHS = ((1.0, "m"), (1e-3, "mm"), (1e-6, "um"))


class ResultFigure:
    """A picture that notebooks display.

    Attributes:
        figure: the figure of Matplotlib.
    """

    def __init__(self, figure: Figure) -> None:
        """Show a figure."""
        self.figure = figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture in the format of its suffix: PNG, PDF, SVG; CaseError if its folder does not exist."""
        store(self.figure, path)

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", dpi=150, facecolor="white")
        return stream.getvalue()


def result_figure(result: ResultArrays, name: str | None = None, *, decibels: float | None = None) -> ResultFigure:
    """Return a picture of the field `name`, by default of the speed or the pressure, and of the records over time.

    Three axes of a grid are cut in the plane across the shortest of them in which most values lie. At nodes of elements
    in three dimensions the top is drawn. Vectors are drawn by their magnitude; cells by their outlines in the plane.
    Lines separate media of different sound speed. With `decibels`, absolute values of a field on a grid are drawn in dB
    of their maximum, down to minus this number.

    Raises:
        CaseError: an unknown name, one of an array without positions, or a range in decibels that is not positive or
            not of a field on a grid.
    """
    if decibels is not None and not (isinstance(decibels, int | float) and 0.0 < decibels < math.inf):
        raise CaseError(f"plot: decibels = {decibels}: expected a positive number, the range below the maximum")
    known = [key for key, item in result.arrays.items() if is_field(item)]
    if name is None:
        name = next((key for key in (*_FIELDS, *known) if key in known), None)
    elif name in result.arrays and "record_time" in result.arrays[name].dims and result.arrays[name].values.size > 1:
        if decibels is not None:
            raise CaseError(f"plot: decibels are for fields on a grid; {name} is a record")
        return _record_figure(result, name)
    elif name not in known:
        raise CaseError(f"plot: {name!r} is not a field of this result; it has {', '.join(known) or 'none'}")
    record = next((key for key in _RECORDS if key in result.arrays and result.arrays[key].values.size > 1), None)
    if name is None and record is None:
        raise CaseError("plot: the result has no fields and no records")
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 2.8)
        count = (name is not None) + (record is not None)
        panels = list(figure.subplots(1, count, squeeze=False).flat)
        figure.suptitle(f"{result.title}, {result.time:.4g} s")
        if name is not None:
            if not is_at_nodes(result.arrays[name]):
                _draw_grid(panels[0], result, name, decibels)
            elif decibels is None:
                _draw_nodes(panels[0], result, name)
            else:
                raise CaseError(f"plot: decibels are for fields on a grid; {name} is at the nodes of elements")
        if record is not None:
            _draw_record(panels[-1], result, record)
    return ResultFigure(figure)


def _record_figure(result: ResultArrays, name: str) -> ResultFigure:
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 4.2)
        figure.suptitle(f"{result.title}, {result.time:.4g} s")
        _draw_record(figure.add_subplot(), result, name)
    return ResultFigure(figure)


def _magnitude(name: str, item: NamedArray, values: npt.NDArray[Any], components: bool) -> tuple[Floats, str]:
    """Return scalars to draw and their label; the last axis of `values` may have components."""
    label = "speed" if components and name == "velocity" else name.replace("_", " ")
    scalars = np.linalg.norm(values, axis=-1) if components else values
    return np.asarray(scalars, np.float64), f"{label} ({item.unit})" if item.unit not in ("", "1") else label


def _colors(values: Floats) -> dict[str, Any]:
    """Return colour map and limits: diverging around zero for values of both signs; a few large values are clipped."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {"cmap": "viridis"}
    limit, is_clipped = color_top(values)
    if finite.min() < 0 < finite.max():
        return {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    return {"cmap": "viridis", **({"vmax": limit} if is_clipped else {})}


def _length_unit(positions: Sequence[Floats]) -> tuple[float, str]:
    extent = max(float(np.ptp(values)) for values in positions)
    return next((item for item in _LENGTHS if extent >= 2 * item[0]), _LENGTHS[-1])


def to_decibels(values: Floats, down_to: float) -> Floats:
    """Return absolute values in dB of their maximum, 20 log10(|v| / max |v|), at least -`down_to`; NaN stays NaN."""
    amplitudes = np.abs(values)
    largest = float(np.nanmax(amplitudes, initial=0.0))
    lowest = 10.0 ** (-down_to / 20.0)
    relative = amplitudes / largest if largest > 0.0 else np.where(np.isnan(amplitudes), np.nan, lowest)
    return np.asarray(20.0 * np.log10(np.maximum(relative, lowest)))


def _outline_media(panel: Any, x: Floats, y: Floats, speed: Floats) -> None:
    """Draw lines between media whose sound speeds differ by more than 5 %."""
    if np.ptp(speed) > _CONTRAST * speed.min():
        levels = np.linspace(speed.min(), speed.max(), 4)[1:-1]
        panel.contour(x, y, speed.T, levels=levels, colors="0.6", linewidths=0.6)


def _draw_grid(panel: Any, result: ResultArrays, name: str, decibels: float | None = None) -> None:
    item = result.arrays[name]
    axes, values = axes_of(item), item.values
    scalars, label = _magnitude(name, item, values, values.ndim > len(axes))
    medium = result.arrays.get("sound_speed") if name != "sound_speed" else None
    speed = None if medium is None or medium.dims != axes else np.asarray(medium.values, np.float64)
    if decibels is not None:
        scalars, label = to_decibels(scalars, decibels), f"{name.replace('_', ' ')} (dB of the maximum)"
    ticks = {axis: np.asarray(result.coordinates[axis].values, np.float64) for axis in axes}
    scale, unit = _length_unit(list(ticks.values()))
    if len(axes) == 1:
        panel.plot(ticks[axes[0]] / scale, scalars)
        panel.set_xlabel(f"{axes[0]} ({unit})")
        panel.set_ylabel(label)
        return
    if len(axes) == 3:
        normal_axis = min(range(3), key=lambda k: (np.ptp(ticks[axes[k]]), -k))
        row = _fullest(scalars, normal_axis)
        position = float(ticks[axes[normal_axis]][row])
        speed = None if speed is None else np.take(speed, row, normal_axis)
        scalars, axes = (
            np.take(scalars, row, normal_axis),
            tuple(axis for k, axis in enumerate(axes) if k != normal_axis),
        )
        panel.set_title(f"{AXES[normal_axis]} = {position / scale:.4g} {unit}")
        if "vertex_position" in result.arrays:
            _draw_cells(panel, result, normal_axis, position, scale)
    x, y = (ticks[axis] / scale for axis in axes)
    colors = _colors(scalars) if decibels is None else {"cmap": "inferno", "vmin": -decibels, "vmax": 0.0}
    mesh = panel.pcolormesh(x, y, scalars.T, shading="nearest", rasterized=True, **colors)
    if speed is not None:
        _outline_media(panel, x, y, speed)
    panel.set_xlim(x.min(), x.max())
    panel.set_ylim(y.min(), y.max())
    _finish(panel, mesh, axes, unit, label)


def _fullest(values: Floats, normal_axis: int) -> int:
    """Return the row along an axis with most finite values, the one in the middle of several."""
    counts = np.isfinite(np.moveaxis(values, normal_axis, 0)).reshape(values.shape[normal_axis], -1).sum(axis=1)
    rows = np.flatnonzero(counts == counts.max())
    return int(rows[len(rows) // 2])


def _draw_cells(panel: Any, result: ResultArrays, normal_axis: int, position: float, scale: float) -> None:
    """Draw the lines in which the surfaces of the cells, and of their images in periodic vessels, meet a plane."""
    from matplotlib.collections import LineCollection

    vertices, faces = (result.arrays[key].values for key in ("vertex_position", "triangle_vertices"))
    cells = with_images(CellSurfaces(0.0, vertices, faces, periodic_box=_periodic_box(result)))
    lines = cuts(np.asarray(cells.vertices[cells.faces], np.float64), normal_axis, position)
    panel.add_collection(LineCollection(list(lines / scale), colors="white", linewidths=0.8))


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


def _draw_nodes(panel: Any, result: ResultArrays, name: str) -> None:
    """Draw values at the nodes of elements, in two dimensions all of them, in three those of the top."""
    item, positions = result.arrays[name], node_positions(result)
    scalars, label = _magnitude(name, item, node_values(item), item.values.ndim == 3)
    dim = positions.shape[2]
    n = nodes_along(positions.shape[1], dim)
    if dim == 3:
        top = positions[..., 2].max()
        at_top = np.isclose(positions[:, -1, 2], top, rtol=0.0, atol=1e-9 * np.ptp(positions[..., 2]))
        positions, scalars = positions[at_top, -n * n :, :2], scalars[at_top, -n * n :]
        panel.set_title(f"z = {top:.4g} m")
    scale, unit = _length_unit([positions[..., 0], positions[..., 1]])
    first = np.arange(n * n).reshape(n, n)[:-1, :-1].reshape(-1)
    triangles = np.concatenate([first[:, None] + [0, 1, n + 1], first[:, None] + [0, n + 1, n]])
    all_triangles = (triangles + n * n * np.arange(len(positions))[:, None, None]).reshape(-1, 3)
    x, y = (positions.reshape(-1, 2) / scale).T
    mesh = panel.tripcolor(
        x, y, all_triangles, scalars.reshape(-1), shading="gouraud", rasterized=True, **_colors(scalars)
    )
    _finish(panel, mesh, AXES[:2], unit, label)


def _finish(panel: Any, mesh: Any, axes: Sequence[str], unit: str, label: str) -> None:
    panel.set_aspect("equal")
    panel.set_xlabel(f"{axes[0]} ({unit})")
    panel.set_ylabel(f"{axes[1]} ({unit})")
    panel.figure.colorbar(mesh, ax=panel, label=label, shrink=0.8)


def _draw_record(panel: Any, result: ResultArrays, name: str) -> None:
    """Draw the record of several positions over time: lines, or a section or an image of many positions."""
    item, times = result.arrays[name], np.asarray(result.coordinates["record_time"].values, np.float64)
    series_dim = next(dim for dim in item.dims if dim != "record_time")
    values = np.moveaxis(item.values, item.dims.index("record_time"), -1)
    label = f"{name.replace('_', ' ')} ({item.unit})"
    if series_dim == "receiver" and len(values) > _LINES and (section := _section(result, name, times, values)):
        draw_section(panel, section, SectionStyle())
        return
    panel.set_xlabel("time (s)")
    if len(values) > _LINES:
        mesh = panel.pcolormesh(
            times, np.arange(len(values)), values, shading="nearest", rasterized=True, **_colors(values)
        )
        panel.set_ylabel(series_dim)
        panel.figure.colorbar(mesh, ax=panel, label=label, shrink=0.8)
        return
    names = result.coordinates[series_dim].values if series_dim in result.coordinates else np.arange(len(values))
    for number, (line, word) in enumerate(zip(values, names, strict=True)):
        panel.plot(times, line, color=COLORS[number % len(COLORS)], label=str(word))
    panel.set_ylabel(label)
    panel.legend(title=series_dim)


def _section(result: ResultArrays, name: str, times: Floats, values: npt.NDArray[Any]) -> Section | None:
    """Return the record section of receivers (n, times); None if they are not on a line."""
    axes = [f"receiver_{axis}" for axis in AXES if f"receiver_{axis}" in result.coordinates]
    if not axes:
        return None
    positions = np.stack([result.coordinates[axis].values for axis in axes], axis=1)
    return section_of(positions, times, values, (name.replace("_", " "), result.arrays[name].unit))
