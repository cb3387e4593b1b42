# SPDX-License-Identifier: BSD-3-Clause
"""When things happen in a run: at the whole steps nearest to multiples of an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Due at round(k * `interval`) for k = 1, 2 ...; `interval` (steps) is at least one half, not always whole."""

    interval: float

    def next_after(self, step: int) -> int:
        """Return the first step after `step` at which it is due."""
        k = max(1, math.floor((step + 0.5) / self.interval))
        while self._at(k) <= step:
            k += 1
        return self._at(k)

    def due(self, step: int) -> bool:
        """Return whether it is due at `step`."""
        return self.next_after(step - 1) == step

    def count(self, first: int, last: int) -> int:
        """Return how many times it is due after `first` and not after `last`."""
        return max(0, self._number(last) - self._number(first))

    def _at(self, k: int) -> int:
        return math.floor(k * self.interval + 0.5)

    def _number(self, step: int) -> int:
        """Return how many distinct due steps there are up to `step`."""
        k = max(0, math.floor((step + 0.5) / self.interval))
        while self._at(k + 1) <= step:
            k += 1
        while k > 0 and self._at(k) > step:
            k -= 1
        return min(k, step)
