# SPDX-License-Identifier: BSD-3-Clause
"""Walls at the geometry's own fractions of links, and walls that move (theory/flow, eqs. 36 to 38).

Half-way walls at rest are part of a layout's addressing. For all others a stage before the sweep replaces what left
along each wall link by what comes back (`kernels/flow/walls.hpp`). Between steps the populations are those that left.
The mass that this creates is taken back (`wall_mass.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.domain.world import World
from seiche.flow.components import components
from seiche.flow.layout import Layout, Use
from seiche.flow.model import Walls
from seiche.flow.region import Region
from seiche.flow.wall_links import WallLinks, links_of
from seiche.flow.wall_mass import CORRECTED, CREATED, WallMass, blocks
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import walls as registry
from seiche.kernels.registry.halo import halo_move
from seiche.observe.stage import Stage, in_order

Action = Callable[[], None]


@dataclass
class _Phase:
    """What the steps of a phase do: `actions` and `traffic` (bytes) without and beside other ranks; `saving` undoes.

    `measuring` are the same actions, which count no mass.
    """

    actions: dict[bool, list[Action]] = field(default_factory=lambda: {False: [], True: []})
    measuring: dict[bool, list[Action]] = field(default_factory=lambda: {False: [], True: []})
    traffic: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    saving: list[tuple[Action, ...]] = field(default_factory=list)
    rim: tuple[Action, Action] | None = None
    rim_traffic: int = 0

    def add(self, edge: bool, action: Action, traffic: int, measuring: Action | None = None) -> None:
        """Append an action, and what takes its place where the state is only measured."""
        self.actions[edge].append(action)
        self.measuring[edge].append(measuring or action)
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
        self.mass: WallMass | None = None
        if walls.kind == "bounce-back" and not walls.moving:
            return
        component, count = components(region, world)
        links, moving = links_of(region, walls, world, component)
        at_rest = links.chosen(~moving & ~links.alone & ~links.late, layout.item, layout.interior)
        rim = links.chosen(links.late, layout.item, layout.interior)
        pushed = links.chosen(moving, layout.item, layout.interior)
        paying = np.unique(np.concatenate([part.row for part in (at_rest, pushed, rim)]))
        if not world.allreduce_sum(np.array([len(paying)]))[0]:
            return
        self.mass = WallMass(backend, world, component[paying], count)
        if not len(paying):
            return
        # in the order of links: sites that need another rank last, then by component and item
        at = layout.item[paying]
        paying = paying[np.lexsort((at, component[paying], at >= layout.interior))]
        own = int(np.count_nonzero(at < layout.interior))
        self._reserve(at_rest, pushed, rim, paying)
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
            payment, payment_saved = self._payment(paying, phase)
            plan.saving = [*rest_saved, *push_saved, *payment_saved]
            if len(sites):
                plan.add(False, self._density(sites, excess, phase), 0)
            self._add(plan, registry.wall_return(*precision), rest_members, at_rest.component, at_rest.interior)
            members = {"wall": push_members, "push": push, "row": row, "excess": excess}
            self._add(plan, registry.moving_wall_return(*precision), members, pushed.component, pushed.interior)
            self._add(plan, registry.mass_correction(*precision), payment, component[paying], own, row=CORRECTED)
            # after the sweep the populations lie where the next kind of step looks for them
            rim_members, _ = self._wall_members(rim, share[2], (phase + 1) % layout.phases)
            self._add_after(plan, rim_members, rim, layout.rebuild((phase + 1) % layout.phases, "late"))
            self._phases.append(plan)

    def _reserve(self, at_rest: WallLinks, pushed: WallLinks, rim: WallLinks, paying: npt.NDArray[np.int64]) -> None:
        """Make room for the populations that the kernels read and write, in layouts that need it."""
        self._layout.reserve(Use.RETURNED, paying, np.zeros(len(paying), np.int64))
        for part in (at_rest, pushed):
            self._layout.reserve(Use.RETURNED, part.row, part.q)
            self._layout.reserve(Use.ARRIVING, part.row[part.arrives], part.q[part.arrives])
        self._layout.reserve(Use.LATE, rim.row, rim.q)

    def _wall_members(
        self, links: WallLinks, share: Array, phase: int
    ) -> tuple[dict[str, Any], list[tuple[Action, ...]]]:
        """Return members of `WallReturn` of a step of this phase, and how to save and bring back what it replaces."""
        layout, opposite = self._layout, self._layout.velocity_set.opposite
        own, other = np.zeros(len(links.row), np.uint32), np.zeros(len(links.row), np.uint32)
        for q in np.unique(links.q):
            mine = links.q == q
            rows = links.row[mine]
            own[mine] = layout.leaving_slots(phase, int(q), rows)
            left = layout.leaving_slots(phase, int(opposite[q]), rows)
            other[mine] = np.where(links.alone[mine], own[mine], left)
            before = mine & links.arrives
            other[before] = layout.arriving_slots(phase, int(q), links.row[before])
        source, count = layout.boundary(phase), len(own)
        slots, buffer = self._backend.upload(own), self._backend.zeros(count, self._precision[1])
        members = {"f": source, "own": slots, "other": self._backend.upload(other), "share": share}
        self._kept += [members, buffer]
        return members, self._saving(source, slots, buffer)

    def _payment(self, rows: npt.NDArray[np.int64], phase: int) -> tuple[dict[str, Any], list[tuple[Action, ...]]]:
        """Return members of `MassCorrection` of sites in a step of this phase, and how to undo it."""
        assert self.mass is not None
        slots = self._backend.upload(self._layout.leaving_slots(phase, 0, rows))
        buffer = self._backend.zeros(len(rows), self._precision[1])
        members = {"f": self._layout.boundary(phase), "rest": slots, "amount": self.mass.amount}
        self._kept += [members, buffer]
        return members, self._saving(members["f"], slots, buffer)

    def _saving(self, source: Array, slots: Array, buffer: Array) -> list[tuple[Action, ...]]:
        """Return the calls that save populations and bring them back, if there are any."""
        count = len(buffer)
        if not count:
            return []
        kernels = [self._backend.load(halo_move("Pack", self._precision[1])), self._unpack()]
        moves = [k.bind(self._backend.pack(k, array=source, slots=slots, buffer=buffer), 0, count) for k in kernels]
        return [tuple(moves)]

    def _density(self, sites: npt.NDArray[np.int64], excess: Array, phase: int) -> Action:
        """Return the call that finds the density of the sites with moving walls."""
        lattice = self._layout.velocity_set
        slots = np.stack([self._layout.leaving_slots(phase, q, sites) for q in range(lattice.Q)])
        kernel = self._backend.load(registry.leaving_density(*self._precision, velocity_set=lattice.name))
        self._kept.append(self._backend.upload(slots))
        arguments = self._backend.pack(
            kernel, f=self._layout.boundary(phase), slots=self._kept[-1], excess=excess, stride=len(sites)
        )
        return kernel.bind(arguments, 0, len(sites))

    def _add(
        self,
        plan: _Phase,
        spec: KernelSpec,
        rule: dict[str, Any],
        component: npt.NDArray[np.int64],
        interior: int,
        *,
        row: int = CREATED,
    ) -> None:
        """Add a kernel over links or sites of `component`, the interior first, that adds to `row` of the sums."""
        first, members, begun = self._summed(rule, component, interior)
        kernel = self._backend.load(spec)
        for edge, begin, end in ((False, 0, begun), (True, begun, len(first) - 1)):
            if begin < end:
                assert self.mass is not None
                sums = (self.mass.sums_of(row), self.mass.unused)
                calls = [kernel.bind(self._backend.pack(kernel, **members, sums=s), begin, end) for s in sums]
                traffic = kernel.bytes_per_item * int(first[end] - first[begin]) // registry.WALL_BLOCK
                plan.add(edge, calls[0], traffic, calls[1])

    def _summed(
        self, rule: dict[str, Any], component: npt.NDArray[np.int64], interior: int
    ) -> tuple[npt.NDArray[np.int64], dict[str, Any], int]:
        """Return the limits of blocks, members of `SummedChange` but for its sums, and the blocks of the interior."""
        first, part, begun = blocks(component, interior)
        members = {"rule": rule, "first": self._backend.upload(first), "component": self._backend.upload(part)}
        self._kept.append(members)
        return first, members, begun

    def _add_after(self, plan: _Phase, rule: dict[str, Any], links: WallLinks, rebuild: Action | None) -> None:
        """Add what comes back along `late` links: found before the iolets replace anything, put in place after."""
        count = len(links.row)
        if not count:
            return
        assert self.mass is not None
        kept = self._backend.zeros(count, self._precision[1])
        self._kept.append(kept)
        find, put = self._backend.load(registry.wall_kept(*self._precision)), self._unpack()
        arguments = self._backend.pack(put, array=rule["f"], slots=rule["own"], buffer=kept)
        first, members, _ = self._summed({"wall": rule, "kept": kept}, links.component, count)
        packed = self._backend.pack(find, **members, sums=self.mass.sums_of(CREATED))
        finding = find.bind(packed, 0, len(first) - 1)
        plan.rim = (in_order([rebuild, finding] if rebuild else [finding]), put.bind(arguments, 0, count))
        plan.rim_traffic = find.bytes_per_item * count // registry.WALL_BLOCK

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
            for action in plan.measuring[edge]:
                action()
        self._replaced = phase

    def restore(self) -> None:
        """Bring back what left along the wall links, if it was replaced."""
        if self._replaced is not None:
            for _, bring_back in self._phases[self._replaced].saving:
                bring_back()
            self._replaced = None
