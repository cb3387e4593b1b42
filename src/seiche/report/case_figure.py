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

from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
#: Maximum number of points drawn for a group, evenly chosen.
_MAX_POINTS = 3000
#: Maximum number of groups with names in the legend.
_MAX_NAMES = 12
_UNITS = (("km", 1e3), ("m", 1.0), ("mm", 1e-3), ("um", 1e-6))


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
    """Points (n, dim) in metres that are drawn on every panel, with a name; closed lines are drawn as such."""

    name: str
    points: Floats
    style: str = "o"
    is_line: bool = False


@dataclass(frozen=True, eq=False)
class CasePicture:
    """The contents of a picture; `label` is that of the values of all panels, `outlines` are boxes (2, dim)."""

    title: str
    label: str
    panels: Sequence[PicturePanel]
    groups: Sequence[Group] = ()
    outlines: Sequence[tuple[str, Floats]] = ()


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
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    extent = max(max(abs(p.extent[1] - p.extent[0]), abs(p.extent[3] - p.extent[2])) for p in picture.panels)
    unit, length = next((u for u in _UNITS if extent >= 2.0 * u[1]), _UNITS[-1])
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN * (1.4 if len(picture.panels) > 1 else 0.9), 3.6)
        figure.suptitle(picture.title)
        axes = figure.subplots(1, len(picture.panels), squeeze=False)[0]
        for index, (axis, panel) in enumerate(zip(axes, picture.panels, strict=True)):
            if panel.across == panel.along:
                _draw_line(axis, panel, length)
                axis.set(xlabel=f"x ({unit})", ylabel=picture.label)
            else:
                image = axis.imshow(
                    panel.values,
                    origin="lower",
                    extent=[value / length for value in panel.extent],
                    cmap="viridis",
                    vmin=low,
                    vmax=high if high > low else low + 1.0,
                    interpolation="nearest",
                )
                axis.set(xlabel=f"{'xyz'[panel.across]} ({unit})", ylabel=f"{'xyz'[panel.along]} ({unit})")
                axis.set_title(panel.title)
                if index == len(axes) - 1:
                    figure.colorbar(image, ax=list(axes), label=picture.label, shrink=0.7)
            _draw_groups(axis, panel, picture, length)
        handles, names = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6))
        store(figure, path)


def _draw_line(axis: Axes, panel: PicturePanel, length: float) -> None:
    positions = np.linspace(panel.extent[0], panel.extent[1], panel.values.size) / length
    axis.plot(positions, panel.values.ravel(), color=COLORS[0])


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
        elif group.is_line:
            axis.plot(x, y, color=color, linewidth=1.2, label=label)
        else:
            axis.plot(x, y, group.style, color=color, markersize=3.0, linestyle="none", label=label, clip_on=False)
    for name, box in picture.outlines:
        if panel.across == panel.along:
            continue
        points = np.array([(corner[panel.across], other[panel.along]) for corner, other in _corners_of(box)])
        axis.plot(points[:, 0] / length, points[:, 1] / length, "--", color="0.35", linewidth=0.8, label=name)


def _corners_of(box: Floats) -> list[tuple[Any, Any]]:
    """Return the corners of a box (2, dim) in the order of a closed line: the ends along the first and second axis."""
    low, high = box
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]
