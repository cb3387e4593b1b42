# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a case before it runs: geometry or medium in planes, openings, sources and sensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.display_units import display_unit, length_scale
from seiche.report.periodic_images import image_shifts
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
#: Maximum number of points drawn for a group, evenly chosen.
_MAX_POINTS = 3000
#: Maximum number of groups with names in the legend.
_MAX_NAMES = 12
#: Maximum number of bodies with outlines; of more, the points are drawn.
_MAX_BODIES = 400
#: Relative difference up to which values are uniform, and the grey of uniform values, as a multiple of them.
_UNIFORM, _PALE = 1e-9, 6.0
#: Smallest side of a panel as a fraction of the largest; maximum height of a panel; room for labels and a bar, inches.
_SMALLEST, _HIGHEST, _LABELS, _BAR = 0.2, 3.4, 0.75, 0.9


@dataclass(frozen=True, eq=False)
class PicturePanel:
    """Values in a plane or projected on it: `values` (rows, columns), NaN where nothing is drawn.

    Columns follow the axis number `across`, rows `along`; `extent` is (left, right, bottom, top) in metres.
    """

    values: Floats
    across: int
    along: int
    extent: tuple[float, float, float, float]
    title: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """Points (n, dim) in metres that are drawn on every panel, with a name; closed lines are drawn as such.

    Of bodies (n, vertices, dim) around the points, the outlines are drawn.
    """

    name: str
    points: Floats
    style: str = "o"
    is_line: bool = False
    bodies: Floats | None = None


@dataclass(frozen=True, eq=False)
class CasePicture:
    """The contents of a picture; `label` and SI `unit` are those of the values of all panels.

    `outlines` are boxes (2, dim). Bodies of groups have images in the `periodic_box` (2, dim), which is infinite along
    axes that are not periodic.
    """

    title: str
    label: str
    unit: str
    panels: Sequence[PicturePanel]
    groups: Sequence[Group] = ()
    outlines: Sequence[tuple[str, Floats]] = ()
    periodic_box: Floats | None = None


def disc(center: Sequence[float], normal: Sequence[float], radius: float) -> Floats:
    """Return points (n, 3) of the rim of a disc and of an arrow along its normal, as one closed line."""
    axis = np.array(normal) / np.linalg.norm(normal)
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first /= np.linalg.norm(first)
    angle = np.linspace(0.0, 2.0 * np.pi, 49)[:, None]
    rim = np.array(center) + radius * (np.cos(angle) * first + np.sin(angle) * np.cross(axis, first))
    tip = np.array(center) + radius * axis
    return np.concatenate([rim, np.array(center)[None], tip[None], np.array(center)[None]])


def planes_of(dim: int) -> list[tuple[int, int]]:
    """Return the axes (across, along) of the panels of a case with `dim` axes."""
    return list(combinations(range(dim), 2)) if dim > 1 else [(0, 0)]


def case_figure(path: str | os.PathLike[str], picture: CasePicture) -> None:
    """Draw `picture` to `path`; CaseError if the file cannot be written."""
    finite = np.concatenate([panel.values[np.isfinite(panel.values)].ravel() for panel in picture.panels])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    sizes = np.abs([(p.extent[1] - p.extent[0], p.extent[3] - p.extent[2]) for p in picture.panels])
    size, unit = length_scale(float(sizes.max()))
    # Lengths are drawn in the unit of the axes.
    factor, value_unit = (1.0 / size, unit) if picture.unit == "m" else display_unit(high, picture.unit)
    is_uniform = picture.unit != "m" and high - low <= _UNIFORM * abs(high)
    label = f"{picture.label} ({value_unit})"
    with paper_style():
        figure, axes = _panels(picture, sizes, has_bar=not is_uniform)
        title = picture.title
        if is_uniform and len(finite):
            title += f"\nuniform {picture.label}: {factor * high:.4g} {value_unit}"
        figure.suptitle(title)
        style: dict[str, Any] = {"cmap": "viridis", "vmin": factor * low, "vmax": factor * high}
        if is_uniform:
            style = {"cmap": "Greys", "vmin": 0.0, "vmax": _PALE * factor * high or 1.0}
        image = None
        for axis, panel in zip(axes, picture.panels, strict=True):
            if panel.across == panel.along:
                _draw_line(axis, panel, size, factor)
                axis.set(xlabel=f"x ({unit})", ylabel=label)
            else:
                left, right, bottom, top = (value / size for value in panel.extent)
                extent = (left, right, bottom, top)
                values = factor * panel.values
                image = axis.imshow(values, origin="lower", extent=extent, interpolation="nearest", **style)
                axis.set(xlabel=f"{'xyz'[panel.across]} ({unit})", ylabel=f"{'xyz'[panel.along]} ({unit})")
                axis.set_title(panel.title)
            _draw_groups(axis, panel, picture, size)
            if any(group.bodies is not None for group in picture.groups):  # images end at the sides of the box
                axis.set_xlim(panel.extent[0] / size, panel.extent[1] / size)
                axis.set_ylim(panel.extent[2] / size, panel.extent[3] / size)
        if image is not None and not is_uniform:
            figure.colorbar(image, ax=list(axes), label=label, shrink=0.9)
        handles, names = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6))
        store(figure, path)


def _panels(picture: CasePicture, sizes: Floats, has_bar: bool) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with panels of `sizes` (n, 2), at one scale unless one of them would be very small."""
    widths, heights = np.maximum(sizes, _SMALLEST * sizes.max()).T
    if any(panel.across == panel.along for panel in picture.panels):
        figure = new_figure(0.9 * DOUBLE_COLUMN, 3.6)
        return figure, [figure.add_subplot()]
    room = _LABELS * len(picture.panels) + (_BAR if has_bar else 0.0)
    page = DOUBLE_COLUMN * (1.4 if len(picture.panels) > 1 else 0.9)
    scale = min((page - room) / widths.sum(), _HIGHEST / heights.max())
    rows = 0.9 + 0.2 * picture.title.count("\n") + 0.15 * (not has_bar)
    figure = new_figure(scale * widths.sum() + room, max(scale * heights.max(), 1.0) + rows)
    return figure, figure.subplots(1, len(picture.panels), squeeze=False, width_ratios=widths)[0]


def _draw_line(axis: Axes, panel: PicturePanel, length: float, factor: float) -> None:
    positions = np.linspace(panel.extent[0], panel.extent[1], panel.values.size) / length
    axis.plot(positions, factor * panel.values.ravel(), color=COLORS[0])


def _draw_groups(axis: Axes, panel: PicturePanel, picture: CasePicture, length: float) -> None:
    """Draw the groups and the outlines on a panel; only the first few have names."""
    for number, group in enumerate(picture.groups):
        color = COLORS[(number + 1) % len(COLORS)]
        step = 1 if group.is_line else max(1, -(-len(group.points) // _MAX_POINTS))
        x = group.points[::step, panel.across] / length
        y = group.points[::step, panel.along] / length if panel.across != panel.along else np.full(len(x), np.nan)
        label = group.name if number < _MAX_NAMES else None
        if panel.across == panel.along:
            for position in x[:_MAX_NAMES]:
                axis.axvline(position, color=color, linewidth=0.8, label=label)
                label = None
        elif group.bodies is not None and len(group.bodies) <= _MAX_BODIES:
            _draw_bodies(axis, group.bodies, (panel, picture, length), color=color, label=label)
        elif group.is_line:
            axis.plot(x, y, color=color, linewidth=1.2, label=label)
        else:
            axis.plot(x, y, group.style, color=color, markersize=3.0, linestyle="none", label=label, clip_on=False)
    for name, box in picture.outlines:
        if panel.across == panel.along:
            continue
        points = np.array([(corner[panel.across], other[panel.along]) for corner, other in _corners_of(box)])
        axis.plot(points[:, 0] / length, points[:, 1] / length, "--", color="0.35", linewidth=0.8, label=name)


def _draw_bodies(
    axis: Axes, bodies: Floats, drawing: tuple[PicturePanel, CasePicture, float], *, color: str, label: str | None
) -> None:
    """Draw the outlines of bodies (n, vertices, dim), and of their periodic images, seen along the third axis."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb
    from scipy.spatial import ConvexHull

    panel, picture, length = drawing
    if picture.periodic_box is not None:
        rows, shifts = image_shifts(bodies.min(axis=1), bodies.max(axis=1), picture.periodic_box)
        bodies = bodies[rows] + shifts[:, None]
    projected = bodies[:, :, [panel.across, panel.along]] / length
    outlines = [points[ConvexHull(points).vertices] for points in projected]
    axis.add_collection(PolyCollection(outlines, facecolors=[(*to_rgb(color), 0.3)], edgecolors=color, linewidths=0.8))
    axis.plot([], [], "o", color=color, label=label)


def _corners_of(box: Floats) -> list[tuple[Any, Any]]:
    """Return the corners of a box (2, dim) in the order of a closed line: the ends along the first and second axis."""
    low, high = box
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]
