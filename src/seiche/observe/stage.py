# SPDX-License-Identifier: BSD-3-Clause
"""Stages: a step is a list of named stages, which timers, ranges, progress and the summary table share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Messages:
    """Messages between this rank and its peers in one step: (peer, bytes), at most one per peer and direction.

    `channel` identifies an exchange; messages within a channel are received in the order of sending. With
    `is_collective` the stage includes a global synchronisation (such as a sum over ranks).
    """

    channel: str
    sent: tuple[tuple[int, int], ...] = ()
    received: tuple[tuple[int, int], ...] = ()
    is_collective: bool = False


@dataclass(frozen=True)
class Stage:
    """One named part of a step.

    `name` is the term of the theory page. `action` does the work of one step. `bytes` is its minimum memory traffic
    (0: not memory-bound). `after` names the stages of the same step that must precede it. `useful`: it computes, and
    does not only communicate or wait. `messages` are sent at its end and received in it.
    """

    name: str
    action: Callable[[], None]
    bytes: int = 0
    after: tuple[str, ...] = ()
    useful: bool = True
    messages: Messages | None = None


def in_order(actions: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return one call that runs `actions` in order."""
    if len(actions) == 1:
        return actions[0]

    def run() -> None:
        for action in actions:
            action()

    return run
