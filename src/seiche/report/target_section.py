# SPDX-License-Identifier: BSD-3-Clause
"""Section of a report about the target of a sonication: table of results, and planes through the target."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.report.color_range import MAPS, color_top
from seiche.report.display_units import display, display_unit
from seiche.report.html import png, section, table
from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style

#: Fields that are drawn, with titles and units; only the first frequency of an amplitude is.
_FIELDS = {"p_amplitude": ("pressure amplitude", "Pa"), "temperature": ("temperature", "°C")}
_AXES = ("x", "y", "z")
_DPI = 110
#: Pairs of axes of the planes of a volume.
_PLANES = ((0, 1), (0, 2))


def target_section(details: Mapping[str, Any], folder: Path | None) -> str:
    """Return the section, an empty text for a run without a target.

    Args:
        details: those of the summary of a run.
        folder: folder with the results of the run; without it, or without these results, there is no picture.
    """
    target = details.get("target")
    if not isinstance(target, Mapping):
        return ""
    parts = [table(("", "at the target", "in the brain", "in the bone"), list(_rows(target)), text_columns=(1, 2, 3))]
    if "brain" not in target:
        parts.append("<p>Bone does not separate the target from the sources; there are no values for the brain.</p>")
    if "closed_gap_m" in target:
        parts.append(f"<p>Gaps of the bone up to {display(target['closed_gap_m'], 'm')} are treated as closed.</p>")
    if steering := target.get("steering"):
        numbers = [(name, 1e6 * entry["delay_s"], np.degrees(entry["phase_rad"])) for name, entry in steering.items()]
        rows = [(name, f"{delay:.4g}", f"{phase:.4g}") for name, delay, phase in numbers]
        parts += ["<p>Steering along straight rays:</p>", table(("source", "delay (µs)", "phase (degrees)"), rows)]
    for name in details.get("files", []) if folder is not None else []:
        fields = _read(Path(folder or ".") / Path(str(name)).name)
        if fields:
            bone_speed = float(target["bone_speed_m_s"])
            caption = "planes through the target (+), with the boundary of bone"
            parts.append(png(_picture(fields, target["place_m"], bone_speed), caption))
            break
    return section("Target", *parts)


def _rows(target: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    brain, bone, heat = (target.get(name) or {} for name in ("brain", "bone", "heat"))

    def row(title: str, key: str, parts: tuple[Mapping[str, Any], ...], text: Any) -> tuple[str, str, str, str]:
        first, second, third = (text(part[key]) if part.get(key) is not None else "" for part in parts)
        return title, first, second, third

    yield row("largest pressure", "pressure_Pa", (target, brain, bone), lambda value: display(value, "Pa", 4))
    yield row("at (mm)", "place_m", (target, brain, bone), lambda p: ", ".join(f"{1e3 * c:.4g}" for c in p))
    yield row("distance from the target", "distance_m", ({}, brain, bone), lambda value: display(value, "m"))
    yield row("intensity", "intensity_W_m2", ({}, brain, {}), lambda value: f"{1e-4 * value:.4g} W/cm²")
    for key, unit, factor in (("volume_6dB_m3", "mm³", 1e9), ("area_6dB_m2", "mm²", 1e6)):
        if key in brain:
            text = "reaches an end of the grid" if brain[key] is None else f"{factor * brain[key]:.4g} {unit}"
            yield f"-6 dB {key.partition('_')[0]}", "", text, ""
    if heat:
        parts = tuple(heat.get(name) or {} for name in ("target", "brain", "bone"))
        yield row("highest temperature", "temperature_C", parts, lambda value: f"{value:.4g} °C")
        yield row("thermal dose (CEM43)", "dose_min", parts, lambda value: f"{value:.3g} min")


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the axes, the fields to draw and the sound speed in a file of results; an empty dictionary for others."""
    try:
        with hdf5_file(path, "no results of ultrasound") as file:
            if "p_amplitude" not in file or "x" not in file or "sound_speed" not in file:
                return {}
            fields = {name: values_of(file, name) for name in (*_AXES, *_FIELDS, "sound_speed") if name in file}
    except (OSError, FormatError):
        return {}
    fields["p_amplitude"] = fields["p_amplitude"][0]
    shape = tuple(len(fields[axis]) for axis in _AXES if axis in fields)
    return fields if len(shape) > 1 and fields["p_amplitude"].shape == shape else {}


def _picture(fields: Mapping[str, npt.NDArray[Any]], target: list[float], bone_speed: float) -> bytes:
    """Return the planes through the target as PNG."""
    positions = [np.asarray(fields[axis]) for axis in _AXES if axis in fields]
    index = [int(np.argmin(np.abs(line - c))) for line, c in zip(positions, target, strict=True)]
    planes = _PLANES if len(positions) == 3 else _PLANES[:1]
    names = [name for name in _FIELDS if name in fields]
    stream = io.BytesIO()
    with paper_style():
        width = DOUBLE_COLUMN / len(planes)
        height = max(float(np.ptp(positions[b]) / np.ptp(positions[a])) for a, b in planes) * 0.7 * width + 0.5
        figure = new_figure(DOUBLE_COLUMN, min(len(names) * height, 9.0))
        grid = figure.add_gridspec(len(names), len(planes))
        for row, name in enumerate(names):
            title, unit = _FIELDS[name]
            factor, label = display_unit(float(np.abs(fields[name]).max()), unit)
            for column, (a, b) in enumerate(planes):
                axes = figure.add_subplot(grid[row, column])
                chosen = tuple(slice(None) if axis in (a, b) else index[axis] for axis in range(len(index)))
                values = factor * fields[name][chosen]
                high, is_clipped = color_top(values, MAPS)
                across, along = 1e3 * positions[a], 1e3 * positions[b]
                style: dict[str, Any] = {"cmap": "inferno", "vmin": float(values.min()), "vmax": high}
                colors = axes.pcolormesh(across, along, values.T, shading="nearest", rasterized=True, **style)
                speed = fields["sound_speed"]
                if speed.shape == fields[name].shape and speed.min() < bone_speed <= speed.max():
                    axes.contour(across, along, speed[chosen].T, levels=[bone_speed], colors="0.8", linewidths=0.6)
                axes.plot(1e3 * target[a], 1e3 * target[b], "+", color="cyan", markersize=7)
                axes.set(title=title, xlabel=f"{_AXES[a]} (mm)", ylabel=f"{_AXES[b]} (mm)", aspect="equal")
                color_bar(axes, colors, label, "max" if is_clipped else "neither")
        figure.savefig(stream, format="png", dpi=_DPI, facecolor="white")
    return stream.getvalue()
