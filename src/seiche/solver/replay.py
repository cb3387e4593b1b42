# SPDX-License-Identifier: BSD-3-Clause
"""Many steps as one launch: a captured graph of all their device work, messages included."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from seiche.backend import Backend
from seiche.backend.base import Graph
from seiche.halo.exchange import HaloExchange
from seiche.observe.stage import Stage

#: Steps that one graph replays: a multiple of the phases and of a transport's slots, which then are as before.
GRAPH_STEPS = 32


class Replay:
    """Captured graphs of consecutive steps, one for each key and each state of the transports' slots."""

    def __init__(self, backend: Backend, exchanges: Sequence[HaloExchange]) -> None:
        """Nothing is captured before the first launch; `exchanges` are those of a step."""
        self._backend, self._exchanges = backend, exchanges
        self._graphs: dict[tuple[Hashable, ...], Graph] = {}
        for exchange in exchanges:
            exchange.before_change.append(self.clear)

    def launch(self, steps: Sequence[Sequence[Stage]], key: Hashable = 0) -> None:
        """Run the stages of consecutive steps, which are captured on first use; equal keys mean equal stages."""

        def run() -> None:
            for stages in steps:
                for stage in stages:
                    stage.action()

        state = (key, *(slot for exchange in self._exchanges for slot in exchange.next_slots))
        if state not in self._graphs:
            self._graphs[state] = self._backend.capture(run)
        self._graphs[state].launch()

    def clear(self) -> None:
        """Discard the graphs, because the stages have changed or their transports will be closed."""
        self._graphs.clear()
