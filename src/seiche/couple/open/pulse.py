# SPDX-License-Identifier: BSD-3-Clause
"""Shortest pulse of the boundary conditions of a flow: the time of a rise and the next fall, or the reverse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from seiche.flow.model import Iolet, PressureIolet, TimeTable, VelocityIolet

Floats = npt.NDArray[np.float64]

#: Changes below this fraction of the maximum value are not counted as pulses.
_MIN_RELATIVE_CHANGE = 0.05


def pulse_of(iolets: Sequence[Iolet]) -> float | None:
    """Return the shortest pulse in steps; None if no condition pulsates."""
    return min((duration for iolet in iolets for duration in _pulses(iolet)), default=None)


def _pulses(iolet: Iolet) -> Iterator[float]:
    """Yield the pulses of one iolet, in steps."""
    if isinstance(iolet, PressureIolet | VelocityIolet) and iolet.table is not None:
        values = iolet.table.values
        yield from _table_periods(
            iolet.table, np.ptp(values) if isinstance(iolet, PressureIolet) else np.abs(values).max()
        )
    elif isinstance(iolet, PressureIolet) and iolet.amplitude != 0:
        yield iolet.period
    elif isinstance(iolet, VelocityIolet):
        amplitudes = np.abs(iolet.harmonics)
        threshold = _MIN_RELATIVE_CHANGE * max(abs(iolet.mean), amplitudes.max(initial=0.0))
        yield from (
            iolet.period / k for k, amplitude in enumerate(amplitudes.tolist(), start=1) if amplitude > threshold
        )


def _table_periods(table: TimeTable, scale: float) -> Iterator[float]:
    """Yield the periods of a table, which are twice the times between the midpoints of successive rises and falls.

    Changes below a fraction of `scale` are ignored.
    """
    times, values = table.times, table.values
    period = float(times[-1] - times[0])
    if table.repeat:  # begin at the minimum, so that no rise or fall extends beyond the ends
        first = int(values.argmin())
        times = np.concatenate([times[first:], times[: first + 1] + period])
        values = np.concatenate([values[first:], values[: first + 1]])
    midpoints = list(_midpoints(times, values, _MIN_RELATIVE_CHANGE * scale))
    if table.repeat and midpoints:
        midpoints.append(midpoints[0] + period)
    yield from (2.0 * np.diff(midpoints)).tolist()


def _midpoints(times: Floats, values: Floats, threshold: float) -> Iterator[float]:
    """Yield the times halfway, in value, between turning points; changes below `threshold` are ignored."""
    for start, end in pairwise(_turning_points(values, threshold)):
        half = 0.5 * (values[start] + values[end])
        sign = np.sign(values[end] - values[start])
        row = start + int(np.argmax(sign * (values[start : end + 1] - half) >= 0))
        fraction = (half - values[row - 1]) / (values[row] - values[row - 1])
        yield float(times[row - 1] + fraction * (times[row] - times[row - 1]))


def _turning_points(values: Floats, threshold: float) -> list[int]:
    """Return the rows between which values alternately rise and fall, each time by more than `threshold`."""
    low = high = 0
    turns, direction = list[int](), 0
    for row, value in enumerate(values):
        low, high = (row if value < values[low] else low), (row if value > values[high] else high)
        if direction >= 0 and values[high] - value > threshold:
            turns, direction, low = [*turns, high], -1, row
        elif direction <= 0 and value - values[low] > threshold:
            turns, direction, high = [*turns, low], 1, row
    return [*turns, low if direction < 0 else high] if direction else []
