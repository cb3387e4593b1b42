# SPDX-License-Identifier: BSD-3-Clause
"""Immersed boundary of cells on several ranks (docs/decisions/0019).

It adds the following stages to a step of the flow. Stages marked * process cells that are also on other ranks
("shared"). With their messages, they run in a second stream, concurrently with the stages for the other cells:

    send velocities                 of the fluid, to neighbouring ranks
    receive velocities            *
    interpolate velocity (shared) * V(X) of the vertices closest to owned sites
    send vertex velocities        * V(X), to the owners of their cells
    interpolate velocity            V(X) = sum_x u(x) delta(x - X), X += V
    membrane forces
    receive vertex velocities     *
    move vertices (shared)        * X += V at the owner
    send positions                * X, to the ghosts
    membrane forces (shared)      * at the owner
    send forces                   * to the ghosts
    receive positions             *
    locate vertices (shared)      * find the sites around their vertices
    receive forces                *
    join shared stream              join the two streams
    mark inside                     with another viscosity inside cells
    contact forces
    list vertices                   by bricks of sites in their support, if a vertex has moved too far
    spread force                    g(x) = sum_X F(X) delta(x - X)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.cells.contact import Contact
from seiche.couple.bricks import Bricks
from seiche.couple.immersed import Boundary, Launch
from seiche.couple.inside import InsideMarker, contrasts_of
from seiche.couple.markers import InitialCells, Placement, Surfaces
from seiche.couple.redistribution import RESERVE, RedistributionSchedule
from seiche.couple.sharing import CellSharing
from seiche.couple.territory import Territory, halo_sites
from seiche.flow.immersion import Immersion
from seiche.flow.solver import FlowSolver
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import HaloPlan, build_plan
from seiche.kernels.registry import ibm as registry
from seiche.kernels.registry import resident as resident_kernels
from seiche.kernels.registry.ibm import BRICK, GROUPS, RARE_GROUP, SUPPORT, Delta
from seiche.kernels.registry.resident import OWNED_ONLY, OWNED_SHARED, REPLICATED
from seiche.machine.in_use import predicted_transport_times
from seiche.observe.stage import Messages, Stage

#: Width of the ghost layer of cells beyond their maximum displacement until the next check, in sites.
_SLACK = 1


def surfaces_of(cells: Cells) -> list[Surfaces]:
    """Return the closed surfaces of the cells of each type."""
    return [Surfaces(b.rest.elements.faces, b.cells, b.vertices, b.first_vertex) for b in cells.blocks]


class SharedBoundary(Boundary):
    """Two-way coupling of cells with a flow, on several ranks; the arguments are those of `ImmersedBoundary`.

    The arrays of the cells contain the cells that this rank needs.
    """

    fluid: HaloExchange
    _territory: Territory
    _owned: Array
    _brick_lists: dict[str, Array]

    def __init__(
        self,
        solver: FlowSolver,
        cells: Cells,
        contact: Contact | None,
        *,
        delta: Delta,
        scheme: str,
        viscosity_contrast: float | Sequence[float],
        mark_every: int,
        previous: SharedBoundary | None = None,
        initial: InitialCells | None = None,
    ) -> None:
        """Distribute the cells, which are the same on all ranks, or those of `initial`; add the stages (collective).

        The fields at sites are those of `previous`, an earlier coupling of the same solver.

        Raises:
            CaseError: these objects cannot be coupled.
        """
        self.solver, self.cells, self.contact, self.delta, self.scheme = solver, cells, contact, delta, scheme
        self.backend, self.world, self._real = solver.backend, solver.world, solver.precision.compute
        transport: Any = solver.halo.transport
        if previous is not None and previous.solver is solver and previous.delta == delta:
            self._territory, self.bricks, self.fluid = previous._territory, previous.bricks, previous.fluid
            self.flow, self.field, self._owned = previous.flow, previous.field, previous._owned
            self.touched, self._brick_lists = previous.touched, previous._brick_lists
        else:
            self._set_up_sites(transport)
        margin = (SUPPORT[delta] + 1) // 2 - 1 + math.ceil(contact.reach if contact is not None else 0.0)
        margins = (margin, margin + RESERVE, margin + RESERVE + _SLACK)
        if initial is None:
            positions = self.backend.download(cells.positions)[:, : cells.vertex_count]
            relaxed = self.backend.download(cells.relaxed) if cells.relaxed is not None else None
            if relaxed is not None:
                relaxed = relaxed[:, :, : cells.vertex_count]
            initial = InitialCells([block.cells for block in cells.blocks], Placement(positions, relaxed=relaxed))
        self.inside = None
        contrasts = contrasts_of(viscosity_contrast, len(cells.blocks))
        if set(contrasts) != {1.0}:
            self.inside = InsideMarker(self.backend, self.bricks, surfaces_of(cells), contrasts, mark_every)
        self.sharing = CellSharing(
            self.world,
            cells,
            self.bricks,
            self._territory,
            totals=initial.totals,
            margins=margins,
            transport=transport,
            before_closing=solver.discard_graphs,
        )
        self.schedule = RedistributionSchedule(self.sharing, self.redistribute)
        self._side = self.backend.stream(high_priority=True)
        self.place_all(initial.placement)

    def _set_up_sites(self, transport: Any) -> None:
        """Find the bricks around the owned sites, and allocate the fields and messages of the sites."""
        solver = self.solver
        self._territory = Territory(solver.region, self.world)
        self.bricks = Bricks(self.backend, solver.region, solver.populations, self._territory)
        rows = self.bricks.rows
        self._allocate_fields(rows)
        self._brick_lists = {name: self.backend.zeros(rows, np.uint32) for name in ("first", "count", "tally")}
        owned = np.zeros(rows * BRICK**3, np.uint8)
        owned[self.bricks.slots] = 1
        self._owned = self.backend.upload(np.packbits(owned, bitorder="little").view(np.uint64))
        plan = self._fluid_plan()
        self.fluid = HaloExchange(
            self.backend, self.world, plan, self._real, transport, predict=predicted_transport_times
        )
        self.fluid.prepare(self.flow, "gather")

    def _fluid_plan(self) -> HaloPlan:
        """Return the plan of the fluid velocities, three of the four stored values of each site, by slots."""
        region = self.solver.region
        required_sites = halo_sites(region, SUPPORT[self.delta])
        slots = self.bricks.slots_of(region.sites.coords[required_sites].astype(np.int64)) * 4
        by_peer = {}
        for peer in np.unique(region.owner[required_sites]):
            rows = np.flatnonzero(region.owner[required_sites] == peer)
            keys = (required_sites[rows, None] * 3 + np.arange(3)).reshape(-1)
            by_peer[int(peer)] = keys, (slots[rows, None] + np.arange(3)).reshape(-1).astype(np.uint32)

        def locate(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            row = region.rows_of(keys // 3)
            return np.where(row >= 0, self.bricks.slots[row] * 4 + keys % 3, -1)

        return build_plan(self.world, by_peer, locate)

    def place_all(self, placement: Placement) -> None:
        """Set the vertices of the cells of all ranks (collective)."""
        self.sharing.place_all(placement)
        self._steps_moved = 0 if placement.velocity is None else 1
        self.sharing.redistribute()
        self._connect()
        self.schedule.restart(self.solver.step)
        self.refresh()

    def _connect(self) -> None:
        """Bind the kernels to the present arrays of the cells, and add the coupling to the flow."""
        cells = self.cells
        if self.inside is not None:
            self.inside.bind(cells, surfaces_of(cells), self.sharing.resident)
        # Velocities of replicated cells need no memory: their forces are computed after the vertices have moved.
        self.velocity, self._partial = self.sharing.velocity, cells.force
        self._vertices = self._vertex_arrays(cells.positions, cells.stride)
        self._lists = {**self._brick_lists}
        self._allocate_entries(self.contact, cells.vertex_count)
        self._bind_all()
        force, slots = self.bricks.slot_members()
        fields = {"field": self.field, "flow": self.flow, "touched": self.touched, "slots": slots}
        contrast = None if self.inside is None else self.inside.contrast()
        messages = self.sharing.messages
        messages.velocities.prepare(self._partial, "scatter_add")
        messages.velocities.prepare(self.cells.force)
        exchanges = (self.fluid, messages.velocities, messages.positions)
        self.stages = self._stages()
        self.solver.immerse(Immersion(force, fields, self.stages, contrast, exchanges, self.prepare))

    def _bind_all(self) -> None:
        delta, real, space, bricks = self.delta, self._real, self.bricks.space, self.bricks.members
        resident, vertices, slip = self.sharing.resident, self._vertices, self.cells.slip
        brick_members: dict[str, Any] = {"bricks": bricks, "vertices": vertices}
        lists: dict[str, Any] = {"lists": self._lists, "state": vertices["state"]}
        placed: dict[str, Any] = {**lists, "bricks": bricks, **{k: vertices[k] for k in ("positions", "stride")}}
        interpolation = {"flow": self.flow, "velocity": self.velocity, "slip": slip, **brick_members}
        euler = {"weight": 1.0, "previous_weight": 0.0}
        adams_bashforth = {"weight": 1.5, "previous_weight": -0.5}
        spec, group = resident_kernels.interpolate_resident(delta, real, space), GROUPS[SUPPORT[delta]]
        self._unshared = [
            resident.over_groups(spec, group, 1 << OWNED_ONLY, one={**interpolation, **weights})
            for weights in (euler, adams_bashforth)
        ]
        shared_interpolation = {**interpolation, "velocity": self._partial, "slip": None}
        shared_interpolation |= {"weight": 0.0, "previous_weight": 0.0}
        spec = resident_kernels.interpolate_owned(delta, real, space)
        self._interpolate = resident.over_replicated_groups(spec, group, one=shared_interpolation, owned=self._owned)
        members = {"positions": self.cells.positions, "interpolated": self._partial, "velocity": self.velocity}
        members["slip"] = slip
        spec, shared = resident_kernels.move_vertices(real), 1 << OWNED_SHARED
        self._shared = [
            resident.over_replicated(spec, shared, **members, stride=self.cells.stride, **weights)
            for weights in (euler, adams_bashforth)
        ]
        spec = registry.locate_vertices(delta, real, space)
        self._locate_all, self._locate_shared = (
            resident.over_vertices(spec, **brick_members),
            resident.over_replicated(spec, **brick_members),
        )
        rows, sorting = self.bricks.rows, {"count": self.bricks.count}
        grouped = resident.over_grouped_vertices
        self._listing = [
            grouped(registry.count_vertices(delta), RARE_GROUP, **placed, listed=vertices["listed"]),
            self._bound(registry.place_lists(), 0, rows, **lists),
            grouped(registry.fill_lists(delta), RARE_GROUP, **placed),
            self._bound(resident_kernels.clear_lists(), self.bricks.count, rows, tally=self._lists["tally"]),
            self._bound(
                registry.sort_lists(),
                0,
                -(-self.bricks.count // registry.SORT_GROUP),
                **lists,
                **sorting,
                memory=self._memory,
            ),
        ]
        sources = {
            "corner": self.bricks.corner,
            "force": self.cells.force,
            "field": self.field,
            "touched": self.touched,
        }
        self._spread = self._bound(
            registry.spread(delta, real), 0, self.bricks.owned_rows, **brick_members, lists=self._lists, **sources
        )

    def _stages(self) -> list[Stage]:
        """Return the stages of a step; their traffic is that for the present cells of this rank."""
        size, count = np.dtype(self._real).itemsize, self.sharing.vertices
        roles = 4 * self.cells.count  # bytes of the roles of all cell slots
        backend, cells, side, fluid = self.backend, self.cells, self._side, self.fluid
        v, x = self.sharing.messages.velocities, self.sharing.messages.positions
        message, shared, side_message = self._message, self._shared_stage, self._side_message
        sent, received = fluid.sent("velocities"), fluid.received("velocities")
        v_sent, v_received = v.sent("speeds", "scatter_add"), v.received("speeds", "scatter_add")
        x_sent, x_received = x.sent("places"), x.received("places")
        f_sent, f_received = v.sent("forces"), v.received("forces")
        marking = [self.inside.stage()] if self.inside is not None else []
        contact = [self.contact.stage()] if self.contact is not None else []
        motion_bytes, forces, located = 92 + 17 * size, 3 * (8 + 2 * size), 52 + 4 * size
        owned_only, owned_shared = 1 << OWNED_ONLY, 1 << OWNED_SHARED
        positions, force = cells.positions, cells.force
        unshared, shared_owned, replicated = count(owned_only), count(owned_shared), count(REPLICATED)
        local = count(REPLICATED, divided=True)  # approximately those in bricks of this rank
        start, finish = (partial(call, self._partial, "scatter_add") for call in (v.start, v.finish))
        return [
            message("send velocities", lambda: fluid.start(self.flow), "stream-collide edge", sent, fluid.bytes),
            message("receive velocities", self._receive_velocities, "send velocities", received, fluid.bytes),
            shared(
                "interpolate velocity (shared)", self._interpolate, "receive velocities", roles + local * motion_bytes
            ),
            side_message("send vertex velocities", start, "interpolate velocity (shared)", v_sent, v.bytes),
            Stage(
                "interpolate velocity",
                self._move_unshared,
                roles + unshared * motion_bytes,
                ("stream-collide interior",),
            ),
            Stage(
                "membrane forces",
                lambda: cells.compute_forces(owned_only, advance=True),
                roles + unshared * forces,
                ("interpolate velocity",),
            ),
            side_message("receive vertex velocities", finish, "send vertex velocities", v_received, v.bytes),
            shared("move vertices (shared)", self._move_shared, "receive vertex velocities"),
            side_message("send positions", lambda: x.start(positions), "move vertices (shared)", x_sent, x.bytes),
            shared(
                "membrane forces (shared)",
                lambda: cells.compute_forces(owned_shared, advance=True),
                "move vertices (shared)",
                shared_owned * forces,
            ),
            side_message("send forces", lambda: v.start(force), "membrane forces (shared)", f_sent, v.bytes),
            side_message("receive positions", lambda: x.finish(positions), "send positions", x_received, x.bytes),
            shared("locate vertices (shared)", self._locate_shared, "receive positions", roles + replicated * located),
            side_message("receive forces", lambda: v.finish(force), "send forces", f_received, v.bytes),
            Stage(
                "join shared stream",
                lambda: backend.current().wait(side.record()),
                after=("locate vertices (shared)", "receive forces"),
                useful=False,
            ),
            *(marking + contact),
            Stage("list vertices", self._list, 0, ("join shared stream",)),
            Stage("spread force", self._spread, 3 * size * BRICK**3 * self.bricks.owned_rows, ("list vertices",)),
        ]

    def _message(self, name: str, action: Launch, after: str, messages: Messages, volume: int) -> Stage:
        return Stage(name, action, volume, (after,), useful=False, messages=messages)

    def _side_message(self, name: str, action: Launch, after: str, messages: Messages, volume: int) -> Stage:
        return self._message(name, self._in_side_stream(name, action, useful=False), after, messages, volume)

    def _shared_stage(self, name: str, action: Launch, after: str, volume: int = 0) -> Stage:
        return Stage(name, self._in_side_stream(name, action), volume, (after,))

    def _in_side_stream(self, name: str, action: Launch, *, useful: bool = True) -> Launch:
        """Return the action in the stream of shared cells, where computation is timed but messages are not."""
        timed = useful and self.backend.concurrent_streams

        def run() -> None:
            timer = self.solver.timers.overlap(name, useful=True) if timed else nullcontext()
            with self.backend.use(self._side), timer:
                action()

        return run

    def _move_unshared(self) -> None:
        """Interpolate the velocities of the unshared cells and move them."""
        second_order = self.scheme != "euler" and self._steps_moved > 0
        self._steps_moved += 1
        self._unshared[second_order]()

    def _move_shared(self) -> None:
        self._shared[self.scheme != "euler" and self._steps_moved > 1]()

    def _receive_velocities(self) -> None:
        self._side.wait(self.backend.current().record())
        with self.backend.use(self._side):
            self.fluid.finish(self.flow)

    def _locate_vertices(self) -> None:
        if self.contact is not None:
            self.contact.invalidate()
        self._mark_stale()
        self._locate_all()

    def _update_forces(self) -> None:
        self.cells.compute_forces()
        if self.contact is not None:
            self.contact.compute_forces()
        self._list()
        self._spread()

    def prepare(self, steps: int) -> int:
        """Return the number of steps, up to `steps`, for which every rank has the cells that it needs.

        If necessary, cells are redistributed.

        Raises:
            UnstableError: on all ranks, if a cell moved so fast that a rank lacked it.
        """
        return self.schedule.prepare(self.solver.step, steps)

    def redistribute(self) -> None:
        """Copy cells to the ranks that need them, after a query (collective); the state does not change."""
        if self.sharing.redistribute():
            self._connect()
        self._locate_vertices()
        self._update_forces()
