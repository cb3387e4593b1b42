# SPDX-License-Identifier: BSD-3-Clause
"""A step is a list of named stages; timers, ranges, progress and the summary table all read that one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One named part of a step.

    `name` is the word of the theory page. `action` does the work of one step. `bytes` is the memory traffic that one
    step of it must cause (0: not a memory-bound stage). `after` names the stages of the same step that must be done.
    """

    name: str
    action: Callable[[], None]
    bytes: int = 0
    after: tuple[str, ...] = ()


def in_order(actions: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return one call for several."""
    if len(actions) == 1:
        return actions[0]

    def run() -> None:
        for action in actions:
            action()

    return run
