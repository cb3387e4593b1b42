# SPDX-License-Identifier: BSD-3-Clause
"""The exact scheme with transforms inside the kernels, axis by axis (theory/ultrasound, section 3).

A transform over the grid is one along each axis. The kernels that update rows include those along the last axis.
Spectra are multiplied between the forward and inverse transforms along the first axis. Passes over memory of a step in
three dimensions, with a number for each field read or written:

gradient     rows of p forward 2; middle axis 2; first axis, times D+ kappa, 4; middle axis back 6
velocity     rows back, u, rows of u forward 12
divergence   middle axis 6; first axis, times D- kappa, 6; middle axis back 6
density      rows back, rho, p 10

On a part with overlaps, messages overlap with these passes, and rows are tapered on loading (`line_items.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import kspace as registry
from seiche.kernels.registry import kspace_passes as passes
from seiche.ultrasound import operators
from seiche.ultrasound.equation_of_state import coefficients_of, final_operation_members, final_operation_of
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.line_items import Axis, ItemSpan, LineRows
from seiche.ultrasound.state import Bound, has_lines


class ExactLinesScheme(ExactScheme):
    """Stages of the exact scheme, with transforms of lines in the kernels."""

    def _prepare(self) -> None:
        state, problem = self._state, self._state.problem
        if not has_lines(problem, state.precision):
            raise CaseError(
                f'transforms: "lines" requires two or three axes with factors of at most 7, not {tuple(problem.shape)}'
            )
        self._other_axes = [Axis(state, axis) for axis in range(3 - problem.dimensions, 2)]
        self._last_axis = Axis(state, 2)
        self._rows = rows = LineRows(state, self._last_axis)
        self._overlaps = state.local.overlaps if state.local is not None and rows.cut else None
        length = state.rows["length"]
        p, u = self._exchanges_of(state.p.reshape(1, -1), length), self._exchanges_of(state.u, length)
        last = state.line_work[self._dimensions - 1 :]
        start, spectrum = self._forward_transforms(state.p, last, 1, p)
        self._gradient = [*start, *spectrum, self._gradient_pass(), *self._inverse_transforms()]
        # Unless a source acts in between, rows of a whole grid or slab are updated and transformed in one pass.
        start, forward = self._forward_transforms(state.u, state.line_work, self._dimensions, u)
        _, transformed = self._forward_transforms(state.u, state.line_work, self._dimensions, u, ready=rows.slabs)
        middle = [self._divergence_pass(), *self._inverse_transforms()]
        layer, dt = self._staggered_layer, problem.dt
        self._velocity = {
            True: self._row_velocity(layer, dt, [], transform=False),
            False: self._row_velocity(layer, dt, start, transform=rows.slabs),
        }
        self._divergence = {True: [*start, *forward, *middle], False: [*transformed, *middle]}
        self._velocity_without_layer = self._row_velocity(self._no_layer, -dt / 2, [], transform=False)
        self._density_and_pressure = self._density_rows()
        self._density_alone = self._row_density(rows.owned, "store-rate")
        self._fractional = self._power_law()

    @property
    def _layout(self) -> dict[str, Any]:
        return self._state.line_rows

    def _spaced(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a table over half rows, or along the axes, with zeros between the last entry and the next half row."""
        spacing = self._layout["half"] - self._state.rows["half"]
        return np.pad(table, [(0, 0)] * (table.ndim - 1) + [(0, spacing)]) if spacing else table

    @property
    def _dimensions(self) -> int:
        return self._state.problem.dimensions

    def _exchanges_of(self, fields: Array, row_length: int) -> list[tuple[Bound, Bound]]:
        """Return start and end of the messages of fields with this distance of rows; empty if no part has overlaps."""
        if self._overlaps is None:
            return []
        return [self._overlaps.exchange(field.reshape(-1), row_length) for field in fields]

    def _forward_transforms(
        self,
        fields: Array,
        spectra: Array,
        count: int,
        messages: list[tuple[Bound, Bound]],
        *,
        ready: bool = False,
        padded: bool = False,
    ) -> tuple[list[Bound], list[Bound]]:
        """Return the work that starts messages, and the transforms of fields along all axes but the first.

        Complete rows are transformed while messages are in flight, unless they are already transformed (`ready`).
        `padded` rows are transformed in place, except those still needed for messages.
        """
        rows, starts, components = self._rows, [start for start, _ in messages], range(count)
        complete_rows = rows.complete(behind_sent=padded)
        planes = rows.planes(complete_rows)
        forward: dict[str, Any] = {"fields": fields, "spectra": spectra, "padded": padded}
        bound = [] if ready else self._row_forward(complete_rows, components, **forward)
        bound += self._side_transforms(planes, components, spectra)
        if complete_rows.count:
            bound += [end for _, end in messages]
            bound += self._row_forward(complete_rows.complement, components, **forward)
            return starts, [*bound, *self._side_transforms(planes.complement, components, spectra)]
        for k, (_, end) in enumerate(messages):  # each is transformed while the later ones are in flight
            single = range(k, k + 1)
            bound += [
                end,
                *self._row_forward(rows.all, single, **forward),
                *self._side_transforms(rows.all_planes, single, spectra),
            ]
        return starts, bound

    def _row_forward(
        self, span: ItemSpan, components: range, *, fields: Array, spectra: Array, padded: bool
    ) -> list[Bound]:
        """Return the transforms along rows of some fields."""
        state, axis, overlaps = self._state, self._last_axis, self._overlaps
        if not span.count:
            return []
        spec = passes.row_forward(axis.shape, tapered=overlaps is not None)
        begin, items = components.start * span.count, len(components) * span.count
        members = {"fields": fields, "spectra": spectra, "roots": axis.roots, "count": state.row_count}
        members |= {"apart": 2 * self._layout["half"] if padded else axis.length, "pitch": self._layout["half"]}
        weight = {} if overlaps is None else {"bell": overlaps.bell, "rows": self._layout}
        members |= {"weight": weight, "range": span.members}
        return [state.bind(spec, begin=begin, items=items, **members)]

    def _side_transforms(
        self, planes: ItemSpan, components: range, spectra: Array, *, inverse: bool = False
    ) -> list[Bound]:
        """Return the transforms of some spectra along the axes between the first and the last."""
        state, bound = self._state, []
        for axis in self._other_axes[1:] if planes.count else ():
            span = planes.times(axis.batches)
            spec = passes.side_transform(axis.shape, inverse=inverse)
            begin, items = components.start * span.count, len(components) * span.count
            members = {"spectra": spectra, "roots": axis.roots, "lines": axis.lines, "range": span.members}
            bound.append(state.bind(spec, begin=begin, items=items, **members))
        return bound

    def _inverse_transforms(self, spectra: Array | None = None, count: int | None = None) -> list[Bound]:
        """Return the inverse transforms along these axes, before the update of rows."""
        components = range(self._dimensions if count is None else count)
        return self._side_transforms(
            self._rows.owned_planes, components, self._state.line_work if spectra is None else spectra, inverse=True
        )

    def _first_axis(self) -> dict[str, Any]:
        """Return the members of passes along the first axis."""
        state, axis = self._state, self._other_axes[0]
        return {"work": state.line_work, "roots": axis.roots, "rows": self._layout, "lines": axis.lines}

    def _row_members(self) -> dict[str, Any]:
        return {"work": self._state.line_work, "roots": self._last_axis.roots, "rows": self._layout}

    def _gradient_pass(self) -> Bound:
        axis = self._other_axes[0]
        spec = passes.gradient_pass(axis.shape, self._dimensions)
        tables = {"derivative": self._forward_table, "kappa": self._kappa}
        return self._state.bind(spec, items=axis.batches, **self._first_axis(), **tables)

    def _divergence_pass(self) -> Bound:
        axis = self._other_axes[0]
        spec = passes.divergence_pass(axis.shape, self._dimensions)
        tables = {"derivative": self._back_table, "kappa": self._kappa}
        return self._state.bind(spec, items=self._dimensions * axis.batches, **self._first_axis(), **tables)

    def _row_velocity(self, layer: Array, dt: float, starts: list[Bound], *, transform: bool) -> list[Bound]:
        """Return the momentum equation; messages of a component start when it is complete."""
        state, axis, owned = self._state, self._last_axis, self._rows.owned
        kind, density = self._medium.staggered()
        spec = passes.row_velocity(axis.shape, self._dimensions, kind, onward=transform)
        members = {**self._row_members(), "u": state.u, "pml": layer, "density": density, "dt": dt}
        in_one_launch = owned.count == owned.total and not starts
        items = self._dimensions * owned.total if in_one_launch else owned.count
        bound: list[Bound] = []
        for k in range(1 if in_one_launch else self._dimensions):
            bound += [state.bind(spec, begin=k * owned.total + owned.first, items=items, **members), *starts[k : k + 1]]
        return bound

    def _density_rows(self) -> list[Bound]:
        """Return the conservation of mass; power-law rows that no neighbour needs are also transformed."""
        state, owned = self._state, self._rows.owned
        final_operation = final_operation_of(state)
        if final_operation != "power-law" or not self._rows.slabs:
            return [self._row_density(owned, final_operation)]
        inside = self._rows.complete(behind_sent=True) if self._rows.cut else owned
        if not inside.count:
            return [self._row_density(owned, final_operation)]
        borders = [self._row_density(border, final_operation) for border in owned.around(inside) if border.count]
        return [*borders, self._row_density(inside, final_operation, transform=True)]

    def _row_density(self, span: ItemSpan, final_operation: registry.Finish, *, transform: bool = False) -> Bound:
        state, problem = self._state, self._state.problem
        absorption = problem.absorption
        varying, medium = self._medium.members(*coefficients_of(state, final_operation))
        kind = self._last_axis.shape, self._dimensions, varying, problem.BonA is not None
        if transform and absorption is not None:
            spec = passes.row_density_onward(*kind, losses=absorption.losses, dispersion=absorption.dispersion)
            results: dict[str, object] = {"p": state.p, "rates": state.line_work[0], "densities": state.line_work[1]}
        else:
            spec, results = passes.row_density(*kind, final_operation), final_operation_members(state, final_operation)
        members = {**self._row_members(), "rho": state.rho, "pml": self._layer, "medium": medium, "finish": results}
        return state.bind(spec, begin=span.first, items=span.count, **members, dt=problem.dt)

    def _power_law(self) -> dict[bool, list[Bound]]:
        """Return the work after the density, by whether a source acted on it; empty for other media.

        Without a source, rows that no neighbour needs are spectra already (`_density_rows`).
        """
        state, absorption = self._state, self._state.problem.absorption
        if absorption is None or absorption.stokes:
            return {True: [], False: []}
        first, last = 0 if absorption.losses else 1, 2 if absorption.dispersion else 1
        active, count = state.line_work[first:last], last - first
        end = [self._power_law_pressure()]
        if not count:
            return {True: end, False: end}
        end = [self._laplacian_pass(active, first), *self._inverse_transforms(active, count), *end]
        messages = self._exchanges_of(active.reshape(count, -1).view(state.real), 2 * self._layout["half"])

        def bound(*, ready: bool) -> list[Bound]:
            starts, spectra = self._forward_transforms(active, active, count, messages, ready=ready, padded=True)
            return [*starts, *spectra, *end]

        return {True: bound(ready=False), False: bound(ready=self._rows.slabs)}

    def _laplacian_pass(self, active: Array, first: int) -> Bound:
        """Return the operators on the spectra `active`; without the operator of losses `first` is 1."""
        axis, problem = self._other_axes[0], self._state.problem
        assert problem.absorption is not None
        members: dict[str, Any] = {**self._first_axis(), "work": active, "first": first}
        members["squares"] = self._state.upload(self._spaced(operators.square_table(problem)))
        members |= {"scale": 1 / problem.points, **operators.laplacian_numbers(problem.absorption)}
        spec = passes.laplacian_pass(axis.shape, self._dimensions, len(active))
        return self._state.bind(spec, items=axis.batches, **members)

    def _power_law_pressure(self) -> Bound:
        state, absorption = self._state, self._state.problem.absorption
        assert absorption is not None
        varying, medium = self._medium.members("c0", "tau")
        losses, dispersion = absorption.losses, absorption.dispersion
        spec = passes.row_power_law(self._last_axis.shape, varying, losses=losses, dispersion=dispersion)
        members = {**self._row_members(), "p": state.p, "medium": medium, "tangent": absorption.tangent}
        return state.bind(spec, begin=self._rows.owned.first, items=self._rows.owned.count, **members)
