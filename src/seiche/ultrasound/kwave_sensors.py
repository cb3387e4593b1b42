# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of Seiche from the attributes of k-wave-python's, and results by its names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.kwave_arrays import is_array, shapes_of
from seiche.ultrasound.kwave_objects import field_of
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.shapes import Line

_SUFFIXES = ("", "_max", "_min", "_rms", "_max_all", "_min_all", "_final")
#: Length of a directional sensor without a size, in spacings.
_DIRECTIVITY_SIZE = 10


def sensor_of(sensor: Any, grid: Grid, results: list[str]) -> Sensor:
    """Return the sensor of a kSensor with the records for these `results`."""
    mask = getattr(sensor, "mask", None)
    positions: dict[str, Any]
    if mask is None:
        positions = {"everywhere": True}
    elif is_array(mask):
        positions = {"elements": shapes_of(mask)}
    elif np.size(mask) == 1:
        positions = {"mask": np.full(grid.shape, bool(np.ravel(mask)[0]))}
    elif np.ndim(mask) == 2 and np.shape(mask)[0] == len(grid.shape):
        positions = {"positions": np.asarray(mask, np.float64).T}
    else:
        positions = {"mask": np.asarray(field_of("sensor.mask", mask, grid.shape, as_array=True)) != 0}
    directivity = getattr(sensor, "directivity", None)
    if getattr(directivity, "angle", None) is not None:
        positions = _directional(directivity, positions, grid)
    response = getattr(sensor, "frequency_response", None)
    if response is not None:
        center, percent = real_numbers("sensor.frequency_response", response).ravel()
        positions["frequency_response"] = (float(center), float(percent) / 100)
    first = getattr(sensor, "record_start_index", 1)
    record = tuple(dict.fromkeys(_record_for(name) for name in results))
    return Sensor(**positions, record=record, first=int(1 if first is None else first) - 1)


def _directional(directivity: Any, positions: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """Return the sensors at the points of a mask: lines of a size, or points with the pattern of a gradient.

    The angle of the largest sensitivity is 0 for the x axis and pi/2 for the y axis, in the shape of the grid.
    """
    if len(grid.shape) != 2 or positions.get("mask") is None:
        raise CaseError("sensor.directivity: requires two dimensions and a binary mask")
    pattern = getattr(directivity, "pattern", None) or "pressure"
    if pattern not in ("pressure", "gradient"):
        raise CaseError(f"sensor.directivity.pattern: {pattern!r} is not 'pressure' or 'gradient'")
    angles = field_of("sensor.directivity.angle", directivity.angle, grid.shape, as_array=True)
    if pattern == "gradient":
        at_points = angles[positions["mask"]]
        return {**positions, "directions": np.stack([np.cos(at_points), np.sin(at_points)], axis=1)}
    size = getattr(directivity, "size", None)
    length = _DIRECTIVITY_SIZE * max(grid.spacings) if size is None else float(np.ravel(size)[0])
    lines = []
    for index in np.argwhere(positions["mask"]):
        middle = (index - np.array(grid.origin)) * grid.spacings
        angle = angles[tuple(index)]
        along = 0.5 * length * np.array([-np.sin(angle), np.cos(angle)])
        lines.append(Line(tuple((middle - along).tolist()), tuple((middle + along).tolist())))
    return {"elements": lines}


def requested(sensor: Any, grid: Grid) -> list[str]:
    """Return the names of single results of a sensor: "u" means one per axis. Raise CaseError for an unknown name."""
    record = getattr(sensor, "record", None) or ("p", "p_final")
    valid = {f"p{suffix}" for suffix in _SUFFIXES}
    for axis in grid.axes:
        valid |= {f"u{axis}{suffix}" for suffix in (*_SUFFIXES, "_staggered")} | {f"I{axis}", f"I{axis}_avg"}
    names: list[str] = []
    for name in (record,) if isinstance(record, str) else record:
        kind, _, suffix = str(name).partition("_")
        expanded = (
            [f"{kind}{axis}{'_' if suffix else ''}{suffix}" for axis in grid.axes] if kind in ("u", "I") else [name]
        )
        for component in expanded:
            if component not in valid:
                raise CaseError(f"sensor.record: {name!r} is not one of {', '.join(sorted(valid))}")
            names.append(component)
    return list(dict.fromkeys(names))


def _record_for(name: str) -> str:
    """Return the record from which a result is computed."""
    kind, _, suffix = name.partition("_")
    if kind[0] == "I":
        return f"I_{suffix}" if suffix else "I"
    if kind == "p":
        return name
    if suffix == "staggered":
        return "u"
    return "u_non_staggered" if suffix in ("", "max", "min", "rms") else f"u_{suffix}"


def named(results: dict[str, npt.NDArray[Any]], name: str, inside: tuple[slice, ...]) -> npt.NDArray[Any]:
    """Return a result by its name in k-wave-python; `inside` is the grid without its layers."""
    kind, _, suffix = name.partition("_")
    if kind[0] == "u" and suffix in ("", "staggered", "max", "min", "rms"):
        if suffix == "staggered":
            return results[kind]
        series = results[f"{kind}_non_staggered"]
        if not suffix:
            return series
        if suffix == "rms":
            return np.asarray(np.sqrt(np.mean(np.square(series), axis=-1)))
        return np.asarray(series.max(axis=-1) if suffix == "max" else series.min(axis=-1))
    return results[name][inside] if suffix == "final" else results[name]
