# SPDX-License-Identifier: BSD-3-Clause
"""Time step of a wave case and number of steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from seiche.case.waves.schema import WaveCase
from seiche.errors import CaseError
from seiche.waves.solver import SAFETY

#: Minimum time step, relative to the maximum stable one, and minimum and maximum duration in steps; other values must
#: have a wrong unit.
_MIN_RELATIVE_STEP, _MIN_DURATION, _MAX_DURATION = 1e-6, 0.5, 1e12


def time_steps(
    case: WaveCase, limit: float, source: str, checkpoint: Mapping[str, Any] | None = None
) -> tuple[float, int]:
    """Return the time step (s), at most `limit`, and the number of steps.

    Without `time.step`, it divides the duration. A restart keeps the step of the `checkpoint`, whose attributes are
    given, so that another duration does not change it.
    """
    time = case.time
    given = time.step if time.step is not None else _step_of(checkpoint or {}, limit)
    step = given if given is not None else SAFETY * limit
    if step > limit:
        raise CaseError(f"{source}: time.step: {step:g} s is above the largest stable step of {limit:g} s")
    if step < _MIN_RELATIVE_STEP * limit:
        raise CaseError(
            f"{source}: time.step: {step:g} s is below {_MIN_RELATIVE_STEP:g} of the largest stable step of "
            f"{limit:g} s; check its unit"
        )
    if time.steps is not None:
        return step, time.steps
    assert time.duration is not None
    if not _MIN_DURATION * step <= time.duration <= _MAX_DURATION * step:
        raise CaseError(
            f"{source}: time.duration: {time.duration:g} s is {time.duration / step:.2g} steps of {step:.2g} s, not"
            f" between {_MIN_DURATION:g} and {_MAX_DURATION:g}; check its unit"
        )
    steps = max(1, math.ceil(time.duration / step * (1 - 1e-12)))
    return (step if given is not None else time.duration / steps), steps  # the last step ends at the duration


def _step_of(checkpoint: Mapping[str, Any], limit: float) -> float | None:
    """Return the step of a checkpoint, or None; also if the mesh of the case requires another, which is an error."""
    try:
        step = float(checkpoint.get("step", "none"))
    except ValueError:
        return None
    return step if _MIN_RELATIVE_STEP * limit <= step <= limit else None
