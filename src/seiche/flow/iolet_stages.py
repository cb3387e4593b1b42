# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a step that belong to iolets (theory/flow, section 4): kernels by rule, circuits, the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seiche.backend import Array, Backend
from seiche.flow.iolets import IoletGroup, Iolets
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.kernels.registry import flow as registry
from seiche.observe.stage import Messages, Stage, in_order

Action = Callable[[], None]


class IoletStages:
    """Makes the stages; `named` puts an action into a range of the profiler."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        iolets: Iolets,
        physics: Physics,
        *,
        precision: tuple[Any, Any],
        named: Callable[[str, Action], Action],
    ) -> None:
        """Prepare for kernels of `precision` (compute, storage) with the relaxation and force of `physics`."""
        self._backend, self._layout, self._iolets, self._named = backend, layout, iolets, named
        self._physics, self._precision = physics, precision

    def depths_left(self, phase: int) -> list[Stage]:
        """Return the stage that looks at what left sites behind openings, before all sweeps, if there are any."""
        depths = self._iolets.depths
        action = depths.left(phase) if depths is not None else None
        return [Stage("depths left", self._named("depths left", action))] if action is not None else []

    def depths_arrived(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that looks at what arrives there, after the walls; the last one sends it to other ranks."""
        depths = self._iolets.depths
        if depths is None:
            return []
        arrived, (begin, end) = depths.arrived(phase, edge=edge), depths.span(edge=edge)
        actions: list[Action] = []
        if arrived is not None:
            observe = self._observation(depths.items, depths.observed, depths.observed.size // 11, phase)
            actions += [observe(begin, end), arrived]
        exchange = depths.exchange if edge else None
        if exchange is not None:
            actions.append(lambda: exchange.start(depths.values))
        if not actions:
            return []
        name, after = ("depths edge", ("receive halo",)) if edge else ("depths interior", ())
        left = exchange.sent("depths") if exchange is not None else None
        return [Stage(name, self._named(name, in_order(actions)), 0, after, messages=left)]

    def _receive_depths(self) -> list[Stage]:
        depths = self._iolets.depths
        exchange = depths.exchange if depths is not None else None
        if depths is None or exchange is None:
            return []
        receive = self._named("receive depths", lambda: exchange.finish(depths.values))
        return [
            Stage("receive depths", receive, 0, ("depths edge",), useful=False, messages=exchange.received("depths"))
        ]

    def before_sweep(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that keeps the stress of iolet sites, beside another rank (`edge`) or not, if any."""
        groups = [group for group in self._iolets.groups if group.observed is not None]
        actions = []
        for group in groups:
            begin, end = (group.interior, len(group)) if edge else (0, group.interior)
            if begin < end:
                observe = self._observation(group.members["at"]["sites"], group.observed, len(group), phase)
                actions.append(observe(begin, end))
        if not actions:
            return []
        name = "iolet stress edge" if edge else "iolet stress interior"
        return [Stage(name, self._named(name, in_order(actions)), 0, ("receive halo",) if edge else ())]

    def after_sweep(self, phase: int, after: tuple[str, ...]) -> list[Stage]:
        """Return what replaces populations that leave through iolets, once the stages `after` are done."""
        circuits, groups = self._iolets.windkessels, self._iolets.groups
        stages = self._receive_depths()
        if circuits is not None:
            advance, together = self._named("windkessel circuits", circuits.advance), None
            if circuits.needs_host:
                together = Messages("windkessel circuits", everyone=True)
            stages.append(Stage("windkessel circuits", advance, useful=not circuits.needs_host, messages=together))
        for name, pressure in (("pressure iolets", True), ("velocity iolets", False)):
            chosen = [group for group in groups if (group.rule is not None) == pressure]
            if chosen:
                size = 2 * self._layout.velocity_set.Q * np.dtype(self._precision[1]).itemsize
                traffic = sum(map(len, chosen)) * size
                needs = (*after, "windkessel circuits") if circuits is not None else after
                action = in_order([self._replacement(group, phase) for group in chosen])
                stages.append(Stage(name, self._named(name, action), traffic, needs))
        if circuits is not None:
            driven = [group for group in groups if group.values is None]
            sums = [circuits.summation(g.inflow, g.members["at"]["iolet"], len(g)) for g in driven]
            action = in_order([*sums, circuits.collect])
            stages.append(Stage("sum outflow", self._named("sum outflow", action), 0, ("pressure iolets",)))
        if stages:
            tick = self._backend.load(registry.tick())
            action = tick.bind(self._backend.pack(tick, clock=self._iolets.clock), 0, 1)
            stages.append(Stage("advance clock", action, 0, tuple(stage.name for stage in stages)))
        return stages

    def _replacement(self, group: IoletGroup, phase: int) -> Action:
        physics, precision = self._physics, self._precision
        make = group.rule.kernel if group.rule is not None else registry.ladd_velocity
        name = self._layout.kernel_name(phase)
        spec = make(name, *precision, physics.other_force, velocity_set=physics.options["velocity_set"])
        kernel = self._backend.load(spec)
        force = {"force": physics.other_force_members} if group.rule is None or group.rule.force else {}
        arguments = self._backend.pack(kernel, layout=self._layout.members(phase), **force, **group.members)
        return kernel.bind(arguments, 0, len(group))

    def _observation(self, sites: Array, out: Array, count: int, phase: int) -> Callable[[int, int], Action]:
        """Return what makes the call that observes a range of the items `sites` (count,)."""
        kernel, arguments = self._physics.observation(self._precision, phase, sites=sites, out=out, stride=count)
        return lambda begin, end: kernel.bind(arguments, begin, end)
