# SPDX-License-Identifier: BSD-3-Clause
"""Schedule by which ranks check which cells they need, and by which cells are redistributed (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable

from seiche.couple.sharing import CellSharing
from seiche.errors import UnstableError
from seiche.solver.replay import GRAPH_STEPS

#: Number of sites by which cells may move before the next check.
RESERVE = 1
#: Maximum number of steps between two checks, since slow cells may accelerate.
_MAX_WINDOW = 2 * GRAPH_STEPS
#: Number of steps after which cells are always redistributed, so that each cell is owned by a rank near it.
_MAX_AGE = 4096


class RedistributionSchedule:
    """Schedule of checks and redistributions that ensures that every rank has the cells that it needs.

    A check determines the number of steps for which this condition holds. If it holds for at least two graphs of steps,
    the next check is launched before a graph and its reply is read after the graph, so that the device does not wait
    for the host.
    """

    def __init__(self, sharing: CellSharing, redistribute: Callable[[], None]) -> None:
        """Use the checks of `sharing`; `redistribute` is called immediately after a check."""
        self._sharing, self._redistribute = sharing, redistribute
        self.restart(0)

    def restart(self, step: int) -> None:
        """Discard all checks after a redistribution before step `step`, which is valid for one step."""
        self._redistributed = self._from = step
        self._window, self.until = 1, step + 1
        #: Step before which the pending query was launched.
        self._queried: int | None = None

    def prepare(self, step: int, steps: int) -> int:
        """Return the number of steps from `step`, up to `steps`, for which every rank has its cells (collective).

        Raises:
            UnstableError: on all ranks, if a cell moved so fast that a rank lacked it.
        """
        # All steps of a graph must be valid. A new check is faster than running the last valid steps one by one.
        required = GRAPH_STEPS if min(steps, self._window) >= GRAPH_STEPS else 1
        if not self._valid(step, required):
            if self._queried is not None:
                self._process(self._queried, step)
            if not self._valid(step, required):
                self._check(step)
        asynchronous = required == GRAPH_STEPS and self._window >= 2 * GRAPH_STEPS
        if asynchronous and self._queried is None and self.until - step < 2 * GRAPH_STEPS:
            self._sharing.query()
            self._queried = step
        return self.until - step

    def confirm(self, step: int) -> None:
        """Reject the state before step `step` if a rank lacks a cell in it or in the state last queried (collective).

        A state that is written or returned cannot wait for the next regular check.

        Raises:
            UnstableError: on all ranks, if a cell moved so fast that a rank lacked it.
        """
        if self._queried is not None:
            self._reply(self._queried)
        if step != self._from:
            self._sharing.query()
            self._reply(step)

    def _valid(self, step: int, steps: int) -> bool:
        return self._from <= step and step + steps <= self.until

    def _check(self, step: int) -> None:
        self._sharing.query()
        self._process(step, step)

    def _process(self, queried: int, step: int) -> None:
        """Process the reply to the query launched before step `queried`; `step` is the current step."""
        exchange_due, speed = self._reply(queried)
        if exchange_due or step - self._redistributed >= _MAX_AGE:
            if queried != step:
                self._check(step)  # redistribution requires a current check
                return
            self._redistribute()
            self._redistributed = step
        valid_steps = int(RESERVE / (1.25 * speed + 0.005))
        self._window = max(1, min(valid_steps, 2 * self._window, _MAX_WINDOW))
        self._from, self.until = queried, queried + self._window

    def _reply(self, queried: int) -> tuple[bool, float]:
        """Return whether a rank will soon lack a cell, and the maximum velocity; raise if a rank lacked a cell."""
        cell_missing, exchange_due, speed = self._sharing.reply()
        elapsed, self._queried = queried - self._from, None
        if cell_missing:
            raise UnstableError(
                f"a cell moved too far in {elapsed} steps (step {queried}, velocity {speed:.3g} sites per step): a "
                "rank that needs it has no copy; use a smaller time step"
            )
        return exchange_due, speed
