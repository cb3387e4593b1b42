# SPDX-License-Identifier: BSD-3-Clause
"""A panel with the flow in a plane of a vessel: speed, direction, outline with straight openings, axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.style import color_bar, scale_bar
from seiche.report.surface import Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.floating[Any]]

#: Sites around the slice, and standard deviation (spacings) of the smoothing of its outline.
_MARGIN, _SMOOTHING = 5, 1.4
#: Points of the outline along the longer side, and per spacing at most.
_POINTS, _MOST_FINE = 1500, 16
#: Slope of the smoothed outline per spacing, for the openings.
_SLOPE = 0.28
#: Number of arrows along the longer side.
_ARROWS = 14
#: Ratio of the speeds in the plane and in space up to which the flow is across the plane, and no arrows are drawn.
_ACROSS = 0.05
#: Length of the arrows of the axes, as a fraction of the longer side.
_AXIS_ARROW = 0.06


@dataclass(frozen=True)
class SliceEnd:
    """An opening in a slice: a point and the unit normal into the fluid along its columns and rows, metres."""

    center: tuple[float, float]
    normal: tuple[float, float]
    radius: float = np.inf


@dataclass(frozen=True, eq=False)
class PlaneSlice:
    """Values on a regular slice: `values` (rows, columns) with NaN outside the fluid, `spacing` in metres.

    Columns and rows follow the lattice axes `column_axis` (right) and `row_axis` (up). `label` has quantity and unit.
    `vectors` (rows, columns, 2) are drawn as arrows. The first site is at `origin` (metres). The outline is straight at
    the `ends`.
    """

    values: Floats
    spacing: float
    label: str = "velocity magnitude (m/s)"
    column_axis: int = 0
    row_axis: int = 2
    vectors: Floats | None = None
    origin: tuple[float, float] = (0.0, 0.0)
    ends: Sequence[SliceEnd] = ()

    def view(self) -> tuple[Direction, Direction]:
        """Return the directions to the viewer and upwards for a surface next to this slice, slightly rotated."""
        right, up = np.eye(3)[self.column_axis], np.eye(3)[self.row_axis]
        x, y, z = np.cross(right, up) + 0.4 * right + 0.2 * up
        return (float(x), float(y), float(z)), (float(up[0]), float(up[1]), float(up[2]))

    def front(self) -> tuple[Direction, Direction]:
        """Return the directions to the viewer and upwards for a surface that is seen exactly like this slice."""
        right, up = np.eye(3)[self.column_axis], np.eye(3)[self.row_axis]
        x, y, z = np.cross(right, up)
        return (float(x), float(y), float(z)), (float(up[0]), float(up[1]), float(up[2]))

    def transposed(self) -> PlaneSlice:
        """Return the slice with its rows to the right."""
        return replace(
            self,
            values=self.values.T,
            column_axis=self.row_axis,
            row_axis=self.column_axis,
            vectors=None if self.vectors is None else self.vectors.transpose(1, 0, 2)[..., ::-1],
            origin=self.origin[::-1],
            ends=[replace(end, center=end.center[::-1], normal=end.normal[::-1]) for end in self.ends],
        )

    @property
    def limits(self) -> Floats:
        """Return the ends (2, 2) of the fluid along columns and rows, metres."""
        counts = np.array(self.values.shape[::-1])
        return np.asarray(self.origin) + self.spacing * np.stack([[-0.5, -0.5], counts - 0.5])


def draw_plane(axes: Axes, plane: PlaneSlice, limits: Floats) -> None:
    """Draw the slice, with `limits` (2, 2) of the panel in metres."""
    from matplotlib.path import Path
    from scipy.ndimage import distance_transform_edt

    values = np.pad(np.asarray(plane.values, np.float64), _MARGIN, constant_values=np.nan)
    fluid = np.isfinite(values)
    # Extrapolate from the nearest fluid sites, for a smooth interpolation at the border.
    nearest = distance_transform_edt(~fluid, return_distances=False, return_indices=True)
    step, first = plane.spacing * 1e3, 1e3 * (np.asarray(plane.origin) - _MARGIN * plane.spacing)
    rows, columns = values.shape
    left, low = (float(start) - 0.5 * step for start in first)
    extent = (left, left + columns * step, low, low + rows * step)
    image = axes.imshow(
        values[tuple(nearest)],
        origin="lower",
        extent=extent,
        interpolation="bicubic",
        cmap="viridis",
        vmin=0.0 if np.nanmin(values) >= 0 else None,
        vmax=float(np.nanmax(values)) or 1.0,
    )
    outline = axes.contour(*_inside(plane, fluid, first, step), levels=[0.0], colors="0.15", linewidths=0.7)
    image.set_clip_path(Path.make_compound_path(*outline.get_paths()), transform=axes.transData)
    if plane.vectors is not None:
        _draw_arrows(axes, plane)
    axes.set_axis_off()
    set_limits(axes, limits)
    color_bar(axes, image, plane.label)
    mark_axes(axes, (plane.column_axis, plane.row_axis), limits)


def _inside(plane: PlaneSlice, fluid: npt.NDArray[np.bool_], first: Floats, step: float) -> tuple[Any, Any, Any]:
    """Return coordinates (mm) and a function that is positive in the fluid: its smoothed indicator less one half.

    The outline is half a spacing outside the outermost sites, the wall of half-way bounce-back. At an opening the fluid
    is reflected before the smoothing, and cut at the plane after it.
    """
    from scipy.ndimage import gaussian_filter, zoom

    rows, columns = fluid.shape
    x, y = np.meshgrid(first[0] + step * np.arange(columns), first[1] + step * np.arange(rows))
    extended = fluid.copy()
    for end in plane.ends:
        height, aside = _beside(end, x, y)
        near = (height < 0) & (height > -_MARGIN * step) & (aside <= 1e3 * end.radius + 2 * step)
        mirrored = [
            np.rint((position - 2 * height * normal - start) / step).astype(int)
            for position, normal, start in zip((x, y), end.normal, first, strict=True)
        ]
        column, row = np.clip(mirrored[0], 0, columns - 1), np.clip(mirrored[1], 0, rows - 1)
        extended |= near & fluid[row, column]
    smooth = gaussian_filter(extended.astype(float), _SMOOTHING) - 0.5
    per_step = min(max(_POINTS // max(rows, columns), 2), _MOST_FINE)
    counts = [per_step * (count - 1) + 1 for count in smooth.shape]
    fine = zoom(smooth, [count / old for count, old in zip(counts, smooth.shape, strict=True)], order=1)
    x, y = (start + step * np.arange(count) / per_step for start, count in zip(first, counts[::-1], strict=True))
    for end in plane.ends:
        reach = float(np.hypot(2 * _MARGIN * step, 1e3 * end.radius + 3 * step)) + step
        middle = 1e3 * np.asarray(end.center)
        columns_near, rows_near = (
            slice(*np.searchsorted(axis, (position - reach, position + reach)))
            for axis, position in zip((x, y), middle, strict=True)
        )
        part = fine[rows_near, columns_near]
        height, aside = _beside(end, *np.meshgrid(x[columns_near], y[rows_near]))
        near = (np.abs(height) < 2 * _MARGIN * step) & (aside <= 1e3 * end.radius + 3 * step)
        np.minimum(part, _SLOPE * height / step, out=part, where=near)
    return x, y, fine


def _beside(end: SliceEnd, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the heights (mm) of points above an opening, and their distances from its axis."""
    across, along = x - 1e3 * end.center[0], y - 1e3 * end.center[1]
    height = across * end.normal[0] + along * end.normal[1]
    return height, np.hypot(across - height * end.normal[0], along - height * end.normal[1])


def _draw_arrows(axes: Axes, plane: PlaneSlice) -> None:
    """Draw arrows of the direction of the flow, of lengths proportional to the speed in the plane."""
    assert plane.vectors is not None
    rows, columns = plane.values.shape
    interval = max(1, -(-max(rows, columns) // _ARROWS))
    row, column = (np.arange((count - 1) % interval // 2, count, interval) for count in (rows, columns))
    vectors = np.nan_to_num(plane.vectors[np.ix_(row, column)])
    largest = float(np.nanmax(plane.values))
    if float(np.linalg.norm(vectors, axis=-1).max()) <= _ACROSS * largest:
        return
    x, y = (1e3 * (start + plane.spacing * number) for start, number in zip(plane.origin, (column, row), strict=True))
    across, along = np.moveaxis(vectors / largest * 0.9 * interval * plane.spacing * 1e3, -1, 0)
    style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "pivot": "mid", "width": 0.003}
    axes.quiver(x, y, across, along, color="white", alpha=0.8, **style)


def set_limits(axes: Axes, limits: Floats) -> None:
    """Set the limits of a panel from `limits` (2, 2) in metres, with room for a bar and axes below, and draw a bar."""
    (left, low), (right, high) = 1e3 * limits
    side = max(right - left, high - low)
    axes.set_xlim(left - 0.03 * side, right + 0.03 * side)
    axes.set_ylim(low - 0.14 * side, high + 0.03 * side)
    axes.set_aspect("equal")
    scale_bar(axes, side)


def mark_axes(axes: Axes, names: tuple[int, int], limits: Floats) -> None:
    """Draw arrows of the axes to the right and upwards, by their numbers, in the lower right corner."""
    (left, low), (right, high) = 1e3 * limits
    side = max(right - left, high - low)
    length = _AXIS_ARROW * side
    start = np.array([right - 1.2 * length, low - 0.11 * side])
    for direction, number in zip(np.eye(2), names, strict=True):
        tip = start + length * direction
        arrow = {"arrowstyle": "-|>,head_width=0.12,head_length=0.25", "color": "0.1", "lw": 0.8, "shrinkA": 0}
        axes.annotate("", tuple(tip), tuple(start), arrowprops={**arrow, "shrinkB": 0})
        axes.annotate("xyz"[number], tuple(start + 1.35 * length * direction), ha="center", va="center", fontsize=7)
