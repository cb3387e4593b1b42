# SPDX-License-Identifier: BSD-3-Clause
"""Reference for gradients: the adjoint on the host in double precision, stage by stage, with all states stored.

It evaluates eqs. (22) and (23) of theory/waves as they stand: the state b of the adjoint, the rates of change of the
forward state, and the derivatives of the flux of both sides of every face. Media are defined by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.waves import Material
from seiche.waves.adjoint import Experiment, Gradient
from seiche.waves.basis import LSRK_A, LSRK_B, LSRK_C
from seiche.waves.mesh import NONE
from seiche.waves.operator import Operator
from seiche.waves.solver import WaveSolver
from seiche.waves.sources import share_out

Floats = npt.NDArray[np.float64]


def reference_gradient(experiment: Experiment, material: Material, data: Floats) -> Gradient:
    """Return the misfit and its derivatives."""
    solver = experiment.solver(material)
    solver.start_from(np.zeros(solver.values().shape))
    states = []
    for _ in range(experiment.steps):
        states.append(np.asarray(solver.values(), np.float64))
        solver.advance()
    index = [solver.unknowns.index(name) for name in experiment.fields]
    residual = solver.samples()[..., index] - data
    backward = _Backward(experiment, solver, index)
    for step in range(experiment.steps - 1, -1, -1):
        backward.step(step, states[step], residual[step])
    density, cp, cs = backward.media.of_speeds()
    return Gradient(0.5 * experiment.dt * float(np.sum(residual**2)), density, cp, cs, backward.sources)


def mortar_pair(operator: Operator, child: int) -> tuple[Floats, Floats]:
    """Return the interpolations of velocities and tractions to a child's nodes, (face nodes, face nodes)."""
    plain, filtered = operator.basis.halves(), operator.basis.filtered_halves()
    pairs = (filtered, plain) if operator.disc.medium == "acoustic" else (plain, filtered)

    def of_child(halves: tuple[Floats, Floats]) -> Floats:
        first = halves[child & 1]
        return first if operator.mesh.dim == 2 else np.asarray(np.kron(halves[child >> 1 & 1], first), np.float64)

    return of_child(pairs[0]), of_child(pairs[1])


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
        self.media = _MediaGradient(operator, [kind == NONE for kind in np.moveaxis(mesh.kinds[:, :, 0], 1, 0)])
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


@dataclass(frozen=True)
class _Sides:
    """Sides of owned elements and of their neighbours, with the weights of the nodes of the flux.

    At hanging faces these are the nodes of the fine side. `pair` interpolates velocities and tractions of the element
    to them, `neighbour_pair` those of the neighbour (theory/waves, section 4).
    """

    element: npt.NDArray[np.int64]
    neighbour: npt.NDArray[np.int64]
    pair: tuple[Floats, Floats] | None
    neighbour_pair: tuple[Floats, Floats] | None
    weights: Floats

    def values(
        self,
        state: Floats,
        velocity: int,
        stress: int,
        nodes: npt.NDArray[np.int64],
        normal: float,
        *,
        of_neighbour: bool = False,
    ) -> tuple[Floats, Floats]:
        """Return velocity and traction of a component, (sides, face nodes)."""
        elements, pair = (self.neighbour, self.neighbour_pair) if of_neighbour else (self.element, self.pair)
        v, t = state[elements, velocity][:, nodes], normal * state[elements, stress][:, nodes]
        return (v, t) if pair is None else (v @ pair[0].T, t @ pair[1].T)


class _MediaGradient:
    """Sums b^T M dL u over stages: derivatives with respect to density, moduli and impedances of the elements."""

    def __init__(self, operator: Operator, outer: Sequence[npt.NDArray[np.bool_]]) -> None:
        """Start at zero; `outer` flags, for each face, the elements without a neighbour."""
        if operator.flux.slopes is None:
            raise CaseError(f"gradient: the flux {operator.disc.flux.name} is not supported")
        self._operator, self._outer = operator, outer
        material, count = operator.material, operator.mesh.count
        self._rho, self._stiff, self._mu = material.density, material.longitudinal, material.mu
        self._z = operator.impedances
        self.density, self.moduli, self.impedances = np.zeros(count), np.zeros((2, count)), np.zeros_like(self._z)
        self._acoustic = operator.disc.medium == "acoustic"
        self._face_weights = [self._weights_of(axis) for axis in range(operator.mesh.dim)]

    def _weights_of(self, axis: int) -> Floats:
        """Return the quadrature weights on faces across an axis, (elements, face nodes)."""
        mesh, w = self._operator.mesh, self._operator.basis.weights
        product: Floats = np.ones(1)
        for _ in range(mesh.dim - 1):
            product = np.asarray(np.kron(w, product), np.float64)
        tangents = [tangent for tangent in range(mesh.dim) if tangent != axis]
        area = np.prod(mesh.sizes[: mesh.count, tangents] / 2, axis=1)
        return np.asarray(area[:, None] * product)

    def _strain(self, stress: Floats, elements: npt.NDArray[np.int64] | slice = slice(None)) -> Floats:
        """Return C^-1 : S, (n, components, nodes), shear components as those of the tensor."""
        dim = self._operator.mesh.dim
        mu = self._mu[elements][:, None, None]
        lam = self._stiff[elements][:, None, None] - 2 * mu
        trace = stress[:, :dim].sum(1, keepdims=True)
        mean = trace / (dim * (dim * lam + 2 * mu))  # the only term in a fluid
        compliance = np.divide(1.0, 2 * mu, out=np.zeros_like(mu), where=mu > 0)
        strain = stress * compliance
        strain[:, :dim] += mean - compliance * trace / dim
        return np.asarray(strain)

    def dual(self, state: Floats, elements: npt.NDArray[np.int64]) -> Floats:
        """Return M b, without the nodal weights, for the fields of `elements`."""
        rho, dim = self._rho[elements][:, None, None], self._operator.mesh.dim
        if self._acoustic:
            return np.concatenate([state[:, :1] / self._stiff[elements][:, None, None], rho * state[:, 1:]], 1)
        strain = self._strain(state[:, dim:], elements)
        strain[:, dim:] *= 2
        return np.concatenate([rho * state[:, :dim], strain], 1)

    def add(self, dt: float, adjoint: Floats, state: Floats, rate: Floats, added: Floats) -> None:
        """Add a stage: the adjoint of its register, its state, L of the state, and the source terms of the rate."""
        weights, dim = self._operator.weights, self._operator.mesh.dim
        if self._acoustic:
            total = rate + added
            self.density -= dt * (weights * (adjoint[:, 1:] * total[:, 1:]).sum(1)).sum(1)
            self.moduli[0] += dt * (weights * adjoint[:, 0] * total[:, 0]).sum(1) / self._stiff**2
        else:
            total = rate[:, :dim] + added[:, :dim]
            self.density -= dt * (weights * (adjoint[:, :dim] * total).sum(1)).sum(1)
            # Moments are added to the stress itself: the strain rate excludes them.
            first, second = self._strain(adjoint[:, dim:]), self._strain(rate[:, dim:])
            traces = first[:, :dim].sum(1) * second[:, :dim].sum(1)
            products = first * second
            double = products[:, :dim].sum(1) + 2 * products[:, dim:].sum(1)
            self.moduli[0] += dt * (weights * traces).sum(1)
            self.moduli[1] += 2 * dt * (weights * double).sum(1)
        for face in range(self._operator.mesh.faces):
            self._add_face(dt, face, adjoint, state)

    def _components(self, axis: int) -> list[tuple[int, int, float, int]]:
        """Return velocity, stress, sign of the stored stress and kind of wave of the components of a face."""
        dim = self._operator.mesh.dim
        if self._acoustic:
            return [(1 + axis, 0, -1.0, 0)]
        stress = [dim + c if c == axis else 4 if dim == 2 else 9 - axis - c for c in range(dim)]
        return [(c, stress[c], 1.0, 0 if c == axis else 1) for c in range(dim)]

    def _sides(self, face: int) -> Iterator[_Sides]:
        """Yield the pairs of sides that meet across a face of owned elements."""
        operator, mesh = self._operator, self._operator.mesh
        weights, neighbours = self._face_weights[face // 2], mesh.neighbours[:, face].astype(np.int64)
        child = mesh.child[:, face]
        large = neighbours[:, 1] >= 0
        conforming = np.nonzero(~self._outer[face] & ~large & (child < 0))[0]
        yield _Sides(conforming, neighbours[conforming, 0], None, None, weights[conforming])
        for position in range(neighbours.shape[1] if operator.sides else 0):
            pair = mortar_pair(operator, position)
            small = np.nonzero(child == position)[0]
            yield _Sides(small, neighbours[small, 0], None, pair, weights[small])
            coarse = np.nonzero(large)[0]
            neighbour_elements = neighbours[coarse, position]
            yield _Sides(coarse, neighbour_elements, pair, None, weights[neighbour_elements])

    def _add_face(self, dt: float, face: int, adjoint: Floats, state: Floats) -> None:
        """Add the derivative of a face's flux with respect to impedances: d/dZ of (Z b_v + b_t) d (eq. 23)."""
        operator = self._operator
        axis, outward = face // 2, face % 2 * 2 - 1
        nodes, opposite = operator.face_nodes[face], operator.face_nodes[face ^ 1]
        outer, kind_of_side = self._outer[face], operator.boundaries[face]
        upwind = operator.flux.slopes
        groups = [sides for sides in self._sides(face) if len(sides.element)] if upwind else []
        for velocity, stress, sign, kind in self._components(axis):
            z, normal = self._z[kind], outward * sign
            for sides in groups:
                z_element, z_neighbour = z[sides.element][:, None], z[sides.neighbour][:, None]
                v, t = sides.values(state, velocity, stress, nodes, normal)
                bv, bt = sides.values(adjoint, velocity, stress, nodes, normal)
                neighbour_v, neighbour_t = sides.values(state, velocity, stress, opposite, normal, of_neighbour=True)
                # Without an impedance, as for tangential motion in a fluid, there is no flux (theory/waves, section 3).
                inverse = np.divide(1.0, z_element + z_neighbour, out=np.zeros_like(z_element), where=z_element > 0)
                d = (z_neighbour * (neighbour_v - v) + neighbour_t - t) * inverse
                product = z_element * bv + bt
                element_slope = dt * sides.weights * (bv * d - product * d * inverse)
                np.add.at(self.impedances[kind], sides.element, element_slope.sum(1))
                neighbour_slope = dt * sides.weights * product * (neighbour_v - v - d) * inverse
                np.add.at(self.impedances[kind], sides.neighbour, neighbour_slope.sum(1))
            if outer.any():
                z_element, weights = z[outer][:, None], dt * self._face_weights[axis][outer]
                v, t = state[outer, velocity][:, nodes], normal * state[outer, stress][:, nodes]
                bv, bt = adjoint[outer, velocity][:, nodes], normal * adjoint[outer, stress][:, nodes]
                inverse = np.divide(1.0, z_element, out=np.zeros_like(z_element), where=z_element > 0)
                slope = np.zeros_like(v)
                if kind_of_side == "absorbing":
                    slope = 0.5 * bt * t * inverse**2 - 0.5 * bv * v
                elif kind_of_side == "free" and upwind:
                    slope = bt * t * inverse**2
                elif upwind:  # rigid: d = -v
                    slope = -bv * v
                self.impedances[kind][outer] += (weights * slope).sum(1)

    def of_speeds(self) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives with respect to density, c_p and c_s of the elements."""
        rho, zp = self._rho, self.impedances[0]
        cp = self._operator.material.cp
        if self._acoustic:
            stiff = self.moduli[0]
            return self.density + stiff * cp**2 + zp * cp, 2 * rho * cp * stiff + rho * zp, np.zeros_like(cp)
        cs = self._operator.material.cs
        zs = np.where(cs > 0, self.impedances[1], 0.0)  # a fluid remains a fluid
        lam, mu = self.moduli
        density = self.density + lam * (cp**2 - 2 * cs**2) + mu * cs**2 + zp * cp + zs * cs
        return density, 2 * rho * cp * lam + rho * zp, rho * cs * (2 * mu - 4 * lam) + rho * zs
