# SPDX-License-Identifier: BSD-3-Clause
"""Small charts as SVG text: the same text for the same numbers on every machine, so that tests can compare it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
OWN, OTHER = "#1f77b4", "#9aa5b1"
_FONT = 'font-family="sans-serif" font-size="13"'
_ROW, _LABELS, _WIDTH = 26, 240, 800


@dataclass(frozen=True)
class Bar:
    """A bar: its label, its value and whether it is one of Seiche."""

    label: str
    value: float
    own: bool = True


@dataclass(frozen=True)
class Line:
    """A line: its label, and its points (x, y)."""

    label: str
    points: tuple[tuple[float, float], ...]


def number(value: float) -> str:
    """Return a value with three significant digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return horizontal bars from zero, with their values."""
    largest = max(row.value for row in rows)
    lines = [_text(10, 22, title, weight="bold")]
    for position, row in enumerate(rows):
        y = 38 + position * _ROW
        width = (_WIDTH - _LABELS - 80) * row.value / largest
        color = OWN if row.own else OTHER
        lines.append(_text(_LABELS - 8, y + 14, row.label, anchor="end"))
        lines.append(f'<rect x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_ROW - 8}" fill="{color}"/>')
        lines.append(_text(_LABELS + width + 6, y + 14, number(row.value)))
    return _document(_WIDTH, 48 + len(rows) * _ROW, title, lines)


def curves(title: str, lines: Sequence[Line], ticks: Sequence[tuple[float, str]], levels: Sequence[float]) -> str:
    """Return lines over x with `ticks` (position, label), horizontal lines at `levels`, and a legend below."""
    left, right, top, bottom = 60, _WIDTH - 20, 40, 300
    first, last = ticks[0][0], ticks[-1][0]

    def across(x: float) -> float:
        return left + (right - left) * (x - first) / (last - first)

    def down(y: float) -> float:
        return bottom - (bottom - top) * (y - levels[0]) / (levels[-1] - levels[0])

    parts = [_text(10, 22, title, weight="bold")]
    for level in levels:
        parts.append(f'<path d="M{left} {down(level):.1f}H{right}" stroke="#dddddd"/>')
        parts.append(_text(left - 8, down(level) + 4, f"{level:g}", anchor="end"))
    for x, label in ticks:
        parts.append(_text(across(x), bottom + 20, label, anchor="middle"))
    for position, line in enumerate(lines):
        color = COLORS[position % len(COLORS)]
        path = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in line.points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3.5" fill="{color}"/>' for x, y in line.points]
        y = bottom + 44 + 20 * (position // 2)
        x = left + (right - left) / 2 * (position % 2)
        parts.append(f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" fill="{color}"/>')
        parts.append(_text(x + 18, y, line.label))
    return _document(_WIDTH, bottom + 48 + 20 * ((len(lines) + 1) // 2), title, parts)


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} {_FONT} fill="#222222">{escape(text)}</text>'


def _document(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f'{head} role="img" aria-label="{escape(title)}">', ground, *parts, "</svg>", ""])
