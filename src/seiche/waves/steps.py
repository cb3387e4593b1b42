# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a step of the discontinuous Galerkin solver (theory/waves, sections 4 and 11)."""

from __future__ import annotations

from dataclasses import dataclass

from seiche.backend import Array
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.attenuation import MemoryVariables
from seiche.waves.basis import LSRK_B
from seiche.waves.ghosts import Ghosts
from seiche.waves.leapfrog import Leapfrog
from seiche.waves.operator import Operator
from seiche.waves.peak import Peak
from seiche.waves.probes import Receivers
from seiche.waves.source_terms import SourceTerms
from seiche.waves.sponge import Sponge
from seiche.waves.sweeps import RK_STAGES, Sweeps


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of the stages: unknowns, Runge-Kutta register, two buffers of traces, clock."""

    u: Array
    k: Array
    traces: tuple[Array, Array]
    clock: Array


@dataclass(frozen=True, eq=False)
class Parts:
    """Optional components of a step besides the right-hand side."""

    ghosts: Ghosts | None = None
    sources: SourceTerms | None = None
    receivers: Receivers | None = None
    sponge: Sponge | None = None
    peak: Peak | None = None
    memory: MemoryVariables | None = None


class WaveSteps:
    """The stages of the two alternating kinds of step and of a start."""

    def __init__(self, operator: Operator, arrays: Arrays, parts: Parts, dt: float) -> None:
        """Store the components of the stages."""
        self._operator, self._arrays, self._parts, self._dt = operator, arrays, parts, dt

    def first_traces(self, trace: int) -> list[Stage]:
        """Return the stages that compute the traces of a new state."""
        operator, arrays = self._operator, self._arrays
        members = {"scheme": operator.members, "u": arrays.u, "trace": arrays.traces[trace]}
        write = operator.launch(dg.write_traces(operator.disc), 0, operator.mesh.count, **members)
        return [Stage("traces", *write), *self.mortar_traces(trace)]

    def mortar_traces(self, trace: int) -> list[Stage]:
        """Return the stage that interpolates the traces of coarse sides for their small neighbours."""
        operator, arrays = self._operator, self._arrays
        if not operator.sides:
            return []
        members = {"mortars": operator.mortar_members, "u": arrays.u, "trace": arrays.traces[trace]}
        launch = operator.launch(dg.mortar_traces(operator.disc), 0, operator.sides, **members)
        return [Stage("mortar traces", *launch)]

    def runge_kutta(self, sweeps: Sweeps, trace: int) -> list[Stage]:
        """Return the stages of a step that begins with the traces `trace`; the next step begins with the others."""
        stages: list[Stage] = []
        for number in range(RK_STAGES):
            stages += sweeps.launches(number, trace, dt=self._dt, b=LSRK_B[number])
            trace = 1 - trace
            stages += self._sources(number, trace)
            if number == RK_STAGES - 1:
                stages += self._damping(trace)
            stages += self.mortar_traces(trace)
        return stages + self._end()

    def leapfrog(self, leap: Leapfrog) -> list[Stage]:
        """Return the stages of a leapfrog step."""
        return [
            *leap.absorb(after=False),
            *leap.half("velocities", self._dt),
            *self._sources(0, 0),
            *leap.absorb(after=True),
            *self.mortar_traces(0),
            *leap.half("stresses", self._dt),
            *self._sources(1, 0),
            *self._damping(0),
            *self.mortar_traces(0),
            *self._end(),
        ]

    def _sources(self, number: int, trace: int) -> list[Stage]:
        sources, arrays = self._parts.sources, self._arrays
        if sources is None:
            return []
        return sources.stages(number, (arrays.u, arrays.k, arrays.traces[trace]), self._dt)

    def _damping(self, trace: int) -> list[Stage]:
        sponge, memory, arrays = self._parts.sponge, self._parts.memory, self._arrays
        if sponge is None or not sponge.items:
            return []
        stages = [Stage("sponge", *sponge.launch(arrays.u, arrays.traces[trace]))]
        return stages if memory is None else [*stages, memory.damping(sponge)]

    def _end(self) -> list[Stage]:
        """Return the stages that sample the state and advance the clock."""
        stages, parts, arrays = [], self._parts, self._arrays
        if parts.receivers is not None and parts.receivers.items:
            stages.append(Stage("record", *parts.receivers.launch(arrays.u)))
        if parts.peak is not None and parts.peak.items:
            stages += parts.peak.stages(arrays.u)
        if parts.sources is not None or parts.receivers is not None:
            backend = self._operator.backend
            kernel = backend.load(dg.advance_clock())
            stages.append(Stage("advance clock", kernel.bind(backend.pack(kernel, clock=arrays.clock), 0, 1)))
        return stages
