# SPDX-License-Identifier: BSD-3-Clause
"""Steps of several independent solvers on one device, which overlap where the device has streams."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.errors import CaseError
from seiche.observe.stage import Stage
from seiche.solver.base import SolverBase
from seiche.solver.replay import Replay


def advance_together(solvers: Sequence[SolverBase], steps: int) -> None:
    """Advance solvers with the same number of past steps by `steps` steps and wait for them; no stage is timed.

    In each step, the stages of every solver are launched in a stream of its own. On a GPU these launches are one graph.

    Raises:
        CaseError: the solvers have different backends or past steps, or exchange messages.
        UnstableError: a value of a state is not finite.
    """
    backend, first = solvers[0].backend, solvers[0].step
    if any(solver.backend is not backend or solver.step != first or len(solver.exchanges) for solver in solvers):
        raise CaseError("solvers: advance together only with one device, at the same step and without messages")
    streams, graphs = [backend.stream() for _ in solvers], Replay(backend, ())

    def run() -> None:
        main = backend.current()
        begin, ends = main.record(), []
        for solver, stream in zip(solvers, streams, strict=True):
            stream.wait(begin)
            with backend.use(stream):
                for stage in solver.stages:
                    stage.action()
                ends.append(stream.record())
        for end in ends:
            main.wait(end)

    step = [[Stage("step of all solvers", run)]]
    while solvers[0].step < first + steps:
        is_graph = backend.has_graphs and all(solver._may_replay() for solver in solvers)
        key = tuple(solver._before_launch(1) for solver in solvers)
        if is_graph:
            graphs.launch(step, key)
        else:
            run()
        for solver in solvers:
            solver.step += 1
            solver._after_launch(1)
            solver._finish_steps(1)
    for solver in solvers:
        solver.finish()
        solver.check()
    graphs.clear()
