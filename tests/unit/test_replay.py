# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of steps: stages that do not do the same in every step go on where they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seiche.observe.stage import Stage
from seiche.solver.replay import GRAPH_STEPS, Replay


class Recorded:
    """A device that keeps what is launched while it captures, as a GPU does, and does it when the graph is launched."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._capturing: list[str] | None = None

    def launch(self, name: str) -> None:
        (self.done if self._capturing is None else self._capturing).append(name)

    def capture(self, work: Callable[[], None]) -> Any:
        self._capturing = retained = []
        work()
        self._capturing = None
        device = self

        class Graph:
            def launch(self) -> None:
                device.done.extend(retained)

        return Graph()


def test_what_is_due_every_eighth_step_stays_so_when_single_steps_come_between_graphs() -> None:
    device, steps = Recorded(), [0]

    def sweep() -> None:
        device.launch("sweep")

    def mark() -> None:
        steps[0] += 1
        if steps[0] % 8 == 0:
            device.launch("mark")

    stages = [Stage("sweep", sweep), Stage("mark inside", mark)]
    replay = Replay(device, [])  # type: ignore[arg-type]
    for singles in (3, 1, 0, 7, 5, 0):
        for _ in range(singles):
            for stage in stages:
                stage.action()
        replay.launch([stages] * GRAPH_STEPS, steps[0] % 8)
    total = 16 + 6 * GRAPH_STEPS
    expected = [name for step in range(1, total + 1) for name in ("sweep", *(["mark"] if step % 8 == 0 else []))]
    assert device.done == expected
