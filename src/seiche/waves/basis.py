# SPDX-License-Identifier: BSD-3-Clause
"""Gauss-Lobatto-Legendre collocation on the interval [-1, 1] (theory/waves, section 2), and the Runge-Kutta scheme."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

#: Five stages, fourth order, two registers (Carpenter and Kennedy 1994; theory/waves, eq. 15):
#: y <- A y + dt L(u, t + c dt), u <- u + B y.
LSRK_A = (
    0.0,
    -567301805773 / 1357537059087,
    -2404267990393 / 2016746695238,
    -3550918686646 / 2091501179385,
    -1275806237668 / 842570457699,
)
LSRK_B = (
    1432997174477 / 9575080441755,
    5161836677717 / 13612068292357,
    1720146321549 / 2090206949498,
    3134564353537 / 4481467310338,
    2277821191437 / 14882151754819,
)
LSRK_C = (
    0.0,
    1432997174477 / 9575080441755,
    2526269341429 / 6820363962896,
    2006345519317 / 3224310063776,
    2802321613138 / 2924317926251,
)

#: Supported numbers of nodes per direction.
NODES = range(2, 11)

Matrix = npt.NDArray[np.float64]


class Basis:
    """Lagrange polynomials through `n` Gauss-Lobatto-Legendre nodes: their nodes, weights and derivatives."""

    def __init__(self, n: int) -> None:
        """Find the roots of P'_{n-1} and polish them by Newton's method."""
        self.n = n
        last = np.zeros(n)
        last[-1] = 1.0
        first, second = legendre.legder(last), legendre.legder(last, 2)
        inner_nodes = np.sort(legendre.legroots(first).real)
        for _ in range(3):
            inner_nodes -= legendre.legval(inner_nodes, first) / legendre.legval(inner_nodes, second)
        inner_nodes = (inner_nodes - inner_nodes[::-1]) / 2
        self.nodes: Matrix = np.asarray(np.concatenate([[-1.0], inner_nodes, [1.0]]), np.float64)
        self._ends = legendre.legval(self.nodes, last)
        self.weights: Matrix = np.asarray(2.0 / (n * (n - 1) * self._ends**2), np.float64)

    @cached_property
    def derivative(self) -> Matrix:
        """Return D (n, n): D[i, j] is the derivative of the j-th polynomial at node i."""
        gap = self.nodes[:, None] - self.nodes
        np.fill_diagonal(gap, 1.0)
        result = self._ends[:, None] / (self._ends * gap)
        np.fill_diagonal(result, 0.0)
        result[0, 0], result[-1, -1] = -self.n * (self.n - 1) / 4, self.n * (self.n - 1) / 4
        return np.asarray(result)

    def values(self, x: npt.ArrayLike) -> Matrix:
        """Return the polynomials at the points `x`, (m, n)."""
        points = np.atleast_1d(np.asarray(x, np.float64))
        result = np.ones((len(points), self.n))
        for j, m in itertools.permutations(range(self.n), 2):
            result[:, j] *= (points - self.nodes[m]) / (self.nodes[j] - self.nodes[m])
        return result

    def halves(self) -> tuple[Matrix, Matrix]:
        """Return the interpolations from the nodes to those of the lower and the upper half interval, (n, n) each."""
        return self.values((self.nodes - 1.0) / 2), self.values((self.nodes + 1.0) / 2)

    def filtered_halves(self) -> tuple[Matrix, Matrix]:
        """Return `halves` with the highest mode scaled for exact adjoint projections (theory/waves, eq. 14).

        With the adjoints R_k of these and the plain P_k, the sum of R_k P_k over k is the identity.
        """
        low, high = self.halves()
        highest_polynomial = self._ends  # P_N at the nodes
        fine = sum(float(np.sum(self.weights * (half @ highest_polynomial) ** 2)) / 2 for half in (low, high))
        norm = float(np.sum(self.weights * highest_polynomial**2))
        mode = (
            np.outer(highest_polynomial, highest_polynomial * self.weights) / norm
        )  # projects nodal values on the highest mode
        scale = np.eye(self.n) + (norm / fine - 1) * mode
        return low @ scale, high @ scale

    def adjoints(self, halves: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
        """Return the adjoints of two matrices under the quadrature, to large nodes (theory/waves, eq. 13)."""
        low, high = (half.T * self.weights / self.weights[:, None] / 2 for half in halves)
        return low, high
