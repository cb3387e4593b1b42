# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run in progress as inline SVG, without Matplotlib: a field in a plane, curves over time, stages.

They are drawn in a thread of the status page, so they must be cheap: a slice is a PNG with a palette.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.report.display_units import display, display_unit
from seiche.report.html import COLORS, escape

Floats = npt.NDArray[np.floating[Any]]

#: Evenly spaced colours of the maps viridis (matplotlib, CC0) and RdBu (ColorBrewer, Apache 2.0), low to high.
_SEQUENTIAL = ("440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")
_DIVERGING = (
    "053061",
    "2166ac",
    "4393c3",
    "92c5de",
    "d1e5f0",
    "f7f7f7",
    "fddbc7",
    "f4a582",
    "d6604d",
    "b2182b",
    "67001f",
)
#: Fraction of the values within the colour scale; the largest value is stated beside it.
_SHOWN = 0.995
#: Width of a figure, height of curves, largest height of a slice, and margins (left, right, top, bottom), pixels.
_WIDTH, _CURVES, _SLICE, _MARGINS = 360, 190, 420, (52, 14, 20, 34)
#: Width of the colour bar with its numbers.
_BAR = 62
_MAX_POINTS = 300


@dataclass(frozen=True, eq=False)
class LiveSlice:
    """A field in a plane, or along a line.

    Attributes:
        title: quantity and position of the plane.
        unit: SI unit of the values.
        values: (rows, columns), NaN where there is nothing; (columns,) along a line.
        axes: names of the axes along columns and rows.
        extent: left, right, bottom, top in metres.
        lines: lines (n, 2, 2) in metres, such as outlines of cells.
    """

    title: str
    unit: str
    values: Floats
    axes: tuple[str, str]
    extent: tuple[float, float, float, float]
    lines: Floats = field(default_factory=lambda: np.zeros((0, 2, 2)))


@dataclass(frozen=True, eq=False)
class LiveCurves:
    """Curves of one quantity over time: `series` by name, each (n,), at `times` (n,) in seconds; None is a gap."""

    title: str
    unit: str
    times: Sequence[float]
    series: Mapping[str, Sequence[float | None]]


def slice_svg(shown: LiveSlice) -> str:
    """Return a field in a plane with axes, colour bar and its largest magnitude."""
    if shown.values.ndim == 1:
        positions = np.linspace(shown.extent[0], shown.extent[1], len(shown.values))
        line = {"": shown.values.tolist()}
        return _plot(shown.title, (shown.axes[0], "m", positions.tolist()), (shown.unit, line))
    values = np.asarray(shown.values, np.float64)
    finite = np.abs(values[np.isfinite(values)])
    peak = float(finite.max()) if finite.size else 0.0
    limit = float(np.quantile(finite, _SHOWN)) if finite.size else 0.0
    limit = limit or peak or 1.0
    signed = bool(finite.size and np.nanmin(values) < 0)
    left, right, bottom, top = shown.extent
    width, height = _frame(right - left, top - bottom)
    x, y = _MARGINS[0], _MARGINS[2]
    image = _png(values[::-1], -limit if signed else 0.0, limit, signed=signed)
    scale, unit = display_unit(max(right - left, top - bottom) / 2, "m")
    parts = [
        f'<text x="{x}" y="13">{escape(shown.title)}</text>',
        f'<image x="{x}" y="{y}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none"'
        f' style="image-rendering:pixelated" href="data:image/png;base64,{base64.b64encode(image).decode()}"/>',
        _outlines(shown, x, y, width, height),
        _axis(left * scale, right * scale, x, width, y + height, vertical=False),
        _axis(bottom * scale, top * scale, y + height, -height, x, vertical=True),
        f'<text x="{x + width / 2:.1f}" y="{y + height + 28:.1f}" text-anchor="middle">{shown.axes[0]} ({unit})</text>',
        f'<text transform="translate(11 {y + height / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{shown.axes[1]} ({unit})</text>",
        _color_bar(limit, shown.unit, x + width + 10, y, height, signed=signed),
    ]
    note = f"largest magnitude {display(peak, shown.unit)}" if finite.size else "no finite value"
    label = escape(f"{shown.title}, {note}")
    total = y + height + _MARGINS[3]
    svg = f'<svg viewBox="0 0 {_WIDTH} {total:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return f"{svg}<p>{escape(note)}</p>"


def _frame(across: float, along: float) -> tuple[float, float]:
    """Return width and height of the drawing of a plane with these sides."""
    width = _WIDTH - _MARGINS[0] - _BAR - 10.0
    height = width * along / across if across > 0 else width
    if height > _SLICE:
        width, height = width * _SLICE / height, float(_SLICE)
    return max(width, 20.0), max(height, 20.0)


def _outlines(shown: LiveSlice, x: float, y: float, width: float, height: float) -> str:
    if not len(shown.lines):
        return ""
    left, right, bottom, top = shown.extent
    points = np.array([x, y]) + (shown.lines - [left, top]) / [right - left, bottom - top] * [width, height]
    path = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for (a, b), (c, d) in points)
    return f'<path d="{path}" stroke="#fff" stroke-width="1" fill="none"/>'


def _color_bar(limit: float, unit: str, x: float, y: float, height: float, *, signed: bool) -> str:
    factor, name = display_unit(limit, unit)
    rows = np.linspace(limit, -limit if signed else 0.0, 64)[:, None]
    image = base64.b64encode(_png(rows, -limit if signed else 0.0, limit, signed=signed)).decode()
    marks = ((limit, 0.0), (0.0, 0.5), (-limit, 1.0)) if signed else ((limit, 0.0), (limit / 2, 0.5), (0.0, 1.0))
    texts = "".join(
        f'<text x="{x + 14:.1f}" y="{y + share * height + 4:.1f}">{value * factor:.3g}</text>' for value, share in marks
    )
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="10" height="{height:.1f}" preserveAspectRatio="none"'
        f' href="data:image/png;base64,{image}"/>{texts}'
        f'<text x="{x - 4:.1f}" y="13">{escape(name)}</text>'
    )


def curves_svg(curves: LiveCurves) -> str:
    """Return curves over time with axes, units and a legend; nothing before there are two times."""
    if len(curves.times) < 2 or not curves.series:
        return ""
    step = max(1, -(-len(curves.times) // _MAX_POINTS))
    times = list(curves.times[::step])
    series = {name: list(values[::step]) for name, values in curves.series.items()}
    return _plot(curves.title, ("time", "s", times), (curves.unit, series))


def _plot(
    title: str, horizontal: tuple[str, str, Sequence[float]], vertical: tuple[str, Mapping[str, Sequence[float | None]]]
) -> str:
    """Return lines over the positions of `horizontal` (name, SI unit, positions)."""
    name, unit, positions = horizontal
    value_unit, series = vertical
    values = np.array([value for line in series.values() for value in line if value is not None], np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    factor, shown_unit = display_unit(max(abs(low), abs(high)), value_unit)
    pad = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    low, high = (low - pad) * factor, (high + pad) * factor
    scale, position_unit = display_unit(max(abs(positions[0]), abs(positions[-1])), unit)
    begin, end = positions[0] * scale, positions[-1] * scale
    left, right, top, bottom = _MARGINS
    width, height = _WIDTH - left - right, _CURVES - top - bottom
    paths, names = [], []
    for number, (label, line) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        points = [
            (
                left + (p * scale - begin) / ((end - begin) or 1.0) * width,
                top + (high - v * factor) / (high - low) * height,
            )
            for p, v in zip(positions, line, strict=True)
            if v is not None and math.isfinite(v)
        ]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        paths.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>' if points else "")
        names.append(f'<li><i style="background:{color}"></i>{escape(label)}</li>' if label else "")
    label = f"{title} ({shown_unit})" if shown_unit not in ("", "1") else title
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_CURVES}" role="img" aria-label="{escape(label)}">'
        f'<text x="{left}" y="13">{escape(label)}</text>{"".join(paths)}'
        f"{_axis(begin, end, left, width, top + height, vertical=False)}"
        f"{_axis(low, high, top + height, -height, left, vertical=True)}"
        f'<text x="{left + width / 2:.0f}" y="{_CURVES - 4}" text-anchor="middle">{name} ({position_unit})</text></svg>'
    )
    return f'{svg}<ul class="key">{"".join(names)}</ul>'


def _axis(low: float, high: float, first: float, length: float, across: float, *, vertical: bool) -> str:
    """Return an axis with round numbers from `first`, of a signed `length`, at the position `across`."""
    step = _round_step((high - low) / 5)
    # Digits that distinguish neighbouring ticks.
    digits = max(3, 1 + math.ceil(math.log10(max(abs(low), abs(high), step) / step)))
    ticks = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    line = f"M{across:.1f} {first:.1f}v{length:.1f}" if vertical else f"M{first:.1f} {across:.1f}h{length:.1f}"
    parts = [f'<path class="axis" d="{line}"/>']
    for tick in ticks.tolist():
        position, text = (
            first + (tick - low) / ((high - low) or 1.0) * length,
            f"{tick if abs(tick) > 1e-9 * step else 0.0:.{digits}g}",
        )
        if vertical:
            parts.append(f'<path class="axis" d="M{across:.1f} {position:.1f}h-3"/>')
            parts.append(f'<text x="{across - 5:.1f}" y="{position + 4:.1f}" text-anchor="end">{text}</text>')
        else:
            parts.append(f'<path class="axis" d="M{position:.1f} {across:.1f}v3"/>')
            parts.append(f'<text x="{position:.1f}" y="{across + 14:.1f}" text-anchor="middle">{text}</text>')
    return "".join(parts)


def _round_step(step: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least `step`."""
    if not step > 0 or not math.isfinite(step):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= step * (1 - 1e-9))


def stage_bars(shares: Mapping[str, float]) -> str:
    """Return the shares of the stages in a step as bars, largest first."""
    total = sum(shares.values())
    if not total > 0:
        return ""
    rows = sorted(shares.items(), key=lambda item: -item[1])
    lines = [
        f'<div class="row"><span>{escape(name)}</span><div class="bar"><span style="width:{100 * value / total:.1f}%;'
        f'background:{COLORS[0]}"></span></div><small>{value / total:.1%}</small></div>'
        for name, value in rows
        if value >= 0.001 * total
    ]
    return "".join(lines)


def _png(values: Floats, low: float, high: float, *, signed: bool) -> bytes:
    """Return an image (rows, columns) from top to bottom as PNG with a palette; NaN is transparent."""
    with np.errstate(invalid="ignore"):
        scaled = (values - low) / (high - low)
        indices = np.where(np.isfinite(values), 1 + np.clip(np.nan_to_num(scaled), 0, 1) * 254, 0).astype(np.uint8)
    rows, columns = indices.shape
    lines = np.zeros((rows, columns + 1), np.uint8)  # each row begins with the number of its filter, 0
    lines[:, 1:] = indices
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
        (b"PLTE", _palette(signed)),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 6)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _palette(signed: bool) -> bytes:
    """Return 256 colours: the first for no value, then the map."""
    anchors = np.array([[int(c[k : k + 2], 16) for k in (0, 2, 4)] for c in (_DIVERGING if signed else _SEQUENTIAL)])
    places = np.linspace(0, len(anchors) - 1, 255)
    colors = np.stack([np.interp(places, np.arange(len(anchors)), anchors[:, k]) for k in range(3)], axis=1)
    return bytes(3) + colors.round().astype(np.uint8).tobytes()


def figures_html(
    time: float, plane: LiveSlice | None, curves: Sequence[LiveCurves], shares: Mapping[str, float]
) -> str:
    """Return the figures of the status page for a state at `time` (s)."""
    parts = [slice_svg(plane)] if plane is not None else []
    parts += [text for text in map(curves_svg, curves) if text]
    if bars := stage_bars(shares):
        parts.append(f"<h2>stages of a step</h2>{bars}")
    heading = f"<h2>state at {escape(display(time, 's', 4))}</h2>"
    return heading + "".join(f"<figure>{part}</figure>" for part in parts)
