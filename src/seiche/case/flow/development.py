# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of the development of a steady flow: from rest under constant pressures or a force, and as recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema_iolet import PressureOpening, WindkesselOpening
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.units import CS2
from seiche.solver import Estimate

#: Minimum advised flow rate at the end of a run, relative to that of the developed flow.
ADVISED_DEVELOPMENT = 0.99
#: Maximum advised change of a flow rate in the last part of a run, relative to the inflow, and that part of the run.
ADVISED_CHANGE, LAST_PART = 0.01, 0.1
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


def steadiness(
    setup: FlowSetup, times: Sequence[float], flows: Sequence[npt.NDArray[np.float64]]
) -> Iterator[Estimate]:
    """Yield the largest change of a flow rate in the last part of a run so far, or its balance, relative to the inflow.

    Nothing is known of flows with cells, of flows whose openings change in time, and of a record that does not cover
    this part, as after a restart. If `development` already advises a longer run, nothing is added.

    Args:
        setup: the case.
        times: times of the records, s.
        flows: flow rates (m^3/s, positive into the fluid) through each opening at these times.
    """
    openings = setup.case.iolet
    constant = all(isinstance(opening, WindkesselOpening) or opening.table is None for opening in openings)
    radius = 0.5 * setup.invariants.length_scale / setup.units.spacing
    is_known = setup.immersed or any(estimate.violated for estimate in development(setup, radius))
    if is_known or setup.period is not None or not constant or not times:
        return
    begin = (1.0 - LAST_PART) * times[-1]
    last = np.array([flow for time, flow in zip(times, flows, strict=True) if time >= begin])
    inflow = float(np.maximum(last, 0.0).sum(axis=1).mean()) if len(last) else 0.0
    if len(last) < 3 or times[0] > begin or inflow == 0.0:
        return
    # Where a wave of the flow rate is at its extremum, the change is small, but the balance is not.
    change = float(max(np.ptp(last, axis=0).max(), np.abs(last.sum(axis=1)).max())) / inflow
    # The remedy aims at half the bound.
    more = math.log(max(2.0 * change / ADVISED_CHANGE, 2.0)) / _decay_rate(setup, radius) * setup.units.step
    yield Estimate(
        name="change of a flow rate in the last tenth of the run, or inflow - outflow, relative to the inflow",
        value=change,
        upper_bound=ADVISED_CHANGE,
        effect="the flow is not steady yet",
        remedy=f"use time.duration of about {times[-1] + more:.2g} s for a steady flow",
        source="theory/flow.md#automatic-checks",
    )


def _decay_rate(setup: FlowSetup, radius: float) -> float:
    """Return the rate (1/step) at which the slowest disturbance decays in a tube of `radius` (sites).

    It is that of the slowest viscous mode, or of the longest sound wave between a closed and an open end under the
    friction of Poiseuille flow: u'' + (8 nu/R^2) u' + w^2 u = 0 with w = pi cs/(2 L).
    """
    viscosity, sites = (setup.invariants.tau[0] - 0.5) / 3.0, setup.vessel.sites
    centers = [plane.center for plane in sites.iolets]
    length = max(math.dist(a, b) for a in centers for b in centers) / setup.units.spacing or max(sites.shape)
    friction, frequency = 4.0 * viscosity / radius**2, 0.5 * math.pi * CS2**0.5 / length
    sound = friction - math.sqrt(max(friction**2 - frequency**2, 0.0))
    return min(_DECAY * viscosity / radius**2, sound)
