# SPDX-License-Identifier: BSD-3-Clause
"""The k-space scheme with the exact correction (theory/ultrasound, section 3): stages bound to a state.

gradient     P = F p;  g_i = F^-1[D+_i P]                                       eq. 6
velocity     u_i <- s_i (s_i u_i - dt/rho0_i g_i)                               eq. 7
divergence   d_i = F^-1[D-_i F u_i]                                             eq. 8
density      rho_i <- m_i (m_i rho_i - dt R d_i)                                eq. 9
pressure     p from rho, in the pass of the density where no transform is due   eqs. 10 to 12
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, State, stage


class ExactScheme:
    """Stages of the exact scheme."""

    name = "exact"

    def __init__(self, state: State) -> None:
        """Upload tables, make plans, bind kernels."""
        self._state, problem = state, state.problem
        self._medium = MediumArrays(state)
        self._real: Real = "float32" if state.real == np.float32 else "float64"
        dimensions = problem.dimensions
        work, rows = state.work, state.rows
        table = state.upload(operators.kappa(problem, state.real))
        forward_table = state.upload(operators.derivative_tables(problem, 1))
        back_table = state.upload(operators.derivative_tables(problem, -1))
        staggered_layer = state.upload(operators.pml_table(problem, staggered=True))
        components = work[:dimensions]
        last = work[dimensions - 1 : dimensions]
        transforms = state.transforms
        volumes = (1, *state.extents)
        self._forward_p = transforms.forward(state.p.reshape(volumes), last)
        self._inverse = transforms.inverse(components)
        self._forward_u = transforms.forward(state.u.reshape(dimensions, *state.extents), components)
        self._gradient = state.bind(
            registry.spectral_gradient(dimensions, self._real),
            work=work,
            derivative=forward_table,
            kappa=table,
            rows=rows,
        )
        self._divergence = state.bind(
            registry.spectral_divergence(dimensions, self._real),
            work=work,
            derivative=back_table,
            kappa=table,
            rows=rows,
        )
        self._velocity = self._bind_velocity(staggered_layer, problem.time_step)
        self._velocity_without_layer = self._bind_velocity(
            state.upload(operators.ones_table(problem)), -problem.time_step / 2
        )
        self._layer = state.upload(operators.pml_table(problem, staggered=False))
        self._fractional = self._bind_fractional()
        power_law = bool(self._fractional)
        self._density_and_pressure = self._bind_density("power-law" if power_law else self._finish)
        self._density_alone = self._bind_density("keep-rate")
        self._pressure_alone = self._bind_state()

    @property
    def _finish(self) -> registry.Finish:
        absorption = self._state.problem.absorption
        if absorption is None:
            return "lossless"
        return "stokes" if absorption.stokes else "power-law"

    def _bind_velocity(self, layer: Any, dt: float) -> Bound:
        state = self._state
        kind, members = self._medium.staggered()
        spec = registry.velocity(state.problem.dimensions, kind, self._real)
        return state.bind(spec, u=state.u, gradient=state.work, pml=layer, density=members, rows=state.rows, dt=dt)

    def _finish_members(self, finish: registry.Finish) -> dict[str, Any]:
        state = self._state
        if finish == "keep-rate":
            return {"rate_out": state.work[0]}
        if finish == "power-law":
            return {"p": state.p, "rate_out": state.work[0], "rho_out": state.work[1]}
        return {"p": state.p}

    def _used(self, finish: registry.Finish) -> list[str]:
        used = ["rho0"]
        if finish in ("lossless", "stokes"):
            used.append("c0")
        if finish == "stokes":
            used.append("tau")
        if self._state.problem.BonA is not None and finish != "keep-rate":
            used.append("BonA")
        return used

    def _bind_density(self, finish: registry.Finish) -> Bound:
        state, nonlinear = self._state, self._state.problem.BonA is not None
        varying, medium = self._medium.members(*self._used(finish))
        return state.bind(
            registry.density(state.problem.dimensions, varying, nonlinear, finish, self._real),
            rho=state.rho,
            derivative=state.work,
            pml=self._layer,
            medium=medium,
            finish=self._finish_members(finish),
            rows=state.rows,
            dt=state.problem.time_step,
        )

    def _bind_state(self) -> Bound:
        state, nonlinear, finish = self._state, self._state.problem.BonA is not None, self._finish
        varying, medium = self._medium.members(*self._used(finish))
        return state.bind(
            registry.state_of_density(state.problem.dimensions, varying, nonlinear, finish, self._real),
            rho=state.rho,
            rate=state.work[0],
            medium=medium,
            finish=self._finish_members(finish),
            rows=state.rows,
        )

    def _bind_fractional(self) -> list[Bound]:
        """Return what follows the inputs of power-law absorption; a switched-off term is not transformed."""
        state, problem = self._state, self._state.problem
        absorption = problem.absorption
        if absorption is None or absorption.stokes:
            return []
        first, last = 0 if absorption.losses else 1, 2 if absorption.dispersion else 1
        active = state.work[first:last]
        varying, medium = self._medium.members("c0", "tau")
        laplacians = state.bind(
            registry.fractional_laplacians(self._real),
            work=state.work,
            squares=state.upload(operators.square_table(problem)),
            rows=state.rows,
            exponent=(absorption.alpha_power - 2) / 2,
            scale=1 / problem.points,
        )
        pressure = state.bind(
            registry.power_law_pressure(varying, self._real),
            p=state.p,
            absorbed=state.work[0],
            dispersed=state.work[1],
            medium=medium,
            rows=state.rows,
            absorption=float(absorption.losses),
            tangent=float(np.tan(np.pi * absorption.alpha_power / 2)) if absorption.dispersion else 0.0,
        )
        if not len(active):
            return [pressure]
        return [state.transforms.forward(None, active), laplacians, state.transforms.inverse(active), pressure]

    def momentum(self) -> list[Stage]:
        """Return the stages up to the new velocity."""
        return [
            stage("gradient", self._forward_p, self._gradient, self._inverse),
            stage("velocity", self._velocity),
        ]

    def mass(self, source: Stage | None = None) -> list[Stage]:
        """Return the stages from the new velocity to the new pressure; a source of mass acts on the density."""
        divergence = stage("divergence", self._forward_u, self._divergence, self._inverse)
        fractional = [stage("absorption", *self._fractional)] if self._fractional else []
        if source is None:
            return [divergence, stage("density", self._density_and_pressure), *fractional]
        kept = stage("density", self._density_alone)
        return [divergence, kept, source, stage("pressure", self._pressure_alone), *fractional]

    def start(self) -> list[Stage]:
        """Return the stages that make density and velocity from a pressure that is there at time zero (eq. 14)."""
        state = self._state
        varying, medium = self._medium.members("c0")
        density = state.bind(
            registry.initial_density(state.problem.dimensions, varying, self._real),
            p=state.p,
            rho=state.rho,
            medium=medium,
            rows=state.rows,
        )
        return [
            stage("initial density", density),
            stage("initial velocity", self._forward_p, self._gradient, self._inverse, self._velocity_without_layer),
        ]
