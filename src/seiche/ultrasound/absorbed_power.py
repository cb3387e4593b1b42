# SPDX-License-Identifier: BSD-3-Clause
"""Power that an elastic medium absorbs from a continuous wave (theory/ultrasound, eqs. 70 and 71)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.elastic_medium import absorbs, coefficients
from seiche.ultrasound.problem import Problem

Floats = npt.NDArray[np.float64]


def elastic_power(stresses: Mapping[str, npt.NDArray[Any]], frequency: float, problem: Problem) -> Floats:
    """Return the absorbed power (W/m3) at the points of the grid.

    The strains follow from the stresses and the complex moduli. Shear contributes at the points of the shear stresses,
    of which a point of the grid receives the mean of the surrounding ones.

    Args:
        stresses: complex amplitudes (Pa) by name, "sxx" and so on, each at its own points, in the shape of the grid.
        frequency: Hz.
        problem: an elastic problem.
    """
    power = np.zeros(problem.shape)
    if not absorbs(problem):
        return power
    values = dict(coefficients(problem))
    omega, dimensions, axes = 2 * np.pi * frequency, problem.dimensions, problem.axes
    bulk, shear = (values[a] + 1j * omega * values[b] for a, b in (("lambda", "chi"), ("mu", "eta")))
    normal = [stresses[f"s{axis}{axis}"] for axis in axes]
    dilatation = sum(normal) / (dimensions * bulk + 2 * shear)
    power += values["chi"] * np.abs(dilatation) ** 2
    for stress in normal:
        power += 2 * values["eta"] * np.abs(_ratio(stress - bulk * dilatation, 2 * shear)) ** 2
    for first in range(dimensions):
        for second in range(first + 1, dimensions):
            pair = f"{axes[first]}{axes[second]}"
            modulus = values[f"mu {pair}"] + 1j * omega * values[f"eta {pair}"]
            at_edges = 4 * values[f"eta {pair}"] * np.abs(_ratio(stresses[f"s{pair}"], 2 * modulus)) ** 2
            for axis in (first, second):
                at_edges = 0.5 * (at_edges + np.roll(at_edges, 1, axis))
            power += at_edges
    return np.asarray(0.5 * omega**2 * power)


def _ratio(stress: npt.NDArray[Any], modulus: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the quotient, 0 where the modulus is 0, as in a fluid."""
    modulus = np.broadcast_to(modulus, stress.shape)
    return np.asarray(np.divide(stress, modulus, out=np.zeros(stress.shape, np.complex128), where=modulus != 0))
