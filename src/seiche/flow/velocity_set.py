# SPDX-License-Identifier: BSD-3-Clause
"""Velocity sets on the host, with the directions and order of `kernels/flow/lattice.hpp` (compared by a test)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.domain.links import direction_index

#: Square of the speed of sound.
CS2 = 1.0 / 3.0


@dataclass(frozen=True, eq=False)
class VelocitySet:
    """Lattice vectors (Q, 3), first the rest vector, then pairs of opposite vectors (2k - 1, 2k), and weights (Q,)."""

    name: str
    vectors: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]

    @property
    def Q(self) -> int:  # noqa: N802 - the symbol of the theory page
        """Return the number of populations."""
        return len(self.weights)

    @cached_property
    def opposite(self) -> npt.NDArray[np.int64]:
        """Return the direction opposite to each direction, (Q,)."""
        return np.array([0] + [q + 1 if q % 2 else q - 1 for q in range(1, self.Q)])

    @cached_property
    def link_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows (Q - 1,) in `LINK_VECTORS` of all directions but rest; direction q has `link_rows[q - 1]`."""
        return np.array([direction_index(vector) for vector in self.vectors[1:].tolist()])

    def equilibrium(
        self, density_deviation: npt.NDArray[np.float64], velocity: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return the equilibrium minus the weights, feq - w (n, Q) (theory/flow, eq. 4).

        `density_deviation` (n,) is rho - 1, `velocity` (n, 3) in sites/step.
        """
        cu = 3.0 * velocity @ self.vectors.T
        kinetic_term = 1.5 * np.sum(velocity**2, axis=1)
        rho = 1.0 + density_deviation
        bracket = cu + 0.5 * cu**2 - kinetic_term[:, None]
        return np.asarray(self.weights * (density_deviation[:, None] + rho[:, None] * bracket))


_REST = [(0, 0, 0)]
_AXES = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
_EDGES = [
    *[(1, 1, 0), (-1, -1, 0), (1, 0, 1), (-1, 0, -1), (0, 1, 1), (0, -1, -1)],
    *[(1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1), (0, -1, 1)],
]
_CORNERS = [*[(1, 1, 1), (-1, -1, -1), (1, 1, -1), (-1, -1, 1)], *[(1, -1, 1), (-1, 1, -1), (-1, 1, 1), (1, -1, -1)]]

D3Q15 = VelocitySet("D3Q15", np.array(_REST + _AXES + _CORNERS), np.array([2 / 9] + [1 / 9] * 6 + [1 / 72] * 8))
D3Q19 = VelocitySet("D3Q19", np.array(_REST + _AXES + _EDGES), np.array([1 / 3] + [1 / 18] * 6 + [1 / 36] * 12))
D3Q27 = VelocitySet(
    "D3Q27",
    np.array(_REST + _AXES + _EDGES + _CORNERS),
    np.array([8 / 27] + [2 / 27] * 6 + [1 / 54] * 12 + [1 / 216] * 8),
)
#: Velocity sets by name.
VELOCITY_SETS = {lattice.name: lattice for lattice in (D3Q15, D3Q19, D3Q27)}
