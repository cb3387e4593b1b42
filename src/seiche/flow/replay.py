# SPDX-License-Identifier: BSD-3-Clause
"""Many steps as one launch: a captured graph of all their device work, messages included."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.backend import Backend
from seiche.backend.base import Graph
from seiche.halo.exchange import HaloExchange
from seiche.observe.stage import Stage

#: Steps that one graph replays: a multiple of the phases and of a transport's slots, which then are as before.
GRAPH_STEPS = 32


class Replay:
    """The graphs of GRAPH_STEPS steps from the first phase on, one for each state of the transport's slots."""

    def __init__(self, backend: Backend, halo: HaloExchange) -> None:
        """Nothing is captured before the first launch."""
        self._backend, self._halo = backend, halo
        self._graphs: dict[tuple[int, ...], Graph] = {}

    def launch(self, phases: Sequence[Sequence[Stage]]) -> None:
        """Run the steps, whose stages are captured on first use."""

        def steps() -> None:
            for k in range(GRAPH_STEPS):
                for stage in phases[k % len(phases)]:
                    stage.action()

        slots = self._halo.next_slots
        if slots not in self._graphs:
            self._graphs[slots] = self._backend.capture(steps)
        self._graphs[slots].launch()

    def clear(self) -> None:
        """Forget the graphs, because the stages have changed or their transports will be gone."""
        self._graphs.clear()
