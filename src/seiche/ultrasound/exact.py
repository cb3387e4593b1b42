# SPDX-License-Identifier: BSD-3-Clause
"""The k-space scheme with the exact correction (theory/ultrasound, section 3): stages bound to a state.

gradient     P = F p;  g_i = F^-1[D+_i P]                                       eq. 6
velocity     u_i <- s_i (s_i u_i - dt/rho0_i g_i)                               eq. 7
divergence   d_i = F^-1[D-_i F u_i]                                             eq. 8
density      rho_i <- m_i (m_i rho_i - dt (rho0 + 2 rho) d_i)                   eq. 9
pressure     p from rho, in the density pass unless transforms must come first  eqs. 10 to 12
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.equation_of_state import (
    bind_equation_of_state,
    bind_power_law,
    coefficients_of,
    final_operation_members,
    final_operation_of,
    initial_density,
)
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, DeviceState, stage, stages


class ExactScheme:
    """Stages of the exact scheme, with transforms of whole grids by a library."""

    name = "exact"
    _gradient: list[Bound]
    #: Keyed by whether a source acts on the velocity before its divergence is taken.
    _velocity: dict[bool, list[Bound]]
    _divergence: dict[bool, list[Bound]]
    _velocity_without_layer: list[Bound]
    _density_and_pressure: list[Bound]
    _density_alone: Bound
    #: Keyed by whether a source acted on the density before.
    _fractional: dict[bool, list[Bound]]

    def __init__(self, state: DeviceState) -> None:
        self._state, problem = state, state.problem
        self._medium = MediumArrays(state)
        self._kappa = state.table("kappa", lambda: state.upload(self._spaced(operators.kappa(problem, state.real))))
        self._forward_table = state.upload(self._spaced(operators.derivative_tables(problem, 1)))
        self._back_table = state.upload(self._spaced(operators.derivative_tables(problem, -1)))
        self._layer = state.upload(operators.pml_table(problem, staggered=False))
        self._staggered_layer = state.upload(operators.pml_table(problem, staggered=True))
        self._no_layer = state.upload(operators.ones_table(problem))
        self._pressure_alone = bind_equation_of_state(
            state, self._medium, final_operation_of(state), self._layout, rate=state.work[0]
        )
        self._prepare()

    @property
    def _layout(self) -> dict[str, Any]:
        """Return the layout of rows in the work spectra."""
        return self._state.rows

    def _spaced(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a table in this layout."""
        return table

    def _prepare(self) -> None:
        """Bind the operations that contain transforms."""
        state, dt = self._state, self._state.problem.dt
        inverse = state.transforms.inverse(state.work[: state.problem.dimensions])
        self._gradient = [*self._bind_gradient(), inverse]
        divergence = self._bind_divergence()
        self._divergence = {key: [*divergence, inverse] for key in (False, True)}
        self._velocity = {key: [self._bind_velocity(self._staggered_layer, dt)] for key in (False, True)}
        self._velocity_without_layer = [self._bind_velocity(self._no_layer, -dt / 2)]
        fractional = bind_power_law(state, self._medium)
        self._fractional = {key: fractional for key in (False, True)}
        self._density_and_pressure = [self._bind_density(final_operation_of(state))]
        self._density_alone = self._bind_density("store-rate")

    def _bind_gradient(self) -> list[Bound]:
        """Return the operations that compute the spectra of the derivatives of the pressure."""
        state, dimensions = self._state, self._state.problem.dimensions
        forward = state.forward(state.p, state.work[dimensions - 1 : dimensions], 1)
        spec = registry.spectral_gradient(dimensions, state.precision)
        fields = {"work": state.work, "kappa": self._kappa, "derivative": self._forward_table}
        return [*forward, state.bind_spectral(spec, **fields)]

    def _bind_divergence(self) -> list[Bound]:
        """Return the operations that compute the spectra of the derivatives of the velocity components."""
        state, dimensions = self._state, self._state.problem.dimensions
        forward = state.forward(state.u, state.work[:dimensions], dimensions)
        spec = registry.spectral_divergence(dimensions, state.precision)
        fields = {"work": state.work, "kappa": self._kappa, "derivative": self._back_table}
        return [*forward, state.bind_spectral(spec, **fields)]

    def _bind_velocity(self, layer: Any, dt: float) -> Bound:
        state = self._state
        kind, members = self._medium.staggered()
        spec = registry.velocity(state.problem.dimensions, kind, state.precision)
        return state.bind(spec, u=state.u, gradient=state.work, pml=layer, density=members, rows=state.rows, dt=dt)

    def _bind_density(self, final_operation: registry.Finish) -> Bound:
        state, nonlinear = self._state, self._state.problem.BonA is not None
        varying, medium = self._medium.members(*coefficients_of(state, final_operation))
        return state.bind(
            registry.density(state.problem.dimensions, varying, nonlinear, final_operation, state.precision),
            **{"rho": state.rho, "derivative": state.work, "pml": self._layer, "medium": medium, "rows": state.rows},
            finish=final_operation_members(state, final_operation),
            dt=state.problem.dt,
        )

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        has_velocity_source = bool(velocity_source)
        momentum = [*stages("gradient", *self._gradient), *stages("velocity", *self._velocity[has_velocity_source])]
        momentum += velocity_source
        divergence = stages("divergence", *self._divergence[has_velocity_source])
        fractional = stages("absorption", *self._fractional[bool(mass_source)])
        if not mass_source:
            return [*momentum, *divergence, stage("density", *self._density_and_pressure), *fractional]
        density = stage("density", self._density_alone)
        return [*momentum, *divergence, density, *mass_source, stage("pressure", self._pressure_alone), *fractional]

    def after_restore(self) -> list[Stage]:
        """Return the stages needed after densities and velocities have been restored: none."""
        return []

    def complete_fields(self) -> None:
        """Do nothing: every field is complete."""

    def start(self) -> list[Stage]:
        """Return the stages that set density and velocity from the pressure at time zero (eq. 14)."""
        return [
            initial_density(self._state, self._medium),
            *stages("initial velocity", *self._gradient, *self._velocity_without_layer),
        ]
