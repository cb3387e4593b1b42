# SPDX-License-Identifier: BSD-3-Clause
"""Estimate of the development of a flow from rest, driven by constant pressures or a force."""

from __future__ import annotations

import math
from collections.abc import Iterator

from seiche.case.flow.schema_iolet import PressureOpening
from seiche.case.flow.setup import FlowSetup
from seiche.solver import Estimate

#: Minimum advised flow rate at the end of a run, relative to that of the developed flow.
ADVISED_DEVELOPMENT = 0.99
#: Square of the first zero of J0, and the amplitude 32/j^4 of this mode in the flow rate of a tube.
_DECAY = 5.7832
_AMPLITUDE = 32.0 / _DECAY**2


def developed_fraction(time: float) -> float:
    """Return the flow rate at a time over radius^2/viscosity, relative to that of developed flow in a tube.

    The slowest mode of a flow that starts from rest (Batchelor 1967, section 4.3) counts: the others vanish by the time
    at which the fraction is a half.
    """
    return 1.0 - _AMPLITUDE * math.exp(-_DECAY * time)


def development(setup: FlowSetup, radius: float) -> Iterator[Estimate]:
    """Yield the flow rate at the end of the run relative to the developed one, in a vessel of `radius` (sites).

    Nothing is known of flows with cells, of flows that are driven by velocities or change in time.
    """
    openings = setup.case.iolet
    constant = all(isinstance(opening, PressureOpening) and opening.table is None for opening in openings)
    driven = len(openings) > 1 or setup.case.body_force is not None
    if setup.immersed or setup.period is not None or not (constant and driven):
        return
    viscous_time = radius**2 / ((setup.invariants.tau[0] - 0.5) / 3.0)
    needed = math.log(_AMPLITUDE / (1.0 - ADVISED_DEVELOPMENT)) / _DECAY * viscous_time * setup.units.step
    yield Estimate(
        name="flow rate at the end, relative to the developed flow",
        value=developed_fraction(setup.steps / viscous_time),
        lower_bound=ADVISED_DEVELOPMENT,
        effect="the flow has started from rest and is still accelerating",
        remedy=f"use time.duration of at least {needed:.2g} s for the steady flow",
        source="theory/flow.md#automatic-checks",
    )
