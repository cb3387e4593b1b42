# SPDX-License-Identifier: BSD-3-Clause
"""Charts of a report as inline SVG and tables: roofline, message matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seiche.machine.laws.models import roofline
from seiche.report.html import COLORS, escape, number

#: Maximum number of ranks in a matrix; more ranks are summed in blocks.
MAX_MATRIX_RANKS = 24

#: Margins, width and height of the roofline plot, pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM, _WIDTH, _HEIGHT = 58, 22, 10, 36, 360, 240


def roofline_plot(points: Sequence[tuple[str, float, float]], rate: float, launch_time: float = 0.0) -> str:
    """Return bandwidth over bytes per step on logarithmic axes, with the memory roof (theory/movement, eq. 14).

    Args:
        points: name, bytes per step of all ranks, bytes per second.
        rate: memory bandwidth, bytes per second.
        launch_time: launch time of a kernel, seconds; it lowers the roof for small kernels.
    """
    points = [point for point in points if point[1] > 0 and point[2] > 0]
    if not points or not rate > 0:
        return ""
    low_x, high_x = _decades([size for _, size, _ in points])
    low_y, high_y = _decades([rate, *(speed for _, _, speed in points)])

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT)

    def y(speed: float) -> float:
        fraction = (math.log10(speed) - low_y) / (high_y - low_y)
        return _TOP + (1 - fraction) * (_HEIGHT - _TOP - _BOTTOM)

    elements = []
    for decade in range(low_x, high_x + 1):
        position = x(10.0**decade)
        elements.append(f'<path class="axis" d="M{position:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        elements.append(
            f'<text x="{position:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{_unit(decade)}B</text>'
        )
    for decade in range(low_y, high_y + 1):
        position = y(10.0**decade)
        elements.append(f'<path class="axis" d="M{_LEFT} {position:.1f}H{_WIDTH - _RIGHT}"/>')
        elements.append(f'<text x="{_LEFT - 4}" y="{position + 4:.1f}" text-anchor="end">{_unit(decade)}B/s</text>')
    sizes = [10 ** (low_x + (high_x - low_x) * k / 60) for k in range(61)]
    roof = [(x(size), y(max(10.0**low_y, size / roofline(size, rate, launch_time)))) for size in sizes]
    roof_path = "L".join(f"{a:.1f} {b:.1f}" for a, b in roof)
    elements.append(f'<path class="roof" d="M{roof_path}"/>')
    for k, (name, size, speed) in enumerate(points):
        color, label = (
            COLORS[k % len(COLORS)],
            f"{name}: {number(speed * 1e-9)} GB/s, {speed / rate:.0%} of memory bandwidth",
        )
        elements.append(
            f'<circle cx="{x(size):.1f}" cy="{y(speed):.1f}" r="5" fill="{color}">'
            f"<title>{escape(label)}</title></circle>"
        )
    elements.append(
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">bytes per step</text>'
    )
    legend = "".join(
        f'<li><i style="background:{COLORS[k % len(COLORS)]}"></i>{escape(name)}: {number(speed * 1e-9)} GB/s</li>'
        for k, (name, _, speed) in enumerate(points)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Bandwidth of stages below the memory '
        f'bandwidth">{"".join(elements)}</svg><ul class="key">{legend}<li><i style="background:currentColor"></i>'
        f"memory {number(rate * 1e-9)} GB/s</li></ul>"
    )


def message_matrix(rows: Sequence[Sequence[float]], ranks: int) -> str:
    """Return the bytes per step between ranks, senders in rows; `rows` are sender, receiver, count, bytes."""
    block = -(-ranks // MAX_MATRIX_RANKS)
    count = -(-ranks // block)
    block_bytes = [[0.0] * count for _ in range(count)]
    for source, target, _, size in rows:
        block_bytes[int(source) // block][int(target) // block] += size
    max_value = max((value for line in block_bytes for value in line), default=0.0)
    names = [str(k) if block == 1 else f"{k * block}–{min(ranks, (k + 1) * block) - 1}" for k in range(count)]
    head = "".join(f"<th>{name}</th>" for name in names)
    lines = []
    for name, line in zip(names, block_bytes, strict=True):
        cells = "".join(
            f'<td style="background:rgba(0,114,178,{0.15 + 0.55 * value / max_value:.2f})">{_bytes(value)}</td>'
            if value
            else "<td>·</td>"
            for value in line
        )
        lines.append(f"<tr><th>{name}</th>{cells}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr><th>from / to</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _unit(decade: int) -> str:
    prefix, exponent = divmod(decade, 3)
    return f"{10**exponent} {'kMGTPE'[prefix - 1] if 0 < prefix < 7 else ''}" if decade >= 0 else f"1e{decade} "


def _bytes(value: float) -> str:
    power = max(0, min(4, int(math.log10(max(value, 1.0)) // 3)))
    return f"{value / 1000**power:.3g} {('', 'k', 'M', 'G', 'T')[power]}B"
