# SPDX-License-Identifier: BSD-3-Clause
"""Times by a device clock, converted to the clock of its host, which it drifts from."""

from __future__ import annotations

from bisect import bisect_right


class Alignment:
    """Piecewise linear map from seconds by the device clock to seconds by the host clock.

    Both clocks are read together several times. Times in between are interpolated, which corrects a constant
    difference of their rates; later times keep the last difference.
    """

    def __init__(self) -> None:
        """Start without readings: both clocks agree."""
        self._readings: list[tuple[float, float]] = []

    def add(self, device: float, host: float) -> None:
        """Add a reading of both clocks, s; one that is not after the previous reading is ignored."""
        if not self._readings or device > self._readings[-1][0]:
            self._readings.append((device, host))

    def host_seconds(self, device: float) -> float:
        """Return the time by the host clock, s, of a time by the device clock."""
        if not self._readings:
            return device
        last = len(self._readings) - 1
        left = min(max(bisect_right(self._readings, (device, float("inf"))) - 1, 0), last)
        begin, host = self._readings[left]
        if left == last or device < begin:
            return host + device - begin
        end, host_end = self._readings[left + 1]
        return host + (device - begin) * (host_end - host) / (end - begin)
