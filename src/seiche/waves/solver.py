# SPDX-License-Identifier: BSD-3-Clause
"""The discontinuous Galerkin solver for acoustic and elastic waves.

One step is five stages of the Runge-Kutta scheme (theory/waves, eq. 15); each consists of

    mortar corrections   what large sides of hanging faces add, from both sides' traces
    elements             k <- A k + dt L(u), u <- u + B k, new traces: volume, faces and integration in one sweep
    sources              the same for point sources, in the elements that have some
    mortar traces        large sides' traces at their small neighbours' nodes

On several ranks the first two are done for elements that touch no other rank's while these' traces travel, and for the
others after that. No result depends on the number of ranks. In the last stage the `sponge` damps its layer before the
mortar traces; then `record` samples the receivers, `peak` keeps the largest velocities of a side and the clock
advances. A leapfrog step is two halves, each with what stands above: velocities, then stresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend, open_backend
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.halo.transports import TransportName
from seiche.kernels.registry import Real, dg
from seiche.kernels.registry.dg import Flux, Medium, Variant
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver.replay import GRAPH_STEPS, Replay
from seiche.waves.attenuation import Attenuation, Bodies
from seiche.waves.basis import LSRK_B, NODES
from seiche.waves.boundary import Boundary, check_boundaries
from seiche.waves.energy import energy, exact_sum, products
from seiche.waves.ghosts import GhostKind, Ghosts, check_ghosts
from seiche.waves.leapfrog import Integrator, Leapfrog, check_integrator
from seiche.waves.limits import largest_step
from seiche.waves.material import Material
from seiche.waves.mesh import Mesh
from seiche.waves.operator import Operator
from seiche.waves.peak import Peak
from seiche.waves.probes import WINDOW, Receivers, Sources
from seiche.waves.sources import PointSource
from seiche.waves.sponge import Sponge
from seiche.waves.sweeps import STAGES, Sweeps, check_kernels

Floats = npt.NDArray[np.float64]

#: Share of the largest stable step that is taken when none is given.
SAFETY = 0.9


class Solver:
    """Waves in `material` on `mesh`, at rest at first."""

    def __init__(
        self,
        mesh: Mesh,
        material: Material,
        *,
        nodes: int = 5,
        flux: Flux = "upwind",
        boundaries: Sequence[Boundary] | Boundary = "absorbing",
        medium: Medium | None = None,
        precision: Real = "float64",
        device: str = "cpu",
        threads: int | None = None,
        time_step: float | None = None,
        sources: Sequence[PointSource] = (),
        receivers: Sequence[Sequence[float]] = (),
        sample_every: int = 1,
        world: World | None = None,
        transport: TransportName = "auto",
        ghosts: GhostKind = "traces",
        variant: Variant = "fused",
        integrator: Integrator = "runge-kutta",
        attenuation: Attenuation | None = None,
        sponge: float = 0.0,
        peak_side: int | None = None,
    ) -> None:
        """Build the right-hand side on the device (collective).

        Args:
            mesh: the elements of this rank.
            material: density and speeds of these elements or their nodes; elements with cs = 0 are fluid.
            nodes: of the collocation, a direction (2 to 10); the order of accuracy is the same number.
            flux: upwind (exact Riemann) or central (averages, no loss).
            boundaries: of the sides x-, x+, y-, ...; one word for all. Periodic sides are the mesh's business.
            medium: acoustic (p, v) or elastic (v, S); by default acoustic where nothing is solid.
            precision: of state and arithmetic.
            device: cpu, cuda or cuda:K.
            threads: of the CPU.
            time_step: by default SAFETY times the largest stable one.
            sources: point sources, the same on every rank.
            receivers: positions at which the unknowns are sampled, (r, dim), the same on every rank.
            sample_every: steps between two samples.
            world: the ranks; this process alone when left out.
            transport: how messages travel.
            ghosts: what travels; all but half (precision) give the same results.
            variant: how much of a stage one kernel does: all of it (fused), volume and faces before integration
                (fused-flux, the same bits), or each apart (separate, the same but for round-off).
            integrator: five stages of fourth order, or leapfrog with the central flux (theory/waves, section 11).
            attenuation: of `material`, both from `seiche.waves.attenuation.attenuated`.
            sponge: thickness of a layer before absorbing sides that takes waves away; 0 for none.
            peak_side: side of the mesh, 2 axis + (0: low, 1: high), whose largest velocities `peak` keeps.

        Raises:
            CaseError: something that cannot be computed, or an unstable time step.
            BackendUnavailable: the device is not there.
        """
        if nodes not in NODES:
            raise CaseError(f"nodes = {nodes} a direction: {NODES.start} to {NODES.stop - 1} are possible")
        sides = (boundaries,) * mesh.faces if isinstance(boundaries, str) else tuple(boundaries)
        check_boundaries(sides, mesh.dim)
        check_ghosts(ghosts)
        check_kernels(variant, flux, precision, medium)
        check_integrator(integrator, flux, variant, ghosts)
        leapfrog = integrator == "leapfrog"
        if attenuation is not None and (leapfrog or variant == "separate"):
            raise CaseError('attenuation: needs integrator = "runge-kutta" and a variant other than separate')
        self.world = world or World.serial()
        self.mesh, self.material = mesh, material
        solid = any(self.world.allgather(material.has_solid))
        self.medium: Medium = medium or ("elastic" if solid else "acoustic")
        if self.medium == "acoustic" and solid:
            raise CaseError("material: cs > 0 in some elements needs the elastic medium")
        self.backend: Backend = open_backend(device, self.world.threads(threads), self.world.local_rank)
        self.operator = Operator(
            self.backend,
            mesh,
            material,
            nodes,
            medium=self.medium,
            flux=flux,
            boundaries=sides,
            real=precision,
            world=self.world,
            resisted=leapfrog,
        )
        self.largest_step = largest_step(mesh, material, nodes, flux, self.world, leapfrog=leapfrog)
        self.dt = self._time_step(time_step)
        self.steps = 0
        self.of = self.operator.of
        with_ghosts = mesh.ghosts if ghosts in ("faces", "variables", "elements") else 0
        u = self.operator.zeros(with_ghosts)
        state = (u, u if leapfrog else self.operator.zeros(with_ghosts if ghosts == "elements" else 0))
        self.u, self._k = (array[: mesh.count] for array in state)
        trace = self.operator.traces()
        self._traces = (trace, trace if leapfrog else self.operator.traces())
        self._clock = self.backend.zeros(1, np.uint64)
        self._window = sample_every * max(1, WINDOW // max(sample_every, 1))
        probes = (self._clock, self._window, self.world)
        self.timers = StageTimers(self.backend.clock())
        self.ghosts: Ghosts | None = None
        if self.world.size > 1:
            self.ghosts = Ghosts(self.operator, self.world, ghosts, transport, state, self._traces, self.timers)
        self._replay = Replay(self.backend, self.ghosts.exchanges if self.ghosts else [])
        self.sources = Sources(self.operator, sources, *probes, leapfrog=leapfrog) if sources else None
        self.receivers = Receivers(self.operator, receivers, sample_every, *probes) if len(receivers) else None
        self.sponge = Sponge(self.operator, sponge, self.dt, self.world) if sponge else None
        self.peak = Peak(self.operator, peak_side, self.world) if peak_side is not None else None
        #: Of the attenuation, whose `state` goes on in `set_state` as `memory`.
        self.bodies = Bodies(self.operator, attenuation) if attenuation is not None else None
        self._begin = (self._first_traces(0), self._first_traces(1))
        self._leap: Leapfrog | None = None
        if leapfrog:
            self._leap = Leapfrog(self.operator, self.u, trace, self.ghosts, self.dt)
            self._phases = (self._leapfrog_step(self._leap),) * 2
            self._rate: tuple[list[Stage], ...] = ()
        else:
            how = variant if self.bodies is None else "fused-flux"
            self._sweeps = Sweeps(self.operator, how, (self.u, self._k), self._traces, self.ghosts, self.bodies)
            self._phases = (self._step(0), self._step(1))
            self._rate = self._sweeps.stage(0, 0, dt=1.0, b=0.0), self._sweeps.stage(0, 1, dt=1.0, b=0.0)

    def _time_step(self, wanted: float | None) -> float:
        if wanted is None:
            return SAFETY * self.largest_step
        if not (np.isfinite(wanted) and 0 < wanted <= self.largest_step):
            raise CaseError(f"time step {wanted:g}: has to be positive and at most {self.largest_step:g}")
        return wanted

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the unknowns in the order of the state."""
        return self.operator.fields

    @property
    def positions(self) -> Floats:
        """Return the places of all nodes, (elements, nodes, dim)."""
        return self.operator.positions

    @property
    def time(self) -> float:
        """Return the time of the state."""
        return self.steps * self.dt

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the next step."""
        return self._phases[self.steps % 2]

    @property
    def phases(self) -> tuple[list[Stage], list[Stage]]:
        """Return the stages of the two kinds of step that alternate."""
        return self._phases

    def state(self) -> npt.NDArray[Any]:
        """Return the unknowns of this rank's elements, (elements, fields, nodes); nodes count along x first.

        With `steps` it is all that `set_state` needs to go on, on any number of ranks: row i is element
        `mesh.number[i]` of all. With leapfrog velocities are those of half a step earlier (`lead`).
        """
        return self.backend.download(self.u)

    @property
    def lead(self) -> float:
        """Return how much earlier than the other unknowns velocities belong: half a step of leapfrog, or nothing."""
        return 0.0 if self._leap is None else self.dt / 2

    def set_state(
        self,
        state: npt.NDArray[Any],
        steps: int = 0,
        *,
        staggered: bool = False,
        memory: npt.NDArray[Any] | None = None,
    ) -> None:
        """Start from a state of this rank's elements after some steps; the receivers' samples begin anew (collective).

        With leapfrog velocities are first moved back by half a step, but not those of a `staggered` state, which
        already belong there, as in what `state` returns. With attenuation `memory` is what `bodies.state` returned; it
        is zero when left out.

        Raises:
            CaseError: another shape than the solver's.
        """
        shape = (self.mesh.count, self.of.fields, self.positions.shape[1])
        if np.shape(state) != shape:
            raise CaseError(
                f"initial state of shape {np.shape(state)}, the solver has {shape} (elements, fields, nodes)"
            )
        self.backend.assign(self.u, np.asarray(state).astype(self.of.real, copy=False))
        self.steps = steps
        if self.bodies is not None:
            self.bodies.set_state(memory)
        if self.receivers is not None:
            self.receivers.clear()
        stages = list(self._begin[steps % 2])
        if self._leap is not None and not staggered:
            stages += [*self._leap.half("velocities", -self.dt / 2), *self._mortar_traces(0)]
        for stage in stages:
            stage.action()

    def energy(self) -> float:
        """Return the discrete energy of all ranks (theory/waves, eqs. 5, 27, 32; collective)."""
        state = self.state().astype(np.float64)
        if self.bodies is not None:
            return 0.5 * exact_sum(self.bodies.products(state), self.world)
        if self._leap is None:
            return energy(state, self.operator, self.world)
        return 0.5 * exact_sum(products(state, self._leap.next_velocities(self._begin[0]), self.operator), self.world)

    def rate(self) -> npt.NDArray[np.float64]:
        """Return L(u) of the present state, without sources, (elements, fields, nodes) (collective).

        Raises:
            CaseError: the solver leaps.
        """
        if self._leap is not None:
            raise CaseError("waves: the rate of change is known with integrator = runge-kutta only")
        for stage in self._rate[self.steps % 2]:
            stage.action()
        return np.asarray(self.backend.download(self._k), np.float64)

    def samples(self) -> npt.NDArray[np.float64]:
        """Return what the receivers recorded, (rows, receivers, fields), on every rank (collective).

        Row r of a run from time zero belongs to the time (r + 1) sample_every dt.

        Raises:
            CaseError: there are no receivers.
        """
        if self.receivers is None:
            raise CaseError("waves: samples were asked for, but there are no receivers")
        return self.receivers.samples()

    def run(self, steps: int) -> None:
        """Advance by `steps` steps (collective).

        Raises:
            UnstableError: the state is not finite afterwards, on some rank.
            TransportError: a message of another rank did not come.
        """
        with self.timers.running():
            end = self.steps + steps
            while self.steps < end:
                first = self.steps % self._window
                self._run_window(min(self._window - first, end - self.steps))
            self.backend.synchronize()
        for exchange in self.ghosts.exchanges if self.ghosts else []:
            exchange.check()
        if not np.isfinite(self.world.allreduce_max(np.array([abs(self.backend.sum(self.u))])))[0]:
            raise UnstableError(f"waves: the state is not finite after step {self.steps}, time step {self.dt:g}")

    def _run_window(self, steps: int) -> None:
        """Do steps between two visits of the host."""
        first = self.steps % self._window
        self.backend.assign(self._clock, np.array([first], np.uint64))
        if self.sources is not None:
            self.sources.send(self.steps - first, self.dt)
        end = self.steps + steps
        while self.steps < end:
            if self._can_replay(end - self.steps):
                self.timers.replay(GRAPH_STEPS, lambda: self._replay.launch(self._graph_stages()))
                self.steps += GRAPH_STEPS
            else:
                self.timers.step(self.stages)
                self.steps += 1
        if self.receivers is not None:
            self.receivers.fetch(first, first + steps)

    def _graph_stages(self) -> list[list[Stage]]:
        return [self._phases[k % len(self._phases)] for k in range(GRAPH_STEPS)]

    def _can_replay(self, remaining: int) -> bool:
        on_device = self.backend.has_graphs and all(
            exchange.capturable for exchange in (self.ghosts.exchanges if self.ghosts else [])
        )
        ready = not self.timers.due and self.steps % 2 == 0 and self.steps > 0
        return on_device and ready and remaining >= GRAPH_STEPS

    def close(self) -> None:
        """Give back what other ranks hold for this solver (collective)."""
        self._replay.clear()  # first: a communicator waits for the graphs that use it
        if self.ghosts is not None:
            self.ghosts.close()

    def _first_traces(self, trace: int) -> list[Stage]:
        """Return what writes the traces of a state that was set."""
        members = {"on": self.operator.members, "u": self.u, "trace": self._traces[trace]}
        write = self.operator.launch(dg.write_traces(self.of), 0, self.mesh.count, **members)
        return [Stage("traces", *write), *self._mortar_traces(trace)]

    def _mortar_traces(self, trace: int) -> list[Stage]:
        operator = self.operator
        if not operator.sides:
            return []
        members = {"mortars": operator.mortar_members, "u": self.u, "trace": self._traces[trace]}
        return [Stage("mortar traces", *operator.launch(dg.mortar_traces(self.of), 0, operator.sides, **members))]

    def _sources_of(self, number: int, trace: int) -> list[Stage]:
        if self.sources is None or not self.sources.items:
            return []
        return [Stage("sources", *self.sources.stage(number, self.dt, self.u, self._k, self._traces[trace]))]

    def _step(self, trace: int) -> list[Stage]:
        """Return the stages of a step whose first one reads the traces `trace`; the next step reads the others."""
        stages: list[Stage] = []
        for number in range(STAGES):
            stages += self._sweeps.stage(number, trace, dt=self.dt, b=LSRK_B[number])
            trace = 1 - trace
            stages += self._sources_of(number, trace)
            if number == STAGES - 1:
                stages += self._damping(trace)
            stages += self._mortar_traces(trace)
        return stages + self._end_of_step()

    def _leapfrog_step(self, leap: Leapfrog) -> list[Stage]:
        return [
            *leap.resist(after=False),
            *leap.half("velocities", self.dt),
            *self._sources_of(0, 0),
            *leap.resist(after=True),
            *self._mortar_traces(0),
            *leap.half("stresses", self.dt),
            *self._sources_of(1, 0),
            *self._damping(0),
            *self._mortar_traces(0),
            *self._end_of_step(),
        ]

    def _damping(self, trace: int) -> list[Stage]:
        if self.sponge is None or not self.sponge.items:
            return []
        stages = [Stage("sponge", *self.sponge.launch(self.u, self._traces[trace]))]
        return stages if self.bodies is None else [*stages, self.bodies.damping(self.sponge)]

    def _end_of_step(self) -> list[Stage]:
        """Return what samples the state and moves the clock."""
        stages = []
        if self.receivers is not None and self.receivers.items:
            stages.append(Stage("record", *self.receivers.launch(self.u)))
        if self.peak is not None and self.peak.items:
            stages.append(Stage("peak", *self.peak.launch(self.u)))
        if self.sources is not None or self.receivers is not None:
            kernel = self.backend.load(dg.advance_clock())
            stages.append(Stage("advance clock", kernel.bind(self.backend.pack(kernel, clock=self._clock), 0, 1)))
        return stages
