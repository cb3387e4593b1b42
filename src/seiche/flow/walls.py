# SPDX-License-Identifier: BSD-3-Clause
"""Walls at the geometry's own fractions of links, and walls that move (theory/flow, eqs. 36 to 38).

Half-way walls at rest are part of a layout's addressing. For all others a stage before the sweep replaces what left
along each wall link by what comes back (`kernels/flow/walls.hpp`). Between steps the populations are those that left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.layout import Layout, Use
from seiche.flow.model import MovingWall, Walls
from seiche.flow.region import Region
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import flow as registry
from seiche.kernels.registry.halo import halo_move
from seiche.observe.stage import Stage, in_order

#: A wall may not move faster: the equilibrium is an expansion in the Mach number.
MACH_LARGEST = 0.3

Floats = npt.NDArray[np.float64]
Action = Callable[[], None]


def wall_places(sites: SiteSet, rows: npt.NDArray[np.int64], links: npt.NDArray[np.int64]) -> Floats:
    """Return where links meet the wall, (p, 3) in spacings from the geometry's origin of coordinates.

    `rows` (p,) of the boundary arrays, `links` (p,) rows of `LINK_VECTORS`.
    """
    first = np.asarray(sites.origin) / sites.spacing + sites.coords[sites.boundary[rows]]
    return np.asarray(first + sites.link_fraction[rows, links][:, None] * LINK_VECTORS[links], np.float64)


def velocity_at(wall: MovingWall, places: Floats) -> Floats:
    """Return the velocity (p, 3) of a wall at `places` (p, 3)."""
    return np.asarray(np.array(wall.velocity) + np.cross(np.array(wall.rotation), places - np.array(wall.center)))


def patches_of(walls: Sequence[MovingWall], places: Floats) -> npt.NDArray[np.int64]:
    """Return the number of the moving wall at each of `places` (p, 3), -1 where the wall is at rest.

    Raises:
        CaseError: two moving walls hold one place.
    """
    number = np.full(len(places), -1, np.int64)
    for k, wall in enumerate(walls):
        mine = np.ones(len(places), bool) if wall.patch is None else np.asarray(wall.patch(places), bool)
        twice = np.flatnonzero(mine & (number >= 0))
        if len(twice):
            at = ", ".join(f"{value:.4g}" for value in places[twice[0]])
            raise CaseError(
                f"moving walls {walls[number[twice[0]]].name!r} and {wall.name!r} both hold the wall at ({at}) spacings"
            )
        number[mine] = k
    return number


def check_moving(walls: Sequence[MovingWall], found: npt.NDArray[np.int64], speeds: Floats) -> None:
    """Refuse walls without a link and walls that are too fast, of `found` links and greatest `speeds` (walls,) each.

    Raises:
        CaseError: what is wrong, in one line.
    """
    for wall, count, speed in zip(walls, found, speeds, strict=True):
        if not count:
            raise CaseError(f"moving wall {wall.name!r}: its patch holds no wall link")
        if not speed <= MACH_LARGEST * CS2**0.5:
            raise CaseError(
                f"moving wall {wall.name!r}: {speed:.3g} sites/step is Mach {speed / CS2**0.5:.3g}, out of range"
                f" (<= {MACH_LARGEST})"
            )


@dataclass(frozen=True)
class _Links:
    """Wall links of a rank: site `row` in the region, direction `q`, `share` of eqs. 36 and 37, and `push` of eq. 38.

    All (p,). `arrives` marks those whose other population arrives along the link (the wall lies before its middle),
    `alone` those that have no other population, `late` those whose other one an iolet replaces after the collision.
    Of the links that a kernel handles the first `interior` need nothing from another rank; they come before any sweep,
    since an odd step in place overwrites what left its neighbours.
    """

    row: npt.NDArray[np.int64]
    q: npt.NDArray[np.int64]
    share: Floats
    push: Floats
    arrives: npt.NDArray[np.bool_]
    alone: npt.NDArray[np.bool_]
    late: npt.NDArray[np.bool_]
    interior: int

    def chosen(self, which: npt.NDArray[np.bool_], item: npt.NDArray[np.int64], interior: int) -> _Links:
        """Return some of the links by direction and item, those that need another rank last."""
        rows = np.flatnonzero(which)
        at = item[self.row[rows]]
        late = self.arrives[rows] & (at >= interior)
        order = rows[np.lexsort((at, self.q[rows], late))]
        return _Links(
            self.row[order],
            self.q[order],
            self.share[order],
            self.push[order],
            self.arrives[order],
            self.alone[order],
            self.late[order],
            int(np.count_nonzero(~late)),
        )


def _links_of(region: Region, walls: Walls, world: World) -> tuple[_Links, npt.NDArray[np.bool_]]:
    """Return all wall links of the rank, in no order, and which of them move; all ranks refuse a motion together."""
    sites, lattice = region.sites, region.velocity_set
    columns = lattice.link_rows
    place, direction = np.nonzero(sites.link_kind[region.boundary_rows][:, columns] == LinkKind.WALL)
    row, q, link = region.boundary_sites[place], direction + 1, columns[direction]
    half, rim = np.ones(len(row), bool), np.zeros(len(row), bool)
    fraction = np.full(len(row), 0.5)
    if walls.kind == "bouzidi":
        fraction = sites.link_fraction[region.boundary_rows[place], link].astype(np.float64)
        for k in range(1, lattice.Q):
            mine = np.flatnonzero(q == k)
            behind = int(lattice.opposite[k])
            rim[mine] = sites.link_kind[region.boundary_rows[place[mine]], columns[behind - 1]] > LinkKind.WALL
            half[mine] = (region.neighbour(behind)[row[mine]] < 0) & ~rim[mine]
        half |= fraction == 0.5
        rim &= ~half
    double = np.where(half, 1.0, 2.0 * fraction)
    late = rim & (double > 1.0)
    push, number = np.zeros(len(row)), np.full(len(row), -1, np.int64)
    problem, speed = None, np.zeros(len(walls.moving))
    if walls.moving:
        places = wall_places(sites, region.boundary_rows[place], link)
        try:
            number = patches_of(walls.moving, places)
        except CaseError as error:
            problem = str(error)
        half |= late & (number >= 0)
        late &= ~half
        double[half] = 1.0
        for k, wall in enumerate(walls.moving):
            mine = np.flatnonzero(number == k)
            velocity = velocity_at(wall, places[mine])
            push[mine] = -6.0 * lattice.weights[q[mine]] * np.sum(velocity * lattice.vectors[q[mine]], axis=1)
            push[mine] /= np.maximum(double[mine], 1.0)
            speed[k] = np.sqrt(np.sum(velocity**2, axis=1).max(initial=0.0))
        first = next((text for text in world.allgather(problem) if text is not None), None)
        if first is not None:
            raise CaseError(first)
        found = world.allreduce_sum(np.bincount(number[number >= 0], minlength=len(walls.moving)))
        check_moving(walls.moving, found, world.allreduce_max(np.where(np.isfinite(speed), speed, np.inf)))
    share = np.where(double < 1.0, double, 1.0 / double)
    return _Links(row, q, share, push, ~half & ~rim & (double < 1.0), half, late, 0), number >= 0


@dataclass
class _Phase:
    """What the steps of a phase do: `actions` and `traffic` (bytes) without and beside other ranks; `saving` undoes."""

    actions: dict[bool, list[Action]] = field(default_factory=lambda: {False: [], True: []})
    traffic: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    saving: list[tuple[Action, ...]] = field(default_factory=list)
    rim: tuple[Action, Action] | None = None
    rim_traffic: int = 0

    def add(self, edge: bool, action: Action, traffic: int) -> None:
        """Append an action."""
        self.actions[edge].append(action)
        self.traffic[edge] += traffic


class WallStages:
    """The stages of walls that are not half way or not at rest; without such walls there are none."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        walls: Walls,
        *,
        precision: tuple[Any, Any],
        world: World,
        named: Callable[[str, Action], Action],
    ) -> None:
        """Find the links and upload their slots, shares and pushes; collective.

        Raises:
            CaseError: a moving wall that is too fast, holds no link or shares one with another.
        """
        self._backend, self._layout, self._precision, self._named = backend, layout, precision, named
        self._phases: list[_Phase] = []
        self._replaced: int | None = None
        self._kept: list[Any] = []
        if walls.kind == "bounce-back" and not walls.moving:
            return
        links, moving = _links_of(region, walls, world)
        at_rest = links.chosen(~moving & ~links.alone & ~links.late, layout.item, layout.interior)
        rim = links.chosen(links.late, layout.item, layout.interior)
        pushed = links.chosen(moving, layout.item, layout.interior)
        if not len(at_rest.row) + len(pushed.row) + len(rim.row):
            return
        for part in (at_rest, pushed):
            layout.reserve(Use.RETURNED, part.row, part.q)
            layout.reserve(Use.ARRIVING, part.row[part.arrives], part.q[part.arrives])
        layout.reserve(Use.LATE, rim.row, rim.q)
        sites, site_of = np.unique(pushed.row, return_inverse=True)
        excess = backend.zeros(len(sites), precision[0])
        real = np.dtype(precision[0])
        share, push, row = (
            [backend.upload(part.share.astype(real)) for part in (at_rest, pushed, rim)],
            backend.upload(pushed.push.astype(real)),
            backend.upload(site_of.astype(np.uint32)),
        )
        self._kept += [excess, *share, push, row]
        for phase in range(layout.phases):
            plan = _Phase()
            rest_members, rest_saved = self._wall_members(at_rest, share[0], phase)
            push_members, push_saved = self._wall_members(pushed, share[1], phase)
            plan.saving = [*rest_saved, *push_saved]
            if len(sites):
                plan.add(False, self._density(sites, excess, phase), 0)
            self._add(plan, registry.wall_return(*precision), rest_members, at_rest)
            members = {"wall": push_members, "push": push, "row": row, "excess": excess}
            self._add(plan, registry.moving_wall_return(*precision), members, pushed)
            # after the sweep the populations lie where the next kind of step looks for them
            rim_members, _ = self._wall_members(rim, share[2], (phase + 1) % layout.phases)
            self._add_after(plan, rim_members, len(rim.row), layout.rebuild((phase + 1) % layout.phases, "late"))
            self._phases.append(plan)

    def _wall_members(self, links: _Links, share: Array, phase: int) -> tuple[dict[str, Any], list[tuple[Action, ...]]]:
        """Return members of `WallReturn` of a step of this phase, and how to save and bring back what it replaces."""
        layout, opposite = self._layout, self._layout.velocity_set.opposite
        own, other = np.zeros(len(links.row), np.uint32), np.zeros(len(links.row), np.uint32)
        for q in np.unique(links.q):
            mine = links.q == q
            rows = links.row[mine]
            own[mine] = layout.leaving_slots(phase, int(q))[rows]
            left = layout.leaving_slots(phase, int(opposite[q]))[rows]
            other[mine] = np.where(links.alone[mine], own[mine], left)
            before = mine & links.arrives
            other[before] = layout.arriving_slots(phase, int(q), links.row[before])
        source, count = layout.boundary(phase), len(own)
        slots, buffer = self._backend.upload(own), self._backend.zeros(count, self._precision[1])
        members = {"f": source, "own": slots, "other": self._backend.upload(other), "share": share}
        self._kept += [members, buffer]
        if not count:
            return members, []
        kernels = [self._backend.load(halo_move("Pack", self._precision[1])), self._unpack()]
        moves = [k.bind(self._backend.pack(k, array=source, slots=slots, buffer=buffer), 0, count) for k in kernels]
        return members, [tuple(moves)]

    def _density(self, sites: npt.NDArray[np.int64], excess: Array, phase: int) -> Action:
        """Return the call that finds the density of the sites with moving walls."""
        lattice = self._layout.velocity_set
        slots = np.stack([self._layout.leaving_slots(phase, q)[sites] for q in range(lattice.Q)])
        kernel = self._backend.load(registry.leaving_density(*self._precision, velocity_set=lattice.name))
        self._kept.append(self._backend.upload(slots))
        arguments = self._backend.pack(
            kernel, f=self._layout.boundary(phase), slots=self._kept[-1], excess=excess, stride=len(sites)
        )
        return kernel.bind(arguments, 0, len(sites))

    def _add(self, plan: _Phase, spec: KernelSpec, members: dict[str, Any], links: _Links) -> None:
        count = len(links.row)
        if not count:
            return
        kernel = self._backend.load(spec)
        arguments = self._backend.pack(kernel, **members)
        for edge, begin, end in ((False, 0, links.interior), (True, links.interior, count)):
            if begin < end:
                plan.add(edge, kernel.bind(arguments, begin, end), kernel.bytes_per_item * (end - begin))

    def _add_after(self, plan: _Phase, members: dict[str, Any], count: int, rebuild: Action | None) -> None:
        """Add what comes back along `late` links: found before the iolets replace anything, put in place after."""
        if not count:
            return
        kept = self._backend.zeros(count, self._precision[1])
        self._kept.append(kept)
        find, put = self._backend.load(registry.wall_kept(*self._precision)), self._unpack()
        arguments = self._backend.pack(put, array=members["f"], slots=members["own"], buffer=kept)
        finding = find.bind(self._backend.pack(find, wall=members, kept=kept), 0, count)
        plan.rim = (in_order([rebuild, finding] if rebuild else [finding]), put.bind(arguments, 0, count))
        plan.rim_traffic = find.bytes_per_item * count

    def _unpack(self) -> Kernel:
        return self._backend.load(halo_move("Unpack", self._precision[1]))

    def around_iolets(self, phase: int, after: tuple[str, ...]) -> tuple[list[Stage], list[Stage]]:
        """Return the stages before and after those of the iolets, for wall links beside them, if there are any."""
        plan = self._phases[phase] if self._phases else _Phase()
        if plan.rim is None:
            return [], []
        find, put = (
            self._named(name, action) for name, action in zip(("walls at iolets", "walls kept"), plan.rim, strict=True)
        )
        return (
            [Stage("walls at iolets", find, plan.rim_traffic, after)],
            [Stage("walls kept", put, 0, ("walls at iolets",))],
        )

    def rebuild(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that puts populations into the slots where boundaries look for them, if a layout has one."""
        action = self._layout.rebuild(phase, "edge" if edge else "interior")
        if action is None:
            return []
        name = "rebuild edge" if edge else "rebuild interior"
        return [Stage(name, self._named(name, action), 0, ("receive halo",) if edge else ())]

    def before_sweep(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that replaces what left along wall links, beside another rank (`edge`) or not, if any."""
        actions = self._phases[phase].actions[edge] if self._phases else []
        if not actions:
            return []
        name = "walls edge" if edge else "walls interior"
        traffic = self._phases[phase].traffic[edge]
        return [Stage(name, self._named(name, in_order(actions)), traffic, ("receive halo",) if edge else ())]

    def replace(self, phase: int) -> None:
        """Do what the stages do, so that the state before a step of this phase can be observed; `restore` undoes it."""
        if not self._phases or self._replaced is not None:
            return
        plan = self._phases[phase]
        for stage in self.rebuild(phase, edge=False) + self.rebuild(phase, edge=True):
            stage.action()
        for save, _ in plan.saving:
            save()
        for edge in (False, True):
            for action in plan.actions[edge]:
                action()
        self._replaced = phase

    def restore(self) -> None:
        """Bring back what left along the wall links, if it was replaced."""
        if self._replaced is not None:
            for _, bring_back in self._phases[self._replaced].saving:
                bring_back()
            self._replaced = None
