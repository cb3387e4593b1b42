# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a step that belong to iolets (theory/flow, section 4): kernels by rule, circuits, the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.flow.iolets import IoletGroup, Iolets
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.kernels.registry import flow as registry
from seiche.observe.stage import Stage, in_order

Action = Callable[[], None]


class IoletStages:
    """Makes the stages; `named` puts an action into a range of the profiler."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        iolets: Iolets,
        physics: Physics,
        precision: tuple[Any, Any],
        named: Callable[[str, Action], Action],
    ) -> None:
        """Prepare for kernels of `precision` (compute, storage) with the relaxation and force of `physics`."""
        self._backend, self._layout, self._iolets, self._named = backend, layout, iolets, named
        self._physics, self._precision = physics, precision

    def before_sweep(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that keeps the stress of iolet sites, beside another rank (`edge`) or not, if any."""
        groups = [group for group in self._iolets.groups if group.observed is not None]
        actions = [self._observation(group, phase, edge) for group in groups if group.count(edge)]
        if not actions:
            return []
        name = "iolet stress edge" if edge else "iolet stress interior"
        return [Stage(name, self._named(name, in_order(actions)), 0, ("receive halo",) if edge else ())]

    def after_sweep(self, phase: int, after: tuple[str, ...]) -> list[Stage]:
        """Return what replaces populations that leave through iolets, once the stages `after` are done."""
        circuits, groups = self._iolets.windkessels, self._iolets.groups
        stages: list[Stage] = []
        if circuits is not None:
            stages.append(Stage("windkessel circuits", self._named("windkessel circuits", circuits.advance)))
        for name, rules in (("pressure iolets", ("nash", "anti-bounce-back")), ("velocity iolets", ("ladd",))):
            chosen = [group for group in groups if group.rule in rules]
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
        rules = {
            "nash": registry.nash_pressure,
            "anti-bounce-back": registry.anti_bounce_back_pressure,
            "ladd": registry.ladd_velocity,
        }
        name = self._layout.kernel_name(phase)
        spec = rules[group.rule](name, *precision, physics.other_force, velocity_set=physics.options["velocity_set"])
        kernel = self._backend.load(spec)
        force = {} if group.rule == "anti-bounce-back" else {"force": physics.other_force_members}
        arguments = self._backend.pack(kernel, layout=self._layout.members(phase), **force, **group.members)
        return kernel.bind(arguments, 0, len(group))

    def _observation(self, group: IoletGroup, phase: int, edge: bool) -> Action:
        physics, name = self._physics, self._layout.kernel_name(phase)
        kernel = self._backend.load(
            registry.observe(name, *self._precision, physics.relaxation, physics.other_force, **physics.options)  # type: ignore[arg-type]
        )
        arguments = self._backend.pack(
            kernel,
            layout=self._layout.members(phase),
            sites=group.members["at"]["sites"],
            out=group.observed,
            stride=len(group),
            relaxation=physics.relaxation_members,
            force=physics.other_force_members,
        )
        begin, end = (group.interior, len(group)) if edge else (0, group.interior)
        return kernel.bind(arguments, begin, end)
