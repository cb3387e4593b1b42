# SPDX-License-Identifier: BSD-3-Clause
"""A step is a list of named stages; timers, ranges, progress and the summary table all read that one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Messages:
    """Messages between this rank and its peers in one step: (peer, bytes) each, at most one a peer and direction.

    `channel` tells exchanges apart: what one rank sends in a channel is received there in the same order. With
    `everyone` a stage is done when all ranks have come to it (a sum over ranks).
    """

    channel: str
    sent: tuple[tuple[int, int], ...] = ()
    received: tuple[tuple[int, int], ...] = ()
    everyone: bool = False


@dataclass(frozen=True)
class Stage:
    """One named part of a step.

    `name` is the word of the theory page. `action` does the work of one step. `bytes` is the memory traffic that one
    step of it must cause (0: not a memory-bound stage). `after` names the stages of the same step that must be done.
    `useful` says that it computes, and does not only move values between ranks or wait for them; `messages` is what
    leaves at its end and arrives in it.
    """

    name: str
    action: Callable[[], None]
    bytes: int = 0
    after: tuple[str, ...] = ()
    useful: bool = True
    messages: Messages | None = None


def in_order(actions: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return one call for several."""
    if len(actions) == 1:
        return actions[0]

    def run() -> None:
        for action in actions:
            action()

    return run
