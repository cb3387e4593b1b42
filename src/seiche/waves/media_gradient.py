# SPDX-License-Identifier: BSD-3-Clause
"""How the right-hand side depends on the media (theory/waves, section 10, eqs. 22 and 23)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.waves.operator import Operator

Floats = npt.NDArray[np.float64]


class MediaGradient:
    """Sums up b^T M dL u over stages: derivatives with respect to density, moduli and impedances of the elements."""

    def __init__(self, operator: Operator, outer: Sequence[npt.NDArray[np.bool_]]) -> None:
        """Start at zero; `outer` tells for each face which elements have none beyond it."""
        self._operator, self._outer = operator, outer
        material, count = operator.material, operator.mesh.count
        self._rho, self._stiff, self._mu = material.density, material.longitudinal, material.mu
        self._z = operator.impedances
        self.density, self.moduli, self.impedances = np.zeros(count), np.zeros((2, count)), np.zeros_like(self._z)
        self._acoustic = operator.of.medium == "acoustic"
        self._face_weights = [self._weights_of(axis) for axis in range(operator.mesh.dim)]

    def _weights_of(self, axis: int) -> Floats:
        """Return the quadrature weights on faces across an axis, (elements, face nodes)."""
        mesh, w = self._operator.mesh, self._operator.basis.weights
        product: Floats = np.ones(1)
        for _ in range(mesh.dim - 1):
            product = np.asarray(np.kron(w, product), np.float64)
        others = [other for other in range(mesh.dim) if other != axis]
        area = np.prod(mesh.sizes[: mesh.count, others] / 2, axis=1)
        return np.asarray(area[:, None] * product)

    def _strain(self, stress: Floats, elements: npt.NDArray[np.int64] | slice = slice(None)) -> Floats:
        """Return C^-1 : S, (n, components, nodes), shear components as those of the tensor."""
        dim = self._operator.mesh.dim
        mu = self._mu[elements][:, None, None]
        lam = self._stiff[elements][:, None, None] - 2 * mu
        trace = stress[:, :dim].sum(1, keepdims=True)
        strain = stress / (2 * mu)
        strain[:, :dim] -= lam / (2 * mu * (dim * lam + 2 * mu)) * trace
        return np.asarray(strain)

    def dual(self, state: Floats, elements: npt.NDArray[np.int64]) -> Floats:
        """Return M b without the weights of nodes, for the fields of `elements`."""
        rho, dim = self._rho[elements][:, None, None], self._operator.mesh.dim
        if self._acoustic:
            return np.concatenate([state[:, :1] / self._stiff[elements][:, None, None], rho * state[:, 1:]], 1)
        strain = self._strain(state[:, dim:], elements)
        strain[:, dim:] *= 2
        return np.concatenate([rho * state[:, :dim], strain], 1)

    def add(self, dt: float, adjoint: Floats, state: Floats, rate: Floats, added: Floats) -> None:
        """Add a stage: the adjoint of its register, its state, L of that, and what sources added to the rate."""
        weights, dim = self._operator.weights, self._operator.mesh.dim
        if self._acoustic:
            whole = rate + added
            self.density -= dt * (weights * (adjoint[:, 1:] * whole[:, 1:]).sum(1)).sum(1)
            self.moduli[0] += dt * (weights * adjoint[:, 0] * whole[:, 0]).sum(1) / self._stiff**2
        else:
            whole = rate[:, :dim] + added[:, :dim]
            self.density -= dt * (weights * (adjoint[:, :dim] * whole).sum(1)).sum(1)
            # Moments are added to the stress itself: the strain rate is that of the rate without them.
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

    def _add_face(self, dt: float, face: int, adjoint: Floats, state: Floats) -> None:
        """Add what the flux of a face depends on impedances: d/dZ of (Z b_v + b_t) d (eq. 23)."""
        operator = self._operator
        axis, outward = face // 2, face % 2 * 2 - 1
        nodes, opposite = operator.face_nodes[face], operator.face_nodes[face ^ 1]
        outer, weights = self._outer[face], dt * self._face_weights[axis]
        upwind, kind_of_side = operator.of.flux == "upwind", operator.boundaries[face]
        inner = np.nonzero(~outer)[0]
        beyond = operator.mesh.neighbours[inner, face, 0].astype(np.int64)
        for velocity, stress, sign, kind in self._components(axis):
            z = self._z[kind]
            v, t = state[:, velocity][:, nodes], outward * sign * state[:, stress][:, nodes]
            bv, bt = adjoint[:, velocity][:, nodes], outward * sign * adjoint[:, stress][:, nodes]
            if upwind and len(inner):
                own, other = z[inner][:, None], z[beyond][:, None]
                jump_v = state[beyond, velocity][:, opposite] - v[inner]
                jump_t = outward * sign * state[beyond, stress][:, opposite] - t[inner]
                d = (other * jump_v + jump_t) / (own + other)
                both = own * bv[inner] + bt[inner]
                here = weights[inner] * (bv[inner] * d - both * d / (own + other))
                np.add.at(self.impedances[kind], inner, here.sum(1))
                there = weights[inner] * both * (jump_v - d) / (own + other)
                np.add.at(self.impedances[kind], beyond, there.sum(1))
            if outer.any() and (kind_of_side == "absorbing" or (upwind and kind_of_side == "free")):
                own, v, t, bv, bt = z[outer][:, None], v[outer], t[outer], bv[outer], bt[outer]
                if kind_of_side == "free":
                    slope = bt * t / own**2
                else:
                    slope = 0.5 * bt * t / own**2 - 0.5 * bv * v
                self.impedances[kind][outer] += (weights[outer] * slope).sum(1)
            elif outer.any() and upwind:  # rigid: d = -v
                self.impedances[kind][outer] -= (weights[outer] * bv[outer] * v[outer]).sum(1)

    def of_speeds(self) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives with respect to density, c_p and c_s of the elements."""
        rho, zp = self._rho, self.impedances[0]
        cp = self._operator.material.cp
        if self._acoustic:
            stiff = self.moduli[0]
            return self.density + stiff * cp**2 + zp * cp, 2 * rho * cp * stiff + rho * zp, np.zeros_like(cp)
        cs, zs = self._operator.material.cs, self.impedances[1]
        lam, mu = self.moduli
        density = self.density + lam * (cp**2 - 2 * cs**2) + mu * cs**2 + zp * cp + zs * cs
        return density, 2 * rho * cp * lam + rho * zp, rho * cs * (2 * mu - 4 * lam) + rho * zs
