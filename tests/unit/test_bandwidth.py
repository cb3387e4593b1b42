# SPDX-License-Identifier: BSD-3-Clause
"""The copy bandwidth of all ranks: rounds of copies at the same time, counted by the slowest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import seiche
from case_files import toml_of, tube_tables
from seiche.backend import open_backend
from seiche.backend.base import COPIES, WARM_UP_COPIES
from seiche.backend.cpu import CpuBackend
from seiche.domain.emulation import emulate_ranks
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.observe.bandwidth import copy_bandwidth, copy_bandwidth_interval
from seiche.report.run_report import text
from seiche.report.summary import read_summary


class SlowStart:
    """A device whose first copies are slow."""

    def copy_times(self, synchronise: Callable[[], None], sharers: int = 1) -> tuple[int, npt.NDArray[np.float64]]:
        seconds = np.full(COPIES, 0.5)
        seconds[:WARM_UP_COPIES] = 9.0
        for _ in seconds:
            synchronise()
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
        def copy_times(self, synchronise: Callable[[], None], sharers: int = 1) -> tuple[int, npt.NDArray[np.float64]]:
            size, seconds = super().copy_times(synchronise)
            seconds[-1], seconds[-2] = 0.4, 1.0
            return size, seconds

    rate, interval = copy_bandwidth_interval(Uneven(), World.serial())  # type: ignore[arg-type]
    assert rate == pytest.approx(1000 / 0.5)
    assert interval == pytest.approx((1000 / 1.0, 1000 / 0.4))  # rounds to warm up do not count


def test_a_rank_without_memory_ends_the_measurement_on_all() -> None:
    class Full:
        def copy_times(self, synchronise: Callable[[], None], sharers: int) -> tuple[int, npt.NDArray[np.float64]]:
            raise BackendUnavailable("no memory")

    def rejected(world: World) -> str:
        with pytest.raises(BackendUnavailable) as caught:
            copy_bandwidth(Full() if world.rank == 1 else SlowStart(), world)  # type: ignore[arg-type]
        return str(caught.value)

    assert emulate_ranks(3, rejected) == ["no memory"] * 3


@pytest.mark.parametrize("limit", ["free memory", "allocation"])
def test_a_run_without_memory_for_copies_ends_well(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "free memory":
        monkeypatch.setattr(CpuBackend, "free_memory", lambda self: 1 << 28)
    else:
        zeros = CpuBackend.zeros

        def limited(self: CpuBackend, shape: Any, dtype: Any) -> Any:
            if np.prod(shape) >= 1 << 24:
                raise MemoryError
            return zeros(self, shape, dtype)

        monkeypatch.setattr(CpuBackend, "zeros", limited)
    case = tmp_path / "case.toml"
    case.write_text(toml_of(tube_tables()))
    with seiche.load(case, output=tmp_path / "out") as simulation:
        outcome = simulation.run(visible=False)
        assert "copy bandwidth not measured: the free memory is insufficient" in simulation.report()
    assert outcome.summary["finished"] and outcome.summary["copy_bandwidth"] is None
    summary = read_summary(tmp_path / "out" / "summary.json")
    assert summary["copy_bandwidth"] is None
    assert any(stage["bandwidth"] for stage in summary["stages"])
    assert "Roofline" not in text(summary)


def test_a_device_copies_at_a_believable_rate(device: str) -> None:
    size, seconds = open_backend(device).copy_times(lambda: None)
    assert size >= 1 << 20 and len(seconds) == COPIES and (seconds > 0).all()
    assert 1e8 < copy_bandwidth(open_backend(device), World.serial()) < 1e14


def test_every_way_to_move_data_moves_all_of_it() -> None:
    backend = CpuBackend(2)
    source, target = backend.zeros(4096, np.float64), backend.zeros(4096, np.float64)
    values = np.random.default_rng(1).random(4096)
    expected = {0: values, 1: values, 2: 0.75 * np.ones(4096), 3: 0.25 + values, 4: 0.25 * np.ones(4096)}
    for way, result in expected.items():
        source[...], target[...] = values, 0.25
        backend._library.seiche_move(target.ctypes.data, source.ctypes.data, 4096, way, 2)
        np.testing.assert_array_equal(target, result)
        np.testing.assert_array_equal(source, result if way == 4 else values)
