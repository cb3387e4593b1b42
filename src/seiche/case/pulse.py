# SPDX-License-Identifier: BSD-3-Clause
"""The shortest time in which what the iolets of a case impose goes up and down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seiche.case.setup import Setup
from seiche.flow.model import Iolet, PressureIolet, TimeTable, VelocityIolet

#: Less than this part of the greatest value is no pulse.
_SMALL = 0.05


def pulse_of(setup: Setup) -> float | None:
    """Return the shortest pulse in steps, None where nothing pulsates."""
    return min((pulse for iolet in setup.model.iolets for pulse in _pulses(iolet)), default=None)


def _pulses(iolet: Iolet) -> Iterator[float]:
    """Yield the pulses of one iolet, in steps."""
    if isinstance(iolet, PressureIolet | VelocityIolet) and iolet.table is not None:
        values = iolet.table.values
        yield from _of_table(iolet.table, np.ptp(values) if isinstance(iolet, PressureIolet) else np.abs(values).max())
    elif isinstance(iolet, PressureIolet) and iolet.amplitude != 0:
        yield iolet.period
    elif isinstance(iolet, VelocityIolet):
        sizes = np.abs(iolet.harmonics)
        least = _SMALL * max(abs(iolet.mean), sizes.max(initial=0.0))
        yield from (iolet.period / k for k, size in enumerate(sizes.tolist(), start=1) if size > least)


def _of_table(table: TimeTable, size: float) -> Iterator[float]:
    """Yield twice the times between turns up and down that are not small, and the period if it has one and turns."""
    least = _SMALL * size
    turns, extreme, rises = list[int](), 0, 0.0
    for row in range(1, len(table.values)):
        change = float(table.values[row] - table.values[extreme])
        if rises * change > 0 or (rises == 0 and abs(change) > least):
            rises, extreme = float(np.sign(change)), row
        elif abs(change) > least:
            turns.append(extreme)
            rises, extreme = -rises, row
    yield from (2.0 * np.diff(table.times[turns])).tolist()
    if table.repeat and rises != 0:
        yield float(table.times[-1] - table.times[0])
