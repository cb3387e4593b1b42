# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of a least-squares misfit by the exact adjoint of the discrete scheme (theory/waves, section 10).

The misfit compares samples of a run with data (theory/waves, eq. 22). The forward run stores few states, scheduled by
`revolve`; the states between them are recomputed while the adjoint runs backwards. The adjoint of the right-hand side
in the energy product is the right-hand side with the sign of velocities changed, so the same kernels compute it, with
the Runge-Kutta stages in reverse order (`backward.py`). A gradient costs about five forward runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.waves.backward import Backward
from seiche.waves.forward import ForwardSteps
from seiche.waves.leap_backward import LeapBackward
from seiche.waves.material import Material
from seiche.waves.media_gradient import MediaGradient, of_sources
from seiche.waves.mesh import Mesh
from seiche.waves.revolve import stored_steps
from seiche.waves.solver import WaveSolver
from seiche.waves.sources import PointSource
from seiche.waves.stored_states import StoredStates

Floats = npt.NDArray[np.float64]

#: Options of the solver for which the gradient of the discrete misfit is exact.
OPTIONS = (
    "nodes",
    "flux",
    "boundaries",
    "medium",
    "precision",
    "device",
    "threads",
    "variant",
    "transport",
    "sponge",
    "integrator",
)


@dataclass(frozen=True)
class Gradient:
    """Derivatives of the misfit.

    Attributes:
        misfit: its value.
        density, cp, cs: with respect to the media of this rank's elements, (elements,), or of their nodes, (elements,
            nodes), in the shape of the medium; that of cs is zero in fluids.
        sources: with respect to the strengths of the sources, (sources, fields), in the order of
            `PointSource.strengths`.
    """

    misfit: float
    density: Floats
    cp: Floats
    cs: Floats
    sources: Floats


@dataclass(frozen=True)
class Experiment:
    """Sources and receivers of one shot.

    Attributes:
        mesh: the elements of this rank.
        dt, steps: duration and number of the steps, the same for every medium.
        sources: point sources, represented as deltas (theory/waves, eq. 16), whose derivatives are exact.
        receivers: positions, (r, dim).
        fields: recorded unknowns: "p" in fluids, velocities "vx", "vy", "vz".
        options: options of the solver; only those in `OPTIONS` have an adjoint.
        snapshots: number of states stored for a gradient. Fewer need less memory but more steps. The default, twice
            the root of the steps, recomputes hardly any step more than once.
        world: the ranks; by default this process alone.
    """

    mesh: Mesh
    dt: float
    steps: int
    sources: Sequence[PointSource]
    receivers: Sequence[Sequence[float]]
    fields: tuple[str, ...] = ("p",)
    options: dict[str, Any] = field(default_factory=dict)
    snapshots: int | None = None
    world: World | None = None

    def __post_init__(self) -> None:
        """Raise CaseError for a distributed mesh, no receivers, no snapshot, or an option that is not in `OPTIONS`."""
        for name in self.options:
            if name not in OPTIONS:
                raise CaseError(f"gradient: the option {name} is not supported; expected one of {', '.join(OPTIONS)}")
        if self.snapshots is not None and self.snapshots < 1:
            raise CaseError(f"gradient: snapshots = {self.snapshots}: must be at least 1")
        if self.world is None and self.mesh.count != self.mesh.total:
            raise CaseError("gradient: a mesh on several ranks requires their world")
        if not len(self.receivers):
            raise CaseError("gradient: there are no receivers")

    def solver(self, material: Material) -> WaveSolver:
        """Return the solver of a medium, at rest; CaseError for an unknown field (collective)."""
        solver = self._solver(material, self.receivers)
        for name in self.fields:
            if name not in solver.unknowns or not (name == "p" or name.startswith("v")):
                raise CaseError(f"gradient: {name!r} is not supported; use p in fluids, or vx, vy, vz")
        return solver

    def _solver(self, material: Material, receivers: Sequence[Sequence[float]]) -> WaveSolver:
        return WaveSolver(
            self.mesh,
            material,
            **self.options,
            dt=self.dt,
            sources=self.sources,
            source_model="delta",
            receivers=receivers,
            world=self.world,
        )

    def simulate(self, material: Material) -> Floats:
        """Return the samples after every step, (steps, receivers, fields), on every rank (collective)."""
        solver = self.solver(material)
        solver.advance(self.steps)
        samples = solver.samples()
        solver.close()
        return samples[..., self._columns(solver)]

    def misfit(self, material: Material, data: Floats) -> float:
        """Return half the sum of squared residuals times the time step; CaseError for data of another shape."""
        return self._misfit(self.simulate(material), data)[0]

    def gradient(self, material: Material, data: Floats) -> Gradient:
        """Return the misfit and its derivatives (collective).

        States, adjoint and sums remain on the device, except for stored states for which it has no room.

        Args:
            material: the medium, by element or by node.
            data: (steps, receivers, fields), as `simulate` returns.

        Raises:
            CaseError: data of another shape, or a flux without derivatives.
            UnstableError: the misfit is not finite.
        """
        solver = self.solver(material)
        if solver.operator.flux.slopes is None:
            raise CaseError(f"gradient: the flux {solver.disc.flux.name} is not supported")
        forward = ForwardSteps(solver, self.steps, self.sources, self.receivers)
        forward.resume(0, forward.arrays.u)
        stored = StoredStates(solver.backend, forward.arrays.u, self.snapshots or 2 * ceil(sqrt(self.steps)))
        stored.push(0)
        _store(forward, stored, self.steps, record=True)
        forward.advance(self.steps, record=True)
        forward.receivers.download_samples(0, self.steps, 0)
        index = self._columns(solver)
        value, residual = self._misfit(forward.receivers.samples()[..., index], data)
        if not np.isfinite(value):
            raise UnstableError(f"gradient: the misfit is not finite, time step {self.dt:g}; use a shorter time step")
        backward = (Backward if solver.leap is None else LeapBackward)(solver, forward, index)
        factor = backward.set_residual(residual)
        backward.enter(self.steps, forward.arrays.u)
        for step in range(self.steps - 1, -1, -1):
            while stored.step > step:
                stored.pop()
            if stored.step == step:
                state = stored.last()
                forward.resume(step, state)
            else:
                stored.restore()
                state = forward.arrays.u
                forward.resume(stored.step, state)
                _store(forward, stored, step + 1)
                forward.advance(step)
            backward.reverse(step, state)
        result = self._collect(solver, backward, factor, value)
        solver.close()
        return result

    @staticmethod
    def _of_both_halves(solver: WaveSolver, sums: Floats) -> Floats:
        """Return the sums of forces from the first half of leapfrog, and those of other sources from the second."""
        if solver.leap is None:
            return sums
        velocity = np.array([name.startswith("v") for name in solver.unknowns])
        return np.asarray(np.where(velocity[:, None], sums[0], sums[1]))

    def _columns(self, solver: WaveSolver) -> list[int]:
        return [solver.unknowns.index(name) for name in self.fields]

    def _misfit(self, samples: Floats, data: Floats) -> tuple[float, Floats]:
        if np.shape(data) != samples.shape:
            raise CaseError(f"gradient: data of shape {np.shape(data)}, but a run has {samples.shape}")
        residual = samples - data
        return 0.5 * self.dt * float(np.sum(residual**2)), residual

    def _collect(self, solver: WaveSolver, backward: Backward | LeapBackward, factor: float, value: float) -> Gradient:
        """Return the gradient from the sums of the adjoint run, which are multiples of it by `factor`."""
        operator, forward = solver.operator, backward.forward

        def download(array: Array) -> Floats:
            return np.asarray(factor * solver.backend.download(array))

        media, sources = MediaGradient(operator, download(backward.sums)), download(backward.source_sums)
        if isinstance(backward, Backward):
            media.add_coarse_sides(download(backward.mortar_sums))
        elif solver.leap is not None:
            media.add_resistance(solver.leap, solver.dt, download(backward.resistance_sums))
        if solver.sponge is not None:
            media.add_layer(solver.sponge, solver.dt, download(backward.layer_sums))
        strengths = [source.strengths(solver.medium, self.mesh.dim) for source in self.sources]
        of_strengths = np.zeros((0, len(solver.unknowns)))
        if forward.sources is not None and forward.sources.delta is not None:
            points = forward.sources.delta.points
            sources = self._of_both_halves(solver, sources)
            media.subtract_moments(points, np.array(strengths, np.float64)[points.point], sources)
            of_strengths = of_sources(operator, points, len(self.sources), sources, solver.world)
        return Gradient(value, *media.of_speeds(), of_strengths)


def _store(forward: ForwardSteps, stored: StoredStates, end: int, *, record: bool = False) -> None:
    """Advance and store states for the reversal of the steps before `end`."""
    for step in stored_steps(forward.step, end, stored.room):
        forward.advance(step, record=record)
        stored.push(step)
