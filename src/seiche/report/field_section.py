# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and films of a field of a flow in a plane of sites, from a time series in a VTKHDF file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError, FormatError
from seiche.io.arrays import checked_dataset, hdf5_file, values_of
from seiche.report.color_range import color_top
from seiche.report.display_units import display, display_unit, length_scale
from seiche.report.film import film_frame, write_film
from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style, store

if TYPE_CHECKING:
    import h5py
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
#: Width of a film in pixels, and duration of a frame (ms).
_FILM_WIDTH, _FRAME_TIME = 720, 80
#: Fields that are drawn without a choice of the caller; the first that exists.
_FIELDS = ("velocity", "pressure")
#: Corners of a cell, and the limit of absolute values.
_CORNERS, _MAX_VALUE = 8, 1e30
_PROBLEM = "no time series of fields at sites"


@dataclass(frozen=True, eq=False)
class FieldSection:
    """A field in a plane of sites: `values` (times, n0, n1) along two `axes`, NaN where there is no fluid.

    Attributes:
        name: of the field in the file.
        label: quantity.
        unit: SI unit.
        times: s.
        axes: names of the two axes, and the positions (m) of the sites along each.
        plane: name and position (m) of the third axis.
    """

    name: str
    label: str
    unit: str
    times: Floats
    values: npt.NDArray[np.float32]
    axes: tuple[tuple[str, Floats], tuple[str, Floats]]
    plane: tuple[str, float]


def is_field_series(path: Path) -> bool:
    """Return whether a file contains a time series of fields at sites."""
    try:
        with hdf5_file(path, _PROBLEM) as file:
            return _type_of(file) == b"UnstructuredGrid" and "VTKHDF/Steps/Values" in file
    except (OSError, FormatError):
        return False


def read_field_section(path: Path, name: str | None = None, *, interval: int = 1) -> FieldSection:
    """Return the field `name` in the plane with most sites across the shortest axis, at every `interval`-th time.

    The default is the speed, or the pressure if the file has no velocities. Vectors are drawn by their magnitude.

    Raises:
        CaseError: no such field.
        FormatError: not a time series of fields at sites.
    """
    with hdf5_file(path, _PROBLEM) as file:
        known = sorted(file["VTKHDF/CellData"])
        field = name or next((item for item in (*_FIELDS, *known) if item in known), None)
        if field is None or field not in known:
            raise CaseError(f"--field {field}: {path} has {', '.join(known) or 'no fields'}")
        times = np.asarray(values_of(file, "VTKHDF/Steps/Values"), np.float64)
        indices, positions = _site_grid(path, file)
        normal_axis = min(range(3), key=lambda axis: (len(positions[axis]), -axis))
        rows, row = _fullest_plane(indices[:, normal_axis])
        first, second = (axis for axis in range(3) if axis != normal_axis)
        dataset = checked_dataset(file, f"VTKHDF/CellData/{field}")
        if len(dataset) < len(times) * len(indices) or dataset.dtype.kind != "f" or not len(times):
            raise FormatError(path, f"VTKHDF/CellData/{field}", f"{len(dataset)} rows do not match {len(times)} times")
        values = np.full((-(-len(times) // interval), len(positions[first]), len(positions[second])), np.nan, "f4")
        for number, step in enumerate(range(0, len(times), interval)):
            state = dataset[step * len(indices) : (step + 1) * len(indices)][rows]
            scalars = np.linalg.norm(state.reshape(len(rows), -1), axis=1) if state.ndim > 1 else state
            values[number, indices[rows, first], indices[rows, second]] = scalars
        unit = _text(dataset.attrs.get("Units", ""))
    if not (np.abs(values[np.isfinite(values)]) < _MAX_VALUE).all():
        raise FormatError(path, f"VTKHDF/CellData/{field}", f"some values are not below {_MAX_VALUE:g}")
    label = "speed" if field == "velocity" else field.replace("_", " ")
    axes = ("xyz"[first], positions[first]), ("xyz"[second], positions[second])
    plane = "xyz"[normal_axis], float(positions[normal_axis][row])
    return FieldSection(field, label, unit, times[::interval], values, axes, plane)


def section_picture(path: Path, section: FieldSection) -> None:
    """Draw the last state; raise OSError if the file cannot be written."""
    with paper_style():
        store(_draw(section, len(section.times) - 1), path)


def section_film(path: Path, section: FieldSection) -> None:
    """Draw all states as an animated GIF or an MP4, with the same colours; raise as `write_film` does."""
    with paper_style():
        frames = (film_frame(_draw(section, number), _FILM_WIDTH) for number in range(len(section.times)))
        write_film(path, frames, _FRAME_TIME)


def _type_of(file: h5py.File) -> bytes:
    return bytes(file["VTKHDF"].attrs["Type"])


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _site_grid(path: Path, file: h5py.File) -> tuple[npt.NDArray[np.int64], list[Floats]]:
    """Return the indices (sites, 3) of all sites in a grid, and the positions (m) of its sites along each axis."""
    points = np.asarray(values_of(file, "VTKHDF/Points"), np.float64)
    connectivity = values_of(file, "VTKHDF/Connectivity")
    if points.ndim != 2 or points.shape[1] != 3 or connectivity.size % _CORNERS or not connectivity.size:
        raise FormatError(path, "VTKHDF/Connectivity", "expected cells with eight corners")
    corners = connectivity.reshape(-1, _CORNERS)
    if corners.min() < 0 or corners.max() >= len(points) or not np.isfinite(points).all():
        raise FormatError(path, "VTKHDF/Connectivity", "refers to points that do not exist")
    spacing = float(np.ptp(points[corners[0], 0]))
    lower = points[corners].min(axis=1)
    indices = np.rint((lower - lower.min(axis=0)) / spacing if spacing > 0 else np.inf)
    counts = indices.max(axis=0) + 1
    if not (np.isfinite(counts).all() and counts.max() <= 4 * len(points)):
        raise FormatError(path, "VTKHDF/Points", "the cells are not those of a regular grid")
    positions = [lower[:, axis].min() + (np.arange(int(counts[axis])) + 0.5) * spacing for axis in range(3)]
    return indices.astype(np.int64), positions


def _fullest_plane(indices: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the sites of the plane with most sites, the one in the middle of several, and its index."""
    counts = np.bincount(indices)
    fullest = np.flatnonzero(counts == counts.max())
    row = int(fullest[len(fullest) // 2])
    return np.flatnonzero(indices == row), row


def _colors(values: npt.NDArray[np.float32], name: str, unit: str) -> tuple[float, str, dict[str, Any], str]:
    """Return factor and label of the values, colour map and limits for all times, and the pointed ends of the bar."""
    top, is_clipped = color_top(values)
    factor, unit = display_unit(top, unit)
    label = name if unit in ("", "1") else f"{name} ({unit})"
    top *= factor
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() < 0:
        return factor, label, {"cmap": "RdBu_r", "vmin": -top, "vmax": top}, "both" if is_clipped else "neither"
    return factor, label, {"cmap": "viridis", "vmin": 0.0, "vmax": top}, "max" if is_clipped else "neither"


def _draw(section: FieldSection, number: int) -> Figure:
    """Draw the state `number`, with the longer axis to the right."""
    (across, columns), (up, rows) = section.axes
    values = section.values[number].T
    if len(rows) > len(columns):
        (across, columns), (up, rows), values = (up, rows), (across, columns), values.T
    scale, unit = length_scale(max(float(np.ptp(values)) for values in (columns, rows)))
    ratio = len(rows) / len(columns)
    figure = new_figure(DOUBLE_COLUMN, min(max(0.85 * DOUBLE_COLUMN * ratio + 0.4, 1.6), 1.2 * DOUBLE_COLUMN))
    panel = figure.add_subplot()
    factor, label, style, extend = _colors(section.values, section.label, section.unit)
    x, y = columns / scale, rows / scale
    mesh = panel.pcolormesh(x, y, factor * values, shading="nearest", rasterized=True, **style)
    panel.set_aspect("equal")
    panel.set_xlabel(f"{across} ({unit})")
    panel.set_ylabel(f"{up} ({unit})")
    panel.set_title(display(float(section.times[number]), "s"), loc="right", fontsize=7)
    panel.set_title(f"{section.plane[0]} = {section.plane[1] / scale:.4g} {unit}", loc="left", fontsize=8)
    color_bar(panel, mesh, label, extend)
    return figure
