# SPDX-License-Identifier: BSD-3-Clause
"""Schedules: the step numbers nearest to the multiples of an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from seiche.case.arguments import number_of
from seiche.errors import CaseError


@dataclass(frozen=True)
class Schedule:
    """Steps round(k * `interval`) for k = 1, 2 ...; `interval` (steps) is a real number of at least 1/2."""

    interval: float

    def next_after(self, step: int) -> int:
        """Return the first scheduled step after `step`."""
        k = max(1, math.floor((step + 0.5) / self.interval))
        while self._step_at(k) <= step:
            k += 1
        return self._step_at(k)

    def due(self, step: int) -> bool:
        """Return whether `step` is scheduled."""
        return self.next_after(step - 1) == step

    def count(self, first: int, last: int) -> int:
        """Return the number of scheduled steps after `first`, up to `last`."""
        return max(0, self._count_until(last) - self._count_until(first))

    def _step_at(self, k: int) -> int:
        return math.floor(k * self.interval + 0.5)

    def _count_until(self, step: int) -> int:
        """Return the number of distinct scheduled steps up to `step`."""
        k = max(0, math.floor((step + 0.5) / self.interval))
        while self._step_at(k + 1) <= step:
            k += 1
        while k > 0 and self._step_at(k) > step:
            k -= 1
        return min(k, step)


def interval_of(steps: Any, time: Any) -> int | float:
    """Return the given number of steps (int) or time in s (float).

    Raises CaseError unless exactly one of them is given and is positive and finite; `steps` must be a whole number.
    """
    value = steps if time is None else time
    number = number_of(value) or 0.0
    if (steps is None) == (time is None) or number <= 0 or (time is None and number != int(number)):
        raise CaseError("every: expected a positive whole number of steps, or a positive time in s")
    return int(number) if time is None else number
