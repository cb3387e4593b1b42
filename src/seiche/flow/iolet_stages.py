# SPDX-License-Identifier: BSD-3-Clause
"""Stages of iolets in a step (theory/flow, section 4): boundary kernels, circuits, clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.flow.iolets import IoletGroup, Iolets
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.kernels.registry import flow as registry
from seiche.observe.stage import Messages, Stage, in_order

Action = Callable[[], None]

#: Stages of the openings of a rank that do not wait for other ranks.
OWN_WORK = (
    "outgoing depths",
    "incoming depths interior",
    "incoming depths edge",
    "iolet stress interior",
    "iolet stress edge",
    "pressure iolets",
    "velocity iolets",
    "sum outflow",
    "advance clock",
)


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

    @property
    def sends_samples(self) -> bool:
        """Whether populations of interior neighbours are exchanged with other ranks."""
        return self._iolets.depths is not None and self._iolets.depths.exchange is not None

    def depths_outgoing(self, phase: int, *, walls_return: bool) -> list[Stage]:
        """Return the stage that samples outgoing populations of interior neighbours before they are overwritten."""
        depths = self._iolets.depths
        action = depths.outgoing(phase, walls_return=walls_return) if depths is not None else None
        return [Stage("outgoing depths", action)] if action is not None else []

    def depths_incoming(self, phase: int, *, edge: bool, walls_return: bool) -> list[Stage]:
        """Return the stage that samples interior neighbours after the wall stages and the observation.

        With `edge` it starts the exchange. `walls_return` states whether there are wall stages.
        """
        depths = self._iolets.depths
        if depths is None:
            return []
        sample = depths.incoming(phase, self._iolets.observed.members(0), edge=edge, walls_return=walls_return)
        actions: list[Action] = [sample] if sample is not None else []
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

    def observation(self, phase: int, *, edge: bool) -> list[Stage]:
        """Return the stage that observes sites near iolets, at rank boundaries (`edge`) or elsewhere, if any."""
        observed = self._iolets.observed
        spans = observed.spans(edge=edge)
        if not spans:
            return []
        kernel, arguments = self._physics.observation(
            self._precision, phase, sites=observed.items, out=observed.columns, stride=observed.stride, at_opening=True
        )
        name = "iolet stress edge" if edge else "iolet stress interior"
        action = in_order([kernel.bind(arguments, begin, end) for begin, end in spans])
        return [Stage(name, action, 0, ("receive halo",) if edge else ())]

    def after_sweep(self, phase: int, after: tuple[str, ...]) -> list[Stage]:
        """Return the stages that replace the populations leaving through iolets; they depend on the stages `after`."""
        circuits, groups = self._iolets.windkessels, self._iolets.groups
        stages = self._receive_depths()
        if circuits is not None:
            name = "windkessel circuits"
            messages = Messages(name, is_collective=True) if circuits.needs_host else None
            stages.append(Stage(name, circuits.advance, useful=not circuits.needs_host, messages=messages))
        for name, pressure in (("pressure iolets", True), ("velocity iolets", False)):
            chosen_groups = [group for group in groups if (group.rule is not None) == pressure]
            if chosen_groups:
                size = 2 * self._layout.velocity_set.Q * np.dtype(self._precision[1]).itemsize
                traffic = sum(map(len, chosen_groups)) * size
                dependencies = (*after, "windkessel circuits") if circuits is not None else after
                action = in_order([self._replacement(group, phase) for group in chosen_groups])
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
