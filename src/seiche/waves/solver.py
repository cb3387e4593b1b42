# SPDX-License-Identifier: BSD-3-Clause
"""The discontinuous Galerkin solver for acoustic and elastic waves.

One step is five stages of the Runge-Kutta scheme (theory/waves, eq. 15); each consists of

- mortar corrections: terms of the coarse sides of hanging faces, from the traces of both sides
- elements: y <- A y + dt L(u), u <- u + B y and new traces, with volume, faces and integration in one sweep
- sources: the same for point sources, in the elements that contain some
- mortar traces: traces of coarse sides at the nodes of their small neighbours

On several ranks the first two are computed for the interior elements during the halo exchange, and for the others
after it. No result depends on the number of ranks. In the last stage the `sponge` damps its layer before the mortar
traces. Then `record` samples the receivers, `peak` updates the largest velocities on a side, and the clock advances. A
leapfrog step consists of two halves with the same stages: velocities, then stresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, open_backend
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.halo.transports import TransportName
from seiche.kernels.registry import Real
from seiche.kernels.registry.dg import Medium, Variant
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver import Health, SolverBase, State
from seiche.solver.replay import Replay
from seiche.waves.attenuation import Attenuation, MemoryVariables
from seiche.waves.basis import NODES
from seiche.waves.boundary import Boundary, sides_of
from seiche.waves.energy import energy, exact_sum, products
from seiche.waves.fields import device_fields, host_fields
from seiche.waves.fluxes import flux_named
from seiche.waves.ghosts import GhostKind, Ghosts, check_ghosts
from seiche.waves.leapfrog import Integrator, Leapfrog, check_integrator
from seiche.waves.limits import largest_step
from seiche.waves.material import Material, medium_of
from seiche.waves.mesh import Mesh
from seiche.waves.operator import Operator
from seiche.waves.peak import Peak
from seiche.waves.probes import WINDOW, Receivers
from seiche.waves.restart import ELEMENTS, keys_of, restore, state_of, values_of
from seiche.waves.source_terms import SourceModel, SourceOptions, SourceTerms, check_source_model
from seiche.waves.sources import PointSource
from seiche.waves.sponge import Sponge
from seiche.waves.steps import Arrays, Parts, WaveSteps
from seiche.waves.sweeps import Sweeps, check_kernels

Floats = npt.NDArray[np.float64]

#: Default time step as a fraction of the largest stable one.
SAFETY = 0.9


class WaveSolver(SolverBase):
    """Waves in `material` on `mesh`, initially at rest.

    Attributes:
        mesh, material: the arguments.
        medium: acoustic (p, v) or elastic (v, S).
        operator: the right-hand side.
        u: the unknowns on the device, (elements, unknowns, nodes).
        arrays: these, the Runge-Kutta register, traces and clock.
        sweeps, leap: the kernels of a Runge-Kutta stage, or of leapfrog.
        largest_step: the longest stable time step.
        ghosts, sources, receivers, sponge, peak, memory: components of a step, None if unused.
    """

    item = "nodes"

    def __init__(
        self,
        mesh: Mesh,
        material: Material,
        *,
        nodes: int = 5,
        flux: str = "upwind",
        boundaries: Sequence[Boundary] | Boundary = "absorbing",
        medium: Medium | None = None,
        precision: Real = "float64",
        device: str = "cpu",
        threads: int | None = None,
        dt: float | None = None,
        sources: Sequence[PointSource] = (),
        source_model: SourceModel = "incident",
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
            nodes: collocation nodes per direction (2 to 10): the order in space; that of the time scheme is four.
            flux: name of one of `FLUXES`: upwind (exact Riemann), central (averages, no dissipation).
            boundaries: kinds of the sides x-, x+, y-, ..., or one for all. Periodic sides are set in the mesh.
            medium: acoustic (p, v) or elastic (v, S); by default acoustic if no element is solid.
            precision: precision of state and arithmetic.
            device: cpu, cuda or cuda:K.
            threads: number of CPU threads.
            dt: duration of a step; by default SAFETY times the largest stable one.
            sources: point sources, the same on every rank.
            source_model: incident fields in boxes around sources (theory/waves, section 13), or delta (eq. 16) for all.
            receivers: positions at which the unknowns are sampled, (r, dim), the same on every rank.
            sample_every: steps between two samples.
            world: the ranks; by default this process alone.
            transport: method of the halo exchange.
            ghosts: data of the halo exchange (`seiche.waves.ghosts`); all but half (precision) give the same results.
            variant: kernels of a stage: one (fused), volume and faces before integration (fused-flux, the same bits),
                or three (separate, the same except for round-off).
            integrator: five stages of fourth order, or leapfrog with the central flux (theory/waves, section 11).
            attenuation: attenuation of `material`, both from `seiche.waves.attenuation.attenuated`.
            sponge: thickness of the damping layer along absorbing sides; 0 for none.
            peak_side: side of the mesh, 2 axis + (0: low, 1: high), whose largest velocities `peak` records.

        Raises:
            CaseError: an invalid combination of arguments, or an unstable time step.
            BackendUnavailable: the device does not exist.
        """
        sides = sides_of(boundaries, mesh.dim)
        _check_scheme(nodes, flux, variant, integrator, ghosts=ghosts, attenuated=attenuation is not None)
        check_kernels(variant, precision, medium)
        check_source_model(source_model)
        face_flux = flux_named(flux)
        leapfrog = integrator == "leapfrog"
        self.world = world or World.serial()
        self.mesh, self.material, self.precision = mesh, material, precision
        self.medium: Medium = medium_of(material, medium, self.world)
        self.backend: Backend = open_backend(device, self.world.threads(threads), self.world.local_rank)
        self.operator = Operator(
            self.backend,
            mesh,
            material,
            nodes,
            medium=self.medium,
            flux=face_flux,
            boundaries=sides,
            real=precision,
            world=self.world,
            split_absorption=leapfrog,
        )
        self.largest_step = largest_step(mesh, material, nodes, face_flux, self.world, leapfrog=leapfrog)
        self.dt, self.step = self._time_step(dt), 0
        self.disc = self.operator.disc
        self.timers = StageTimers(self.backend.clock(), label=self.backend.annotate)
        self._window = sample_every * max(1, WINDOW // max(sample_every, 1))
        arrays = self._allocate(ghosts, transport, leapfrog=leapfrog)
        self.sources = self._source_terms(sources, SourceOptions(source_model, leapfrog, attenuation is not None))
        self.sponge = Sponge(self.operator, sponge, self.dt, self.world) if sponge else None
        self._add_probes(receivers, sample_every, peak_side)
        self.memory = MemoryVariables(self.operator, attenuation) if attenuation is not None else None
        self._parts = Parts(self.ghosts, self.sources, self.receivers, self.sponge, self.peak, self.memory)
        self._assemble(arrays, variant if self.memory is None else "fused-flux", leapfrog=leapfrog)

    def _source_terms(self, sources: Sequence[PointSource], options: SourceOptions) -> SourceTerms | None:
        timing = self._clock, self._window, self.dt
        return SourceTerms(self.operator, sources, timing, self.world, options) if sources else None

    def _add_probes(self, receivers: Sequence[Sequence[float]], sample_interval: int, peak_side: int | None) -> None:
        """Create receivers and peak velocities; both include the incident fields of the sources."""
        incident = self.sources.incident if self.sources is not None else None
        self.receivers: Receivers | None = None
        self.peak: Peak | None = None
        if len(receivers):
            self.receivers = Receivers(
                self.operator, receivers, self._clock, self._window, self.world, interval=sample_interval
            )
            self.receivers.incident = incident
        if peak_side is not None:
            self.peak = Peak(self.operator, peak_side, self.world)
            if incident is not None:
                self.peak.add_motion(incident)

    def _allocate(self, kind: GhostKind, transport: TransportName, *, leapfrog: bool) -> Arrays:
        """Allocate unknowns, register, traces and clock, and set up the halo exchange (collective)."""
        mesh, operator, n = self.mesh, self.operator, self.operator.basis.n
        self.items, self.total_items = mesh.count * n**mesh.dim, mesh.total * n**mesh.dim
        self.layout = f"{self.medium} {mesh.dim}D, {n} nodes, {self.disc.flux.name}{', leapfrog' if leapfrog else ''}"
        u = operator.zeros(mesh.ghosts if kind in ("faces", "variables", "elements") else 0)
        state = (u, u if leapfrog else operator.zeros(mesh.ghosts if kind == "elements" else 0))
        self.u, self._k = (array[: mesh.count] for array in state)
        trace = operator.traces()
        traces = (trace, trace if leapfrog else operator.traces())
        self._clock = self.backend.zeros(1, np.uint64)
        self.ghosts: Ghosts | None = None
        if self.world.size > 1:
            self.ghosts = Ghosts(operator, self.world, kind, transport, state=state, traces=traces, timers=self.timers)
        exchanges = self.ghosts.exchanges if self.ghosts else []
        self.exchanges, self._replay = exchanges, Replay(self.backend, exchanges)
        return Arrays(self.u, self._k, traces, self._clock)

    def _assemble(self, arrays: Arrays, variant: Variant, *, leapfrog: bool) -> None:
        """Assemble the stages of both kinds of step, of a start and of the right-hand side alone."""
        self.arrays = arrays
        self._steps = WaveSteps(self.operator, arrays, self._parts, self.dt)
        self._begin = (self._steps.first_traces(0), self._steps.first_traces(1))
        self.leap: Leapfrog | None = None
        self._rate: tuple[list[Stage], ...] = ()
        self._phases: tuple[list[Stage], list[Stage]]
        if leapfrog:
            self.leap = Leapfrog(self.operator, self.u, arrays.traces[0], self.ghosts, self.dt)
            self._phases = (self._steps.leapfrog(self.leap),) * 2
        else:
            state = self.u, arrays.k
            sweeps = Sweeps(self.operator, variant, state, arrays.traces, ghosts=self.ghosts, memory=self.memory)
            self.sweeps = sweeps  # its arrays must outlive the launches, which store only addresses
            self._phases = (self._steps.runge_kutta(sweeps, 0), self._steps.runge_kutta(sweeps, 1))
            self._rate = sweeps.launches(0, 0, dt=1.0, b=0.0), sweeps.launches(0, 1, dt=1.0, b=0.0)

    def _time_step(self, dt: float | None) -> float:
        if dt is None:
            return SAFETY * self.largest_step
        if not (np.isfinite(dt) and 0 < dt <= self.largest_step):
            raise CaseError(f"time step {dt:g}: must be positive and at most {self.largest_step:g}")
        return dt

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Return the names of the unknowns in the order of `u`."""
        return self.operator.fields

    @property
    def positions(self) -> Floats:
        """Return the positions of all nodes, (elements, nodes, dim)."""
        return self.operator.positions

    @property
    def time(self) -> float:
        """Return the time of the state."""
        return self.step * self.dt

    @property
    def phases(self) -> tuple[list[Stage], list[Stage]]:
        """Return the stages of the two alternating kinds of step."""
        return self._phases

    @property
    def velocity_time_offset(self) -> float:
        """Return the time from the velocities to the other unknowns: dt / 2 with leapfrog, else 0."""
        return 0.0 if self.leap is None else self.dt / 2

    def values(self) -> npt.NDArray[Any]:
        """Return the unknowns of this rank's elements, (elements, unknowns, nodes); x varies fastest among nodes.

        Row i belongs to element `mesh.number[i]` of all ranks. With leapfrog, velocities are half a step earlier. In
        boxes around sources this is the scattered field (theory/waves, section 13).
        """
        return self.backend.download(self.u)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of this rank's elements by name: unknowns, (elements, nodes), or fields derived from them.

        In the boxes around sources they include the incident fields, nearer than a quarter of an element with the value
        at this distance.
        `velocity` is (elements, dim, nodes). `pressure`, minus the mean of the normal stresses, is (elements, nodes).

        Raises:
            KeyError: an unknown name.
        """
        return host_fields(self, names)

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same as `fields` on the device; the next call overwrites them.

        Without incident fields they are views of `u`, except for the pressure of a solid. The elements in boxes around
        sources pass through the host.
        """
        return device_fields(self, names)

    def start_from(self, values: npt.NDArray[Any], step: int = 0, *, staggered: bool = False) -> None:
        """Set the unknowns of this rank's elements after `step` steps; clear samples and memory (collective).

        With leapfrog, velocities are first moved back by half a step unless they are already `staggered`, as `values`
        returns them.

        Raises:
            CaseError: another shape than the solver's.
        """
        shape = (self.mesh.count, self.disc.fields, self.positions.shape[1])
        if np.shape(values) != shape:
            raise CaseError(
                f"initial state of shape {np.shape(values)}: the solver requires {shape} (elements, fields, nodes)"
            )
        self.backend.assign(self.u, np.asarray(values).astype(self.disc.real, copy=False))
        self.step = step
        if self.memory is not None:
            self.memory.set_state(None)
        if self.receivers is not None:
            self.receivers.clear()
        stages = list(self._begin[step % 2])
        if self.leap is not None and not staggered:
            stages += [*self.leap.half("velocities", -self.dt / 2), *self._steps.mortar_traces(0)]
        for stage in stages:
            stage.action()

    @property
    def keys(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the numbers of this rank's elements along the curve, ascending."""
        return {ELEMENTS: keys_of(self.mesh)}

    def state(self) -> State:
        """Return the unknowns by name, (elements, nodes), peaks, memory variables and samples."""
        return state_of(self.step, self.mesh, self.unknowns, self.values(), self._parts)

    def set_state(self, state: State) -> None:
        """Continue from a state of `state`, on any number of ranks; without samples, start new ones (collective).

        Raises CaseError for a missing array or another shape.
        """
        values = values_of(state, self.mesh, self.unknowns, self.positions.shape[1])
        self.start_from(values, state.step, staggered=True)
        restore(self._parts, state, self.mesh)

    def energy(self) -> float:
        """Return the discrete energy of all ranks (theory/waves, eqs. 5, 27, 32; collective)."""
        state = self.values().astype(np.float64)
        if self.memory is not None:
            return 0.5 * exact_sum(self.memory.products(state), self.world)
        if self.leap is None:
            return energy(state, self.operator, self.world)
        return 0.5 * exact_sum(products(state, self.leap.next_velocities(self._begin[0]), self.operator), self.world)

    def rhs(self) -> npt.NDArray[np.float64]:
        """Return L(u) of the present state, without sources, (elements, fields, nodes) (collective).

        Raises CaseError with leapfrog.
        """
        if self.leap is not None:
            raise CaseError('waves: the rate of change requires integrator = "runge-kutta"')
        for stage in self._rate[self.step % 2]:
            stage.action()
        return np.asarray(self.backend.download(self._k), np.float64)

    def samples(self) -> npt.NDArray[np.float64]:
        """Return the samples of the receivers, (rows, receivers, fields), on every rank (collective).

        Row r is at the time (receivers.first + r + 1) sample_every dt; `first` is 0 in a run from time zero.

        Raises:
            CaseError: there are no receivers.
        """
        if self.receivers is None:
            raise CaseError("waves: samples require receivers, but there are none")
        return self.receivers.samples()

    def check(self) -> Health:
        """Return the largest component of the velocity (collective); UnstableError if the state is not finite."""
        if not np.isfinite(self.world.allreduce_max(np.array([abs(self.backend.sum(self.u))])))[0]:
            raise UnstableError(
                f"waves: the state is not finite after step {self.step}, time step {self.dt:g}; use a shorter time step"
            )
        motion = self.u[:, 1:] if self.medium == "acoustic" else self.u[:, : self.mesh.dim]
        peak = self.world.allreduce_max(np.array([self.backend.max_abs(motion)]))[0]
        return Health(self.step, {"largest_velocity": float(peak)})

    def _prepare_steps(self, steps: int) -> int:
        """Start a window of steps without host work: set its clock and upload the amplitudes of sources."""
        first = self.step % self._window
        self.backend.assign(self._clock, np.array([first], np.uint64))
        if self.sources is not None:
            self.sources.send(self.step - first, self.step, self.dt)
        return min(self._window - first, steps)

    def _finish_steps(self, steps: int) -> None:
        """Download the samples of a window."""
        if self.receivers is not None:
            first = (self.step - steps) % self._window
            self.receivers.download_samples(first, first + steps, self.step - steps - first)


def _check_scheme(nodes: int, flux: str, variant: str, integrator: str, *, ghosts: str, attenuated: bool) -> None:
    """Raise CaseError, naming the option, for a scheme that does not exist."""
    if nodes not in NODES:
        raise CaseError(f"nodes = {nodes} per direction: must be {NODES.start} to {NODES.stop - 1}")
    check_ghosts(ghosts)
    check_integrator(integrator, flux, variant, ghosts)
    if attenuated and (integrator == "leapfrog" or variant == "separate"):
        raise CaseError('attenuation: requires integrator = "runge-kutta" and a variant other than "separate"')
