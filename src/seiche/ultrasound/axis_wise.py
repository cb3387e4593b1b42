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
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.kernels.registry import kspace_lines as line_registry
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.absorption import bind_power_law, bind_start, coefficients_of, finish_members, finish_of
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, State, stage


class AxisWiseScheme:
    """Stages of the separable scheme or of the one with the local sound speed."""

    def __init__(self, state: State, name: str, fixed: bool | None = None) -> None:
        """Upload tables, bind kernels; `fixed`: those for the very lengths of the axes, as is usual on a GPU.

        Raises:
            CaseError: an axis longer than lines can be.
        """
        self.name, self._state, problem = name, state, state.problem
        self._real: Real = "float32" if state.real == np.float32 else "float64"
        self._medium = MediumArrays(state)
        fixed = state.backend.asynchronous if fixed is None else fixed
        self._lines = [_Lines(state, axis, self._real, fixed) for axis in range(problem.dimensions)]
        backend = state.backend
        self._corrected = backend.zeros(problem.points, state.real)
        finish = finish_of(state)
        self._rate = None if finish in ("lossless", "relaxation") else backend.zeros(problem.points, state.real)
        nonlinear = problem.BonA is not None
        self._total = backend.zeros(problem.points, state.real) if nonlinear else None
        self._layers = [state.upload(operators.pml_table(problem, staggered=staggered)) for staggered in (False, True)]
        self._no_layer = state.upload(operators.ones_table(problem))
        self._correction = self._bind_separable() if name == "separable" else self._bind_local()
        self._pressure = [self._bind_pressure(finish), *bind_power_law(state, self._medium, self._real)]

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act."""
        correction = stage("correction", *self._correction)
        axes = list(zip(self._state.problem.axes, self._lines, strict=True))
        if not velocity_source:
            passes = [stage(f"axis {axis}", self._bind_step(lines)) for axis, lines in axes]
        else:
            momentum = stage("velocity", *(self._bind_step(lines, mass=False) for _, lines in axes))
            mass = stage("density", *(self._bind_step(lines, momentum=False) for _, lines in axes))
            passes = [momentum, *velocity_source, mass]
        return [correction, *passes, *mass_source, stage("pressure", *self._pressure)]

    def start(self) -> list[Stage]:
        """Return the stages that make density and velocity from a pressure that is there at time zero (eq. 14)."""
        state, dimensions = self._state, self._state.problem.dimensions
        varying, medium = self._medium.members("c0")
        density = state.bind(
            registry.initial_density(dimensions, varying, self._real),
            p=state.p,
            rho=state.rho,
            medium=medium,
            rows=state.rows,
        )
        half_step = -state.problem.time_step / 2
        velocity = [
            self._bind_step(lines, mass=False, layer=self._no_layer, time_step=half_step) for lines in self._lines
        ]
        relaxing = bind_start(state, self._medium, self._real)
        initial = [
            stage("initial density", density, *relaxing),
            stage("initial velocity", *self._correction, *velocity),
        ]
        if self._total is not None:
            initial.append(stage("initial sum", self._bind_pressure("keep-sum")))
        return initial

    def _bind_separable(self) -> list[Bound]:
        """Return the filters along all axes: from the pressure into the corrected one, then in place."""
        state, problem = self._state, self._state.problem
        scale = (problem.reference_speed * problem.time_step) ** 2 / 12
        bound, source = [], state.p
        for lines in self._lines:
            k = 2 * np.pi * np.fft.fftfreq(lines.length, lines.spacing)
            factor = state.upload((np.exp(-scale * k * k) / lines.length).astype(np.complex128))
            spec = line_registry.line_filter(lines.shape)
            bound.append(
                state.bind(
                    spec,
                    items=lines.items,
                    **{"in": source, "out": self._corrected},
                    factor=factor,
                    lines=lines.members,
                )
            )
            source = self._corrected
        return bound

    def _bind_local(self) -> list[Bound]:
        """Return the terms of all axes, summed in the corrected pressure."""
        state, problem = self._state, self._state.problem
        kind, density = self._medium.staggered()
        varying, medium = self._medium.members("c0", "rho0")
        bound = []
        for lines in self._lines:
            final = lines is self._lines[-1]
            bound.append(
                state.bind(
                    line_registry.line_correction(kind, varying, lines.shape),
                    items=lines.items,
                    p=state.p,
                    sum=self._corrected,
                    forward=lines.forward,
                    back=lines.back,
                    density=density,
                    medium=medium,
                    lines=lines.members,
                    component=lines.axis * problem.points,
                    scale=problem.time_step**2 / 12 if final else 0.0,
                    first=int(lines.axis == 0),
                )
            )
        return bound

    def _bind_step(
        self,
        lines: _Lines,
        *,
        momentum: bool = True,
        mass: bool = True,
        layer: Array | None = None,
        time_step: float | None = None,
    ) -> Bound:
        state, problem = self._state, self._state.problem
        kind, density = self._medium.staggered()
        varying, medium = self._medium.members("rho0")
        nonlinear = problem.BonA is not None
        spec = line_registry.line_step(kind, varying, nonlinear, lines.shape, momentum=momentum, mass=mass)
        first, end = lines.table, lines.table + lines.length
        plain, staggered = self._layers
        return state.bind(
            spec,
            items=lines.items,
            p=self._corrected,
            u=state.u[lines.axis],
            rho=state.rho[lines.axis],
            total=self._total,
            rate=self._rate,
            forward=lines.forward,
            back=lines.back,
            pml=plain[first:end],
            pml_staggered=(staggered if layer is None else layer)[first:end],
            density=density,
            medium=medium,
            lines=lines.members,
            component=lines.axis * problem.points,
            dt=problem.time_step if time_step is None else time_step,
            first=int(lines.axis == 0),
        )

    def _bind_pressure(self, finish: registry.Finish) -> Bound:
        state, nonlinear = self._state, self._state.problem.BonA is not None
        varying, medium = self._medium.members(*coefficients_of(state, finish))
        return state.bind(
            registry.state_of_density(state.problem.dimensions, varying, nonlinear, finish, self._real),
            rho=state.rho,
            rate=self._rate,
            total=self._total,
            medium=medium,
            finish={"sum_out": self._total} if finish == "keep-sum" else finish_members(state, finish),
            rows=state.rows,
            rate_row=state.extents[2],
        )


class _Lines:
    """Lines along an axis of the grid: how they lie, and their derivatives."""

    def __init__(self, state: State, axis: int, real: Real, fixed: bool) -> None:
        problem = state.problem
        place = axis + 3 - problem.dimensions
        self.axis, self.length, self.spacing = axis, int(problem.shape[axis]), problem.spacing[axis]
        self.last = place == 2
        shape = line_registry.fixed_lines(self.length, self.last, real) if fixed else None
        shape = shape or line_registry.any_lines(self.length, self.last, real)
        if shape is None:
            raise CaseError(
                f"scheme: lines of {self.length} points along {problem.axes[axis]} are longer than"
                f" {max(line_registry.CAPACITIES)}, the most that axis-wise schemes handle; use the exact one"
            )
        self.shape = shape
        size = 2 * shape.lanes
        inner = int(np.prod(state.extents[place + 1 :], dtype=np.int64))
        outer = problem.points // (inner * self.length)
        lines = outer if self.last else inner
        batches = -(-lines // size)
        self.items = batches if self.last else outer * batches
        self.table = sum(state.extents[:place])
        factors = prime_factors(self.length)
        radix = np.ones(16, np.int32)
        radix[: len(factors)] = factors
        roots = state.upload(np.exp(-2j * np.pi * np.arange(self.length) / self.length))
        plan = {"roots": roots, "length": self.length, "stages": len(factors), "radix": radix}
        self.members: dict[str, Any] = {"outer": outer, "inner": inner, "batches": batches, "plan": plan}
        self.forward, self.back = (state.upload(_derivative(self.length, self.spacing, sign)) for sign in (1, -1))


def prime_factors(number: int) -> list[int]:
    """Return the factors of a length, fours first, then primes ascending."""
    factors = []
    for factor in (4, 2, 3, 5):
        while number % factor == 0:
            factors.append(factor)
            number //= factor
    candidate = 7
    while number > 1:
        if candidate * candidate > number:
            candidate = number
        while number % candidate == 0:
            factors.append(candidate)
            number //= candidate
        candidate += 2
    return factors


def _derivative(points: int, spacing: float, sign: int) -> npt.NDArray[np.complex128]:
    """Return i k exp(sign i k d/2) / n over a whole axis in FFT order."""
    k = 2 * np.pi * np.fft.fftfreq(points, spacing)
    table = 1j * k * np.exp(sign * 0.5j * k * spacing)
    if points % 2 == 0:
        table[points // 2] = table[points // 2].real
    return np.asarray(table / points)
