# SPDX-License-Identifier: BSD-3-Clause
"""Execution of many steps as one launch: a captured graph of their device work, messages included."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from seiche.backend import Backend
from seiche.backend.base import Graph
from seiche.observe.stage import Stage

if TYPE_CHECKING:
    from seiche.halo.exchange import HaloExchange

#: Steps of a graph: a multiple of the number of phases and of buffers of a transport, so that a replay restores them.
GRAPH_STEPS = 32


class Replay:
    """Captured graphs of consecutive steps, one for each key and state of the buffers of a transport."""

    def __init__(self, backend: Backend, exchanges: Sequence[HaloExchange]) -> None:
        """Create without graphs; `exchanges` are those of a step."""
        self._backend, self._exchanges = backend, exchanges
        self._graphs: dict[tuple[Hashable, ...], Graph] = {}
        for exchange in exchanges:
            exchange.before_change.append(self.clear)

    def launch(self, steps: Sequence[Sequence[Stage]], key: Hashable = 0) -> None:
        """Run the stages of consecutive steps, captured on first use; equal keys must mean equal stages."""

        def run() -> None:
            for stages in steps:
                for stage in stages:
                    stage.action()

        state = (key, *(index for exchange in self._exchanges for index in exchange.next_buffers))
        if state not in self._graphs:
            self._graphs[state] = self._backend.capture(run)
        self._graphs[state].launch()

    def clear(self) -> None:
        """Discard all graphs, after a change of the stages or before their transports are closed."""
        self._graphs.clear()
