# SPDX-License-Identifier: BSD-3-Clause
"""Charts of a series of runs as inline SVG: speed-up and efficiencies over the number of execution units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from seiche.report.html import COLORS, escape
from seiche.report.series import RunSeries

#: Margins, width and height, pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM, _WIDTH, _HEIGHT = 44, 14, 10, 36, 360, 220

Curve = Sequence[tuple[float, float]]


def speedup_plot(series: RunSeries) -> str:
    """Return the speed-up of each device over its units, both axes logarithmic, with ideal scaling as dashed lines.

    Empty if all runs have the same number of units.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for entry in series.entries:
        curves.setdefault(entry.device, []).append((entry.units, entry.speedup))
    ideals = {}
    for name, points in curves.items():
        units, speedup = points[0]
        counts = sorted({count for count, _ in points})
        ideals[name] = [(count, speedup * count / units) for count in counts]
    low, high = _octaves([y for curve in (*curves.values(), *ideals.values()) for _, y in curve])
    every = -(-(high - low) // 8)
    marks = {float(k): f"{2.0**k:.3g}" for k in range(low, high + 1, every)}
    scaled = {name: [(x, math.log2(y)) for x, y in points] for name, points in curves.items()}
    dashed = [[(x, math.log2(y)) for x, y in ideals[name]] for name in curves]
    return _plot(scaled, "speed-up", (low, high), marks, dashed=dashed)


def efficiency_plot(series: RunSeries, curves: Mapping[str, Sequence[float | None]]) -> str:
    """Return efficiencies of the runs (name, one value per run) over their units; computation scaling may exceed 1."""
    points = {
        name: [(entry.units, value) for entry, value in zip(series.entries, values, strict=True) if value is not None]
        for name, values in curves.items()
    }
    highest = max((y for curve in points.values() for _, y in curve), default=1.0)
    top = max(1.0, math.ceil(highest * 5) / 5)
    marks = {k / 5: f"{k / 5:g}" for k in range(round(top * 5) + 1)}
    return _plot(points, "efficiency", (0.0, top), marks)


def _plot(
    curves: Mapping[str, Curve],
    label: str,
    limits: tuple[float, float],
    marks: Mapping[float, str],
    *,
    dashed: Sequence[Curve] = (),
) -> str:
    """Return curves over a logarithmic axis of units; empty if there is only one number of units."""
    counts = sorted({x for curve in curves.values() for x, _ in curve})
    if len(counts) < 2:
        return ""
    low_x, high_x = math.log2(counts[0]), math.log2(counts[-1])

    def x(count: float) -> float:
        return _LEFT + (math.log2(count) - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        fraction = (value - limits[0]) / (limits[1] - limits[0])
        return _TOP + (1 - fraction) * (_HEIGHT - _TOP - _BOTTOM)

    def path(curve: Curve) -> str:
        return "M" + "L".join(f"{x(count):.1f} {y(value):.1f}" for count, value in sorted(curve))

    elements = []
    for value, name in marks.items():
        elements.append(f'<path class="axis" d="M{_LEFT} {y(value):.1f}H{_WIDTH - _RIGHT}"/>')
        elements.append(f'<text x="{_LEFT - 4}" y="{y(value) + 4:.1f}" text-anchor="end">{name}</text>')
    for count in _labelled(counts, x):
        elements.append(f'<text x="{x(count):.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{count:g}</text>')
    legend = []
    for k, (name, curve) in enumerate(curves.items()):
        color = COLORS[k % len(COLORS)]
        if k < len(dashed):
            elements.append(f'<path d="{path(dashed[k])}" fill="none" stroke="{color}" stroke-dasharray="4 3"/>')
        elements.append(f'<path class="curve" d="{path(curve)}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        elements += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{color}"/>' for a, b in curve]
        legend.append(f'<li><i style="background:{color}"></i>{escape(name)}</li>')
    elements.append(
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">execution units</text>'
    )
    note = "<li>dashed: ideal</li>" if dashed else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)} over execution units">'
        f'{"".join(elements)}</svg><ul class="key"><li>{escape(label)}:</li>{"".join(legend)}{note}</ul>'
    )


def _labelled(counts: Sequence[float], x: Callable[[float], float]) -> list[float]:
    """Return the counts whose labels do not overlap."""
    shown: list[float] = []
    for count in counts:
        if not shown or x(count) - x(shown[-1]) > 24:
            shown.append(count)
    return shown


def _octaves(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log2(min(values)) + 1e-9), math.ceil(math.log2(max(values)) - 1e-9)
    return low, max(high, low + 1)
