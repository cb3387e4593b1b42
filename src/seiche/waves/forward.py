# SPDX-License-Identifier: BSD-3-Clause
"""The forward steps of a gradient: amplitudes and samples of the whole run stay on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seiche.backend import Array
from seiche.observe.stage import Stage
from seiche.waves.probes import Receivers
from seiche.waves.solver import WaveSolver
from seiche.waves.source_terms import SourceOptions, SourceTerms
from seiche.waves.sources import PointSource
from seiche.waves.steps import Parts, WaveSteps


class ForwardSteps:
    """The steps of a solver with all amplitudes and samples of a run on the device."""

    def __init__(
        self,
        solver: WaveSolver,
        steps: int,
        sources: Sequence[PointSource],
        receivers: Sequence[Sequence[float]],
    ) -> None:
        """Upload the amplitudes of all `steps` steps and assemble the stages (collective)."""
        self._solver, self.steps, self.step = solver, steps, 0
        operator, world, dt = solver.operator, solver.world, solver.dt
        self.clock = solver.backend.zeros(1, np.uint64)
        self.arrays = replace(solver.arrays, clock=self.clock)
        self.receivers = Receivers(operator, receivers, self.clock, steps, world, interval=1)
        self.sources: SourceTerms | None = None
        if sources:
            options = SourceOptions("delta", leapfrog=solver.leap is not None, attenuated=False)
            self.sources = SourceTerms(operator, sources, (self.clock, steps, dt), world, options)
            self.sources.send(0, 0, dt)
        sampled, plain = (
            Parts(solver.ghosts, self.sources, probes, solver.sponge) for probes in (self.receivers, None)
        )
        self._phases = [self._steps(parts) for parts in (plain, sampled)]
        self._begin = dict[tuple[int, int], list[Stage]]()

    def _steps(self, parts: Parts) -> list[list[Stage]]:
        steps = WaveSteps(self._solver.operator, self.arrays, parts, self._solver.dt)
        if self._solver.leap is not None:
            return [steps.leapfrog(self._solver.leap)] * 2
        return [steps.runge_kutta(self._solver.sweeps, trace) for trace in (0, 1)]

    def advance(self, end: int, *, record: bool = False) -> None:
        """Advance to the step `end`, and sample the receivers if `record`."""
        while self.step < end:
            run(self._phases[record][self.step % 2])
            self.step += 1

    def resume(self, step: int, state: Array) -> None:
        """Set clock and traces to those of `state`, that of `step`."""
        backend, trace = self._solver.backend, step % 2
        self.step = step
        backend.assign(self.clock, np.array([step], np.uint64))
        key = backend.pointer(state), trace
        if key not in self._begin:
            steps = WaveSteps(self._solver.operator, replace(self.arrays, u=state), Parts(), self._solver.dt)
            self._begin[key] = steps.first_traces(trace)
        run(self._begin[key])


def run(stages: list[Stage]) -> None:
    """Run stages in order."""
    for stage in stages:
        stage.action()
