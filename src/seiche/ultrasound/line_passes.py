# SPDX-License-Identifier: BSD-3-Clause
"""Passes along one axis at a time (theory/ultrasound, section 4), for some axes of a state.

On several ranks a state has only the axes along which its lines are complete (two_layouts.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace_lines as line_registry
from seiche.kernels.registry.kspace_lines import LineShape
from seiche.ultrasound import operators
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.numbers import prime_factors
from seiche.ultrasound.state import Bound, DeviceState


class LinePasses:
    """Kernels along some axes of a state.

    Args:
        state: fields; component k of `u` and `rho` belongs to axis k.
        axes: numbers of these axes.
        fixed: use kernels compiled for the lengths of the axes where there are such.
        total: the sum of the densities before a step, for nonlinear acoustics.
        rate: receives the sum over axes of the density times the derivatives; None if unused.

    Raises:
        CaseError: an axis is too long for these kernels.
    """

    def __init__(
        self, state: DeviceState, axes: Sequence[int], *, fixed: bool = False, total: Array | None, rate: Array | None
    ) -> None:
        self._state, problem = state, state.problem
        self.medium = MediumArrays(state)
        self._lines = {axis: AxisLines(state, axis, fixed) for axis in axes}
        self.total, self.rate = total, rate
        self._layers = [state.upload(operators.pml_table(problem, staggered=staggered)) for staggered in (False, True)]
        self._no_layer = state.upload(operators.ones_table(problem))
        self.axes = tuple(axes)

    def filters(self, source: Array, target: Array) -> list[Bound]:
        """Return the separable correction along these axes: from one field into another, then in place (eq. 21)."""
        state, problem = self._state, self._state.problem
        scale = (problem.reference_speed * problem.dt) ** 2 / 12
        bound = []
        for lines in self._lines.values():
            k = 2 * np.pi * np.fft.fftfreq(lines.length, lines.spacing)
            factor = state.upload((np.exp(-scale * k * k) / lines.length).astype(np.complex128))
            spec = line_registry.line_filter(lines.shape)
            members: dict[str, Any] = {"in": source, "out": target, "factor": factor, "lines": lines.members}
            bound.append(state.bind(spec, items=lines.items, **members))
            source = target
        return bound

    def terms(self, target: Array, *, begins: bool = True, ends: bool = True) -> list[Bound]:
        """Return the terms of these axes in the correction with the local sound speed, summed in `target` (eq. 22).

        `begins`: the sum starts with these terms. `ends`: the corrected pressure is computed from the sum.
        """
        state, problem = self._state, self._state.problem
        kind, density = self.medium.staggered()
        varying, medium = self.medium.members("c0", "rho0")
        bound = []
        for axis, lines in self._lines.items():
            first, final = begins and axis == self.axes[0], ends and axis == self.axes[-1]
            spec = line_registry.line_correction(kind, varying, lines.shape)
            members = {
                "p": state.p,
                "sum": target,
                "forward": lines.forward,
                "back": lines.backward,
                "lines": lines.members,
            }
            members |= {"density": density, "medium": medium, "component": axis * problem.points, "first": int(first)}
            scale = problem.dt**2 / 12 if final else 0.0
            bound.append(state.bind(spec, items=lines.items, **members, scale=scale))
        return bound

    def step(
        self,
        axis: int,
        corrected: Array,
        *,
        momentum: bool = True,
        mass: bool = True,
        layers: bool = True,
        dt: float | None = None,
    ) -> Bound:
        """Return the step of an axis (eqs. 7 and 9), or half of it, from the corrected pressure."""
        state, problem, lines = self._state, self._state.problem, self._lines[axis]
        kind, density = self.medium.staggered()
        varying, medium = self.medium.members("rho0")
        nonlinear = problem.BonA is not None
        spec = line_registry.line_step(kind, varying, nonlinear, lines.shape, momentum=momentum, mass=mass)
        first, end = lines.table, lines.table + lines.length
        plain, staggered = self._layers
        members = {"p": corrected, "u": state.u[axis], "rho": state.rho[axis], "total": self.total, "rate": self.rate}
        members |= {"forward": lines.forward, "back": lines.backward, "lines": lines.members, "density": density}
        return state.bind(
            spec,
            items=lines.items,
            **members,
            pml=plain[first:end],
            pml_staggered=(staggered if layers else self._no_layer)[first:end],
            medium=medium,
            component=axis * problem.points,
            dt=problem.dt if dt is None else dt,
            first=int(axis == 0),
        )


def line_shape(length: int, is_last: bool, real: Real, fixed: bool) -> LineShape | None:
    """Return how lines of a length are transformed, if possible by kernels for this length; None if it is too long."""
    shape = line_registry.fixed_lines(length, is_last, real) if fixed else None
    return shape or line_registry.any_lines(length, is_last, real)


def too_long(length: int, axis: str) -> str:
    """Return the message for an axis of an elastic medium that is too long."""
    return (
        f"grid.shape: {length} points along {axis} exceed the maximum of {max(line_registry.CAPACITIES)} of an elastic"
        " medium"
    )


class AxisLines:
    """Lines along an axis of the grid: their layout and derivatives."""

    def __init__(self, state: DeviceState, axis: int, fixed: bool) -> None:
        problem = state.problem
        padded_axis = axis + 3 - problem.dimensions
        self.axis, self.length, self.spacing = axis, int(problem.shape[axis]), problem.spacing[axis]
        self.last = padded_axis == 2
        shape = line_shape(self.length, self.last, state.precision, fixed)
        if shape is None:
            if problem.elastic is not None:
                raise CaseError(too_long(self.length, problem.axes[axis]))
            raise CaseError(
                f"scheme: {self.length} points along {problem.axes[axis]} exceed the maximum of "
                f"{max(line_registry.CAPACITIES)} for axis-wise schemes; use the exact scheme"
            )
        self.shape = shape
        size = 2 * shape.lanes
        inner = int(np.prod(state.extents[padded_axis + 1 :], dtype=np.int64))
        outer = problem.points // (inner * self.length)
        lines = outer if self.last else inner
        batches = -(-lines // size)
        self.items = batches if self.last else outer * batches
        self.table = sum(state.extents[:padded_axis])
        factors = prime_factors(self.length)
        radix = np.ones(16, np.int32)
        radix[: len(factors)] = factors
        roots = state.upload(np.exp(-2j * np.pi * np.arange(self.length) / self.length))
        plan = {"roots": roots, "length": self.length, "stages": len(factors), "radix": radix}
        self.members: dict[str, Any] = {"outer": outer, "inner": inner, "batches": batches, "plan": plan}
        self.forward, self.backward = (
            state.upload(operators.staggered_derivative(self.length, self.spacing, sign) / self.length)
            for sign in (1, -1)
        )
