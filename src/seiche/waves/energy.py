# SPDX-License-Identifier: BSD-3-Clause
"""The discrete energy and the inner product that belongs to it (theory/waves, eq. 5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.waves.operator import Operator

Floats = npt.NDArray[np.float64]


def inner_product(first: Floats, second: Floats, operator: Operator) -> float:
    """Return the product of two states (elements, fields, nodes) that makes twice the energy of equal ones."""
    material, dim = operator.material, operator.mesh.dim
    shape = (-1, operator.weights.shape[1]) if material.by_node else (-1, 1)
    rho, stiff, mu = (x.reshape(shape) for x in (material.density, material.longitudinal, material.mu))
    if operator.of.medium == "acoustic":
        density = rho * (first[:, 1:] * second[:, 1:]).sum(1) + first[:, 0] * second[:, 0] / stiff
        return float(np.sum(operator.weights * density))
    normal, shear = slice(dim, 2 * dim), slice(2 * dim, None)
    traces = first[:, normal].sum(1) * second[:, normal].sum(1)
    squares = (first[:, normal] * second[:, normal]).sum(1) + 2 * (first[:, shear] * second[:, shear]).sum(1)
    lam, solid = stiff - 2 * mu, mu > 0
    safe = np.where(solid, mu, 1.0)
    strain = np.where(solid, (squares - lam / (dim * lam + 2 * safe) * traces) / (2 * safe), traces / dim**2 / stiff)
    density = rho * (first[:, :dim] * second[:, :dim]).sum(1) + strain
    return float(np.sum(operator.weights * density))


def energy(state: Floats, operator: Operator) -> float:
    """Return the energy of a state by quadrature."""
    return 0.5 * inner_product(state, state, operator)
