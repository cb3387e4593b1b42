# SPDX-License-Identifier: BSD-3-Clause
"""The shortest pulse of what iolets impose."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.couple.open.pulse import pulse_of
from seiche.flow.model import Iolet, PressureIolet, TimeTable, VelocityIolet, WindkesselIolet


def table(times: list[float], values: list[float], repeat: bool = False) -> TimeTable:
    return TimeTable(np.array(times), np.array(values), repeat)


WAVE = np.linspace(0.0, 600.0, 61)


@pytest.mark.parametrize(
    ("iolets", "expected"),
    [
        ((VelocityIolet(0.01), PressureIolet(1.0)), None),
        ((VelocityIolet(0.01, ramp=500.0), WindkesselIolet(1.0, 1.0)), None),
        ((VelocityIolet(0.01, harmonics=(0.004,), period=900.0), PressureIolet()), 900.0),
        # A third harmonic counts, a fourth of a hundredth does not.
        ((VelocityIolet(0.01, harmonics=(0.004, 0.0, 0.001j, 1e-4), period=900.0), PressureIolet()), 300.0),
        ((VelocityIolet(0.0, harmonics=(0.0, 1e-4), period=900.0), PressureIolet()), 450.0),
        ((VelocityIolet(0.01), PressureIolet(1.0, amplitude=1e-4, period=700.0)), 700.0),
        ((VelocityIolet(0.01, harmonics=(0.004,), period=900.0), PressureIolet(amplitude=0.1, period=700.0)), 700.0),
        ((VelocityIolet(0.0, table=table([0, 50, 500], [0.0, 0.01, 0.01])), PressureIolet()), None),
        ((VelocityIolet(0.0, table=table([0, 50, 130, 400], [0.0, 0.01, 0.002, 0.01])), PressureIolet()), 130.0),
        # What trembles by less than a twentieth is no pulse; of a pressure the change counts, not its height.
        ((VelocityIolet(0.0, table=table([0, 50, 60, 400], [0.0, 0.01, 0.0098, 0.01])), PressureIolet()), None),
        ((VelocityIolet(0.0), PressureIolet(table=table([0, 50, 60, 400], [1.0, 1.01, 1.009, 1.01]))), 60.0),
        # Bumps: one, one after a flat part that comes again, one across the end of the period, and a flat one.
        ((VelocityIolet(0.0, table=table([0, 100, 110, 120, 400], [0.0, 0.0, 0.01, 0.0, 0.0])), PressureIolet()), 20.0),
        (
            (VelocityIolet(0.0, table=table([0, 300, 310, 320], [0.0, 0.0, 0.01, 0.0], True)), PressureIolet()),
            20.0,
        ),
        ((VelocityIolet(0.0, table=table([0, 10, 390, 400], [0.01, 0.0, 0.0, 0.01], True)), PressureIolet()), 20.0),
        ((VelocityIolet(0.0, table=table([0, 10, 50, 60], [0.0, -0.01, -0.01, 0.0])), PressureIolet()), 100.0),
        # A saw whose teeth fall at once.
        ((VelocityIolet(0.0, table=table([0, 400], [0.0, 0.01], True)), PressureIolet()), 400.0),
        ((VelocityIolet(0.0), PressureIolet(table=table([0, 100, 400], [1.0, 1.01, 1.0], True))), 400.0),
        ((VelocityIolet(0.0, table=table([0, 400], [0.01, 0.01], True)), PressureIolet()), None),
        (
            (VelocityIolet(0.0, table=TimeTable(WAVE, np.sin(WAVE * np.pi / 100), True)), PressureIolet()),
            200.0,
        ),
    ],
)
def test_the_shortest_pulse_is_that_of_any_opening(iolets: tuple[Iolet, ...], expected: float | None) -> None:
    assert pulse_of(iolets) == pytest.approx(expected)
