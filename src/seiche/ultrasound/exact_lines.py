# SPDX-License-Identifier: BSD-3-Clause
"""The exact scheme with transforms in the kernels themselves, axis by axis (theory/ultrasound, section 3).

A transform over the grid is one along each axis. Those along the last axis belong to the kernels that update rows; what
multiplies spectra does so between the transforms, forward and back, along the first axis. In passes over memory a step
of three dimensions then is, with a number for each field read or written:

gradient     rows of p forward 2; middle axis 2; first axis, times D+ kappa, 4; middle axis back 6
velocity     rows back, u, rows of u forward 12
divergence   middle axis 6; first axis, times D- kappa, 6; middle axis back 6
density      rows back, rho, p 10
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry import kspace as registry
from seiche.kernels.registry import kspace_passes as passes
from seiche.kernels.registry.kspace_lines import LineShape, fixed_transform
from seiche.ultrasound import operators
from seiche.ultrasound.absorption import coefficients_of, finish_members, finish_of
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.state import Bound, State


def has_lines(problem: Problem, real: Real) -> bool:
    """Return whether every axis of a grid of two or three dimensions has a length that the kernels can transform."""
    return problem.dimensions > 1 and all(fixed_transform(n, False, real) is not None for n in problem.shape)


class ExactLinesScheme(ExactScheme):
    """Stages of the exact scheme, with transforms of lines in the kernels."""

    def _prepare(self) -> None:
        state, problem = self._state, self._state.problem
        if not has_lines(problem, self._real):
            raise CaseError(
                f"transforms: lines need two or three axes with factors of at most 7, not {tuple(problem.shape)}"
            )
        self._across = [_Axis(state, axis, self._real) for axis in range(3 - problem.dimensions, 2)]
        self._along = _Axis(state, 2, self._real)
        time_step = problem.time_step
        self._gradient = [*self._forward(state.p, 1), self._gradient_pass(), *self._sides(self._dimensions, True)]
        middle = [*self._sides(self._dimensions, False), self._divergence_pass(), *self._sides(self._dimensions, True)]
        self._velocity = {
            between: self._row_velocity(self._staggered_layer, time_step, onward=not between)
            for between in (False, True)
        }
        rows = self._row_forward(state.u, state.work, self._dimensions)
        self._divergence = {False: middle, True: [rows, *middle]}
        self._velocity_without_layer = self._row_velocity(self._no_layer, -time_step / 2, onward=False)
        onward = finish_of(state) == "power-law"
        self._density_and_pressure = self._row_density_onward() if onward else self._row_density(finish_of(state))
        self._density_alone = self._row_density("keep-rate")
        self._fractional = {key: self._power_law(from_rows=key) for key in (False, True)}

    @property
    def _dimensions(self) -> int:
        return self._state.problem.dimensions

    def _forward(self, field: Array, components: int) -> list[Bound]:
        """Return what leaves the spectrum of one field, complete but for the first axis, in the last of the work."""
        last = self._state.work[self._dimensions - 1 :]
        return [self._row_forward(field, last, components), *self._sides(components, False, last)]

    def _row_forward(self, fields: Array, spectra: Array, components: int, *, padded: bool = False) -> Bound:
        state, axis = self._state, self._along
        return self._state.bind(
            passes.row_forward(axis.shape),
            items=components * axis.row_batches(state.row_count),
            fields=fields,
            spectra=spectra,
            roots=axis.roots,
            count=state.row_count,
            apart=2 * state.rows["half"] if padded else axis.length,
        )

    def _sides(self, components: int, inverse: bool, spectra: Array | None = None) -> list[Bound]:
        """Return the transforms along the axes between the first and the last."""
        state, bound = self._state, []
        for axis in self._across[1:]:
            bound.append(
                state.bind(
                    passes.side_transform(axis.shape, inverse=inverse),
                    items=components * axis.blocks * axis.batches,
                    spectra=state.work if spectra is None else spectra,
                    roots=axis.roots,
                    lines=axis.lines,
                )
            )
        return bound

    def _first_axis(self) -> dict[str, Any]:
        """Return the members of passes along the first axis."""
        state, axis = self._state, self._across[0]
        return {"work": state.work, "roots": axis.roots, "rows": state.rows, "lines": axis.lines}

    def _gradient_pass(self) -> Bound:
        axis = self._across[0]
        spec = passes.gradient_pass(axis.shape, self._dimensions)
        tables = {"derivative": self._forward_table, "kappa": self._kappa}
        return self._state.bind(spec, items=axis.batches, **self._first_axis(), **tables)

    def _divergence_pass(self) -> Bound:
        axis = self._across[0]
        return self._state.bind(
            passes.divergence_pass(axis.shape, self._dimensions),
            items=self._dimensions * axis.batches,
            **self._first_axis(),
            factor={"derivative": self._back_table, "kappa": self._kappa},
        )

    def _row_velocity(self, layer: Array, time_step: float, *, onward: bool) -> Bound:
        state, axis = self._state, self._along
        kind, density = self._medium.staggered()
        return self._state.bind(
            passes.row_velocity(axis.shape, self._dimensions, kind, onward=onward),
            items=self._dimensions * axis.row_batches(state.row_count),
            u=state.u,
            work=state.work,
            roots=axis.roots,
            pml=layer,
            density=density,
            rows=state.rows,
            dt=time_step,
        )

    def _row_density(self, finish: registry.Finish) -> Bound:
        state, nonlinear = self._state, self._state.problem.BonA is not None
        varying, medium = self._medium.members(*coefficients_of(state, finish))
        spec = passes.row_density(self._along.shape, self._dimensions, varying, nonlinear, finish)
        return self._bind_density_rows(spec, medium, finish_members(state, finish))

    def _row_density_onward(self) -> Bound:
        state, problem = self._state, self._state.problem
        absorption = problem.absorption
        assert absorption is not None
        varying, medium = self._medium.members(*coefficients_of(state, "power-law"))
        terms = {"losses": absorption.losses, "dispersion": absorption.dispersion}
        nonlinear = problem.BonA is not None
        spec = passes.row_density_onward(self._along.shape, self._dimensions, varying, nonlinear, **terms)
        finish = {"p": state.p, "rates": state.work[0], "densities": state.work[1]}
        return self._bind_density_rows(spec, medium, finish)

    def _bind_density_rows(self, spec: KernelSpec, medium: dict[str, object], finish: dict[str, object]) -> Bound:
        state, axis = self._state, self._along
        return self._state.bind(
            spec,
            items=axis.row_batches(state.row_count),
            rho=state.rho,
            work=state.work,
            roots=axis.roots,
            pml=self._layer,
            medium=medium,
            finish=finish,
            rows=state.rows,
            dt=state.problem.time_step,
        )

    def _power_law(self, *, from_rows: bool) -> list[Bound]:
        """Return what follows the density, `from_rows` if those are not spectra yet; empty for other media."""
        state, absorption = self._state, self._state.problem.absorption
        if absorption is None or absorption.stokes:
            return []
        first, last = 0 if absorption.losses else 1, 2 if absorption.dispersion else 1
        active, count = state.work[first:last], last - first
        bound: list[Bound] = []
        if count:
            axis, exponent = self._across[0], (absorption.alpha_power - 2) / 2
            factor = {"squares": state.upload(operators.square_table(state.problem)), "exponent": exponent}
            laplacians = state.bind(
                passes.laplacian_pass(axis.shape, self._dimensions),
                items=count * axis.batches,
                **{**self._first_axis(), "work": active},
                factor={**factor, "scale": 1 / state.problem.points, "first": first},
            )
            forward = [self._row_forward(active, active, count, padded=True)] if from_rows else []
            there, back = (self._sides(count, inverse, active) for inverse in (False, True))
            bound = [*forward, *there, laplacians, *back]
        varying, medium = self._medium.members("c0", "tau")
        tangent = float(np.tan(np.pi * absorption.alpha_power / 2)) if absorption.dispersion else 0.0
        pressure = state.bind(
            passes.row_power_law(
                self._along.shape, varying, losses=absorption.losses, dispersion=absorption.dispersion
            ),
            items=self._along.row_batches(state.row_count),
            p=state.p,
            work=state.work,
            roots=self._along.roots,
            medium=medium,
            rows=state.rows,
            tangent=tangent,
        )
        return [*bound, pressure]


class _Axis:
    """Lines along one of the three axes: their transform, and how they lie in a spectrum."""

    def __init__(self, state: State, axis: int, real: Real) -> None:
        self.length = int(state.extents[axis])
        shape = fixed_transform(self.length, axis == 2, real)
        assert shape is not None
        self.shape: LineShape = shape
        self.roots = state.upload(np.exp(-2j * np.pi * np.arange(self.length) / self.length))
        spectrum = (*state.extents[:2], state.extents[2] // 2 + 1)
        inner = int(np.prod(spectrum[axis + 1 :], dtype=np.int64))
        self.blocks = int(np.prod(spectrum[:axis], dtype=np.int64))
        self.batches = -(-inner // shape.lanes)
        self.lines = {"inner": inner, "batches": self.batches}

    def row_batches(self, rows: int) -> int:
        """Return the batches of rows, two a complex line."""
        return -(-rows // (2 * self.shape.lanes))
