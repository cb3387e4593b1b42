# SPDX-License-Identifier: BSD-3-Clause
"""Time of a step without its messages."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.halo.exchange import HaloExchange
from seiche.solver import SolverBase
from seiche.solver.replay import GRAPH_STEPS


def seconds_without_messages(solver: SolverBase, exchanges: Sequence[HaloExchange], steps: int) -> float:
    """Return the seconds per step on this rank if `exchanges` move no data; the state is invalid afterwards.

    About `steps` steps are run, on a GPU as replays of one graph. Stages that pack, send, wait and unpack remain in the
    step but do nothing, so that the order of work on other streams is unchanged.
    """
    backend, clock = solver.backend, solver.backend.clock()
    count = GRAPH_STEPS if backend.has_graphs else 2
    graphs = max(1, steps // count)

    def work() -> None:
        for k in range(count):
            for stage in solver.phases[k % len(solver.phases)]:
                stage.action()

    for exchange in exchanges:
        exchange.disabled = True
    try:
        graph = backend.capture(work)
        graph.launch()
        backend.synchronize()
        begin = clock.record()
        for _ in range(graphs):
            graph.launch()
        return float(clock.elapsed(begin, clock.record())) / (graphs * count)
    finally:
        for exchange in exchanges:
            exchange.disabled = False
