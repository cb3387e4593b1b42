# SPDX-License-Identifier: BSD-3-Clause
"""Immersed boundary: vertices that move with the fluid and exert forces on it (theory/coupling).

It adds the following stages to a step of the flow, after those that advance the populations:

    interpolate velocity   V(X) = sum_x u(x) delta(x - X), X += V
    mark inside            with another viscosity inside cells
    (forces on the vertices)
    list vertices          by bricks of sites in their support, if a vertex has moved too far
    spread force           g(x) = sum_X F(X) delta(x - X)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Kernel
from seiche.cells.cells import Cells
from seiche.cells.contact import Contact
from seiche.cells.contact_lists import SharedLists
from seiche.couple.bricks import Bricks
from seiche.couple.inside import InsideMarker, contrasts_of
from seiche.couple.markers import Markers, Placement, Surfaces
from seiche.errors import CaseError, UnstableError
from seiche.flow.immersion import Immersion
from seiche.flow.model import FlowModel
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry import KernelSpec, grouped
from seiche.kernels.registry import ibm as registry
from seiche.kernels.registry.ibm import BRICK, SUPPORT, Delta
from seiche.observe.stage import Stage

Launch = Callable[[], None]

#: Kernel members of lists of bricks with memory of their own.
NO_MEMORY: dict[str, Any] = {"state": None, "blocks": 0}

#: Time schemes: `euler` moves vertices by the velocity at their position, `adams-bashforth` by 3/2 of this velocity
#: minus 1/2 of the previous one.
Scheme: TypeAlias = Literal["euler", "adams-bashforth"]

#: Slip mobility of the shortest membrane waves, divided by their mobility in a fluid that resolves them (eq. 18).
SLIP = 0.05


def check_coupling(solver: FlowSolver, markers: Markers, delta: str, scheme: str) -> None:
    """Raise CaseError for an unknown delta function or scheme, or if vertices and flow have different precisions."""
    if delta not in SUPPORT:
        raise CaseError(f"delta function {delta!r} is not one of {', '.join(SUPPORT)}")
    if scheme not in ("euler", "adams-bashforth"):
        raise CaseError(f"time scheme {scheme!r} of the vertices is not one of euler, adams-bashforth")
    real = solver.precision.compute
    if np.dtype(markers.force.dtype) != np.dtype(real):
        raise CaseError(
            f"forces of vertices are {markers.force.dtype}, but the flow computes in {real}; use one precision"
        )


def viscosity_of(model: FlowModel) -> float:
    """Return the kinematic viscosity of the fluid of a model; for a shear-thinning fluid, that at zero shear rate."""
    return float(model.rheology.limits[1])


class Boundary:
    """Base class of couplings on one rank and on several ranks, with the fields at the sites."""

    solver: FlowSolver
    bricks: Bricks
    flow: Array
    field: Array
    #: One bit for each row of eight sites of a brick, set if it is in the support of a vertex; only these rows have
    #: forces and velocities.
    touched: Array
    inside: InsideMarker | None
    delta: Delta
    velocity: Array
    _vertices: dict[str, Any]
    #: Lists of the vertices of bricks; the memory of contact lists of which their entries are a part.
    _lists: dict[str, Any]
    _memory: dict[str, Any]
    _shares_entries: bool
    _listing: list[Launch]

    def _allocate_fields(self, rows: int) -> None:
        zeros, real = self.solver.backend.zeros, self.solver.precision.compute
        self.flow, self.field = zeros(rows * BRICK**3 * 4, real), zeros(rows * BRICK**3 * 3, real)
        self.touched = zeros(rows, np.uint64)

    def _bound(self, spec: KernelSpec, begin: int, end: int, **members: Any) -> Launch:
        backend = self.solver.backend
        kernel: Kernel = backend.load(spec)
        return kernel.bind(backend.pack(kernel, **members), begin, end)

    def _list(self) -> None:
        for launch in self._listing:
            launch()

    def _vertex_arrays(self, positions: Array, stride: int) -> dict[str, Any]:
        """Allocate the arrays of the vertices at `positions`; return them as kernel members."""
        zeros, walls = self.solver.backend.zeros, self.bricks.space != "open"
        return {
            "positions": positions,
            "inverse": zeros(stride, self.solver.precision.compute) if walls else None,
            "listed": zeros((3, stride), np.uint8),
            "state": zeros(registry.STATE_WORDS, np.uint32),
            "stride": stride,
        }

    def _allocate_entries(self, contact: Contact | None, count: int) -> None:
        """Add the memory of entries to the lists of bricks, that of the contact lists of `count` vertices if any."""
        entries = self.bricks.entries(SUPPORT[self.delta], count)
        shared = None if contact is None else contact.bind(entries)
        self._shares_entries = shared is not None
        if shared is None:
            shared = SharedLists(self.solver.backend.zeros(max(entries.maximum, 1), np.uint32), NO_MEMORY)
        self._lists["entries"], self._memory = shared

    def _locate_vertices(self) -> None:
        """Check the sites around all vertices, and mark all vertices for listing."""
        raise NotImplementedError

    def _update_forces(self) -> None:
        """Compute all forces and spread them."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Update the coupling after the caller has changed positions or forces of vertices."""
        self._locate_vertices()
        if self.inside is not None:
            self.inside.settle(self.solver.restored_inside)
        self._update_forces()

    def _mark_stale(self) -> None:
        """Mark all vertices to be listed again."""
        self.solver.backend.assign(self._vertices["state"][:1], np.ones(1, np.uint32))

    def vertex_memory(self) -> int:
        """Return the size in bytes of the arrays of vertices, without lists that share the memory of contact lists."""
        arrays = [self.velocity, self._vertices["listed"]]
        arrays += [] if self._vertices["inverse"] is None else [self._vertices["inverse"]]
        arrays += [] if self._shares_entries else [self._lists["entries"]]
        return sum(int(array.nbytes) for array in arrays)

    def lost_vertex(self) -> int | None:
        """Return the column of a vertex that has no fluid around it or non-finite coordinates.

        None if there is none.
        """
        vertex_plus_one = int(self.solver.backend.download(self._vertices["state"])[2])
        return vertex_plus_one - 1 if vertex_plus_one else None


class ImmersedBoundary(Boundary):
    """Two-way coupling of vertices with a flow, on one rank.

    `velocity` (3, stride) on the device is that of the vertices in the last step.
    """

    def __init__(
        self,
        solver: FlowSolver,
        markers: Markers,
        *,
        delta: Delta = "peskin",
        scheme: Scheme = "euler",
        contact: Contact | None = None,
        surfaces: Sequence[Surfaces] = (),
        viscosity_contrast: float | Sequence[float] = 1.0,
        mark_every: int = 1,
        previous: ImmersedBoundary | None = None,
    ) -> None:
        """Add the stages to the steps of `solver`.

        Args:
            solver: the flow, of one rank (`SharedBoundary` is for several).
            markers: the vertices; forces in the compute precision of the flow.
            delta: the smoothed delta function.
            scheme: time scheme of the vertices.
            contact: forces between the vertices, whose lists share memory with those of the bricks.
            surfaces: the closed surfaces that the vertices form.
            viscosity_contrast: ratio of inner to outer viscosity of these surfaces, for all kinds or for each.
            mark_every: steps between updates of the sites inside the surfaces.
            previous: an earlier coupling of this flow with other vertices, whose fields at sites are reused.

        Raises:
            CaseError: there are several ranks, a name is unknown, the precisions differ, or a contrast is invalid.
        """
        check_coupling(solver, markers, delta, scheme)
        if solver.world.size > 1:
            raise CaseError(
                f"immersed vertices on {solver.world.size} ranks are not supported; only cells (Blood) can be "
                "distributed"
            )
        real = solver.precision.compute
        self.solver, self.markers, self.delta, self.scheme = solver, markers, delta, scheme
        self.backend, self._real = solver.backend, real
        if previous is not None and previous.solver is solver:
            self.bricks, self.flow = previous.bricks, previous.flow
            self.field, self.touched = previous.field, previous.touched
        else:
            self.bricks = Bricks(self.backend, solver.region, solver.populations)
            self._allocate_fields(self.bricks.count + 1)
        rows, count = self.bricks.count, markers.vertex_count
        self.velocity = self.backend.zeros((3, markers.stride), real)
        self._vertices = self._vertex_arrays(markers.positions, markers.stride)
        self._lists = {name: self.backend.zeros(rows + 1, np.uint32) for name in ("first", "count", "tally")}
        self._allocate_entries(contact, count)
        self._slip = markers.slip
        self._steps_moved = 0
        self._bind_all()
        self.inside = None
        contrasts = contrasts_of(viscosity_contrast, max(len(surfaces), 1))
        if set(contrasts) != {1.0}:
            self.inside = InsideMarker(self.backend, self.bricks, surfaces, contrasts, mark_every)
            self.inside.bind(markers, surfaces)
        mark_stages = [self.inside.stage()] if self.inside is not None else []
        size = np.dtype(real).itemsize
        move_stage = Stage("interpolate velocity", self._move, count * (92 + 17 * size), ("stream-collide interior",))
        self._force_stages = [
            markers.stage(),
            *(() if contact is None else (contact.stage(),)),
            Stage("list vertices", self._list, 0, ("interpolate velocity",)),
            Stage("spread force", self._spread, 3 * size * BRICK**3 * rows, ("list vertices",)),
        ]
        forces_and_advance = markers.stage(advance=True) if isinstance(markers, Cells) else markers.stage()
        self.stages = [move_stage, *mark_stages, forces_and_advance, *self._force_stages[1:]]
        self.refresh()
        force, slots = self.bricks.slot_members()
        fields = {"field": self.field, "flow": self.flow, "touched": self.touched, "slots": slots}
        contrast = None if self.inside is None else self.inside.contrast()
        solver.immerse(Immersion(force, fields, self.stages, contrast))

    def _bind_all(self) -> None:
        """Bind the kernels to the arrays."""
        count, rows, delta, real = self.markers.vertex_count, self.bricks.count, self.delta, self._real
        space = self.bricks.space
        vertices = self._vertices
        bricks: dict[str, Any] = {"bricks": self.bricks.members}
        members: dict[str, Any] = {**bricks, "vertices": vertices}
        lists: dict[str, Any] = {"lists": self._lists, "state": vertices["state"]}
        placed: dict[str, Any] = {**bricks, **lists, **{name: vertices[name] for name in ("positions", "stride")}}
        self._locate_all = self._bound(registry.locate_vertices(delta, real, space), 0, count, **members)
        interpolation = {"flow": self.flow, "velocity": self.velocity, "slip": self._slip, **members}
        spec, teams = (
            registry.interpolate_group(delta, real, space),
            -(-count // registry.GROUPS[SUPPORT[delta]]),
        )
        self._euler, self._adams_bashforth = (
            self._bound(
                spec,
                0,
                teams,
                one={**interpolation, "weight": current_weight, "previous_weight": previous_weight},
                count=count,
            )
            for current_weight, previous_weight in ((1.0, 0.0), (1.5, -0.5))
        )
        teams, sorters = -(-count // registry.RARE_GROUP), -(-rows // registry.SORT_GROUP)
        count_spec, fill_spec = (
            grouped(spec, registry.RARE_GROUP) for spec in (registry.count_vertices(delta), registry.fill_lists(delta))
        )
        self._listing = [
            self._bound(count_spec, 0, teams, item={**placed, "listed": vertices["listed"]}, count=count),
            self._bound(registry.place_lists(), 0, rows + 1, **lists),
            self._bound(fill_spec, 0, teams, item=placed, count=count),
            self._bound(registry.sort_lists(), 0, sorters, **lists, count=rows, memory=self._memory),
        ]
        sources = {"corner": self.bricks.corner, "force": self.markers.force, "lists": self._lists}
        targets = {"field": self.field, "touched": self.touched}
        self._spread = self._bound(registry.spread(delta, real), 0, rows, **members, **sources, **targets)

    def _move(self) -> None:
        is_first = self._steps_moved == 0
        self._steps_moved += 1
        (self._euler if is_first or self.scheme == "euler" else self._adams_bashforth)()

    def _locate_vertices(self) -> None:
        self._mark_stale()
        self._locate_all()

    def _update_forces(self) -> None:
        for stage in self._force_stages:
            stage.action()

    def restart(self, velocity: npt.NDArray[Any] | None = None) -> None:
        """Set the velocity (3, stride) in the previous step, for the second-order scheme; None for the first step."""
        self._steps_moved = 0 if velocity is None else 1
        if velocity is not None:
            self.backend.assign(self.velocity, velocity.astype(self._real))
        self.refresh()

    def place_all(self, placement: Placement) -> None:
        """Set positions and velocities of the vertices, and the internal variables of surface viscosity."""
        host_arrays = []
        for values in (placement.positions, placement.velocity):
            host_arrays.append(np.zeros((3, self.markers.stride)))
            if values is not None:
                host_arrays[-1][:, : values.shape[1]] = values
        self.backend.assign(self.markers.positions, host_arrays[0])
        if isinstance(self.markers, Cells):
            self.markers.set_relaxed(placement.relaxed)
        self.restart(None if placement.velocity is None else host_arrays[1])

    def check(self) -> None:
        """Raise UnstableError, with the number and position of a vertex, if it has no fluid around it."""
        vertex = self.lost_vertex()
        if vertex is not None:
            position = self.backend.download(self.markers.positions)[:, vertex]
            coordinates = ", ".join(f"{x:.4g}" for x in position)
            raise UnstableError(
                f"vertex {vertex} at ({coordinates}) has left the fluid at step {self.solver.step}; use a smaller time "
                "step, softer cells or a repulsion from the wall"
            )

    def force_density(self) -> npt.NDArray[Any]:
        """Return the force density of the vertices at the owned sites, (n_owned, 3)."""
        field = self.backend.download(self.field).reshape(-1, 3, BRICK**3)
        row, lane = np.divmod(self.bricks.slots, BRICK**3)
        touched = self.backend.download(self.touched)[row] >> (lane // BRICK).astype(np.uint64) & np.uint64(1)
        return np.where(touched[:, None] == 1, field[row, :, lane], 0.0)
