# SPDX-License-Identifier: BSD-3-Clause
"""Schemes along one axis at a time on several ranks (theory/ultrasound, section 13).

Every rank has a slab of planes, and columns: whole lines along the first axis. What belongs to that axis, its velocity
and density, stays in the columns. A step sends the pressure there and brings back the corrected pressure and that
density.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from seiche.backend import Array
from seiche.domain.world import World
from seiche.machine.collectives import Exchange
from seiche.observe.stage import Messages, Stage
from seiche.ultrasound.axis_wise import AxisWiseScheme, pressure_of, pushed_axes, start_of, sum_of, sums_of
from seiche.ultrasound.line_passes import LinePasses
from seiche.ultrasound.state import Bound, Carried, DeviceState, Work, stages


class Turns:
    """Fields of real numbers between slabs of planes and columns.

    Args:
        world: the ranks.
        planes: the fields of this rank's slab.
        columns: the fields of its columns.
        strategy: how messages travel (seiche.machine.collectives).
        exchanges: takes the exchanges that are made.
    """

    def __init__(
        self, world: World, planes: DeviceState, columns: DeviceState, *, strategy: Any, exchanges: list[Exchange]
    ) -> None:
        """Make room for messages: gathered and dealt out beside the planes, whose columns are not together there."""
        self._world, self._strategy, self._exchanges = world, strategy, exchanges
        self._backend = planes.backend
        height, divided, *rest = planes.problem.shape
        self._shape = (height, divided, *(rest or [1]))
        width = columns.problem.shape[1]
        self._heights = world.allgather(height)
        self._ends = [sum(world.allgather(width)[:rank]) for rank in range(world.size + 1)]
        self._room = self._backend.zeros(planes.problem.points, planes.real)
        inner = self._shape[2]
        self._sent = [height * (b - a) * inner for a, b in pairwise(self._ends)]
        self._received = [one * width * inner for one in self._heights]

    def out(self, planes: Array, columns: Array) -> list[Bound]:
        """Return what brings a field from planes to columns. Binding may lose what the columns hold."""
        pairs = [(message, part) for part, message in self._pairs(planes)]
        return [self._copies(pairs), self._carried(self._room, columns, self._sent, self._received)]

    def back(self, columns: Array, planes: Array) -> list[Bound]:
        """Return what brings a field from columns to planes."""
        return [self._carried(columns, self._room, self._received, self._sent), self._copies(self._pairs(planes))]

    def _pairs(self, field: Array) -> list[tuple[Array, Array]]:
        """Return the parts of a field of planes that belong to the ranks' columns, and where they lie in messages."""
        planes, pairs, at = field.reshape(self._shape), [], 0
        for (first, last), size in zip(pairwise(self._ends), self._sent, strict=True):
            message = self._room[at : at + size].reshape(self._shape[0], last - first, self._shape[2])
            pairs.append((planes[:, first:last], message))
            at += size
        return pairs

    def _copies(self, pairs: list[tuple[Array, Array]]) -> Bound:
        def run() -> None:
            for target, source in pairs:
                target[...] = source

        return Work(run, 2 * int(self._room.nbytes))

    def _carried(self, send: Array, receive: Array, sent: list[int], received: list[int]) -> Bound:
        exchange = Exchange(self._world, send, receive, sent, received, strategy=self._strategy)
        self._exchanges.append(exchange)
        size = send.dtype.itemsize

        def others(counts: list[int]) -> tuple[tuple[int, int], ...]:
            return tuple((rank, n * size) for rank, n in enumerate(counts) if rank != self._world.rank)

        return Carried("transpose", exchange, Messages("transpose", sent=others(sent), received=others(received)))


class TwoLayoutScheme(AxisWiseScheme):
    """Stages of the separable scheme or of the one with the local sound speed, on one of several ranks.

    Args:
        state: the slab of this rank.
        columns: its columns, with the components of the first axis.
        turns: between the two.
        name: "separable" or "local4".
        fixed: take kernels for the very lengths of the axes, where these have such.

    Raises:
        CaseError: an axis longer than lines can be.
    """

    def __init__(
        self, state: DeviceState, columns: DeviceState, turns: Turns, name: str, *, fixed: bool = False
    ) -> None:
        """Upload tables, bind kernels and messages."""
        self.name, self._state, self._columns = name, state, columns
        backend, problem = state.backend, state.problem
        self._corrected = backend.zeros(problem.points, state.real)
        self._total, rate = sums_of(state)
        total_there, rate_there = sums_of(columns)
        axes = range(1, problem.dimensions)
        self._passes = LinePasses(state, axes, fixed=fixed, total=self._total, rate=rate)
        self._first = LinePasses(columns, (0,), fixed=fixed, total=total_there, rate=rate_there)
        if name == "separable":
            self._corrected_there = columns.p
            there = self._first.filters(columns.p, columns.p)
            here = self._passes.filters(state.p, self._corrected)
            out = turns.out(self._corrected, columns.p)
        else:
            self._corrected_there = backend.zeros(columns.problem.points, state.real)
            there = self._first.terms(self._corrected_there, begins=False)
            here = self._passes.terms(self._corrected, ends=False)
            out = [*turns.out(state.p, columns.p), *turns.out(self._corrected, self._corrected_there)]
        if self._total is not None and total_there is not None:
            out += turns.out(self._total, total_there)
        self._correct = [*here, *out, *there]
        self._corrected_back = turns.back(self._corrected_there, self._corrected)
        self._density_back = turns.back(columns.rho[0], state.rho[0])
        if rate is not None and rate_there is not None:
            self._density_back += turns.back(rate_there, rate)
        self._density_out = turns.out(state.rho[0], columns.rho[0])
        self._velocity_out = turns.out(state.u[0], columns.u[0])
        self._velocity_back = turns.back(columns.u[0], state.u[0])
        self._pressure = pressure_of(state, self._passes.medium, self._total, rate)

    def step(self, velocity_source: Sequence[Stage], mass_source: Sequence[Stage]) -> list[Stage]:
        """Return the stages of a step in which these sources act, on this rank or another."""
        axis, columns, there = f"axis {self._state.problem.axes[0]}", self._first, self._corrected_there
        pushed = pushed_axes(self._state) if velocity_source else ()
        middle = stages("correction", *self._correct)
        if 0 in pushed:
            middle += stages("velocity", columns.step(0, there, mass=False), *self._corrected_back)
            middle += stages("velocity sources", *self._velocity_back)
        else:
            middle += stages(axis, columns.step(0, there), *self._corrected_back, *self._density_back)
        momentum = [self._passes.step(k, self._corrected, mass=False) for k in pushed if k > 0]
        middle += [*stages("velocity", *momentum), *velocity_source]
        if 0 in pushed:
            middle += stages("velocity sources", *self._velocity_out)
            middle += stages("density", columns.step(0, there, momentum=False), *self._density_back)
        middle += [*self._along(pushed), *mass_source]
        changed = stages("pressure sources", *self._density_out) if mass_source else []
        return [*middle, *changed, *stages("pressure", *self._pressure)]

    def start(self) -> list[Stage]:
        """Return the stages that make density and velocity from a pressure that is there at time zero (eq. 14)."""
        half: dict[str, Any] = {"mass": False, "layers": False, "time_step": -self._state.problem.time_step / 2}
        along = self._first.step(0, self._corrected_there, **half)
        here = [self._passes.step(k, self._corrected, **half) for k in self._passes.axes]
        return [
            start_of(self._state, self._passes.medium),
            *stages("initial density", *self._density_out),
            *stages("correction", *self._correct),
            *stages("initial velocity", along, *self._corrected_back, *here),
            *self._sum(),
        ]

    def _sum(self) -> list[Stage]:
        total = self._total
        return [] if total is None else stages("initial sum", sum_of(self._state, self._passes.medium, total))

    def restored(self) -> list[Stage]:
        """Return what follows from densities and velocities that were set in the slab; collective."""
        return [*stages("restored", *self._density_out, *self._velocity_out), *self._sum()]

    def settle(self) -> None:
        """Bring velocities along the first axis to the slab; collective."""
        for one in self._velocity_back:
            one()
