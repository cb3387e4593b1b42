# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the ranks that need cells: before any cell can have moved too far, and concurrently with the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from seiche.couple.redistribution import RESERVE, RedistributionSchedule
from seiche.couple.sharing import CellSharing
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS


class Moving:
    """Cells that move by `speed` a step and are needed elsewhere after every `every` sites."""

    def __init__(self, speed: Callable[[int], float], every: float = 1e9) -> None:
        self.speed, self.every = speed, every
        self.step, self.place, self.redistributed_at, self.farthest = 0, 0.0, 0.0, 0.0
        self.queried: tuple[int, bool, bool, float] | None = None
        self.checks: list[tuple[int, int]] = []  # steps before which the query was launched and replied to
        self.redistributions: list[int] = []
        self.schedule = RedistributionSchedule(cast(CellSharing, self), self.redistribute)

    def query(self) -> None:
        assert self.queried is None
        beyond = self.place - self.redistributed_at
        self.queried = (self.step, beyond > self.every + RESERVE, beyond > self.every, self.speed(self.step))

    def reply(self) -> tuple[bool, bool, float]:
        assert self.queried is not None
        queried, lacks, soon, speed = self.queried
        self.checks.append((queried, self.step))
        self.queried = None
        return lacks, soon, speed

    def redistribute(self) -> None:
        assert self.checks[-1] == (self.step, self.step)
        self.redistributed_at = self.place
        self.redistributions.append(self.step)

    def run(self, steps: int) -> list[int]:
        """Run as a solver does; return the numbers of steps between two calls."""
        parts, end = [], self.step + steps
        while self.step < end:
            ready = self.schedule.prepare(self.step, end - self.step)
            assert ready >= 1
            part = GRAPH_STEPS if min(ready, end - self.step) >= GRAPH_STEPS else 1
            for _ in range(part):
                self.place += self.speed(self.step)
                self.step += 1
            self.farthest = max(self.farthest, self.place - self.redistributed_at)
            parts.append(part)
        return parts


def test_replies_are_read_a_graph_later_while_cells_are_slow() -> None:
    cells = Moving(lambda step: 0.0035)
    cells.run(2000)
    assert set(cells.run(2 * GRAPH_STEPS * 16)) == {GRAPH_STEPS}
    late = [check for check in cells.checks if check[0] > 2000]
    assert late and all(replied - queried == GRAPH_STEPS for queried, replied in late)
    assert not cells.redistributions


@pytest.mark.parametrize("speed", [0.004, 0.012, 0.02, 0.05, 0.3])
def test_cells_never_move_farther_than_the_margin(speed: float) -> None:
    cells = Moving(lambda step: speed * (1.2 if step % 700 > 350 else 1.0), every=2.0)
    cells.run(3000)
    assert cells.farthest <= 2.0 + RESERVE
    assert len(cells.redistributions) == pytest.approx(cells.place / 2.0, rel=0.35)  # never without need


def test_redistribution_follows_a_check_of_the_same_step() -> None:
    cells = Moving(lambda step: 0.0035, every=2.0)
    cells.run(3000)
    assert cells.redistributions  # `redistribute` asserts that the last check was of the same step
    assert any(replied > queried for queried, replied in cells.checks)


def test_cells_that_outrun_their_ranks_are_an_error_even_if_the_reply_is_late() -> None:
    cells = Moving(lambda step: 0.002 if step < 500 else 0.2, every=2.0)
    with pytest.raises(UnstableError, match=r"moved too far in \d+ steps \(step \d+, velocity 0.2 sites per step\)"):
        cells.run(3000)
    assert cells.step < 500 + 4 * GRAPH_STEPS


@pytest.mark.parametrize("gain", [1e-5, 1e-4, 1e-3, 1e-2])
def test_cells_may_start_from_rest(gain: float) -> None:
    cells = Moving(lambda step: min(gain * step, 0.1), every=2.0)
    cells.run(1000)
    assert cells.farthest <= 2.0 + RESERVE


def test_cells_at_rest_are_redistributed_after_many_steps() -> None:
    cells = Moving(lambda step: 0.0)
    cells.run(9000)
    assert len(cells.redistributions) == 2


@pytest.mark.parametrize("speed", [0.0, 0.0035, 0.008, 0.1])
def test_a_check_is_valid_from_its_query_and_for_at_most_twice_the_previous_window(speed: float) -> None:
    cells, lengths = Moving(lambda step: speed), [1]
    for steps in (100, 3, 70, 1, 250, 5, 5, 40) * 12:  # graphs, and single steps while a reply is pending
        end = cells.step + steps
        while cells.step < end:
            before = len(cells.checks)
            ready = cells.schedule.prepare(cells.step, end - cells.step)
            if len(cells.checks) > before:
                queried = cells.checks[-1][0]
                length = cells.schedule.until - queried
                assert length <= min(2 * lengths[-1], 2 * GRAPH_STEPS, max(RESERVE / (1.25 * speed + 0.005), 1))
                lengths.append(length)
            assert cells.step + ready == cells.schedule.until
            cells.step += GRAPH_STEPS if min(ready, end - cells.step) >= GRAPH_STEPS else 1
    assert lengths[:4] == [1, 2, 4, 8 if speed < 0.1 else 7]
    assert any(replied > queried for queried, replied in cells.checks) is (speed < 0.01)


def test_a_step_before_the_last_check_is_checked_again() -> None:
    cells = Moving(lambda step: 0.0)
    cells.run(20)
    cells.step = 3
    cells.schedule.prepare(3, 1)
    assert cells.checks[-1] == (3, 3)


def test_a_restart_discards_the_pending_query() -> None:
    cells = Moving(lambda step: 0.001)
    cells.run(1000)
    cells.queried = None
    cells.schedule.restart(cells.step)
    assert cells.schedule.prepare(cells.step, 100) == 1


@pytest.mark.parametrize("beside", [False, True])
def test_a_state_that_a_cell_outran_after_the_last_check_is_rejected(beside: bool) -> None:
    cells = Moving(lambda step: 0.0035, every=2.0)
    cells.run(400)
    while (cells.queried is not None) is not beside:
        cells.run(GRAPH_STEPS)
    cells.schedule.confirm(cells.step)
    assert cells.queried is None
    cells.place += 4.0
    with pytest.raises(UnstableError, match=rf"moved too far in \d+ steps \(step {cells.step}, velocity"):
        cells.schedule.confirm(cells.step)
    cells.place -= 4.0
    cells.run(2000)
    assert cells.farthest <= 2.0 + RESERVE


def test_a_state_that_was_just_checked_is_not_checked_again() -> None:
    cells = Moving(lambda step: 0.0)
    cells.schedule.confirm(0)
    assert not cells.checks
