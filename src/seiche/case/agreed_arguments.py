# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of the Python interface that must be the same on all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from seiche.case.arguments import step_after, whole_number
from seiche.case.kind import Setup
from seiche.case.quantities import shorten
from seiche.domain.world import World
from seiche.errors import CaseError

Result = TypeVar("Result")


def agreed(world: World, key: str, evaluate: Callable[[], Result]) -> Result:
    """Return `evaluate()`, which must have the same result on all ranks (collective).

    Raises a CaseError on all ranks, with the argument's name `key`, if a rank raises one or results differ.
    """
    result: Result | None = None
    problem: str | None = None
    try:
        result = evaluate()
    except CaseError as error:
        problem = str(error)
    outcomes = world.allgather((result, problem))
    problems = [text for _, text in outcomes if text is not None]
    if problems:
        raise CaseError(problem or problems[0])
    if any(other != result for other, _ in outcomes):
        raise CaseError(f"{key}: ranks give different values; this rank gives {shorten(result)}")
    return result  # type: ignore[return-value]


def agreed_end(world: World, steps: object, serve: object, step: int, setup: Setup) -> tuple[int, int | None]:
    """Return the last step and the port of `run(steps, serve=serve)` from `step` (collective).

    Raises a CaseError for a wrong argument, or if ranks give different ones.
    """

    def check() -> tuple[int, int | None]:
        port = whole_number("run: serve", serve) if serve is not None else None
        return step_after(steps, step, setup.steps, setup.source), port

    return agreed(world, "run: steps", check)
