# SPDX-License-Identifier: BSD-3-Clause
"""When it is looked who needs which cells: never later than they may have moved too far, and beside the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from seiche.couple.looks import RESERVE, Looks
from seiche.couple.sharing import Sharing
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS


class Moving:
    """Cells that move by `speed` a step and are needed elsewhere after every `every` sites."""

    def __init__(self, speed: Callable[[int], float], every: float = 1e9) -> None:
        self.speed, self.every = speed, every
        self.step, self.place, self.shared_at, self.farthest = 0, 0.0, 0.0, 0.0
        self.asked: tuple[int, bool, bool, float] | None = None
        self.looked: list[tuple[int, int]] = []  # asked before which step, answered before which step
        self.shared: list[int] = []
        self.looks = Looks(cast(Sharing, self), self.share)

    def ask(self) -> None:
        assert self.asked is None
        beyond = self.place - self.shared_at
        self.asked = (self.step, beyond > self.every + RESERVE, beyond > self.every, self.speed(self.step))

    def answer(self) -> tuple[bool, bool, float]:
        assert self.asked is not None
        asked, lacks, soon, speed = self.asked
        self.looked.append((asked, self.step))
        self.asked = None
        return lacks, soon, speed

    def share(self) -> None:
        assert self.looked[-1] == (self.step, self.step)
        self.shared_at = self.place
        self.shared.append(self.step)

    def run(self, steps: int) -> list[int]:
        """Run as a solver does; return the lengths of what it did at once."""
        parts, end = [], self.step + steps
        while self.step < end:
            ready = self.looks.prepare(self.step, end - self.step)
            assert ready >= 1
            part = GRAPH_STEPS if min(ready, end - self.step) >= GRAPH_STEPS else 1
            for _ in range(part):
                self.place += self.speed(self.step)
                self.step += 1
            self.farthest = max(self.farthest, self.place - self.shared_at)
            parts.append(part)
        return parts


def test_the_host_is_a_graph_ahead_of_what_it_hears_while_cells_are_slow() -> None:
    cells = Moving(lambda step: 0.0035)
    cells.run(2000)
    assert set(cells.run(2 * GRAPH_STEPS * 16)) == {GRAPH_STEPS}
    late = [look for look in cells.looked if look[0] > 2000]
    assert late and all(answered - asked == GRAPH_STEPS for asked, answered in late)
    assert not cells.shared


@pytest.mark.parametrize("speed", [0.004, 0.012, 0.02, 0.05, 0.3])
def test_cells_never_go_further_than_it_was_looked_for(speed: float) -> None:
    cells = Moving(lambda step: speed * (1.2 if step % 700 > 350 else 1.0), every=2.0)
    cells.run(3000)
    assert cells.farthest <= 2.0 + RESERVE
    assert len(cells.shared) == pytest.approx(cells.place / 2.0, rel=0.35)  # never for nothing


def test_cells_are_shared_by_what_they_need_now_not_when_it_was_asked() -> None:
    cells = Moving(lambda step: 0.0035, every=2.0)
    cells.run(3000)
    assert cells.shared  # that the last look was of the same step is seen to above
    assert any(answered > asked for asked, answered in cells.looked)


def test_cells_that_outrun_their_ranks_are_told_even_if_the_answer_comes_late() -> None:
    cells = Moving(lambda step: 0.002 if step < 500 else 0.2, every=2.0)
    with pytest.raises(UnstableError, match=r"moved too far within \d+ steps \(step \d+, velocity 0.2 a step\)"):
        cells.run(3000)
    assert cells.step < 500 + 4 * GRAPH_STEPS


@pytest.mark.parametrize("gain", [1e-5, 1e-4, 1e-3, 1e-2])
def test_cells_may_start_from_rest(gain: float) -> None:
    cells = Moving(lambda step: min(gain * step, 0.1), every=2.0)
    cells.run(1000)
    assert cells.farthest <= 2.0 + RESERVE


def test_cells_are_shared_now_and_then_so_that_they_live_where_they_are() -> None:
    cells = Moving(lambda step: 0.0)
    cells.run(9000)
    assert len(cells.shared) == 2


@pytest.mark.parametrize("speed", [0.0, 0.0035, 0.008, 0.1])
def test_a_look_holds_from_when_it_was_asked_for_and_twice_as_long_as_the_last_one_at_most(speed: float) -> None:
    cells, lengths = Moving(lambda step: speed), [1]
    for steps in (100, 3, 70, 1, 250, 5, 5, 40) * 12:  # graphs, and steps one by one while an answer is awaited
        end = cells.step + steps
        while cells.step < end:
            before = len(cells.looked)
            ready = cells.looks.prepare(cells.step, end - cells.step)
            if len(cells.looked) > before:
                asked = cells.looked[-1][0]
                length = cells.looks.until - asked
                assert length <= min(2 * lengths[-1], 2 * GRAPH_STEPS, max(RESERVE / (1.25 * speed + 0.005), 1))
                lengths.append(length)
            assert cells.step + ready == cells.looks.until
            cells.step += GRAPH_STEPS if min(ready, end - cells.step) >= GRAPH_STEPS else 1
    assert lengths[:4] == [1, 2, 4, 8 if speed < 0.1 else 7]
    assert any(answered > asked for asked, answered in cells.looked) is (speed < 0.01)


def test_a_step_before_the_last_look_is_looked_at_again() -> None:
    cells = Moving(lambda step: 0.0)
    cells.run(20)
    cells.step = 3
    cells.looks.prepare(3, 1)
    assert cells.looked[-1] == (3, 3)


def test_a_new_start_forgets_what_was_asked() -> None:
    cells = Moving(lambda step: 0.001)
    cells.run(1000)
    cells.asked = None
    cells.looks.restart(cells.step)
    assert cells.looks.prepare(cells.step, 100) == 1


@pytest.mark.parametrize("beside", [False, True])
def test_a_state_is_refused_that_a_cell_outran_after_the_last_look(beside: bool) -> None:
    cells = Moving(lambda step: 0.0035, every=2.0)
    cells.run(400)
    while (cells.asked is not None) is not beside:
        cells.run(GRAPH_STEPS)
    cells.looks.confirm(cells.step)
    assert cells.asked is None
    cells.place += 4.0
    with pytest.raises(UnstableError, match=rf"moved too far within \d+ steps \(step {cells.step}, velocity"):
        cells.looks.confirm(cells.step)
    cells.place -= 4.0
    cells.run(2000)
    assert cells.farthest <= 2.0 + RESERVE


def test_a_state_that_was_just_looked_at_is_not_looked_at_again() -> None:
    cells = Moving(lambda step: 0.0)
    cells.looks.confirm(0)
    assert not cells.looked
