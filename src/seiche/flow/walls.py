# SPDX-License-Identifier: BSD-3-Clause
"""Interpolated walls (at the geometry's link fractions) and moving walls (theory/flow, eqs. 36 to 38).

The addressing of a layout includes half-way walls at rest. For all other walls, a stage before the sweep replaces the
outgoing population of each wall link by the returning one (`kernels/flow/walls.hpp`). Between steps the outgoing
populations are stored. The mass that these walls create is removed (`wall_mass.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.flow.components import closed_components, components, sparse_sites
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
    """Wall actions in the steps of one phase.

    The keys of the dictionaries state whether data of other ranks are needed.

    `traffic` are the bytes moved by `actions`. `measuring` are the same actions without the summation of mass. `saving`
    has pairs of calls that save and restore the populations. `rim` are the two actions before and after the iolet
    stages for wall links next to iolets.
    """

    actions: dict[bool, list[Action]] = field(default_factory=lambda: {False: [], True: []})
    measuring: dict[bool, list[Action]] = field(default_factory=lambda: {False: [], True: []})
    traffic: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    saving: list[tuple[Action, ...]] = field(default_factory=list)
    rim: tuple[Action, Action] | None = None
    rim_traffic: int = 0

    def add(self, edge: bool, action: Action, traffic: int, measuring: Action | None = None) -> None:
        """Append an action, and its variant for measurements, which does not sum the mass."""
        self.actions[edge].append(action)
        self.measuring[edge].append(measuring or action)
        self.traffic[edge] += traffic


class WallStages:
    """Stages of interpolated and moving walls; there are none without such walls."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        walls: Walls,
        *,
        precision: tuple[Any, Any],
        world: World,
    ) -> None:
        """Find the links and upload their slots, weights and momentum terms; collective.

        Raises CaseError for a moving wall that is too fast, has no link, or overlaps another one.
        """
        self._backend, self._layout, self._precision = backend, layout, precision
        self._phases: list[_Phase] = []
        self._replaced: int | None = None
        self._arrays: list[Any] = []  # referenced by bound kernels
        self.mass: WallMass | None = None
        #: Component (n_owned,) of each site, if mass is corrected.
        self.component = np.zeros(0, np.int64)
        has_rounding = precision[0] != "float64" or layout.store != "float64"
        if (
            walls.kind == "bounce-back"
            and not walls.moving
            and (region.sites.iolets or not (has_rounding and np.any(region.sites.link_kind == LinkKind.WALL)))
        ):
            return
        self.component, count = components(region, world)
        component = self.component
        closed = closed_components(region, world, component, count) & has_rounding
        all_links, is_moving = links_of(region, walls, world, component)
        is_resting = ~is_moving & ~all_links.halfway & ~all_links.after_iolets
        resting, rim, moving = (
            all_links.chosen(mask, layout.item, layout.interior)
            for mask in (is_resting, all_links.after_iolets, is_moving)
        )
        wall_sites = np.unique(np.concatenate([links.row for links in (resting, moving, rim)]))
        present = world.allreduce_sum(np.bincount(component[wall_sites], minlength=count)) > 0
        creates = bool(present.any())
        wall_sites = np.union1d(wall_sites, sparse_sites(region, world, component, closed & ~present))
        if not creates and not closed.any():
            return
        coarse = layout.store == "float16" and layout.kernel_name(0) != "moments"
        self.mass = WallMass(backend, world, component[wall_sites], closed=closed, creates=creates, coarse=coarse)
        if len(wall_sites):
            self._prepare(resting, moving, rim, wall_sites)

    def _prepare(
        self, resting: WallLinks, moving: WallLinks, rim: WallLinks, wall_sites: npt.NDArray[np.int64]
    ) -> None:
        """Upload the arrays of the links, and list the kernels of each kind of step."""
        backend, layout, precision, component = self._backend, self._layout, self._precision, self.component
        # The same order as for links: by component and item, with sites that need other ranks last.
        items = layout.item[wall_sites]
        wall_sites = wall_sites[np.lexsort((items, component[wall_sites], items >= layout.interior))]
        interior_count = int(np.count_nonzero(items < layout.interior))
        self._reserve(resting, moving, rim, wall_sites)
        sites, site_of = np.unique(moving.row, return_inverse=True)
        excess = backend.zeros(len(sites), precision[0])
        real = np.dtype(precision[0])
        weight = [backend.upload(links.weight.astype(real)) for links in (resting, moving, rim)]
        wall_term, row = backend.upload(moving.wall_term.astype(real)), backend.upload(site_of.astype(np.uint32))
        self._arrays += [excess, *weight, wall_term, row]
        for phase in range(layout.phases):
            plan = _Phase()
            resting_members, resting_saved = self._wall_members(resting, weight[0], phase)
            moving_members, moving_saved = self._wall_members(moving, weight[1], phase)
            correction, correction_saved = self._correction(wall_sites, phase)
            plan.saving = [*resting_saved, *moving_saved, *correction_saved]
            if len(sites):
                plan.add(False, self._density(sites, excess, phase), 0)
            self._add(plan, registry.wall_return(*precision), resting_members, resting.component, resting.interior)
            members = {"wall": moving_members, "wall_term": wall_term, "row": row, "excess": excess}
            self._add(plan, registry.moving_wall_return(*precision), members, moving.component, moving.interior)
            self._add(
                plan,
                registry.mass_correction(*precision),
                correction,
                component[wall_sites],
                interior_count,
                row=CORRECTED,
            )
            # After the sweep, the populations are in the slots of the next phase.
            next_phase = (phase + 1) % layout.phases
            rim_members, _ = self._wall_members(rim, weight[2], next_phase)
            self._add_rim(plan, rim_members, rim, layout.rebuild_call(next_phase, "after iolets"))
            self._phases.append(plan)

    def _reserve(self, resting: WallLinks, moving: WallLinks, rim: WallLinks, sites: npt.NDArray[np.int64]) -> None:
        """Reserve slots for the populations that the kernels read and write, in layouts that need it."""
        self._layout.reserve(Use.RETURNED, sites, np.zeros(len(sites), np.int64))
        for links in (resting, moving):
            self._layout.reserve(Use.RETURNED, links.row, links.q)
            self._layout.reserve(Use.INCOMING, links.row[links.arrives], links.q[links.arrives])
        self._layout.reserve(Use.AFTER_IOLETS, rim.row, rim.q)

    def _wall_members(
        self, links: WallLinks, weight: Array, phase: int
    ) -> tuple[dict[str, Any], list[tuple[Action, ...]]]:
        """Return the members of `WallReturn` in this phase, and the calls that save and restore the replaced values."""
        layout, opposite = self._layout, self._layout.velocity_set.opposite
        outgoing_slots, second_slots = np.zeros(len(links.row), np.uint32), np.zeros(len(links.row), np.uint32)
        for q in np.unique(links.q):
            selected = links.q == q
            rows = links.row[selected]
            outgoing_slots[selected] = layout.outgoing_slots(phase, int(q), rows)
            outgoing = layout.outgoing_slots(phase, int(opposite[q]), rows)
            second_slots[selected] = np.where(links.halfway[selected], outgoing_slots[selected], outgoing)
            incoming = selected & links.arrives
            second_slots[incoming] = layout.incoming_slots(phase, int(q), links.row[incoming])
        source, count = layout.boundary(phase), len(outgoing_slots)
        slots, buffer = self._backend.upload(outgoing_slots), self._backend.zeros(count, self._precision[1])
        members = {
            "f": source,
            "outgoing_slots": slots,
            "second_slots": self._backend.upload(second_slots),
            "weight": weight,
        }
        self._arrays += [members, buffer]
        return members, self._saving(source, slots, buffer)

    def _correction(self, rows: npt.NDArray[np.int64], phase: int) -> tuple[dict[str, Any], list[tuple[Action, ...]]]:
        """Return the members of `MassCorrection` in this phase, and the calls that save and restore its values."""
        assert self.mass is not None
        slots = self._backend.upload(self._layout.outgoing_slots(phase, 0, rows))
        buffer = self._backend.zeros(len(rows), self._precision[1])
        members = {"f": self._layout.boundary(phase), "rest": slots, "amount": self.mass.amount}
        self._arrays += [members, buffer]
        return members, self._saving(members["f"], slots, buffer)

    def _saving(self, source: Array, slots: Array, buffer: Array) -> list[tuple[Action, ...]]:
        """Return the calls that save and restore populations, if there are any."""
        count = len(buffer)
        if not count:
            return []
        kernels = [self._backend.load(halo_move("Pack", self._precision[1])), self._unpack()]
        arrays = {"array": source, "slots": slots, "buffer": buffer}
        return [tuple(k.bind(self._backend.pack(k, **arrays), 0, count) for k in kernels)]

    def _density(self, sites: npt.NDArray[np.int64], excess: Array, phase: int) -> Action:
        """Return the call that computes the density of the sites with moving walls."""
        lattice = self._layout.velocity_set
        slots = np.stack([self._layout.outgoing_slots(phase, q, sites) for q in range(lattice.Q)])
        kernel = self._backend.load(registry.outgoing_density(*self._precision, velocity_set=lattice.name))
        members = {"slots": self._backend.upload(slots), "excess": excess, "stride": len(sites)}
        self._arrays.append(members)
        return kernel.bind(self._backend.pack(kernel, f=self._layout.boundary(phase), **members), 0, len(sites))

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
        """Add a kernel for links or sites of `component` (interior ones first) that adds to `row` of the sums."""
        first, members, interior_blocks = self._summed(rule, component, interior)
        kernel = self._backend.load(spec)
        for edge, begin, end in ((False, 0, interior_blocks), (True, interior_blocks, len(first) - 1)):
            if begin < end:
                assert self.mass is not None
                sums = (self.mass.sums_of(row), self.mass.unused)
                calls = [kernel.bind(self._backend.pack(kernel, **members, sums=s), begin, end) for s in sums]
                traffic = kernel.bytes_per_item * int(first[end] - first[begin]) // registry.WALL_BLOCK
                plan.add(edge, calls[0], traffic, calls[1])

    def _summed(
        self, rule: dict[str, Any], component: npt.NDArray[np.int64], interior: int
    ) -> tuple[npt.NDArray[np.int64], dict[str, Any], int]:
        """Return block limits, members of `SummedChange` without its sums, and the number of interior blocks."""
        first, block_component, interior_blocks = blocks(component, interior)
        upload = self._backend.upload
        members = {"rule": rule, "first": upload(first), "component": upload(block_component)}
        self._arrays.append(members)
        return first, members, interior_blocks

    def _add_rim(self, plan: _Phase, rule: dict[str, Any], links: WallLinks, rebuild: Action | None) -> None:
        """Add the returns along `after_iolets` links, computed before and stored after the iolet stages."""
        count = len(links.row)
        if not count:
            return
        assert self.mass is not None
        buffer = self._backend.zeros(count, self._precision[1])
        compute, store = self._backend.load(registry.store_wall_return(*self._precision)), self._unpack()
        arguments = self._backend.pack(store, array=rule["f"], slots=rule["outgoing_slots"], buffer=buffer)
        first, members, _ = self._summed({"wall": rule, "returned": buffer}, links.component, count)
        packed = self._backend.pack(compute, **members, sums=self.mass.sums_of(CREATED))
        action = compute.bind(packed, 0, len(first) - 1)
        plan.rim = (in_order([rebuild, action] if rebuild else [action]), store.bind(arguments, 0, count))
        plan.rim_traffic = compute.bytes_per_item * count // registry.WALL_BLOCK

    def _unpack(self) -> Kernel:
        return self._backend.load(halo_move("Unpack", self._precision[1]))

    def around_iolets(self, phase: int, after: tuple[str, ...]) -> tuple[list[Stage], list[Stage]]:
        """Return the stages before and after those of the iolets, for wall links next to iolets.

        None without such links.
        """
        plan = self._phases[phase] if self._phases else _Phase()
        if plan.rim is None:
            return [], []
        names = ("wall returns at iolets", "store wall returns")
        compute, store = plan.rim
        return [Stage(names[0], compute, plan.rim_traffic, after)], [Stage(names[1], store, 0, (names[0],))]

    def rebuild(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that fills the population slots read by boundaries, if the layout needs one."""
        action = self._layout.rebuild_call(phase, "edge" if edge else "interior")
        if action is None:
            return []
        name = "rebuild edge" if edge else "rebuild interior"
        return [Stage(name, action, 0, ("receive halo",) if edge else ())]

    def before_sweep(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage of the wall returns at rank boundaries (`edge`) or elsewhere, if there are any."""
        actions = self._phases[phase].actions[edge] if self._phases else []
        if not actions:
            return []
        name = "walls edge" if edge else "walls interior"
        traffic = self._phases[phase].traffic[edge]
        return [Stage(name, in_order(actions), traffic, ("receive halo",) if edge else ())]

    def replace(self, phase: int, before: Action | None = None) -> None:
        """Apply the wall returns before a step of this phase, so that the state can be observed.

        `restore` reverses this.

        `before` is called when the outgoing populations are complete but none has been replaced.
        """
        if before is None and (not self._phases or self._replaced is not None):
            return
        self.restore()
        for stage in self.rebuild(phase, edge=False) + self.rebuild(phase, edge=True):
            stage.action()
        if before is not None:
            before()
        if not self._phases:
            return
        plan = self._phases[phase]
        for save, _ in plan.saving:
            save()
        for edge in (False, True):
            for action in plan.measuring[edge]:
                action()
        self._replaced = phase

    def restore(self) -> None:
        """Restore the outgoing populations of the wall links if they were replaced."""
        if self._replaced is not None:
            for _, restore in self._phases[self._replaced].saving:
                restore()
            self._replaced = None
