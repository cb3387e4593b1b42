# SPDX-License-Identifier: BSD-3-Clause
"""The copy bandwidth of all ranks: rounds of copies at the same time, counted by the slowest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from seiche.backend import open_backend
from seiche.backend.base import COPIES, WARM_UP_COPIES
from seiche.domain.world import World
from seiche.observe.bandwidth import copy_bandwidth, copy_bandwidth_interval


class SlowStart:
    """A device whose first copies are slow."""

    def copy_times(self, ready: Callable[[], None]) -> tuple[int, npt.NDArray[np.float64]]:
        seconds = np.full(COPIES, 0.5)
        seconds[:WARM_UP_COPIES] = 9.0
        for _ in seconds:
            ready()
        return 1000, seconds


class TwoRanks(World):
    """Rank 0 of two; the other one takes twice as long in every round."""

    def __init__(self) -> None:
        super().__init__(None)
        self.barriers = 0

    def barrier(self) -> None:
        self.barriers += 1

    def allreduce_sum(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 2.0 * values

    def allreduce_max(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 2.0 * values


def test_rounds_count_all_bytes_and_the_slowest_rank() -> None:
    world = TwoRanks()
    assert copy_bandwidth(SlowStart(), world) == pytest.approx(2000 / 1.0)  # type: ignore[arg-type]
    assert world.barriers == COPIES


def test_the_interval_is_that_of_single_rounds() -> None:
    class Uneven(SlowStart):
        def copy_times(self, ready: Callable[[], None]) -> tuple[int, npt.NDArray[np.float64]]:
            size, seconds = super().copy_times(ready)
            seconds[-1], seconds[-2] = 0.4, 1.0
            return size, seconds

    rate, interval = copy_bandwidth_interval(Uneven(), World.serial())  # type: ignore[arg-type]
    assert rate == pytest.approx(1000 / 0.5)
    assert interval == pytest.approx((1000 / 1.0, 1000 / 0.4))  # rounds to warm up do not count


def test_a_device_copies_at_a_believable_rate(device: str) -> None:
    size, seconds = open_backend(device).copy_times(lambda: None)
    assert size >= 1 << 20 and len(seconds) == COPIES and (seconds > 0).all()
    assert 1e8 < copy_bandwidth(open_backend(device), World.serial()) < 1e14
