# SPDX-License-Identifier: BSD-3-Clause
"""When it is looked which ranks need which cells, and when cells are shared anew (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable

from seiche.couple.sharing import Sharing
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS

#: Sites by which cells may move until it is looked again who needs them.
RESERVE = 1
#: Steps after which it is looked again however slow the cells are, for something may have pushed them.
_FARTHEST = 2 * GRAPH_STEPS
#: Steps after which cells are shared anew even if nobody lacks one, so that they live where they are.
_LONGEST = 4096


class Looks:
    """Sees to it that every rank has the cells that it needs.

    A look tells for how many steps that is so. Where it holds for two graphs of steps, the next look is asked for
    before a graph and answered behind it: the device then goes on while the host hears of it.
    """

    def __init__(self, sharing: Sharing, share: Callable[[], None]) -> None:
        """Look by `sharing`; `share` shares cells anew, right after a look."""
        self._sharing, self._share = sharing, share
        self.restart(0)

    def restart(self, step: int) -> None:
        """Forget what was seen: cells were shared before step number `step`, and it is looked again after it."""
        self._shared = self._from = step
        self._window, self.until = 1, step + 1
        #: The step before which a look was asked for that is not answered.
        self._asked: int | None = None

    def prepare(self, step: int, steps: int) -> int:
        """Return for how many of `steps` from step number `step` on every rank has the cells that it needs.

        Collective.

        Raises:
            UnstableError: on all ranks: a cell moved so fast that a rank lacked it.
        """
        # A graph needs all its steps: it is looked again rather than waited for the end of what the last look allows.
        wanted = GRAPH_STEPS if min(steps, self._window) >= GRAPH_STEPS else 1
        if not self._holds(step, wanted):
            if self._asked is not None:
                self._hear(self._asked, step)
            if not self._holds(step, wanted):
                self._look(step)
        further = wanted == GRAPH_STEPS and self._window >= 2 * GRAPH_STEPS
        if further and self._asked is None and self.until - step < 2 * GRAPH_STEPS:
            self._sharing.ask()
            self._asked = step
        return self.until - step

    def confirm(self, step: int) -> None:
        """Refuse the state before step number `step` if a rank lacks a cell in it, or did when that was asked last.

        Collective. A state that is kept or told of must not wait for the next look, which may never come.

        Raises:
            UnstableError: on all ranks: a cell moved so fast that a rank lacked it.
        """
        if self._asked is not None:
            self._answer(self._asked)
        if step != self._from:
            self._sharing.ask()
            self._answer(step)

    def _holds(self, step: int, steps: int) -> bool:
        return self._from <= step and step + steps <= self.until

    def _look(self, step: int) -> None:
        self._sharing.ask()
        self._hear(step, step)

    def _hear(self, asked: int, step: int) -> None:
        """Heed the answer to what was asked before step `asked`."""
        soon, speed = self._answer(asked)
        if soon or step - self._shared >= _LONGEST:
            if asked != step:
                self._look(step)  # cells are shared by what they need now
                return
            self._share()
            self._shared = step
        wait = int(RESERVE / (1.25 * speed + 0.005))
        self._window = max(1, min(wait, 2 * self._window, _FARTHEST))
        self._from, self.until = asked, asked + self._window

    def _answer(self, asked: int) -> tuple[bool, float]:
        """Return whether a rank soon lacks a cell, and the greatest velocity; refuse that it lacked one at `asked`."""
        lacks, soon, speed = self._sharing.answer()
        since, self._asked = asked - self._from, None
        if lacks:
            raise UnstableError(
                f"a cell moved too far within {since} steps (step {asked}, velocity {speed:.3g} a step) for"
                " the ranks that share it: take a smaller time step"
            )
        return soon, speed
