# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of the misfit with respect to media and sources, from the sums of the adjoint run (theory/waves, eq. 23).

The sums contain no moduli: with a, the adjoint state, and D = B k, the change of the state in a stage, they are
a_v . D_v, in fluids a_p D_p, in solids tr a_S tr D_S and a_S : D_S, and the derivatives with respect to impedances.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.leapfrog import Leapfrog, absorption_rates
from seiche.waves.mesh import NONE
from seiche.waves.operator import Operator
from seiche.waves.sources import Points
from seiche.waves.sponge import Sponge

Floats = npt.NDArray[np.float64]


class MediaGradient:
    """Derivatives with respect to density at constant moduli and impedances, to moduli and to impedances."""

    def __init__(self, operator: Operator, sums: Floats) -> None:
        """Multiply `sums`, (elements, sums(, nodes)), by the weights that the kernels omit."""
        self._operator = operator
        mesh, acoustic = operator.mesh, operator.disc.medium == "acoustic"
        if operator.material.by_node:
            weights = operator.weights[:, None]
        else:
            weights = np.prod(mesh.sizes[: mesh.count] / 2, axis=1)[:, None]
        self._sums = np.moveaxis(sums * weights, 1, 0)
        #: Derivatives with respect to the impedances of each kind of wave, (kinds, elements(, nodes)).
        self.impedances = self._sums[2 if acoustic else 3 :]
        #: Derivatives with respect to c_p and c_s by the rates of a layer, and of absorbing sides in leapfrog.
        self._of_rates = np.zeros_like(self._sums[0]), np.zeros_like(self._sums[0])

    def add_coarse_sides(self, slopes: Floats) -> None:
        """Add the derivatives of coarse sides of hanging faces, at the nodes of their fine sides."""
        operator, mesh = self._operator, self._operator.mesh
        for side, (element, face) in enumerate(operator.coarse_sides):
            tangents = [axis for axis in range(mesh.dim) if axis != face // 2]
            area = np.prod(mesh.sizes[element, tangents] / 4)
            for child, of_child in enumerate(slopes[side]):
                values = of_child * operator.face_weights * area
                if operator.material.by_node:
                    self.impedances[:, element, operator.face_nodes[face]] += values @ operator.half(child)
                else:
                    self.impedances[:, element] += values.sum(1)

    def add_layer(self, sponge: Sponge, dt: float, sums: Floats) -> None:
        """Add the derivatives with respect to the decay rates of a layer, which are proportional to c_p.

        `sums` has the invariants of a and the state after each step, (elements of the layer, invariants, nodes).
        """
        operator, material, dim = self._operator, self._operator.material, self._operator.mesh.dim
        elements = sponge.numbers
        at_nodes = slice(None) if material.by_node else None
        rho, cp, stiff, mu = (
            values[elements][:, at_nodes]
            for values in (material.density, material.cp, material.longitudinal, material.mu)
        )
        if operator.disc.medium == "acoustic":
            potential = sums[:, 1] / stiff
        else:
            deviator = sums[:, 2] - sums[:, 1] / dim
            shear = np.divide(deviator, 2 * mu, out=np.zeros_like(deviator), where=mu > 0)
            potential = sums[:, 1] / (dim * (dim * stiff - (2 * dim - 2) * mu)) + shear
        slopes = -dt * sponge.rates / cp * operator.weights[elements] * (potential - rho * sums[:, 0])
        self._of_rates[0][elements] += slopes if material.by_node else slopes.sum(1)

    def add_resistance(self, leap: Leapfrog, dt: float, sums: Floats) -> None:
        """Add the derivatives at absorbing sides in leapfrog, whose rates are proportional to c_p or c_s.

        `sums` has the products of velocities and a before and after the damping, (2, elements, dim, nodes).
        """
        operator, mesh, elements = self._operator, self._operator.mesh, leap.absorbing
        by_node = operator.material.by_node
        weights = operator.weights[elements] * operator.material.density[elements][:, slice(None) if by_node else None]
        late = 1 / (1 + dt / 2 * absorption_rates(operator)[elements])
        slopes = dt / 2 * weights[:, None] * (sums[0] + late**2 * sums[1])
        lift = operator.disc.nodes * (operator.disc.nodes - 1) / 2
        for face, kind in enumerate(operator.boundaries):
            axis, nodes = face // 2, operator.face_nodes[face]
            rows = np.nonzero(mesh.kinds[elements, face, 0] == NONE)[0] if kind == "absorbing" else np.zeros(0, np.intp)
            scale = lift * 2.0 / mesh.sizes[elements[rows], axis]
            for component in range(mesh.dim):
                if operator.disc.medium == "acoustic" and component != axis:
                    continue
                of_speed = self._of_rates[int(component != axis)]
                values = scale[:, None] * slopes[rows, component][:, nodes]
                if by_node:
                    of_speed[elements[rows, None], nodes] += values
                else:
                    of_speed[elements[rows]] += values.sum(1)

    def subtract_moments(self, points: Points, strengths: Floats, sums: Floats) -> None:
        """Remove the changes of the stress by moments, which do not depend on the moduli.

        Args:
            points: the parts of sources.
            strengths: of each part, (parts, fields).
            sums: amplitudes times the adjoint stress, (parts, fields, nodes).
        """
        dim = self._operator.mesh.dim
        if self._operator.disc.medium == "acoustic":
            return
        stress, weighted = strengths[:, dim:], sums[:, dim:] * values_at_nodes(points)[:, None]
        traces = stress[:, :dim].sum(1)[:, None] * weighted[:, :dim].sum(1)
        products = stress[:, :, None] * weighted
        double = products[:, :dim].sum(1) + 2 * products[:, dim:].sum(1)
        for row, values in ((1, traces), (2, double)):
            np.subtract.at(
                self._sums[row], points.element, values if self._operator.material.by_node else values.sum(1)
            )

    def of_speeds(self) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives with respect to density, c_p and c_s."""
        material, dim = self._operator.material, self._operator.mesh.dim
        rho, cp, cs = material.density, material.cp, material.cs
        density, zp = self._sums[0], self.impedances[0]
        stiff, mu = material.longitudinal, material.mu
        if self._operator.disc.medium == "acoustic":
            kappa = self._sums[1] / stiff**2
            of_density = density + kappa * cp**2 + zp * cp
            return of_density, 2 * rho * cp * kappa + rho * zp + self._of_rates[0], np.zeros_like(cp)
        zs = np.where(cs > 0, self.impedances[1], 0.0)  # a fluid remains a fluid
        lam = self._sums[1] / (dim * stiff - (2 * dim - 2) * mu) ** 2
        deviator = self._sums[2] - self._sums[1] / dim
        shear = 2 * (np.divide(deviator, 4 * mu**2, out=np.zeros_like(mu), where=mu > 0) + lam / dim)
        density = density + lam * (cp**2 - 2 * cs**2) + shear * cs**2 + zp * cp + zs * cs
        of_cp = 2 * rho * cp * lam + rho * zp + self._of_rates[0]
        of_cs = rho * cs * (2 * shear - 4 * lam) + rho * zs
        return density, of_cp, of_cs + np.where(cs > 0, self._of_rates[1], 0.0)


def values_at_nodes(points: Points) -> Floats:
    """Return the Lagrange polynomials of the parts of points at all nodes, times their shares, (parts, nodes)."""
    parts, dim, n = points.values.shape
    product = points.values[:, 0]
    for axis in range(1, dim):  # nodes count along x first
        product = (points.values[:, axis, :, None] * product[:, None]).reshape(parts, n ** (axis + 1))
    return np.asarray(product * points.share[:, None])


def of_sources(operator: Operator, points: Points, count: int, sums: Floats, world: World) -> Floats:
    """Return the derivatives with respect to the strengths of `count` sources, (count, fields) (collective).

    Args:
        operator: the right-hand side.
        points: the parts of sources on this rank.
        count: number of sources.
        sums: amplitudes times b, (parts, fields, nodes).
        world: the ranks.
    """
    dual, dim = sums.copy(), operator.mesh.dim
    if operator.disc.medium == "acoustic":
        dual[:, 1:] *= -1
    else:
        dual[:, :dim] *= -1
        dual[:, dim:] = _strain(operator, sums[:, dim:], points.element)
        dual[:, 2 * dim :] *= 2
    parts = (dual * values_at_nodes(points)[:, None]).sum(2)
    local = operator.mesh.number[points.element], points.point, parts
    number, point, values = (np.concatenate(arrays) for arrays in zip(*world.allgather(local), strict=True))
    result = np.zeros((count, sums.shape[1]))
    for row in np.lexsort((point, number)):  # along the curve: the same sum on any number of ranks
        result[point[row]] += values[row]
    return result


def _strain(operator: Operator, stress: Floats, elements: npt.NDArray[np.int32]) -> Floats:
    """Return C^-1 : S, (parts, components, nodes), shear components as those of the tensor."""
    material, dim = operator.material, operator.mesh.dim
    at_nodes = slice(None) if material.by_node else None
    mu = material.mu[elements][:, None, at_nodes]
    lam = material.longitudinal[elements][:, None, at_nodes] - 2 * mu
    trace = stress[:, :dim].sum(1, keepdims=True)
    mean = trace / (dim * (dim * lam + 2 * mu))  # the only term in a fluid
    compliance = np.divide(1.0, 2 * mu, out=np.zeros_like(mu), where=mu > 0)
    strain = stress * compliance
    strain[:, :dim] += mean - compliance * trace / dim
    return np.asarray(strain)
