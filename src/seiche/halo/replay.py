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
    """The graphs of GRAPH_STEPS steps from the first phase on.

    One for each state of the transports' slots, and each `turn` of stages that do not do the same in every step.
    """

    def __init__(self, backend: Backend, exchanges: Sequence[HaloExchange]) -> None:
        """Nothing is captured before the first launch; `exchanges` are those of a step."""
        self._backend, self._exchanges = backend, exchanges
        self._graphs: dict[tuple[int, ...], Graph] = {}
        for exchange in exchanges:
            exchange.before_change.append(self.clear)

    def launch(self, phases: Sequence[Sequence[Stage]], turn: int = 0) -> None:
        """Run the steps, whose stages are captured on first use."""

        def steps() -> None:
            for k in range(GRAPH_STEPS):
                for stage in phases[k % len(phases)]:
                    stage.action()

        state = (turn, *(slot for exchange in self._exchanges for slot in exchange.next_slots))
        if state not in self._graphs:
            self._graphs[state] = self._backend.capture(steps)
        self._graphs[state].launch()

    def clear(self) -> None:
        """Forget the graphs, because the stages have changed or their transports will be gone."""
        self._graphs.clear()
