# SPDX-License-Identifier: BSD-3-Clause
"""Figures of waves: snapshots and films of motion in a plane, seismograms, maps of peak velocity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.report.film import film_frame, write_film
from seiche.report.style import COLORS, DOUBLE_COLUMN, SINGLE_COLUMN, color_bar, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
#: Width of a film in pixels, and duration of a frame (ms).
_FILM_WIDTH, _FRAME_TIME = 720, 80
#: Quantile of the absolute values at the end of the colour scale.
_TOP_QUANTILE = 0.995
#: Maximum number of receivers in a plot of seismograms.
_MAX_TRACES = 24
#: Limits for valid snapshots: aspect ratio and absolute value.
_MAX_ASPECT, _MAX_VALUE = 1e6, 1e30
#: Points along the longer side of a map.
_MAP_POINTS = 400


@dataclass(frozen=True, eq=False)
class Motion:
    """A time series in a plane: `values` (times, rows, columns) and the corners of the plane (m)."""

    title: str
    times: Floats
    values: npt.NDArray[np.float32]
    label: str
    axes: tuple[str, str]
    lower: Floats
    upper: Floats

    @property
    def top(self) -> float:
        """Return the value at the end of the colour scale."""
        return float(np.quantile(np.abs(self.values), _TOP_QUANTILE)) or 1.0


def read_motion(path: Path) -> Motion:
    """Return the pressure of a fluid, or the velocity along the last axis of a solid, from a file of snapshots.

    Raises:
        FormatError: not a valid file of snapshots.
    """
    with hdf5_file(path, "no snapshots of waves") as file:
        acoustic = file.attrs["medium"] == "acoustic"
        last = "xyz"[file["velocity"].shape[-1] - 1]
        values = values_of(file, "pressure") if acoustic else values_of(file, "velocity")[..., -1]
        times = np.asarray(values_of(file, "time"), np.float64)
        label = "pressure (Pa)" if acoustic else f"velocity {last} (m/s)"
        first, second = (str(name) for name in file.attrs["axes"])
        lower, upper = (np.asarray(file.attrs[name], np.float64) for name in ("lower", "upper"))
        title = str(file.attrs["title"])
    if values.ndim != 3 or values.dtype.kind != "f" or not values.size or times.shape != values.shape[:1]:
        raise FormatError(path, "whole file", f"values of shape {values.shape} do not match {times.size} times")
    if not (np.abs(values) < _MAX_VALUE).all():
        raise FormatError(path, "values", f"some are not finite or not below {_MAX_VALUE:g}")
    if not (lower.shape == upper.shape == (2,) and _is_rectangle(upper - lower)):
        raise FormatError(path, "attributes lower, upper", "not the corners of a rectangle")
    return Motion(title, times, values, label, (first, second), lower, upper)


def _is_rectangle(sides: Floats) -> bool:
    """Return whether both lengths are positive and their ratio is within the valid aspect ratio."""
    return bool(0 < sides.min() <= sides.max() < _MAX_ASPECT * sides.min())


def is_motion(path: Path) -> bool:
    """Return whether a file contains snapshots of waves."""
    try:
        with hdf5_file(path, "no snapshots of waves") as file:
            return "medium" in file.attrs and "velocity" in file
    except (OSError, FormatError):
        return False


def render_motion(target: Path, source: Path, *, as_film: bool, frame_interval: int) -> None:
    """Draw the last state of a file of snapshots, or (`as_film`) a film of every `every`-th state.

    Raises:
        FormatError: the file is invalid.
        OSError: the picture cannot be written.
    """
    motion = read_motion(source)
    if as_film:
        film(target, motion, frame_interval)
    else:
        snapshot_figure(target, motion, len(motion.times) - 1)


def _length_unit(lower: Floats, upper: Floats) -> tuple[str, float]:
    """Return a unit of length for axes, and its number per metre."""
    max_side = float(np.max(upper - lower))
    return ("km", 1e-3) if max_side >= 2e3 else ("m", 1.0) if max_side >= 2 else ("mm", 1e3)


def _draw_motion(motion: Motion, number: int, width: float) -> Figure:
    unit, factor = _length_unit(motion.lower, motion.upper)
    sides = (motion.upper - motion.lower) * factor
    figure = new_figure(width, min(max(0.9 * width * sides[1] / sides[0], 1.6), 1.2 * width))
    axes = figure.add_subplot()
    (left, low), (right, high) = motion.lower * factor, motion.upper * factor
    style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -motion.top, "vmax": motion.top, "interpolation": "bilinear"}
    image = axes.imshow(motion.values[number], origin="lower", extent=(left, right, low, high), **style)
    axes.set_xlabel(f"{motion.axes[0]} ({unit})")
    axes.set_ylabel(f"{motion.axes[1]} ({unit})")
    axes.set_title(f"{motion.times[number]:.3g} s", loc="right", fontsize=7)
    axes.set_title(motion.title[:60].replace("$", r"\$"), loc="left", fontsize=8)
    color_bar(axes, image, motion.label, "both")
    return figure


def snapshot_figure(path: Path, motion: Motion, number: int) -> None:
    """Draw one state; raise OSError if the file cannot be written."""
    with paper_style():
        store(_draw_motion(motion, number, DOUBLE_COLUMN), path)


def film(path: Path, motion: Motion, frame_interval: int = 1) -> None:
    """Draw every `every`-th state as an animated GIF or an MP4; raise as `write_film` does."""
    selected = range(0, len(motion.times), frame_interval)
    with paper_style():
        frames = (film_frame(_draw_motion(motion, number, DOUBLE_COLUMN), _FILM_WIDTH) for number in selected)
        write_film(path, frames, _FRAME_TIME)


def seismogram_figure(
    path: Path, times: Floats, velocity: Floats, names: Sequence[str], components: Sequence[str]
) -> None:
    """Draw velocities (times, receivers, components): one panel per component, one line per receiver.

    Of many receivers, an even selection is drawn. Raises OSError if the file cannot be written.
    """
    selected = np.unique(np.linspace(0, len(names) - 1, min(len(names), _MAX_TRACES)).round().astype(int))
    peak = float(np.abs(velocity).max()) or 1.0
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, min(1.2 + 0.22 * len(selected), 7.5))
        panels = np.atleast_1d(figure.subplots(1, len(components), sharex=True, sharey=True))
        for number, (axes, name) in enumerate(zip(panels, components, strict=True)):
            for row, receiver in enumerate(selected):
                trace = velocity[:, receiver, number] / peak
                axes.plot(times, row + 0.9 * trace, color=COLORS[number % len(COLORS)], linewidth=0.6)
            axes.set_title(f"{name}, 1 = {peak:.3g} m/s", fontsize=8)
            axes.set_xlabel("time (s)")
        panels[0].set_yticks(range(len(selected)), [names[receiver] for receiver in selected])
        store(figure, path)


#: Units of velocity, and their number per m/s.
_SPEEDS = (("m/s", 1.0), ("mm/s", 1e3), ("\N{MICRO SIGN}m/s", 1e6), ("nm/s", 1e9))


def map_figure(
    path: Path, positions: Floats, peaks: Floats, axes_names: Sequence[str], stations: Floats | None = None
) -> None:
    """Draw peak velocities at `positions` (n, 1 or 2) of a side; raise OSError if the file cannot be written."""
    lower, upper = positions.min(0), positions.max(0)
    unit, factor = _length_unit(lower, upper)
    speed, per_metre = next((pair for pair in _SPEEDS if peaks.max() * pair[1] >= 1), ("m/s", 1.0))
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
