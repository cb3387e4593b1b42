# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of a flow: relaxation time, Mach number and compressibility."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.units import CS2
from seiche.solver import Estimate

#: The equilibrium is a low-Mach expansion with an error of Mach^2.
MACH_ADVISED = 0.1
#: Below, short waves are hardly damped.
TAU_ADVISED = 0.51
#: Relative change of the density by the pressures of a case.
SWING_ADVISED = 0.1
#: Relative drift of mass in 10^5 steps by storage precision.
DRIFT_ADVISED = {"float64": 1e-6, "float32": 1e-6, "float16": 1e-4}
#: Largest velocity of a run over the expected one: a sound wave at the start may double it.
PASSED_ADVISED = 2.0
_DRIFT_STEPS = 100_000
_UNITS = "theory/flow.md#10-units"


def flow_estimates(setup: FlowSetup) -> list[Estimate]:
    """Return the estimates of a flow before a run."""
    return [*_lattice(setup)]


def _lattice(setup: FlowSetup) -> Iterator[Estimate]:
    numbers, step = setup.invariants, setup.units.step
    low, high = numbers.tau
    yield Estimate(
        name="tau" if low == high else "tau at high shear rate",
        value=low,
        least=TAU_ADVISED,
        effect="the run may become unstable",
        remedy="use a larger time step or a smaller spacing (tau = 1/2 + 3 nu dt/dx^2)",
        source="theory/flow.md#3-collision",
    )
    if high > low:
        yield Estimate(name="tau at rest", value=high)
    if numbers.mach is not None:
        yield mach_estimate("Mach number", numbers.mach, step)
    if numbers.driven_velocity is not None:
        yield _driven(setup, numbers.driven_velocity)
    yield Estimate(
        name="relative density change due to pressures",
        value=numbers.density[1] - numbers.density[0],
        greatest=SWING_ADVISED,
        effect="the flow is not nearly incompressible",
        remedy="use a smaller time step",
        source=_UNITS,
    )


def _driven(setup: FlowSetup, velocity: float) -> Estimate:
    """Return the estimate of the `velocity` (m/s) that forces and pressures drive, if velocity_scale is given."""
    step = setup.units.step
    mach = setup.units.to_lattice("velocity", velocity) / CS2**0.5
    smaller = f", or a time step below {step * MACH_ADVISED / mach:.2g} s" if mach > 0 else ""
    return Estimate(
        name="Mach number of developed flow by forces and pressures",
        value=mach,
        greatest=MACH_ADVISED,
        effect=f"they may drive {velocity:.3g} m/s, not lattice.velocity_scale, and end the run",
        remedy=f"check their units; use a smaller force or pressure difference{smaller}",
        source=_UNITS,
    )


def passed_scale(setup: FlowSetup, mach: float) -> Iterator[Estimate]:
    """Yield the largest velocity of a run, of Mach number `mach`, over the one of the check."""
    expected = setup.invariants.mach
    if expected:
        yield Estimate(
            name="largest velocity so far over that of the check",
            value=mach / expected,
            greatest=PASSED_ADVISED,
            effect="the Mach and Reynolds numbers of the check do not hold",
            remedy="check forces, pressures and their units, and set lattice.velocity_scale",
            source=_UNITS,
        )


def mach_estimate(name: str, mach: float, step: float) -> Estimate:
    """Return the estimate of a Mach number that occurs with a time step of `step` s."""
    return Estimate(
        name=name,
        value=mach,
        greatest=MACH_ADVISED,
        effect="errors are of order Mach^2",
        remedy=f"use a time step below {step * MACH_ADVISED / mach:.2g} s" if mach > 0 else "",
        source=_UNITS,
    )


def mass_estimate(setup: FlowSetup, masses: Sequence[float], steps: int) -> Iterator[Estimate]:
    """Yield the relative drift of the `masses` (kg) of a vessel without openings after a number of steps."""
    if setup.case.iolet or len(masses) < 2:
        return
    storage = setup.precision.storage
    yield Estimate(
        name="relative drift of mass so far",
        value=abs(masses[-1] / masses[0] - 1.0),
        greatest=DRIFT_ADVISED[storage] * max(1.0, steps / _DRIFT_STEPS),
        effect="mass is not conserved",
        remedy="use a wider storage precision" if storage != "float64" else "use a smaller time step",
        source="theory/flow.md#conservation-of-mass",
    )
