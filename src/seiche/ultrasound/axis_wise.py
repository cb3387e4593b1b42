# SPDX-License-Identifier: BSD-3-Clause
"""Schemes whose transforms are along one axis at a time (theory/ultrasound, section 4): stages bound to a state.

    correction      the pressure with the correction in time: a product over axes (eq. 21), or with the local sound
                    speed (eq. 22)
    axis x, y, z    gradient, velocity, divergence and density of an axis in one pass over memory (eqs. 7 and 9)
    pressure        p from rho (eqs. 10 to 12)

The correction stands at the pressure alone, so that what is stored as u is the velocity times its square root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.ultrasound.absorption import bind_power_law, bind_start, coefficients_of, finish_members, finish_of
from seiche.ultrasound.line_passes import LinePasses
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, DeviceState, stage, stages


class AxisWiseScheme:
    """Stages of the separable scheme or of the one with the local sound speed."""

    def __init__(self, state: DeviceState, name: str, *, fixed: bool = False) -> None:
        """Upload tables, bind kernels; `fixed`: those for the very lengths of the axes, where these have such.

        Raises:
            CaseError: an axis longer than lines can be.
        """
        self.name, self._state, problem = name, state, state.problem
        backend = state.backend
        self._corrected = backend.zeros(problem.points, state.real)
        self._total, rate = sums_of(state)
        self._passes = LinePasses(state, range(problem.dimensions), fixed=fixed, total=self._total, rate=rate)
        separable = name == "separable"
        correction = (
            self._passes.filters(state.p, self._corrected) if separable else self._passes.terms(self._corrected)
        )
        self._correction = stage("correction", *correction)
        self._pressure = pressure_of(state, self._passes.medium, self._passes.total, rate)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        pushed = pushed_axes(self._state) if velocity_source else ()
        momentum = [self._passes.step(k, self._corrected, mass=False) for k in pushed]
        middle = [*([stage("velocity", *momentum)] if pushed else []), *velocity_source, *self._along(pushed)]
        return [self._correction, *middle, *mass_source, *stages("pressure", *self._pressure)]

    def _along(self, pushed: Sequence[int]) -> list[Stage]:
        """Return the passes along the axes: all of a step, or its second half where sources acted on the velocity."""
        axes, passes, corrected = self._state.problem.axes, self._passes, self._corrected
        return [
            stage("density", passes.step(k, corrected, momentum=False))
            if k in pushed
            else stage(f"axis {axes[k]}", passes.step(k, corrected))
            for k in passes.axes
        ]

    def start(self) -> list[Stage]:
        """Return the stages that make density and velocity from a pressure that is there at time zero (eq. 14)."""
        state, passes = self._state, self._passes
        half_step = -state.problem.time_step / 2
        velocity = [passes.step(k, self._corrected, mass=False, layers=False, time_step=half_step) for k in passes.axes]
        return [
            start_of(state, passes.medium),
            self._correction,
            stage("initial velocity", *velocity),
            *self.restored(),
        ]

    def restored(self) -> list[Stage]:
        """Return what follows from densities and velocities that were set."""
        if self._total is None:
            return []
        return [stage("initial sum", sum_of(self._state, self._passes.medium, self._total))]

    def settle(self) -> None:
        """Do nothing: every field lies where it is read."""


def pushed_axes(state: DeviceState) -> tuple[int, ...]:
    """Return the axes along which sources act on the velocity; on several ranks those of all of them."""
    found = {source.quantity for source in state.problem.sources}
    return tuple(k for k, name in enumerate(state.problem.axes) if name in found)


def real_of(state: DeviceState) -> Real:
    """Return the precision of a state as kernels name it."""
    return "float32" if state.real == np.float32 else "float64"


def sums_of(state: DeviceState) -> tuple[Array | None, Array | None]:
    """Return room for the sum of the densities before a step, and for the rate, each None where nothing needs it."""
    backend, points = state.backend, state.problem.points
    rate = None if finish_of(state) in ("lossless", "relaxation") else backend.zeros(points, state.real)
    return None if state.problem.BonA is None else backend.zeros(points, state.real), rate


def start_of(state: DeviceState, medium_arrays: MediumArrays) -> Stage:
    """Return what makes the densities of an initial pressure."""
    varying, medium = medium_arrays.members("c0")
    spec = registry.initial_density(state.problem.dimensions, varying, real_of(state))
    density = state.bind(spec, p=state.p, rho=state.rho, medium=medium, rows=state.rows)
    return stage("initial density", density, *bind_start(state, medium_arrays, real_of(state)))


def pressure_of(
    state: DeviceState, medium_arrays: MediumArrays, total: Array | None, rate: Array | None
) -> list[Bound]:
    """Return what makes the pressure, and the sum of the densities, from the densities (eqs. 10 to 12)."""
    power_law = bind_power_law(state, medium_arrays, real_of(state))
    return [_state_of_density(state, medium_arrays, finish_of(state), total, rate), *power_law]


def sum_of(state: DeviceState, medium_arrays: MediumArrays, total: Array) -> Bound:
    """Return what makes the sum of the densities alone."""
    return _state_of_density(state, medium_arrays, "keep-sum", total, None)


def _state_of_density(
    state: DeviceState, medium_arrays: MediumArrays, finish: registry.Finish, total: Array | None, rate: Array | None
) -> Bound:
    problem, sum_alone = state.problem, finish == "keep-sum"
    varying, medium = medium_arrays.members(*coefficients_of(state, finish))
    return state.bind(
        registry.state_of_density(problem.dimensions, varying, problem.BonA is not None, finish, real_of(state)),
        rho=state.rho,
        rate=rate,
        total=total,
        medium=medium,
        finish={"sum_out": total} if sum_alone else finish_members(state, finish),
        rows=state.rows,
        rate_row=state.extents[2],
    )
