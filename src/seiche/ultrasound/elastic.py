# SPDX-License-Identifier: BSD-3-Clause
"""The elastic pseudospectral scheme (theory/ultrasound, section 20): stages bound to a state.

velocity     derivatives of the stresses, one component and axis in one pass (eq. 63)
stress       derivatives of the velocities, in the same way (eq. 64)
absorption   the same for the accelerations (eq. 66)
pressure     minus the mean normal stress (eq. 65)

A pass along an axis of which a rank has only a part multiplies its field by a bell function. Before it the overlaps at
the ends of owned lines receive the neighbours' values; other overlaps are zero, so that no result depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import kspace_elastic as registry
from seiche.kernels.registry.kspace import inject
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.elastic_layers import LayerPoints, is_cut
from seiche.ultrasound.elastic_medium import absorbs, coefficients, is_uniform
from seiche.ultrasound.line_passes import AxisLines
from seiche.ultrasound.problem import Window
from seiche.ultrasound.state import Bound, DeviceState, stage, stages

#: Damping of a layer in all directions, over that along its axis (eq. 68).
DAMPING_RATIO = 0.1


class ElasticScheme:
    """Stages of the elastic scheme.

    Args:
        state: the fields.
        fixed: use kernels compiled for the lengths of the axes where there are such.
        absorbing: whether the medium absorbs in any part of the grid, the same on every rank; by default in this part.

    Raises:
        CaseError: an axis is too long for these kernels.
    """

    name = "elastic"

    def __init__(self, state: DeviceState, *, fixed: bool = False, absorbing: bool | None = None) -> None:
        self._state, problem = state, state.problem
        self._absorbing = absorbs(problem) if absorbing is None else absorbing
        self._dimensions, self._varying = problem.dimensions, not is_uniform(problem)
        self._windows = problem.window or tuple(Window(n, 0, n, 0) for n in problem.shape)
        self._exchanges: dict[tuple[str, int], tuple[Bound, Bound]] = {}
        self._lines = [AxisLines(state, axis, fixed) for axis in range(self._dimensions)]
        self._layers = [[self._layer_tables(axis, staggered) for staggered in (False, True)] for axis in self._axes]
        self._numbers = self._coefficients()
        acceleration = state.backend.zeros(state.u.shape, state.real) if self._absorbing else None
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
        values_by_name = coefficients(state.problem, absorbing=self._absorbing)
        if not self._varying:
            return {name: {"number": float(values)} for name, values in values_by_name}
        if not any(name.startswith(prefix) for name in state.tables):
            for name, values in values_by_name:
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
                spec = registry.accelerate(
                    self._varying, acceleration is not None, self._lines[j].shape, tapered=self._is_cut(j)
                )
                rate = {"velocity": state.u[i], "rate": None if acceleration is None else acceleration[i]}
                rate |= {"volume": self._numbers[f"volume {state.problem.axes[i]}"], "first": int(j == 0)}
                memory = names[number] if layers else None
                options: dict[str, Any] = {"staggered": i == j, "memory": memory, "rate": rate, "damps": layers}
                work += self._received(names[number], state.stress[number], j)
                work.append(self._pass(spec, state.stress[number], j, **options, dt=dt))
        return [*self._cleared(state.stress), *self._sent(work), *work]

    def _deform(self, velocity: Array, name: str, bulk: str, shear: str) -> list[Bound]:
        """Return the passes that change the stresses by the derivatives of velocities or accelerations."""
        state, axes, dimensions = self._state, self._state.problem.axes, self._dimensions
        work = []
        for i in self._axes:
            for j in self._axes:
                shape, number = self._lines[j].shape, self._stress_index(i, j)
                if i == j:
                    spec = registry.compress(self._varying, dimensions, shape, tapered=self._is_cut(j))
                    rate = {"stress": state.stress, "lambda": self._numbers[bulk], "mu": self._numbers[shear]}
                    rate |= {"points": state.problem.points, "component": i}
                else:
                    spec = registry.shear(self._varying, shape, tapered=self._is_cut(j))
                    modulus = self._numbers[f"{shear} {axes[min(i, j)]}{axes[max(i, j)]}"]
                    rate = {"stress": state.stress[number], "mu": modulus}
                options: dict[str, Any] = {"staggered": i != j, "memory": f"{name}{axes[i]}", "damps": name == "u"}
                work += self._received(f"{name}{axes[i]}", velocity[i], j)
                work.append(self._pass(spec, velocity[i], j, **options, rate=rate, dt=state.problem.dt))
        return [*self._cleared(velocity), *self._sent(work), *work]

    def _is_cut(self, axis: int) -> bool:
        return is_cut(self._windows[axis])

    def _cleared(self, fields: Array) -> list[Bound]:
        """Return the kernel that sets the overlaps of fields (n, points) to zero, none on the whole grid."""
        state = self._state
        outside = np.ones(state.problem.shape, bool)
        outside[tuple(slice(window.overlap, window.overlap + window.core) for window in self._windows)] = False
        points = np.flatnonzero(outside)
        if not points.size:
            return []
        table = state.table("overlap points", lambda: state.backend.upload(np.asarray(points, np.uint32)))
        zero = state.table("zero", lambda: state.backend.zeros(1, state.real))
        clock = state.table("first step", lambda: state.backend.zeros(1, np.int64))
        signal = {"samples": zero, "weight": None, "delay": None, "clock": clock, "stride": 0, "column": 0}
        members: dict[str, Any] = {"field": fields, "points": table, "signal": signal, "fields": len(fields)}
        spec = inject(True, state.precision)
        return [state.bind(spec, items=points.size, **members, distance=state.problem.points)]

    def _received(self, name: str, field: Array, axis: int) -> list[Bound]:
        """Return the end of the exchange that fills the overlaps of a field along an axis, none if it is not cut."""
        if not self._is_cut(axis):
            return []
        assert self._state.local is not None
        if (name, axis) not in self._exchanges:
            exchange = self._state.local.overlaps.exchange(field, self._state.rows["length"], axis)
            self._exchanges[name, axis] = exchange
        return [self._exchanges[name, axis][1]]

    def _sent(self, work: Sequence[Bound]) -> list[Bound]:
        """Return the starts of the exchanges whose ends are in `work`."""
        return [start for start, end in self._exchanges.values() if any(end is action for action in work)]

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
        points = LayerPoints.of(self._windows[axis], size)
        layer: dict[str, Any] = {"memory": None, **self._layers[axis][staggered], **points.members()}
        if memory is not None and size:
            memories = state.layer_memory.setdefault(state.problem.axes[axis], {})
            count = state.problem.points // lines.length * points.stored
            stored = memories.setdefault(memory, state.backend.zeros(count, state.real))
            layer["memory"] = stored if count else None
        if not damps:
            layer["damping"] = None
        derivative = lines.forward if staggered else lines.backward
        members: dict[str, Any] = {"field": field, "derivative": derivative, "layer": layer, "rate": rate}
        members["bell"] = self._bell(axis)
        return state.bind(spec, items=lines.items, **members, lines=lines.members, dt=dt)

    def _bell(self, axis: int) -> Array | None:
        """Return the bell function along an axis, None if it is not cut."""
        if not self._is_cut(axis):
            return None
        assert self._state.local is not None
        bells: Array = self._state.local.overlaps.bell
        first = self._lines[axis].table
        return bells[first : first + self._lines[axis].length]

    def _on_points(self, spec: KernelSpec) -> Bound:
        state, points = self._state, self._state.problem.points
        return state.bind(spec, items=points, stress=state.stress, p=state.p, points=points)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        absorption = stages("absorption", *self._absorption)
        stress = [*stages("stress", *self._stress), *absorption, *mass_source]
        return [*stages("velocity", *self._velocity), *velocity_source, *stress, stage("pressure", self._pressure)]

    def start(self) -> list[Stage]:
        """Return the stages that set stress and velocity from the pressure at time zero (eq. 14)."""
        return [stage("initial stress", self._initial), *stages("initial velocity", *self._start)]

    def after_restore(self) -> list[Stage]:
        """Return the stages needed after the fields have been restored: none."""
        return []

    def complete_fields(self) -> None:
        """Do nothing: every field is complete."""
