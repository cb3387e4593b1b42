# SPDX-License-Identifier: BSD-3-Clause
"""Axis-wise schemes on several ranks (theory/ultrasound, section 13).

Every rank has a slab of planes, and columns: complete lines along the first axis. Velocity and density of that axis are
stored in the columns. A step sends the pressure there and returns the corrected pressure and that density.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from seiche.backend import Array
from seiche.domain.world import World
from seiche.machine.collectives import Exchange
from seiche.observe.stage import Messages, Stage
from seiche.ultrasound.axis_wise import AxisWiseScheme, bind_pressure, density_sums, driven_axes
from seiche.ultrasound.equation_of_state import initial_density
from seiche.ultrasound.line_passes import LinePasses
from seiche.ultrasound.state import Bound, DeviceAction, DeviceState, MessageAction, stages


class Transposer:
    """Transposition of real fields between slabs of planes and columns.

    Args:
        world: the ranks.
        planes: the fields of this rank's slab.
        columns: the fields of its columns.
        strategy: transport of the messages (seiche.machine.collectives).
        exchanges: list to which the exchanges are appended.
    """

    def __init__(
        self, world: World, planes: DeviceState, columns: DeviceState, *, strategy: Any, exchanges: list[Exchange]
    ) -> None:
        self._world, self._strategy, self._exchanges = world, strategy, exchanges
        self._backend = planes.backend
        height, divided, *last = planes.problem.shape
        self._shape = (height, divided, *(last or [1]))
        width = columns.problem.shape[1]
        self._heights = world.allgather(height)
        self._ends = [sum(world.allgather(width)[:rank]) for rank in range(world.size + 1)]
        self._buffer = self._backend.zeros(planes.problem.points, planes.real)
        inner = self._shape[2]
        self._sent = [height * (b - a) * inner for a, b in pairwise(self._ends)]
        self._received = [rows * width * inner for rows in self._heights]

    def out(self, planes: Array, columns: Array) -> list[Bound]:
        """Return the work that sends a field from planes to columns. Binding may overwrite the columns."""
        pairs = [(message, part) for part, message in self._pairs(planes)]
        return [self._copies(pairs), self._exchange(self._buffer, columns, self._sent, self._received)]

    def back(self, columns: Array, planes: Array) -> list[Bound]:
        """Return the work that sends a field from columns to planes."""
        return [self._exchange(columns, self._buffer, self._received, self._sent), self._copies(self._pairs(planes))]

    def _pairs(self, field: Array) -> list[tuple[Array, Array]]:
        """Return the parts of a field of planes by rank of their columns, each with its section of the messages."""
        planes, pairs, offset = field.reshape(self._shape), [], 0
        for (first, last), size in zip(pairwise(self._ends), self._sent, strict=True):
            message = self._buffer[offset : offset + size].reshape(self._shape[0], last - first, self._shape[2])
            pairs.append((planes[:, first:last], message))
            offset += size
        return pairs

    def _copies(self, pairs: list[tuple[Array, Array]]) -> Bound:
        return DeviceAction(copies(pairs), 2 * int(self._buffer.nbytes))

    def _exchange(self, send: Array, receive: Array, sent: list[int], received: list[int]) -> Bound:
        return transposition(self._world, (send, sent), (receive, received), self._strategy, self._exchanges)


def copies(pairs: Sequence[tuple[Array, Array]]) -> Bound:
    """Return the copy of the second array of each pair into the first."""

    def run() -> None:
        for target, source in pairs:
            target[...] = source

    return run


def transposition(
    world: World,
    send: tuple[Array, Sequence[int]],
    receive: tuple[Array, Sequence[int]],
    strategy: Any,
    exchanges: list[Exchange],
) -> MessageAction:
    """Return an all-to-all exchange of arrays with element counts by rank; it is appended to `exchanges`."""
    exchange = Exchange(world, send[0], receive[0], send[1], receive[1], strategy=strategy)
    exchanges.append(exchange)
    size = send[0].dtype.itemsize
    sent, received = (
        tuple((rank, count * size) for rank, count in enumerate(counts) if rank != world.rank)
        for counts in (send[1], receive[1])
    )
    return MessageAction("transpose", exchange, Messages("transpose", sent=sent, received=received))


class TwoLayoutScheme(AxisWiseScheme):
    """Stages of an axis-wise scheme on one of several ranks.

    Args:
        state: the slab of this rank.
        columns: its columns, with the components of the first axis.
        transposer: between the two.
        name, fixed: as for `AxisWiseScheme`.
    """

    def __init__(
        self, state: DeviceState, columns: DeviceState, transposer: Transposer, name: str, *, fixed: bool = False
    ) -> None:
        self.name, self._state, self._columns = name, state, columns
        backend, problem = state.backend, state.problem
        self._corrected = backend.zeros(problem.points, state.real)
        self._total, rate = density_sums(state)
        column_total, column_rate = density_sums(columns)
        axes = range(1, problem.dimensions)
        self._passes = LinePasses(state, axes, fixed=fixed, total=self._total, rate=rate)
        self._first = LinePasses(columns, (0,), fixed=fixed, total=column_total, rate=column_rate)
        if name == "separable":
            self._column_corrected = columns.p
            column_terms = self._first.filters(columns.p, columns.p)
            slab_terms = self._passes.filters(state.p, self._corrected)
            out = transposer.out(self._corrected, columns.p)
        else:
            self._column_corrected = backend.zeros(columns.problem.points, state.real)
            column_terms = self._first.terms(self._column_corrected, begins=False)
            slab_terms = self._passes.terms(self._corrected, ends=False)
            out = [*transposer.out(state.p, columns.p), *transposer.out(self._corrected, self._column_corrected)]
        if self._total is not None and column_total is not None:
            out += transposer.out(self._total, column_total)
        self._correct = [*slab_terms, *out, *column_terms]
        self._corrected_back = transposer.back(self._column_corrected, self._corrected)
        self._density_back = transposer.back(columns.rho[0], state.rho[0])
        if rate is not None and column_rate is not None:
            self._density_back += transposer.back(column_rate, rate)
        self._density_out = transposer.out(state.rho[0], columns.rho[0])
        self._velocity_out = transposer.out(state.u[0], columns.u[0])
        self._velocity_back = transposer.back(columns.u[0], state.u[0])
        self._pressure = bind_pressure(state, self._passes.medium, self._total, rate)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act on this or another rank."""
        axis, columns, corrected = f"axis {self._state.problem.axes[0]}", self._first, self._column_corrected
        driven = driven_axes(self._state) if velocity_source else ()
        middle = stages("correction", *self._correct)
        if 0 in driven:
            middle += stages("velocity", columns.step(0, corrected, mass=False), *self._corrected_back)
            middle += stages("velocity sources", *self._velocity_back)
        else:
            middle += stages(axis, columns.step(0, corrected), *self._corrected_back, *self._density_back)
        momentum = [self._passes.step(k, self._corrected, mass=False) for k in driven if k > 0]
        middle += [*stages("velocity", *momentum), *velocity_source]
        if 0 in driven:
            middle += stages("velocity sources", *self._velocity_out)
            middle += stages("density", columns.step(0, corrected, momentum=False), *self._density_back)
        middle += [*self._along(driven), *mass_source]
        density_updates = stages("pressure sources", *self._density_out) if mass_source else []
        return [*middle, *density_updates, *stages("pressure", *self._pressure)]

    def start(self) -> list[Stage]:
        """Return the stages that set density and velocity from the pressure at time zero (eq. 14)."""
        half_step: dict[str, Any] = {"mass": False, "layers": False, "dt": -self._state.problem.dt / 2}
        first_axis = self._first.step(0, self._column_corrected, **half_step)
        slab = [self._passes.step(k, self._corrected, **half_step) for k in self._passes.axes]
        return [
            initial_density(self._state, self._passes.medium),
            *stages("initial density", *self._density_out),
            *stages("correction", *self._correct),
            *stages("initial velocity", first_axis, *self._corrected_back, *slab),
            *super().after_restore(),
        ]

    def after_restore(self) -> list[Stage]:
        """Return the stages that follow when densities and velocities of the slab were set; collective."""
        return [*stages("restored", *self._density_out, *self._velocity_out), *super().after_restore()]

    def complete_fields(self) -> None:
        """Copy velocities along the first axis to the slab; collective."""
        for action in self._velocity_back:
            action()
