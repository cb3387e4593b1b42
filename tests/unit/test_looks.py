# SPDX-License-Identifier: BSD-3-Clause
"""When it is looked who needs which cells: never later than they may have moved too far, and beside the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from seiche.couple.looks import RESERVE, Looks
from seiche.couple.sharing import Sharing
from seiche.errors import UnstableError
from seiche.halo.replay import GRAPH_STEPS


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
    assert cells.step < 500 + 6 * GRAPH_STEPS


def test_cells_are_shared_now_and_then_so_that_they_live_where_they_are() -> None:
    cells = Moving(lambda step: 0.0)
    cells.run(9000)
    assert len(cells.shared) == 2


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
