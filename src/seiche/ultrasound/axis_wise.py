# SPDX-License-Identifier: BSD-3-Clause
"""Schemes with one-dimensional transforms, one axis at a time (theory/ultrasound, section 4): stages bound to a state.

    correction      the pressure with the correction in time: a product over axes (eq. 21), or with the local sound
                    speed (eq. 22)
    axis x, y, z    gradient, velocity, divergence and density of an axis in one pass over memory (eqs. 7 and 9)
    pressure        p from rho (eqs. 10 to 12)

Only the pressure is corrected, so that the stored u is the velocity times the square root of the correction.
"""

from __future__ import annotations

from collections.abc import Sequence

from seiche.backend import Array
from seiche.observe.stage import Stage
from seiche.ultrasound.equation_of_state import (
    bind_equation_of_state,
    bind_power_law,
    final_operation_of,
    initial_density,
)
from seiche.ultrasound.line_passes import LinePasses
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, DeviceState, stage, stages


class AxisWiseScheme:
    """Stages of the separable scheme or of the one with the local sound speed.

    Args:
        state: the fields.
        name: "separable" or "local4".
        fixed: use kernels compiled for the lengths of the axes where there are such.

    Raises:
        CaseError: an axis is too long for these kernels.
    """

    def __init__(self, state: DeviceState, name: str, *, fixed: bool = False) -> None:
        self.name, self._state, problem = name, state, state.problem
        self._corrected = state.backend.zeros(problem.points, state.real)
        self._total, rate = density_sums(state)
        self._passes = LinePasses(state, range(problem.dimensions), fixed=fixed, total=self._total, rate=rate)
        filters = name == "separable"
        correction = self._passes.filters(state.p, self._corrected) if filters else self._passes.terms(self._corrected)
        self._correction = stage("correction", *correction)
        self._pressure = bind_pressure(state, self._passes.medium, self._total, rate)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        driven = driven_axes(self._state) if velocity_source else ()
        momentum = [self._passes.step(k, self._corrected, mass=False) for k in driven]
        middle = [*([stage("velocity", *momentum)] if driven else []), *velocity_source, *self._along(driven)]
        return [self._correction, *middle, *mass_source, *stages("pressure", *self._pressure)]

    def _along(self, driven: Sequence[int]) -> list[Stage]:
        """Return the passes along the axes; after velocity sources only their second half, the density."""
        axes, passes, corrected = self._state.problem.axes, self._passes, self._corrected
        return [
            stage("density", passes.step(k, corrected, momentum=False))
            if k in driven
            else stage(f"axis {axes[k]}", passes.step(k, corrected))
            for k in passes.axes
        ]

    def start(self) -> list[Stage]:
        """Return the stages that set density and velocity from the pressure at time zero (eq. 14)."""
        state, passes = self._state, self._passes
        half_step = -state.problem.dt / 2
        velocity = [passes.step(k, self._corrected, mass=False, layers=False, dt=half_step) for k in passes.axes]
        begin = [initial_density(state, passes.medium), self._correction]
        return [*begin, stage("initial velocity", *velocity), *self.after_restore()]

    def after_restore(self) -> list[Stage]:
        """Return the stages that follow when densities and velocities were set."""
        if self._total is None:
            return []
        state, row = self._state, self._state.extents[2]
        total = bind_equation_of_state(
            state, self._passes.medium, "store-sum", state.rows, total=self._total, rate_row=row
        )
        return [stage("initial sum", total)]

    def complete_fields(self) -> None:
        """Do nothing: every field is complete."""


def driven_axes(state: DeviceState) -> tuple[int, ...]:
    """Return the axes along which sources act on the velocity, on any rank."""
    quantities = {source.quantity for source in state.problem.sources}
    return tuple(k for k, name in enumerate(state.problem.axes) if name in quantities)


def density_sums(state: DeviceState) -> tuple[Array | None, Array | None]:
    """Return arrays for the sum of the densities before a step and for its rate, each None if unused."""
    backend, points = state.backend, state.problem.points
    rate = None if final_operation_of(state) in ("lossless", "relaxation") else backend.zeros(points, state.real)
    return None if state.problem.BonA is None else backend.zeros(points, state.real), rate


def bind_pressure(
    state: DeviceState, medium_arrays: MediumArrays, total: Array | None, rate: Array | None
) -> list[Bound]:
    """Return the work from the densities to the pressure and their sum (eqs. 10 to 12)."""
    power_law = bind_power_law(state, medium_arrays)
    final_operation, row = final_operation_of(state), state.extents[2]
    return [
        bind_equation_of_state(state, medium_arrays, final_operation, state.rows, rate=rate, total=total, rate_row=row),
        *power_law,
    ]
