# SPDX-License-Identifier: BSD-3-Clause
"""The discrete energy and its inner product (theory/waves, eq. 5)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.operator import Operator

Floats = npt.NDArray[np.float64]


def products(
    first: Floats, second: Floats, operator: Operator, rows: npt.NDArray[np.integer[Any]] | slice = slice(None)
) -> Floats:
    """Return the share of every element in `inner_product`, (elements,), for states of the elements `rows`."""
    material, dim, weights = operator.material, operator.mesh.dim, operator.weights[rows]
    shape = (-1, weights.shape[1]) if material.by_node else (-1, 1)
    rho, longitudinal, mu = (x[rows].reshape(shape) for x in (material.density, material.longitudinal, material.mu))
    if operator.disc.medium == "acoustic":
        density = rho * (first[:, 1:] * second[:, 1:]).sum(1) + first[:, 0] * second[:, 0] / longitudinal
        return np.asarray((weights * density).sum(1))
    normal, shear = slice(dim, 2 * dim), slice(2 * dim, None)
    traces = first[:, normal].sum(1) * second[:, normal].sum(1)
    squares = (first[:, normal] * second[:, normal]).sum(1) + 2 * (first[:, shear] * second[:, shear]).sum(1)
    lam, solid = longitudinal - 2 * mu, mu > 0
    safe = np.where(solid, mu, 1.0)
    strain = np.where(
        solid, (squares - lam / (dim * lam + 2 * safe) * traces) / (2 * safe), traces / dim**2 / longitudinal
    )
    density = rho * (first[:, :dim] * second[:, :dim]).sum(1) + strain
    return np.asarray((weights * density).sum(1))


def inner_product(first: Floats, second: Floats, operator: Operator) -> float:
    """Return the inner product of two states (elements, fields, nodes): of a state with itself, twice its energy."""
    return float(np.sum(products(first, second, operator)))


def energy(state: Floats, operator: Operator, world: World | None = None) -> float:
    """Return the energy of a state on all ranks by quadrature, bit-identical on any number of ranks (collective)."""
    return 0.5 * exact_sum(products(state, state, operator), world or World.serial())


def exact_sum(values: Floats, world: World) -> float:
    """Return the sum of finite numbers of all ranks, rounded once; NaN if one is not finite (collective)."""
    local: dict[int, int] | None = {} if np.isfinite(values).all() else None
    if local is not None:
        mantissas, exponents = np.frexp(values)
        integers = np.rint(mantissas * 2.0**53).astype(np.int64)
        for exponent in np.unique(exponents):
            integers_at_exponent = integers[exponents == exponent]
            high = integers_at_exponent >> 27
            local[int(exponent) - 53] = (int(high.sum()) << 27) + int((integers_at_exponent - (high << 27)).sum())
    total = Fraction(0)
    for sums in world.allgather(local):
        if sums is None:
            return float("nan")
        total += sum((Fraction(count) * Fraction(2) ** exponent for exponent, count in sums.items()), Fraction(0))
    return float(total)
