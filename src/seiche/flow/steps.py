# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a lattice Boltzmann step.

One step from t to t + 1 (theory/flow, section 4):

    send halo                 outgoing populations of sites at rank boundaries
    walls interior            populations returned by interpolated and moving walls
    stream-collide interior   f_q(x, t) = f*_q(x - c_q, t - 1);  f* = f - omega (f - feq) + h
    receive halo
    walls edge
    stream-collide edge       the same for sites at rank boundaries
    pressure iolets           replace the populations that leave through an iolet by returning ones
    velocity iolets
    advance clock

`iolet_stages.py` adds stages for some iolets; the stages of immersed bodies come last. On a GPU, the sites at rank
boundaries are swept concurrently with the interior where possible, as soon as the halo has arrived. The stages that
sample the populations near iolets run concurrently with the sweep of the interior, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from seiche.backend import Backend
from seiche.backend.base import Kernel
from seiche.flow.iolet_stages import IoletStages
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.flow.walls import WallStages
from seiche.halo.exchange import HaloExchange
from seiche.kernels.registry import flow as registry
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers

Action = Callable[[], None]


def swept_bytes(kernel: Kernel, sites: int, addressing: float) -> int:
    """Return the memory traffic of a sweep over `sites` sites with tables of `addressing` bytes."""
    return int(kernel.bytes_per_item * sites + addressing)


class Steps:
    """Builder of the stages of a step.

    `precision` is (compute, storage), `immersed` are the stages of immersed bodies.
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
        self._backend, self._layout, self._halo, self._physics = backend, layout, halo, physics
        self._precision, self._walls, self._iolets, self._timers = precision, walls, iolets, timers
        self._side, self._sampling = backend.stream(high_priority=True), backend.stream(high_priority=True)
        self.immersed: list[Stage] = []

    def phases(self) -> list[list[Stage]]:
        """Return the stages of each kind of step; the kinds alternate."""
        return [self._stages(phase) for phase in range(self._layout.phases)]

    def _stages(self, phase: int) -> list[Stage]:
        """Return the stages of a step of this phase, in order."""
        walls, iolets = self._walls, self._iolets
        send, receive = self._messages(phase)
        interior, edge = self._sweeps(phase)
        returns, edge_returns = (walls.before_sweep(phase, edge=at_edge) for at_edge in (False, True))
        walls_return = bool(returns or edge_returns)

        def sampled(*, edge: bool) -> list[Stage]:
            incoming = iolets.depths_incoming(phase, edge=edge, walls_return=walls_return)
            return iolets.observation(phase, edge=edge) + incoming

        edges = receive + walls.rebuild(phase, edge=True) + edge_returns + sampled(edge=True) + edge
        send, edges = self._overlapped(send, edges)
        before, sampling = walls.rebuild(phase, edge=False), sampled(edge=False)
        overwritten = iolets.depths_outgoing(phase, walls_return=walls_return) + returns
        if overwritten:
            before += overwritten
        else:
            before, sampling = [], before + sampling
        sampling, interior = self._sampled_concurrently(sampling, interior)
        stages = send + before + sampling + interior + edges
        swept = tuple(stage.name for stage in interior + edge)
        before, after = walls.around_iolets(phase, swept)
        return stages + before + iolets.after_sweep(phase, swept) + after + self.immersed

    def _overlapped(self, send: list[Stage], edges: list[Stage]) -> tuple[list[Stage], list[Stage]]:
        """Return the send and edge stages, with the edge stages on a separate stream to overlap with the interior.

        This requires that the only edge stages are the receive and the sweep, and that neither sweep writes data that
        the other one reads (two copies). If individual stages are timed, they run in sequence.
        """
        backend, side, sent = self._backend, self._side, list[Any]()
        if not backend.concurrent_streams or len(edges) != 2 or len(self._layout.arrays) < 2:
            return send, edges
        receive, sweep = edges

        def concurrent() -> bool:
            return self._halo.capturable and not self._timers.timing_stages

        def start() -> None:
            send[0].action()
            sent[:] = [backend.current().record()] if concurrent() else []

        def receive_halo() -> None:
            if not concurrent():
                receive.action()
                return
            side.wait(sent[0])
            with backend.use(side):
                receive.action()

        def sweep_edge() -> None:
            if not concurrent():
                sweep.action()
                return
            with backend.use(side):
                sweep.action()
            backend.current().wait(side.record())

        edges = [replace(receive, action=receive_halo), replace(sweep, action=sweep_edge)]
        return [replace(send[0], action=start)], edges

    def _sampled_concurrently(self, sampling: list[Stage], sweep: list[Stage]) -> tuple[list[Stage], list[Stage]]:
        """Return `sampling` and `sweep`, with `sampling` on a separate stream that the end of the sweep waits for.

        This requires that the sweep writes neither the populations (two copies) nor the relaxation rates that
        `sampling` reads, and that no message contains sampled values. If individual stages are timed, they run in
        sequence.
        """
        backend, side = self._backend, self._sampling
        overwrites = len(self._layout.arrays) < 2 or self._physics.has_rates
        if not (backend.concurrent_streams and sampling and sweep) or overwrites or self._iolets.sends_samples:
            return sampling, sweep

        def on_side(stage: Stage, *, is_first: bool) -> Stage:
            def run() -> None:
                if self._timers.timing_stages:
                    stage.action()
                    return
                if is_first:
                    side.wait(backend.current().record())
                with backend.use(side):
                    stage.action()

            return replace(stage, action=run)

        def swept() -> None:
            sweep[-1].action()
            if not self._timers.timing_stages:
                backend.current().wait(side.record())

        aside = [on_side(stage, is_first=stage is sampling[0]) for stage in sampling]
        return aside, [*sweep[:-1], replace(sweep[-1], action=swept)]

    def _messages(self, phase: int) -> tuple[list[Stage], list[Stage]]:
        """Return the stages that send and receive the halo."""
        layout, halo, mode = self._layout, self._halo, self._layout.halo_mode(phase)
        if not layout.plan.peers:
            return [], []
        source = layout.source(phase)
        sent, received = halo.sent("halo", mode), halo.received("halo", mode)
        return (
            [Stage("send halo", lambda: halo.start(source, mode), halo.bytes, useful=False, messages=sent)],
            [
                Stage(
                    "receive halo",
                    lambda: halo.finish(source, mode),
                    halo.bytes,
                    ("send halo",),
                    useful=False,
                    messages=received,
                )
            ],
        )

    def sweep_kernel(self, phase: int) -> Kernel:
        """Return the kernel of streaming and collision in a step of this phase."""
        physics = self._physics
        policies = (*self._precision, physics.relaxation, physics.force)
        name = self._layout.kernel_name(phase)
        return self._backend.load(registry.stream_collide(name, *policies, **physics.options))  # type: ignore[arg-type]

    def _sweeps(self, phase: int) -> tuple[list[Stage], list[Stage]]:
        """Return the streaming and collision stages for the sites that need no message and for the other sites."""
        layout, physics, kernel = self._layout, self._physics, self.sweep_kernel(phase)
        members = {"relaxation": physics.relaxation_members, "force": physics.force_members}
        arguments = self._backend.pack(kernel, layout=layout.members(phase), **members)
        addressing = layout.addressing_bytes(phase) / max(layout.items, 1)

        def sweep(name: str, begin: int, end: int, after: tuple[str, ...]) -> list[Stage]:
            if begin == end:
                return []
            sites = layout.sites_per_item
            action = kernel.bind(arguments, begin // sites, end // sites)
            fluid = int(np.count_nonzero((layout.item >= begin) & (layout.item < end)))
            return [Stage(name, action, swept_bytes(kernel, fluid, addressing * (end - begin)), after)]

        return (
            sweep("stream-collide interior", 0, layout.interior, ()),
            sweep("stream-collide edge", layout.interior, layout.items, ("receive halo",)),
        )
