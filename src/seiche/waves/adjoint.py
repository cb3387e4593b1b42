# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of a least-squares misfit by the exact adjoint of the discrete scheme (theory/waves, section 10).

The misfit compares samples of a run with data (theory/waves, eq. 22). Its gradient with respect to the media of all
elements and to the sources costs about two runs. The forward run stores few states, scheduled by `revolve`; the states
between them are recomputed while the adjoint runs backwards. The adjoint of the right-hand side in the energy product
is the right-hand side with the sign of velocities changed, so the same kernels compute it, with the Runge-Kutta stages
in reverse order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.waves.basis import LSRK_A, LSRK_B, LSRK_C
from seiche.waves.material import Material
from seiche.waves.media_gradient import MediaGradient
from seiche.waves.mesh import NONE, Mesh
from seiche.waves.revolve import stored_steps
from seiche.waves.solver import WaveSolver
from seiche.waves.sources import PointSource, share_out

Floats = npt.NDArray[np.float64]

#: Options of the solver for which the gradient of the discrete misfit is exact.
OPTIONS = ("nodes", "flux", "boundaries", "medium", "precision", "device", "threads", "variant")


@dataclass(frozen=True)
class Gradient:
    """Derivatives of the misfit.

    Attributes:
        misfit: its value.
        density, cp, cs: with respect to the media of the elements, (elements,); that of cs is zero in fluids.
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
        mesh: the elements, all on this rank.
        dt, steps: duration and number of the steps, the same for every medium.
        sources: point sources, represented as deltas (theory/waves, eq. 16), whose derivatives are exact.
        receivers: positions, (r, dim).
        fields: recorded unknowns: "p" in fluids, velocities "vx", "vy", "vz".
        options: options of the solver; only those in `OPTIONS` have an adjoint.
        snapshots: number of states stored for a gradient. Fewer need less memory but more steps. The default, twice
            the root of the steps, recomputes hardly any step more than once.
    """

    mesh: Mesh
    dt: float
    steps: int
    sources: Sequence[PointSource]
    receivers: Sequence[Sequence[float]]
    fields: tuple[str, ...] = ("p",)
    options: dict[str, Any] = field(default_factory=dict)
    snapshots: int | None = None

    def __post_init__(self) -> None:
        """Raise CaseError for a distributed mesh, no receivers, no snapshot, or an option that is not in `OPTIONS`."""
        for name in self.options:
            if name not in OPTIONS:
                raise CaseError(f"gradient: the option {name} is not supported; supported are {', '.join(OPTIONS)}")
        if self.snapshots is not None and self.snapshots < 1:
            raise CaseError(f"gradient: snapshots = {self.snapshots}: must be at least 1")
        if self.mesh.count != self.mesh.total:
            raise CaseError("gradient: all elements of the mesh must be on one rank")
        if not len(self.receivers):
            raise CaseError("gradient: there are no receivers")

    def solver(self, material: Material) -> WaveSolver:
        """Return the solver of a medium, at rest; CaseError for a medium by node or an unknown field."""
        if material.by_node:
            raise CaseError("gradient: the media must be defined by element, not by node")
        solver = WaveSolver(
            self.mesh,
            material,
            **self.options,
            dt=self.dt,
            sources=self.sources,
            source_model="delta",
            receivers=self.receivers,
        )
        for name in self.fields:
            if name not in solver.unknowns or not (name == "p" or name.startswith("v")):
                raise CaseError(f"gradient: {name!r} is not supported; use p in fluids, or vx, vy, vz")
        return solver

    def simulate(self, material: Material) -> Floats:
        """Return the samples of the receivers after every step, (steps, receivers, fields)."""
        solver = self.solver(material)
        solver.advance(self.steps)
        return solver.samples()[..., [solver.unknowns.index(name) for name in self.fields]]

    def misfit(self, material: Material, data: Floats) -> float:
        """Return half the sum of squared residuals times the time step; CaseError for data of another shape."""
        return self._misfit(self.simulate(material), data)[0]

    def _misfit(self, samples: Floats, data: Floats) -> tuple[float, Floats]:
        if np.shape(data) != samples.shape:
            raise CaseError(f"gradient: data of shape {np.shape(data)}, but a run has {samples.shape}")
        residual = samples - data
        return 0.5 * self.dt * float(np.sum(residual**2)), residual

    def gradient(self, material: Material, data: Floats) -> Gradient:
        """Return the misfit and its derivatives.

        Args:
            material: the medium, by element.
            data: (steps, receivers, fields), as `simulate` returns.

        Raises:
            CaseError: data of another shape.
        """
        solver = self.solver(material)
        solver.start_from(np.zeros(solver.values().shape))
        state_count = self.snapshots or 2 * ceil(sqrt(self.steps))
        stored = [(0, solver.values())]

        def store_until(end: int) -> None:
            for step in stored_steps(solver.step, end, state_count - len(stored)):
                solver.advance(step - solver.step)
                stored.append((step, solver.values()))

        store_until(self.steps)
        solver.advance(self.steps - solver.step)
        index = [solver.unknowns.index(name) for name in self.fields]
        value, residual = self._misfit(solver.samples()[..., index], data)
        backward = _Backward(self, solver, index)
        for step in range(self.steps - 1, -1, -1):
            while stored[-1][0] > step:
                stored.pop()
            first, state = stored[-1]
            if first < step:
                solver.start_from(state, first)
                store_until(step + 1)
                solver.advance(step - solver.step)
                state = solver.values()
            backward.step(step, np.asarray(state, np.float64), residual[step])
        density, cp, cs = backward.media.of_speeds()
        return Gradient(value, density, cp, cs, backward.sources)


class _NodalPoints:
    """Interpolation of point sources or receivers to nodal values on the host."""

    def __init__(self, solver: WaveSolver, positions: Sequence[Sequence[float]], label: str) -> None:
        mesh, basis = solver.mesh, solver.operator.basis
        points = share_out(mesh, basis, positions, label, solver.world)
        self.element, self.point, share = points.element.astype(np.int64), points.point, points.share
        product = points.values[:, 0]
        for axis in range(1, mesh.dim):  # nodes count along x first
            product = (points.values[:, axis, :, None] * product[:, None]).reshape(len(product), -1)
        #: Polynomials at the points times their share, (parts, nodes).
        self.values = product * share[:, None]


class _Backward:
    """The adjoint run."""

    def __init__(self, experiment: Experiment, solver: WaveSolver, index: list[int]) -> None:
        self._experiment, self._solver, self._index = experiment, solver, index
        self._receivers = _NodalPoints(solver, experiment.receivers, "receiver")
        self._sources = _NodalPoints(solver, [source.position for source in experiment.sources], "source")
        operator, mesh = solver.operator, solver.mesh
        self._weights = operator.weights
        strengths = [source.strengths(solver.medium, mesh.dim) for source in experiment.sources]
        self._strengths = np.array(strengths, np.float64).reshape(-1, len(solver.unknowns))
        self.sources = np.zeros_like(self._strengths)
        self.media = MediaGradient(operator, [kind == NONE for kind in np.moveaxis(mesh.kinds[:, :, 0], 1, 0)])
        velocity = [number for number, name in enumerate(solver.unknowns) if name.startswith("v")]
        self._flip = np.ones((1, len(solver.unknowns), 1))
        self._flip[:, velocity] = -1.0
        #: Factors of the sources of each field in each element, (elements, fields).
        material = solver.material
        self._factors = np.ones((mesh.count, len(solver.unknowns)))
        self._factors[:, velocity] = 1 / material.density[:, None]
        if solver.medium == "acoustic":
            self._factors[:, 0] = material.longitudinal
        self._adjoint = np.zeros(solver.values().shape)

    def _rate(self, state: Floats) -> Floats:
        self._solver.start_from(state, self._solver.step)
        return self._solver.rhs()

    def _source(self, time: float) -> tuple[Floats, Floats]:
        """Return the source terms of the rate, and the amplitudes."""
        points, experiment = self._sources, self._experiment
        amplitudes = np.array([float(source.time(np.array([time]))[0]) for source in experiment.sources])
        added = np.zeros_like(self._adjoint)
        per_part = self._strengths[points.point] * amplitudes[points.point, None] * self._factors[points.element]
        values = points.values / self._weights[points.element]
        np.add.at(added, points.element, per_part[:, :, None] * values[:, None])
        return added, amplitudes

    def step(self, step: int, state: Floats, residual: Floats) -> None:
        """Advance the adjoint from step + 1 back to `step` with its forward state and the residual at step + 1."""
        dt, points = self._experiment.dt, self._receivers
        factor = self._factors[points.element][:, self._index]
        values = points.values / self._weights[points.element]
        forcing = dt * residual[points.point] * factor
        for column, number in enumerate(self._index):
            np.add.at(self._adjoint[:, number], points.element, forcing[:, column, None] * values)
        states, rates, register = [], [], np.zeros_like(state)
        for a, b, c in zip(LSRK_A, LSRK_B, LSRK_C, strict=True):
            rate = self._rate(state)
            added, amplitudes = self._source((step + c) * dt)
            states.append(state)
            rates.append((rate, added, amplitudes))
            register = a * register + dt * (rate + added)
            state = state + b * register
        register_adjoint = np.zeros_like(state)
        for stage in range(4, -1, -1):
            register_adjoint = register_adjoint + LSRK_B[stage] * self._adjoint
            rate, added, amplitudes = rates[stage]
            self.media.add(dt, register_adjoint, states[stage], rate, added)
            self._add_sources(dt, register_adjoint, amplitudes)
            self._adjoint = self._adjoint + dt * self._flip * self._rate(self._flip * register_adjoint)
            register_adjoint = LSRK_A[stage] * register_adjoint

    def _add_sources(self, dt: float, register_adjoint: Floats, amplitudes: Floats) -> None:
        points = self._sources
        dual = self.media.dual(register_adjoint[points.element], points.element)
        factor = self._factors[points.element]
        gradient = (dual * points.values[:, None]).sum(2) * factor * amplitudes[points.point, None] * dt
        np.add.at(self.sources, points.point, gradient)
