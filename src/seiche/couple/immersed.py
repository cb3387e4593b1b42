# SPDX-License-Identifier: BSD-3-Clause
"""The immersed boundary: vertices that move with the fluid and act on it (theory/coupling).

The stages that it adds to a step of the flow, after those that advance the populations:

    interpolate velocity   V(X) = sum_x u(x) delta(x - X), X += V
    mark inside            where cells have another viscosity
    (forces on the vertices, of whoever owns them)
    list vertices          by the bricks of sites on which they act, when one has moved too far
    spread force           g(x) = sum_X F(X) delta(x - X)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Kernel
from seiche.couple.bricks import Bricks
from seiche.couple.inside import Inside
from seiche.couple.markers import Markers, Surfaces
from seiche.errors import CaseError, UnstableError
from seiche.flow.immersion import Contrast, Immersion
from seiche.flow.model import FlowModel
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry import KernelSpec, grouped
from seiche.kernels.registry import ibm as registry
from seiche.kernels.registry.ibm import BRICK, SUPPORT, Delta
from seiche.observe.stage import Stage

#: `euler` moves vertices by the velocity at their place; `adams-bashforth` by 3/2 of it less 1/2 of the step before.
Scheme: TypeAlias = Literal["euler", "adams-bashforth"]

#: What a membrane's shortest waves have of the mobility that a fluid resolved there would give them (eq. 18).
SLIP = 0.05

#: A first listed site so far away that every vertex must be listed anew.
_NOWHERE = -(1 << 30)


def check_coupling(solver: FlowSolver, markers: Markers, delta: str, scheme: str) -> None:
    """Refuse what cannot be coupled.

    Raises:
        CaseError: unknown names, another precision.
    """
    if delta not in SUPPORT:
        raise CaseError(f"delta function {delta!r} is not one of {', '.join(SUPPORT)}")
    if scheme not in ("euler", "adams-bashforth"):
        raise CaseError(f"scheme {scheme!r} of moving vertices is not one of euler, adams-bashforth")
    real = solver.precision.compute
    if np.dtype(markers.force.dtype) != np.dtype(real):
        raise CaseError(f"forces of vertices are {markers.force.dtype}, but the flow computes in {real}")


def viscosity_of(model: FlowModel) -> float:
    """Return the kinematic viscosity of a model's fluid, of a shear-thinning one that at rest."""
    return float(model.rheology.limits[1])


class ImmersedBoundary:
    """Couples vertices with a flow, both ways.

    `velocity` (3, stride) on the device is that of the vertices in the last step.
    """

    def __init__(
        self,
        solver: FlowSolver,
        markers: Markers,
        *,
        delta: Delta = "peskin",
        scheme: Scheme = "euler",
        also: Sequence[Stage] = (),
        surfaces: Sequence[Surfaces] = (),
        viscosity_contrast: float = 1.0,
        mark_every: int = 1,
        before: ImmersedBoundary | None = None,
    ) -> None:
        """Add the stages to the steps of `solver`.

        Args:
            solver: the flow, of one rank (`SharedBoundary` is for several).
            markers: the vertices; their forces in the precision in which the flow computes.
            delta: the smoothed delta function.
            scheme: how vertices move.
            also: stages that add to the forces of the vertices.
            surfaces: the closed surfaces that the vertices form.
            viscosity_contrast: inner over outer viscosity of those surfaces.
            mark_every: steps after which it is found out anew which sites are inside.
            before: one with other vertices in this flow, which is no more: its knowledge of the sites is taken over.

        Raises:
            CaseError: several ranks, unknown names, another precision, an impossible contrast.
        """
        check_coupling(solver, markers, delta, scheme)
        if solver.world.size > 1:
            raise CaseError(f"vertices in flow on {solver.world.size} ranks: only cells (Blood) may be on several")
        real = solver.precision.compute
        self.solver, self.markers, self.delta, self.scheme = solver, markers, delta, scheme
        self.backend, self._real = solver.backend, real
        zeros, upload = self.backend.zeros, self.backend.upload
        self._know_sites(before if before is not None and before.solver is solver else None)
        rows, count = self.bricks.count, markers.vertex_count
        self.velocity = zeros((3, markers.stride), real)
        self._vertices = {
            "place": markers.place,
            "first": zeros((markers.stride, 4), np.int32),
            "t": zeros((markers.stride, 4), real),
            "listed": upload(np.full((3, markers.stride), _NOWHERE, np.int32)),
            "state": zeros(registry.STATE_WORDS, np.uint32),
            "stride": markers.stride,
        }
        self._slip = markers.slip
        capacity = count * self.bricks.entries(SUPPORT[delta])
        self._lists = {
            **{name: zeros(rows + 1, np.uint32) for name in ("first", "count", "tally")},
            "entries": zeros(max(capacity, 1), np.uint32),
        }
        self._moved = 0
        self._bind_all()
        self.inside: Inside | None = None
        if viscosity_contrast != 1.0:
            self.inside = Inside(self.backend, self.bricks, surfaces, mark_every)
            self.inside.bind(markers, surfaces)
        marking = [self.inside.stage()] if self.inside is not None else []
        self._acts = [markers.stage(), *also, *self._acting()]
        self.stages = [*self._moving(), *marking, *self._acts]
        self.refresh()
        force, slots = self.bricks.slot_members()
        fields = {"field": self.field, "flow": self.flow, "touched": self.touched, "slots": slots}
        contrast = None
        if self.inside is not None:
            contrast = Contrast(viscosity_contrast, self.inside.bits, self.inside.sites, mark_every, self.inside.begin)
        solver.immerse(Immersion(force, fields, self.stages, contrast))

    def _know_sites(self, before: ImmersedBoundary | None) -> None:
        """Find out where sites are and make their fields, or take all that over."""
        self.bricks: Bricks
        self.flow: Array
        self.field: Array
        #: Which rows of eight sites of a brick vertices reach, a bit each: these have a force, and keep a velocity.
        self.touched: Array
        if before is not None:
            self.bricks, self.flow, self.field, self.touched = before.bricks, before.flow, before.field, before.touched
            return
        zeros = self.backend.zeros
        self.bricks = Bricks(self.backend, self.solver.region, self.solver.populations)
        rows = self.bricks.count + 1
        self.flow, self.field = zeros(rows * BRICK**3 * 4, self._real), zeros(rows * BRICK**3 * 3, self._real)
        self.touched = zeros(rows, np.uint64)

    def _bind_all(self) -> None:
        """Prepare the launches."""
        count, rows, delta, real = self.markers.vertex_count, self.bricks.count, self.delta, self._real
        space = self.bricks.space
        vertices = self._vertices
        bricks: dict[str, Any] = {"bricks": self.bricks.members}
        both: dict[str, Any] = {**bricks, "vertices": vertices}
        lists: dict[str, Any] = {"lists": self._lists, "state": vertices["state"]}
        listed: dict[str, Any] = {**bricks, **lists, "listed": vertices["listed"], "stride": vertices["stride"]}
        self._settle = self._bound(registry.settle(delta, real, space), count, **both)
        moving = {"flow": self.flow, "velocity": self.velocity, "slip": self._slip, **both}
        spec, teams = registry.interpolate_group(delta, real, space), -(-count // registry.GROUP)
        self._euler = self._bound(spec, teams, one={**moving, "now": 1.0, "before": 0.0}, count=count)
        self._adams = self._bound(spec, teams, one={**moving, "now": 1.5, "before": -0.5}, count=count)
        teams, sorters = -(-count // registry.RARE_GROUP), -(-rows // registry.SORT_GROUP)
        counting, filling = (
            grouped(spec, registry.RARE_GROUP) for spec in (registry.count_vertices(delta), registry.fill_lists(delta))
        )
        self._listing = [
            self._bound(counting, teams, item={**listed, "place": vertices["place"]}, count=count),
            self._bound(registry.place_lists(), rows + 1, **lists),
            self._bound(filling, teams, item=listed, count=count),
            self._bound(registry.sort_lists(), sorters, **lists, count=rows),
        ]
        acting = {"corner": self.bricks.corner, "force": self.markers.force, "lists": self._lists}
        written = {"field": self.field, "touched": self.touched}
        self._spread = self._bound(registry.spread(delta, real), rows, **both, **acting, **written)

    def _bound(self, spec: KernelSpec, items: int, **members: Any) -> Callable[[], None]:
        kernel: Kernel = self.backend.load(spec)
        return kernel.bind(self.backend.pack(kernel, **members), 0, items)

    def _move(self) -> None:
        first = self._moved == 0
        self._moved += 1
        (self._euler if first or self.scheme == "euler" else self._adams)()

    def _moving(self) -> list[Stage]:
        number, size = self.markers.vertex_count, np.dtype(self._real).itemsize
        return [Stage("interpolate velocity", self._move, number * (92 + 17 * size), ("stream-collide interior",))]

    def _acting(self) -> list[Stage]:
        def lists() -> None:
            for launch in self._listing:
                launch()

        size = np.dtype(self._real).itemsize
        moved = 3 * size * BRICK**3 * self.bricks.count
        return [
            Stage("list vertices", lists, 0, ("interpolate velocity",)),
            Stage("spread force", self._spread, moved, ("list vertices",)),
        ]

    def refresh(self) -> None:
        """Take note of vertices that were moved, or given other forces, from outside: list and spread them anew."""
        self._settle()
        if self.inside is not None:
            self.inside.settle(self.solver.restored_inside)
        for stage in self._acts:
            stage.action()

    def restart(self, velocity: npt.NDArray[Any] | None = None) -> None:
        """Set the velocity (3, stride) of the step before, which the second-order scheme needs; None: there is none."""
        self._moved = 0 if velocity is None else 1
        if velocity is not None:
            self.backend.assign(self.velocity, velocity.astype(self._real))
        self.refresh()

    def place_all(self, place: npt.NDArray[np.float64], velocity: npt.NDArray[Any] | None) -> None:
        """Put the vertices at `place` (3, n), with `velocity` (3, n) in the step before."""
        hosts = []
        for given in (place, velocity):
            hosts.append(np.zeros((3, self.markers.stride)))
            if given is not None:
                hosts[-1][:, : given.shape[1]] = given
        self.backend.assign(self.markers.place, hosts[0])
        self.restart(None if velocity is None else hosts[1])

    def lost_vertex(self) -> int | None:
        """Return a vertex that has no fluid around it, or is nowhere, if there is one."""
        lost = int(self.backend.download(self._vertices["state"])[2])
        return lost - 1 if lost else None

    def check(self) -> None:
        """Refuse to go on when a vertex has no fluid around it.

        Raises:
            UnstableError: with the number of the vertex and its place.
        """
        lost = self.lost_vertex()
        if lost is not None:
            place = self.backend.download(self.markers.place)[:, lost]
            where = ", ".join(f"{x:.4g}" for x in place)
            raise UnstableError(
                f"vertex {lost} at ({where}) has left the fluid at step {self.solver.step}: take a smaller"
                " time step, softer cells or a repulsion from the wall"
            )

    def force_density(self) -> npt.NDArray[Any]:
        """Return what the vertices give to the owned sites, (n_owned, 3)."""
        field = self.backend.download(self.field).reshape(-1, 3, BRICK**3)
        row, lane = np.divmod(self.bricks.slots, BRICK**3)
        touched = self.backend.download(self.touched)[row] >> (lane // BRICK).astype(np.uint64) & np.uint64(1)
        return np.where(touched[:, None] == 1, field[row, :, lane], 0.0)

    def memory(self) -> int:
        """Return the bytes beside those of the vertices and of the flow."""
        arrays = [self.flow, self.field, self.touched, self.velocity, *self._lists.values()]
        arrays += [self._vertices[name] for name in ("first", "t", "listed")]
        return sum(int(array.nbytes) for array in arrays)
