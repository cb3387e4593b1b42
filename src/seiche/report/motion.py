# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and films of snapshots: the motion of waves, or the pressure of ultrasound, in a plane or along a line."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.arrays import checked_dataset, hdf5_file, values_of
from seiche.report.color_range import color_top
from seiche.report.display_units import display, display_unit, length_scale
from seiche.report.film import film_frame, write_film
from seiche.report.style import COLORS, DOUBLE_COLUMN, color_bar, new_figure, paper_style, store

if TYPE_CHECKING:
    import h5py
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
#: Width of a film in pixels, and duration of a frame (ms).
_FILM_WIDTH, _FRAME_TIME = 720, 80
#: Number of states in a picture.
_STATES = 4
#: Limits for valid snapshots: aspect ratio and absolute value.
_MAX_ASPECT, _MAX_VALUE = 1e6, 1e30


@dataclass(frozen=True, eq=False)
class Motion:
    """A time series in a plane or along a line.

    Attributes:
        title: title of the case, with the position of the plane in a volume.
        times: times, s.
        values: values in SI units, (times, rows, columns) or (times, columns).
        name, unit: the field and its SI unit.
        axes: axes of the columns and the rows.
        lower, upper: positions of the first and last points along these axes, m.
    """

    title: str
    times: Floats
    values: npt.NDArray[np.float32]
    name: str
    unit: str
    axes: tuple[str, ...]
    lower: Floats
    upper: Floats

    @cached_property
    def top(self) -> float:
        """Return the absolute value at the end of the colour scale, the same for all times."""
        return color_top(self.values)[0]


def read_motion(path: Path) -> Motion:
    """Return the pressure of a fluid, or the velocity along the last axis of a solid, from a file of snapshots.

    Of a volume, this is the middle plane across the axis with the fewest points.

    Raises:
        FormatError: not a valid file of snapshots.
    """
    with hdf5_file(path, "no snapshots of waves") as file:
        acoustic = file.attrs["medium"] == "acoustic"
        axes = tuple(str(name) for name in file.attrs["axes"])
        lower, upper = (np.asarray(file.attrs[name], np.float64) for name in ("lower", "upper"))
        times = np.asarray(values_of(file, "time"), np.float64)
        title = str(file.attrs["title"])
        if not (lower.shape == upper.shape == (len(axes),) and _is_box(upper - lower)):
            raise FormatError(path, "attributes lower, upper", "not the corners of a rectangle")
        if acoustic:
            name, unit = "pressure", "Pa"
            values, normal = _plane_of(path, file, len(axes))
        else:
            values, normal = values_of(file, "velocity")[..., -1], None
            name, unit = f"velocity {'xyz'[file['velocity'].shape[-1] - 1]}", "m/s"
        if normal is not None:
            rows = file["pressure"].shape[-1 - normal]
            position = lower[normal] + (upper - lower)[normal] * (rows // 2) / (rows - 1)
            title += f", {axes[normal]} = {display(float(position), 'm')}"
            axes = tuple(axis for number, axis in enumerate(axes) if number != normal)
            lower, upper = np.delete(lower, normal), np.delete(upper, normal)
    wrong_shape = values.ndim != 1 + len(axes) or times.shape != values.shape[:1]
    if wrong_shape or values.dtype.kind != "f" or not values.size:
        raise FormatError(path, "whole file", f"values of shape {values.shape} do not match {times.size} times")
    if not (np.abs(values) < _MAX_VALUE).all():
        raise FormatError(path, "values", f"some are not finite or not below {_MAX_VALUE:g}")
    return Motion(title, times, values, name, unit, axes, lower, upper)


def _plane_of(path: Path, file: h5py.File, dim: int) -> tuple[npt.NDArray[Any], int | None]:
    """Return the pressure (times, ...) and, if it is that in a plane of a volume, the number of the axis across it."""
    dataset = checked_dataset(file, "pressure")
    if dim != 3:
        return np.asarray(dataset[()]), None
    if dataset.ndim != 4 or min(dataset.shape) < 2 - (dataset.shape[0] == 1):
        raise FormatError(path, "pressure", f"of shape {dataset.shape} is no series of volumes")
    sizes = dataset.shape[:0:-1]  # along x, y, z
    normal = min(range(3), key=lambda axis: (sizes[axis], -axis))
    index: list[Any] = [slice(None)] * 4
    index[3 - normal] = sizes[normal] // 2
    return np.asarray(dataset[tuple(index)]), normal


def _is_box(sides: Floats) -> bool:
    """Return whether all lengths are positive and their ratios are within the valid aspect ratio."""
    return bool(sides.size) and bool(0 < sides.min() <= sides.max() < _MAX_ASPECT * sides.min())


def is_motion(path: Path) -> bool:
    """Return whether a file contains snapshots of waves or ultrasound."""
    try:
        with hdf5_file(path, "no snapshots of waves") as file:
            return "medium" in file.attrs and "time" in file and ("velocity" in file or "pressure" in file)
    except (OSError, FormatError):
        return False


def render_motion(target: Path, source: Path, *, as_film: bool, frame_interval: int) -> None:
    """Draw the last state of a file of snapshots, or (`as_film`) a film of every `frame_interval`-th state.

    Raises:
        FormatError: the file is invalid.
        OSError: the picture cannot be written.
    """
    motion = read_motion(source)
    if as_film:
        motion_film(target, motion, frame_interval)
    else:
        states_figure(target, motion)


def _draw_motion(motion: Motion, number: int, width: float) -> Figure:
    size, unit = length_scale(float(np.max(motion.upper - motion.lower)))
    factor = 1.0 / size
    scale, name = display_unit(motion.top, motion.unit)
    label, values = f"{motion.name} ({name})", motion.values[number] * scale
    sides, top = (motion.upper - motion.lower) * factor, motion.top * scale
    is_line = len(sides) == 1
    ratio = 0.4 if is_line else 0.9 * sides[1] / sides[0]
    figure = new_figure(width, min(max(width * ratio, 1.6), 1.2 * width))
    axes = figure.add_subplot()
    axes.set_xlabel(f"{motion.axes[0]} ({unit})")
    axes.set_title(display(motion.times[number], "s"), loc="right", fontsize=7)
    axes.set_title(_title_of(motion), loc="left", fontsize=8)
    if is_line:
        positions = np.linspace(motion.lower[0], motion.upper[0], len(values)) * factor
        axes.plot(positions, values, color=COLORS[0])
        highest = 1.05 * (float(np.abs(motion.values).max()) * scale or 1.0)
        axes.set_ylim(-highest, highest)
        axes.set_ylabel(label)
        return figure
    (left, low), (right, high) = motion.lower * factor, motion.upper * factor
    style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -top, "vmax": top, "interpolation": "bilinear"}
    image = axes.imshow(values, origin="lower", extent=(left, right, low, high), **style)
    axes.set_ylabel(f"{motion.axes[1]} ({unit})")
    color_bar(axes, image, label, "both")
    return figure


def states_figure(path: Path, motion: Motion) -> None:
    """Draw up to four states at equal intervals, the last one of all; raise OSError if the file cannot be written."""
    count = len(motion.times)
    numbers = np.unique(np.linspace(0, count - 1, _STATES + 1)[1:].round().astype(int)).tolist()
    with paper_style():
        if len(numbers) == 1:
            store(_draw_motion(motion, numbers[0], DOUBLE_COLUMN), path)
        elif len(motion.axes) == 1:
            store(_draw_lines(motion, numbers), path)
        else:
            store(_draw_planes(motion, numbers), path)


def _draw_lines(motion: Motion, numbers: list[int]) -> Figure:
    """Draw states along a line."""
    size, unit = length_scale(float(motion.upper[0] - motion.lower[0]))
    scale, name = display_unit(motion.top, motion.unit)
    figure = new_figure(DOUBLE_COLUMN, 0.4 * DOUBLE_COLUMN)
    axes = figure.add_subplot()
    positions = np.linspace(motion.lower[0], motion.upper[0], motion.values.shape[1]) / size
    for row, number in enumerate(numbers):
        label = display(motion.times[number], "s")
        axes.plot(positions, scale * motion.values[number], color=COLORS[row % len(COLORS)], label=label)
    axes.set(xlabel=f"{motion.axes[0]} ({unit})", ylabel=f"{motion.name} ({name})")
    axes.set_title(_title_of(motion), loc="left", fontsize=8)
    axes.legend()
    return figure


def _draw_planes(motion: Motion, numbers: list[int]) -> Figure:
    """Draw states in a plane, in two columns with one colour bar."""
    sides = motion.upper - motion.lower
    size, unit = length_scale(float(sides.max()))
    scale, name = display_unit(motion.top, motion.unit)
    time_scale, time_unit = display_unit(float(motion.times[-1]), "s")
    columns, rows = 2, -(-len(numbers) // 2)
    width = 0.4 * DOUBLE_COLUMN
    height = min(rows * (width * float(sides[1] / sides[0]) + 0.3) + 0.7, 1.4 * DOUBLE_COLUMN)
    figure = new_figure(DOUBLE_COLUMN, max(height, 1.6))
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    (left, low), (right, high) = motion.lower / size, motion.upper / size
    top = scale * motion.top
    style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -top, "vmax": top, "interpolation": "bilinear"}
    for axes, number in zip(panels.flat, numbers, strict=False):
        image = axes.imshow(scale * motion.values[number], origin="lower", extent=(left, right, low, high), **style)
        axes.set_title(f"{motion.times[number] * time_scale:.4g} {time_unit}", loc="right", fontsize=7)
    for axes in panels.flat[len(numbers) :]:
        axes.set_axis_off()
    for axes in panels[-1]:
        axes.set_xlabel(f"{motion.axes[0]} ({unit})")
    for axes in panels[:, 0]:
        axes.set_ylabel(f"{motion.axes[1]} ({unit})")
    panels[0, 0].set_title(_title_of(motion), loc="left", fontsize=8)
    figure.colorbar(image, ax=list(panels.flat), label=f"{motion.name} ({name})", extend="both", shrink=0.8)
    return figure


def _title_of(motion: Motion) -> str:
    return motion.title[:60].replace("$", r"\$")


def snapshot_png(motion: Motion, number: int, dpi: int = 110) -> bytes:
    """Return the picture of one state as PNG, for a page."""
    stream = io.BytesIO()
    with paper_style():
        _draw_motion(motion, number, DOUBLE_COLUMN).savefig(stream, format="png", dpi=dpi, facecolor="white")
    return stream.getvalue()


def motion_film(path: Path, motion: Motion, frame_interval: int = 1) -> None:
    """Draw every `frame_interval`-th state as an animated GIF or an MP4; raise as `write_film` does."""
    selected = range(0, len(motion.times), frame_interval)
    with paper_style():
        frames = (film_frame(_draw_motion(motion, number, DOUBLE_COLUMN), _FILM_WIDTH) for number in selected)
        write_film(path, frames, _FRAME_TIME)
