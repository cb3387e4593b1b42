# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a lattice Boltzmann step.

One step from t to t + 1 (theory/flow, section 4):

    send halo                 what left the sites beside another rank
    walls interior            replace what left through walls that are not half way or that move
    stream-collide interior   f_q(x, t) = f*_q(x - c_q, t - 1);  f* = f - omega (f - feq) + h
    receive halo
    walls edge
    stream-collide edge       the same for the sites beside another rank
    pressure iolets           replace what left through an iolet by what comes back
    velocity iolets
    advance clock

`iolet_stages.py` has those that only some iolets need; stages of what is immersed in the fluid come last. On a GPU the
sites beside another rank are swept beside the interior, as soon as the halo is there, where that is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.flow.iolet_stages import IoletStages
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.flow.walls import WallStages
from seiche.halo.exchange import HaloExchange
from seiche.kernels.registry import flow as registry
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers

Action = Callable[[], None]


def annotated(backend: Backend, name: str, action: Action) -> Action:
    """Return `action` inside a profiler range, on devices that have them."""
    if not backend.is_gpu:
        return action

    def run() -> None:
        with backend.annotate(name):
            action()

    return run


class Steps:
    """Puts together the stages of a step.

    Attributes:
        immersed: stages of what is immersed, at the end of a step.
    """

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        halo: HaloExchange,
        physics: Physics,
        *,
        precision: tuple[str, str],
        walls: WallStages,
        iolets: IoletStages,
        timers: StageTimers,
    ) -> None:
        """Take what a step is made of; `precision` is (compute, storage)."""
        self._backend, self._layout, self._halo, self._physics = backend, layout, halo, physics
        self._precision, self._walls, self._iolets, self._timers = precision, walls, iolets, timers
        self._side = backend.stream(urgent=True)
        self.immersed: list[Stage] = []

    def phases(self) -> list[list[Stage]]:
        """Return the stages of each kind of step; the kinds alternate."""
        return [self._stages(phase) for phase in range(self._layout.phases)]

    def _stages(self, phase: int) -> list[Stage]:
        """Return the stages of a step of this phase, in order."""
        walls, iolets = self._walls, self._iolets
        send, receive = self._messages(phase)
        interior, edge = self._sweeps(phase)
        edges = receive + walls.rebuild(phase, edge=True)
        edges += walls.before_sweep(phase, edge=True) + iolets.depths_arrived(phase, edge=True)
        send, edges = self._beside_interior(send, edges + iolets.before_sweep(phase, edge=True) + edge)
        stages = send + walls.rebuild(phase, edge=False) + iolets.depths_left(phase)
        stages += walls.before_sweep(phase, edge=False) + iolets.depths_arrived(phase, edge=False)
        stages += iolets.before_sweep(phase, edge=False) + interior + edges
        swept = tuple(stage.name for stage in interior + edge)
        before, after = walls.around_iolets(phase, swept)
        return stages + before + iolets.after_sweep(phase, swept) + after + self.immersed

    def _beside_interior(self, send: list[Stage], edges: list[Stage]) -> tuple[list[Stage], list[Stage]]:
        """Return the stages that send the halo, and those of sites that need it so that they go on beside the interior.

        They may if they are but the arrival of the halo and the sweep, and no sweep writes what another one reads. A
        step that is timed stage by stage has them one after the other.
        """
        backend, side, begun = self._backend, self._side, list[Any]()
        if not backend.concurrent_streams or len(edges) != 2 or len(self._layout.arrays) < 2:
            return send, edges
        receive, sweep = edges

        def apart() -> bool:
            return self._halo.capturable and not self._timers.by_stages

        def start() -> None:
            send[0].action()
            begun[:] = [backend.current().record()] if apart() else []

        def arrive() -> None:
            if not apart():
                receive.action()
                return
            side.wait(begun[0])
            with backend.use(side):
                receive.action()

        def sweep_edge() -> None:
            if not apart():
                sweep.action()
                return
            with backend.use(side):
                sweep.action()
            backend.current().wait(side.record())

        return [replace(send[0], action=start)], [replace(receive, action=arrive), replace(sweep, action=sweep_edge)]

    def _messages(self, phase: int) -> tuple[list[Stage], list[Stage]]:
        """Return the stages that send and receive the halo."""
        layout, halo, mode = self._layout, self._halo, self._layout.halo_mode(phase)
        if not layout.plan.peers:
            return [], []
        source = layout.source(phase)
        send = annotated(self._backend, "send halo", lambda: halo.start(source, mode))
        receive = annotated(self._backend, "receive halo", lambda: halo.finish(source, mode))
        left, arrived = halo.sent("halo", mode), halo.received("halo", mode)
        return (
            [Stage("send halo", send, halo.bytes, useful=False, messages=left)],
            [Stage("receive halo", receive, halo.bytes, ("send halo",), useful=False, messages=arrived)],
        )

    def _sweeps(self, phase: int) -> tuple[list[Stage], list[Stage]]:
        """Return the stages that stream and collide: sites that need no message, and the others."""
        layout, physics = self._layout, self._physics
        name = layout.kernel_name(phase)
        kernel = self._backend.load(
            registry.stream_collide(name, *self._precision, physics.relaxation, physics.force, **physics.options)  # type: ignore[arg-type]
        )
        members = {"relaxation": physics.relaxation_members, "force": physics.force_members}
        arguments = self._backend.pack(kernel, layout=layout.members(phase), **members)
        share = layout.addressing_bytes / max(layout.items, 1)

        def sweep(name: str, begin: int, end: int, after: tuple[str, ...]) -> list[Stage]:
            if begin == end:
                return []
            sites = layout.sites_per_item
            action = annotated(self._backend, name, kernel.bind(arguments, begin // sites, end // sites))
            fluid = np.count_nonzero((layout.item >= begin) & (layout.item < end))
            return [Stage(name, action, int(kernel.bytes_per_item * fluid + share * (end - begin)), after)]

        return (
            sweep("stream-collide interior", 0, layout.interior, ()),
            sweep("stream-collide edge", layout.interior, layout.items, ("receive halo",)),
        )
