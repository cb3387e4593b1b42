# SPDX-License-Identifier: BSD-3-Clause
"""Times of a device whose clock drifts from that of its host."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.domain.world import World
from seiche.observe.alignment import Alignment
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.observe.trace import gather_trace

#: Seconds of the device per second of the host, exaggerated.
RATE = 1.25


class DeviceClock:
    """A clock that runs RATE times as fast as that of the host, from another zero."""

    def record(self) -> float:
        return 1e6 + RATE * time.perf_counter()

    def elapsed(self, begin: float, end: float) -> float:
        return end - begin


@given(st.floats(-1.0, 10.0))
def test_times_between_readings_are_interpolated(device: float) -> None:
    """Readings on two lines, of slope 2 up to 1 s of the device and 0.5 after it."""
    alignment = Alignment()
    assert alignment.host_seconds(device) == device
    for reading in ((0.0, 0.0), (1.0, 2.0), (1.0, 7.0), (5.0, 4.0)):  # the third is not after the second
        alignment.add(*reading)
    if device < 0:
        expected = device
    elif device < 1:
        expected = 2 * device
    elif device < 5:
        expected = 2 + (device - 1) / 2
    else:
        expected = device - 1
    assert alignment.host_seconds(device) == pytest.approx(expected)


def test_samples_of_a_device_lie_on_the_time_line_of_the_host() -> None:
    timers = StageTimers(DeviceClock(), every=1, skip=0)
    timers.set_sample_limit(100)
    epoch, begins = time.perf_counter_ns(), []
    timers.align(epoch)

    def work() -> None:
        begins.append((time.perf_counter_ns() - epoch) * 1e-9)
        time.sleep(0.01)

    for steps in (3, 4):
        for _ in range(steps):
            timers.step([Stage("collide", work)])
        timers.align(epoch)
    (trace,) = gather_trace(timers, World.serial(), 1.0) or ()
    raw = [sample.begin for sample in timers.samples]
    assert raw[-1] - begins[-1] > 0.2 * begins[-1]  # the device seems to be late
    for sample, begin in zip(trace.samples, begins, strict=True):
        assert sample.begin == pytest.approx(begin, abs=2e-3)
        assert sample.spans[0].begin == 0.0
    for sample, stored in zip(trace.samples, timers.samples, strict=True):
        assert sample.seconds == pytest.approx(stored.seconds / RATE, rel=0.05)
