# SPDX-License-Identifier: BSD-3-Clause
"""The immersed boundary of cells that several ranks hold (docs/decisions/0019).

The stages that it adds to a step of the flow. Those marked * are for cells that other ranks hold too, and run, messages
included, beside the ones for cells that are alone:

    send velocities          of the fluid, to the ranks beside
    receive velocities     *
    interpolate shared     * V(X) of the vertices closest to own sites
    send speeds            * V(X), to the owners of their cells
    interpolate velocity     V(X) = sum_x u(x) delta(x - X), X += V
    membrane forces
    receive speeds         *
    move shared            * X += V at the owner
    send places            * X, to all who hold the cell
    forces of shared       * at the owner
    send forces            * to all who hold the cell
    receive places         *
    settle shared          * where their vertices are among the sites
    receive forces         *
    await shared             here the two go on together
    mark inside              where cells have another viscosity
    contact forces
    list vertices            by the bricks of sites on which they act, when one has moved too far
    spread force             g(x) = sum_X F(X) delta(x - X)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.cells.contact import Contact
from seiche.couple.bricks import Bricks
from seiche.couple.inside import Inside
from seiche.couple.looks import RESERVE, Looks
from seiche.couple.markers import Surfaces
from seiche.couple.sharing import Sharing
from seiche.couple.territory import Territory, halo_sites
from seiche.flow.immersion import Contrast, Immersion
from seiche.flow.solver import FlowSolver
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import HaloPlan, build_plan
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import held as held_kernels
from seiche.kernels.registry import ibm as registry
from seiche.kernels.registry.held import ALONE, MANY, SHARED
from seiche.kernels.registry.ibm import BRICK, GROUP, RARE_GROUP, SUPPORT, Delta
from seiche.machine.in_use import predict_transports
from seiche.observe.stage import Messages, Stage

Launch = Callable[[], None]

#: Sites by which cells are shared beyond what they may move until it is looked again.
_SLACK = 1


class SharedBoundary:
    """Couples cells with a flow on several ranks; what the arguments mean is told in `ImmersedBoundary`.

    The arrays of the cells hold from then on those that this rank needs.
    """

    bricks: Bricks
    fluid: HaloExchange
    flow: Array
    field: Array
    touched: Array
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
        viscosity_contrast: float,
        mark_every: int,
        before: SharedBoundary | None = None,
    ) -> None:
        """Share the cells, which are the same on all ranks, and add the stages (collective).

        What belongs to the sites is taken over from a coupling of the same solver that comes to its end, `before`.

        Raises:
            CaseError: what cannot be coupled.
        """
        self.solver, self.cells, self.contact, self.delta, self.scheme = solver, cells, contact, delta, scheme
        self.backend, self.world, self._real = solver.backend, solver.world, solver.precision.compute
        transport: Any = solver.halo.transport
        if before is not None and before.solver is solver and before.delta == delta:
            self._take_over(before)
        else:
            self._know_sites(transport)
        margin = (SUPPORT[delta] + 1) // 2 - 1 + math.ceil(contact.reach if contact is not None else 0.0)
        margins = (margin, margin + RESERVE, margin + RESERVE + _SLACK)
        every = self.backend.download(cells.place)[:, : cells.vertex_count]
        self.inside: Inside | None = None
        if viscosity_contrast != 1.0:
            self.inside = Inside(self.backend, self.bricks, self._surfaces(), mark_every)
        self._ratio = viscosity_contrast
        self.sharing = Sharing(
            self.world,
            cells,
            self.bricks,
            self._territory,
            margins=margins,
            transport=transport,
            before_closing=solver.discard_graphs,
        )
        self.looks = Looks(self.sharing, self.share)
        self._side = self.backend.stream(urgent=True)
        self.place_all(every, None)

    def _take_over(self, before: SharedBoundary) -> None:
        self._territory, self.bricks, self.fluid = before._territory, before.bricks, before.fluid
        self.flow, self.field, self._owned = before.flow, before.field, before._owned
        self.touched, self._brick_lists = before.touched, before._brick_lists

    def _know_sites(self, transport: Any) -> None:
        """Find out what is around the own sites, and set up what belongs to them."""
        solver = self.solver
        self._territory = Territory(solver.region, self.world)
        self.bricks = Bricks(self.backend, solver.region, solver.populations, self._territory)
        rows, zeros = self.bricks.rows, self.backend.zeros
        self.flow, self.field = zeros(rows * BRICK**3 * 4, self._real), zeros(rows * BRICK**3 * 3, self._real)
        self.touched = zeros(rows, np.uint64)
        self._brick_lists = {name: zeros(rows, np.uint32) for name in ("first", "count", "tally")}
        owned = np.zeros(rows * BRICK**3, np.uint8)
        owned[self.bricks.slots] = 1
        self._owned = self.backend.upload(np.packbits(owned, bitorder="little").view(np.uint64))
        given = (self.backend, self.world, self._fluid_plan(), self._real, transport)
        self.fluid = HaloExchange(*given, predict=predict_transports)
        self.fluid.prepare(self.flow, "gather")

    def _fluid_plan(self) -> HaloPlan:
        """Return who sends the velocities of which sites: three of four numbers by slots."""
        region = self.solver.region
        needed = halo_sites(region, SUPPORT[self.delta])
        slots = self.bricks.slots_of(region.sites.coords[needed].astype(np.int64)) * 4
        wanted = {}
        for peer in np.unique(region.owner[needed]):
            here = np.flatnonzero(region.owner[needed] == peer)
            keys = (needed[here, None] * 3 + np.arange(3)).reshape(-1)
            wanted[int(peer)] = keys, (slots[here, None] + np.arange(3)).reshape(-1).astype(np.uint32)

        def locate(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            row = region.rows_of(keys // 3)
            return np.where(row >= 0, self.bricks.slots[row] * 4 + keys % 3, -1)

        return build_plan(self.world, wanted, locate)

    def _surfaces(self) -> list[Surfaces]:
        return [
            Surfaces(block.rest.elements.faces, block.cells, block.vertices, block.first_vertex)
            for block in self.cells.blocks
        ]

    def place_all(self, place: npt.NDArray[np.float64], velocity: npt.NDArray[Any] | None) -> None:
        """Put all cells of all ranks, vertices (3, n) that every rank knows, into the flow (collective)."""
        self.sharing.adopt(place, velocity)
        self._moved = 0 if velocity is None else 1
        self.sharing.share()
        self._connect()
        self.looks.restart(self.solver.step)
        self._settle()
        if self.inside is not None:
            self.inside.settle(self.solver.restored_inside)
        self._act()

    def _connect(self) -> None:
        """Prepare everything for the present arrays of the cells, and tell the flow."""
        cells, zeros = self.cells, self.backend.zeros
        if self.contact is not None:
            self.contact.bind()
        if self.inside is not None:
            self.inside.bind(cells, self._surfaces(), self.sharing.held)
        self.velocity, self.here = self.sharing.velocity, zeros((3, cells.stride), self._real)
        self._vertices = {
            "place": cells.place,
            "first": zeros((cells.stride, 4), np.int32),
            "t": zeros((cells.stride, 4), self._real),
            "listed": zeros((3, cells.stride), np.int32),
            "state": zeros(registry.STATE_WORDS, np.uint32),
            "stride": cells.stride,
        }
        capacity = cells.vertex_count * self.bricks.entries(SUPPORT[self.delta])
        self._lists = {**self._brick_lists, "entries": zeros(capacity, np.uint32)}
        self._bind_all()
        force, slots = self.bricks.slot_members()
        fields = {"field": self.field, "flow": self.flow, "touched": self.touched, "slots": slots}
        contrast, inside = None, self.inside
        if inside is not None:
            contrast = Contrast(self._ratio, inside.bits, inside.sites, inside.every, inside.begin)
        messages = self.sharing.messages
        messages.speeds.prepare(self.here, "scatter_add")
        messages.speeds.prepare(self.cells.force)
        exchanges = (self.fluid, messages.speeds, messages.places)
        self.stages = self._stages()
        self.solver.immerse(Immersion(force, fields, self.stages, contrast, exchanges, self.prepare))

    def _bind_all(self) -> None:
        delta, real, space, bricks = self.delta, self._real, self.bricks.space, self.bricks.members
        vertices, over, rarely = self._vertices, self.sharing.held.over_vertices, self.sharing.held.over_many
        both: dict[str, Any] = {"bricks": bricks, "vertices": vertices}
        lists: dict[str, Any] = {"lists": self._lists, "state": vertices["state"]}
        listed: dict[str, Any] = {**lists, "bricks": bricks, "listed": vertices["listed"], "stride": vertices["stride"]}
        held, slip = self.sharing.held, self.cells.slip
        moving = {"flow": self.flow, "velocity": self.velocity, "slip": slip, **both}
        one, owned = (
            spec(delta, real, space) for spec in (held_kernels.interpolate_held, held_kernels.interpolate_owned)
        )
        self._alone = [
            held.over_groups(one, GROUP, 1 << ALONE, one={**moving, "now": a, "before": b})
            for a, b in ((1.0, 0.0), (1.5, -0.5))
        ]
        still = {**moving, "velocity": self.here, "slip": None, "now": 0.0, "before": 0.0}
        self._interpolate = held.over_listed_groups(owned, GROUP, one=still, owned=self._owned)
        step = {
            "place": self.cells.place,
            "here": self.here,
            "velocity": self.velocity,
            "slip": slip,
            "stride": self.cells.stride,
        }
        spec = held_kernels.move_vertices(real)
        self._shared = [
            held.over_listed(spec, 1 << SHARED, **step, now=a, before=b) for a, b in ((1.0, 0.0), (1.5, -0.5))
        ]
        spec = registry.settle(delta, real, space)
        self._settle_all, self._settle_shared = over(spec, **both), held.over_listed(spec, **both)
        rows, sorting = self.bricks.rows, {"count": self.bricks.count}
        self._unlist = self._bound(held_kernels.unlist(), 0, 3 * self.cells.stride, listed=vertices["listed"])
        self._listing = [
            rarely(registry.count_vertices(delta), RARE_GROUP, **listed, place=vertices["place"]),
            self._bound(registry.place_lists(), 0, rows, **lists),
            rarely(registry.fill_lists(delta), RARE_GROUP, **listed),
            self._bound(held_kernels.forget_lists(), self.bricks.count, rows, tally=self._lists["tally"]),
            self._bound(registry.sort_lists(), 0, -(-self.bricks.count // registry.SORT_GROUP), **lists, **sorting),
        ]
        acting = {"corner": self.bricks.corner, "force": self.cells.force, "field": self.field, "touched": self.touched}
        self._spread = self._bound(
            registry.spread(delta, real), 0, self.bricks.own, **both, lists=self._lists, **acting
        )

    def _bound(self, spec: KernelSpec, begin: int, end: int, **members: Any) -> Launch:
        kernel = self.backend.load(spec)
        return kernel.bind(self.backend.pack(kernel, **members), begin, end)

    def _stages(self) -> list[Stage]:
        """Return the stages of a step; what they move is what it is with the cells that are here now."""
        size, count = np.dtype(self._real).itemsize, self.sharing.vertices
        looked = 4 * self.cells.count  # the role of every cell of which there is room
        backend, cells, side, fluid = self.backend, self.cells, self._side, self.fluid
        speeds, places = self.sharing.messages.speeds, self.sharing.messages.places
        message, shared, side_message = self._message, self._shared_stage, self._side_message
        sent, received = fluid.sent("velocities"), fluid.received("velocities")
        gone, come = speeds.sent("speeds", "scatter_add"), speeds.received("speeds", "scatter_add")
        left, arrived = places.sent("places"), places.received("places")
        given, taken = speeds.sent("forces"), speeds.received("forces")
        marking = [self.inside.stage()] if self.inside is not None else []
        contact = [self.contact.stage()] if self.contact is not None else []
        interpolated, forces, settled = 92 + 17 * size, 3 * (8 + 2 * size), 52 + 4 * size
        alone, own, many, place, force = count(1 << ALONE), count(1 << SHARED), count(MANY), cells.place, cells.force
        here = count(MANY, divided=True)  # those in bricks of this rank, about
        start, finish = (partial(call, self.here, "scatter_add") for call in (speeds.start, speeds.finish))
        return [
            message("send velocities", lambda: fluid.start(self.flow), "stream-collide edge", sent, fluid.bytes),
            message("receive velocities", self._receive_velocities, "send velocities", received, fluid.bytes),
            shared("interpolate shared", self._interpolate, "receive velocities", looked + here * interpolated),
            side_message("send speeds", start, "interpolate shared", gone, speeds.bytes),
            Stage(
                "interpolate velocity", self._move_alone, looked + alone * interpolated, ("stream-collide interior",)
            ),
            Stage(
                "membrane forces", lambda: cells.forces(1 << ALONE), looked + alone * forces, ("interpolate velocity",)
            ),
            side_message("receive speeds", finish, "send speeds", come, speeds.bytes),
            shared("move shared", self._move_shared, "receive speeds"),
            side_message("send places", lambda: places.start(place), "move shared", left, places.bytes),
            shared("forces of shared", lambda: cells.forces(1 << SHARED), "move shared", own * forces),
            side_message("send forces", lambda: speeds.start(force), "forces of shared", given, speeds.bytes),
            side_message("receive places", lambda: places.finish(place), "send places", arrived, places.bytes),
            shared("settle shared", self._settle_shared, "receive places", looked + many * settled),
            side_message("receive forces", lambda: speeds.finish(force), "send forces", taken, speeds.bytes),
            Stage(
                "await shared",
                lambda: backend.current().wait(side.record()),
                after=("settle shared", "receive forces"),
                useful=False,
            ),
            *marking,
            *contact,
            Stage("list vertices", self._list, 0, ("await shared",)),
            Stage("spread force", self._spread, 3 * size * BRICK**3 * self.bricks.own, ("list vertices",)),
        ]

    def _message(self, name: str, action: Launch, after: str, messages: Messages, volume: int) -> Stage:
        return Stage(name, action, volume, (after,), useful=False, messages=messages)

    def _side_message(self, name: str, action: Launch, after: str, messages: Messages, volume: int) -> Stage:
        return self._message(name, self._beside(name, action, useful=False), after, messages, volume)

    def _shared_stage(self, name: str, action: Launch, after: str, volume: int = 0) -> Stage:
        return Stage(name, self._beside(name, action), volume, (after,))

    def _beside(self, name: str, action: Launch, *, useful: bool = True) -> Launch:
        """Return the action in the stream of shared cells; the timers see there what computes."""
        timed = useful and self.backend.concurrent_streams

        def run() -> None:
            timer = self.solver.timers.beside(name, useful=True) if timed else nullcontext()
            with self.backend.use(self._side), timer:
                action()

        return run

    def _move_alone(self) -> None:
        """Interpolate the velocities of cells that are alone and move them."""
        second = self.scheme != "euler" and self._moved > 0
        self._moved += 1
        self._alone[second]()

    def _move_shared(self) -> None:
        self._shared[self.scheme != "euler" and self._moved > 1]()

    def _receive_velocities(self) -> None:
        self._side.wait(self.backend.current().record())
        with self.backend.use(self._side):
            self.fluid.finish(self.flow)

    def _list(self) -> None:
        for launch in self._listing:
            launch()

    def _settle(self) -> None:
        """Take note of where all vertices are, and let all of them be listed anew, for each other too."""
        if self.contact is not None:
            self.contact.forget()
        self._unlist()
        self._settle_all()

    def _act(self) -> None:
        """Compute forces of all cells and spread them."""
        self.cells.forces()
        if self.contact is not None:
            self.contact.forces()
        self._list()
        self._spread()

    def prepare(self, steps: int) -> int:
        """Return for how many of `steps` every rank has the cells that it needs, after sharing them anew if need be.

        Raises:
            UnstableError: on all ranks: a cell moved so fast that a rank lacked it.
        """
        return self.looks.prepare(self.solver.step, steps)

    def share(self) -> None:
        """Let every rank hold the cells that it needs, after a look (collective). The state does not change."""
        if self.sharing.share():
            self._connect()
        self._settle()
        self._act()

    def refresh(self) -> None:
        """Take note of forces or places that were changed from outside."""
        self._settle()
        if self.inside is not None:
            self.inside.settle(self.solver.restored_inside)
        self._act()

    def lost_vertex(self) -> int | None:
        """Return a column of the vertices here that has no fluid around it, or is nowhere, if there is one."""
        lost = int(self.backend.download(self._vertices["state"])[2])
        return lost - 1 if lost else None
