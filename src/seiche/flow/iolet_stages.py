# SPDX-License-Identifier: BSD-3-Clause
"""Stages of iolets in a step (theory/flow, section 4): boundary kernels, circuits, clock."""

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
    """Builder of the iolet stages of a step."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        iolets: Iolets,
        physics: Physics,
        *,
        precision: tuple[Any, Any],
    ) -> None:
        """Use kernels of `precision` (compute, storage) with the relaxation and force of `physics`."""
        self._backend, self._layout, self._iolets = backend, layout, iolets
        self._physics, self._precision = physics, precision

    def depths_outgoing(self, phase: int) -> list[Stage]:
        """Return the stage that samples the outgoing populations of interior neighbours, before all sweeps."""
        depths = self._iolets.depths
        action = depths.outgoing(phase) if depths is not None else None
        return [Stage("outgoing depths", action)] if action is not None else []

    def depths_incoming(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that samples incoming populations after the wall stages.

        With `edge` it starts the exchange.
        """
        depths = self._iolets.depths
        if depths is None:
            return []
        sample, (begin, end) = depths.incoming(phase, edge=edge), depths.span(edge=edge)
        actions: list[Action] = []
        if sample is not None:
            observe = self._observation(depths.items, depths.observed, depths.observed.size // 11, phase)
            actions += [observe(begin, end), sample]
        exchange = depths.exchange if edge else None
        if exchange is not None:
            actions.append(lambda: exchange.start(depths.values))
        if not actions:
            return []
        name, after = ("incoming depths edge", ("receive halo",)) if edge else ("incoming depths interior", ())
        messages = exchange.sent("depths") if exchange is not None else None
        return [Stage(name, in_order(actions), 0, after, messages=messages)]

    def _receive_depths(self) -> list[Stage]:
        depths = self._iolets.depths
        exchange = depths.exchange if depths is not None else None
        if depths is None or exchange is None:
            return []
        receive, messages = lambda: exchange.finish(depths.values), exchange.received("depths")
        return [Stage("receive depths", receive, 0, ("incoming depths edge",), useful=False, messages=messages)]

    def before_sweep(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that stores the stress of iolet sites, at rank boundaries (`edge`) or elsewhere, if any."""
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
        return [Stage(name, in_order(actions), 0, ("receive halo",) if edge else ())]

    def after_sweep(self, phase: int, after: tuple[str, ...]) -> list[Stage]:
        """Return the stages that replace the populations leaving through iolets; they depend on the stages `after`."""
        circuits, groups = self._iolets.windkessels, self._iolets.groups
        stages = self._receive_depths()
        if circuits is not None:
            name = "windkessel circuits"
            messages = Messages(name, everyone=True) if circuits.needs_host else None
            stages.append(Stage(name, circuits.advance, useful=not circuits.needs_host, messages=messages))
        for name, pressure in (("pressure iolets", True), ("velocity iolets", False)):
            chosen = [group for group in groups if (group.rule is not None) == pressure]
            if chosen:
                size = 2 * self._layout.velocity_set.Q * np.dtype(self._precision[1]).itemsize
                traffic = sum(map(len, chosen)) * size
                dependencies = (*after, "windkessel circuits") if circuits is not None else after
                action = in_order([self._replacement(group, phase) for group in chosen])
                stages.append(Stage(name, action, traffic, dependencies))
        if circuits is not None:
            driven = [group for group in groups if group.values is None]
            sums = [circuits.summation(g.inflow, g.members["at"]["iolet"], len(g)) for g in driven]
            action = in_order([*sums, circuits.collect])
            stages.append(Stage("sum outflow", action, 0, ("pressure iolets",)))
        if stages:
            tick = self._backend.load(registry.tick())
            action = tick.bind(self._backend.pack(tick, clock=self._iolets.clock), 0, 1)
            stages.append(Stage("advance clock", action, 0, tuple(stage.name for stage in stages)))
        return stages

    def _replacement(self, group: IoletGroup, phase: int) -> Action:
        physics, precision = self._physics, self._precision
        spec_of = group.rule.kernel if group.rule is not None else registry.ladd_velocity
        name = self._layout.kernel_name(phase)
        spec = spec_of(name, *precision, physics.other_force, velocity_set=physics.options["velocity_set"])
        kernel = self._backend.load(spec)
        force = {"force": physics.other_force_members} if group.rule is None or group.rule.force else {}
        arguments = self._backend.pack(kernel, layout=self._layout.members(phase), **force, **group.members)
        return kernel.bind(arguments, 0, len(group))

    def _observation(self, sites: Array, out: Array, count: int, phase: int) -> Callable[[int, int], Action]:
        """Return a function of (begin, end) that binds the observation kernel to this range of `sites` (count,)."""
        kernel, arguments = self._physics.observation(self._precision, phase, sites=sites, out=out, stride=count)
        return lambda begin, end: kernel.bind(arguments, begin, end)
