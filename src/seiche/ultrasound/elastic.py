# SPDX-License-Identifier: BSD-3-Clause
"""The elastic pseudospectral scheme (theory/ultrasound, section 20): stages bound to a state.

velocity     derivatives of the stresses, one component and axis in one pass (eq. 63)
stress       derivatives of the velocities, in the same way (eq. 64)
absorption   the same for the accelerations (eq. 66)
pressure     minus the mean normal stress (eq. 65)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import kspace_elastic as registry
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.elastic_medium import absorbs, coefficients, is_uniform
from seiche.ultrasound.line_passes import AxisLines
from seiche.ultrasound.state import Bound, DeviceState, stage

#: Damping of a layer in all directions, over that along its axis (eq. 68).
DAMPING_RATIO = 0.1


class ElasticScheme:
    """Stages of the elastic scheme.

    Args:
        state: the fields.
        fixed: use kernels compiled for the lengths of the axes where there are such.

    Raises:
        CaseError: an axis is too long for these kernels.
    """

    name = "elastic"

    def __init__(self, state: DeviceState, *, fixed: bool = False) -> None:
        self._state, problem = state, state.problem
        self._dimensions, self._varying = problem.dimensions, not is_uniform(problem)
        self._lines = [AxisLines(state, axis, fixed) for axis in range(self._dimensions)]
        self._layers = [[self._layer_tables(axis, staggered) for staggered in (False, True)] for axis in self._axes]
        self._numbers = self._coefficients()
        acceleration = state.backend.zeros(state.u.shape, state.real) if absorbs(problem) else None
        self._velocity = self._accelerate(acceleration, problem.dt)
        self._start = self._accelerate(None, -problem.dt / 2, layers=False)
        self._stress = self._deform(state.u, "u", "lambda", "mu")
        self._absorption = [] if acceleration is None else self._deform(acceleration, "a", "chi", "eta")
        self._pressure = self._on_points(registry.mean_pressure(self._dimensions, state.precision))
        self._initial = self._on_points(registry.initial_stress(self._dimensions, state.precision))

    @property
    def _axes(self) -> range:
        return range(self._dimensions)

    def _coefficients(self) -> dict[str, dict[str, Any]]:
        """Return the members of the coefficients by name."""
        state, prefix = self._state, "elastic "
        if not self._varying:
            return {name: {"number": float(values)} for name, values in coefficients(state.problem)}
        if not any(name.startswith(prefix) for name in state.tables):
            for name, values in coefficients(state.problem):
                state.tables[prefix + name] = state.upload(np.ravel(values))
        return {
            name.removeprefix(prefix): {"numbers": array}
            for name, array in state.tables.items()
            if name.startswith(prefix)
        }

    def _layer_tables(self, axis: int, staggered: bool) -> dict[str, Any]:
        """Return the tables of the layers at the ends of an axis (eqs. 67 and 68)."""
        state, lines = self._state, self._lines[axis]
        table = operators.pml_table(state.problem, staggered=staggered)[lines.table : lines.table + lines.length]
        decay = table**2
        tables = {"decay": decay ** (1 + DAMPING_RATIO), "increase": decay - 1, "damping": decay**DAMPING_RATIO}
        return {name: state.upload(values) for name, values in tables.items()}

    def _stress_index(self, i: int, j: int) -> int:
        axes = self._state.problem.axes
        return self._state.problem.stresses.index(f"s{axes[min(i, j)]}{axes[max(i, j)]}")

    def _accelerate(self, acceleration: Array | None, dt: float, *, layers: bool = True) -> list[Bound]:
        """Return the passes that change the velocities by the derivatives of the stresses over `dt`."""
        state, names = self._state, self._state.problem.stresses
        work = []
        for i in self._axes:
            for j in self._axes:
                number = self._stress_index(i, j)
                spec = registry.accelerate(self._varying, acceleration is not None, self._lines[j].shape)
                rate = {"velocity": state.u[i], "rate": None if acceleration is None else acceleration[i]}
                rate |= {"volume": self._numbers[f"volume {state.problem.axes[i]}"], "first": int(j == 0)}
                memory = names[number] if layers else None
                options: dict[str, Any] = {"staggered": i == j, "memory": memory, "rate": rate, "damps": layers}
                work.append(self._pass(spec, state.stress[number], j, **options, dt=dt))
        return work

    def _deform(self, velocity: Array, name: str, bulk: str, shear: str) -> list[Bound]:
        """Return the passes that change the stresses by the derivatives of velocities or accelerations."""
        state, axes, dimensions = self._state, self._state.problem.axes, self._dimensions
        work = []
        for i in self._axes:
            for j in self._axes:
                shape, number = self._lines[j].shape, self._stress_index(i, j)
                if i == j:
                    spec = registry.compress(self._varying, dimensions, shape)
                    rate = {"stress": state.stress, "lambda": self._numbers[bulk], "mu": self._numbers[shear]}
                    rate |= {"points": state.problem.points, "component": i}
                else:
                    spec = registry.shear(self._varying, shape)
                    modulus = self._numbers[f"{shear} {axes[min(i, j)]}{axes[max(i, j)]}"]
                    rate = {"stress": state.stress[number], "mu": modulus}
                options: dict[str, Any] = {"staggered": i != j, "memory": f"{name}{axes[i]}", "damps": name == "u"}
                work.append(self._pass(spec, velocity[i], j, **options, rate=rate, dt=state.problem.dt))
        return work

    def _pass(
        self,
        spec: KernelSpec,
        field: Array,
        axis: int,
        *,
        staggered: bool,
        memory: str | None,
        rate: dict[str, Any],
        dt: float,
        damps: bool,
    ) -> Bound:
        """Return a pass along an axis from a field to points half a spacing further, or back."""
        state, lines, size = self._state, self._lines[axis], self._state.problem.pml[axis].size
        layer: dict[str, Any] = {"memory": None, **self._layers[axis][staggered], "size": size}
        if memory is not None and size:
            memories = state.layer_memory.setdefault(state.problem.axes[axis], {})
            count = state.problem.points // lines.length * 2 * size
            layer["memory"] = memories.setdefault(memory, state.backend.zeros(count, state.real))
        if not damps:
            layer["damping"] = None
        derivative = lines.forward if staggered else lines.backward
        members: dict[str, Any] = {"field": field, "derivative": derivative, "layer": layer, "rate": rate}
        return state.bind(spec, items=lines.items, **members, lines=lines.members, dt=dt)

    def _on_points(self, spec: KernelSpec) -> Bound:
        state, points = self._state, self._state.problem.points
        return state.bind(spec, items=points, stress=state.stress, p=state.p, points=points)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        absorption = [stage("absorption", *self._absorption)] if self._absorption else []
        stress = [stage("stress", *self._stress), *absorption, *mass_source]
        return [stage("velocity", *self._velocity), *velocity_source, *stress, stage("pressure", self._pressure)]

    def start(self) -> list[Stage]:
        """Return the stages that set stress and velocity from the pressure at time zero (eq. 14)."""
        return [stage("initial stress", self._initial), stage("initial velocity", *self._start)]

    def after_restore(self) -> list[Stage]:
        """Return the stages needed after the fields have been restored: none."""
        return []

    def complete_fields(self) -> None:
        """Do nothing: every field is complete."""
