# SPDX-License-Identifier: BSD-3-Clause
"""D3Q19 on the host: the same directions, in the same order, as `kernels/flow/lattice.hpp` (a test compares them)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.links import direction_index

#: Number of populations.
Q = 19
#: Lattice vectors, opposite pairs (2k - 1, 2k), shape (19, 3).
C: npt.NDArray[np.int64] = np.array(
    [
        *[(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)],
        *[(1, 1, 0), (-1, -1, 0), (1, 0, 1), (-1, 0, -1), (0, 1, 1), (0, -1, -1)],
        *[(1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1), (0, -1, 1)],
    ],
    np.int64,
)
#: Weights, shape (19,).
W: npt.NDArray[np.float64] = np.array([1 / 3] + [1 / 18] * 6 + [1 / 36] * 12)
#: Square of the speed of sound.
CS2 = 1.0 / 3.0
#: The direction that points the other way, shape (19,).
OPPOSITE: npt.NDArray[np.int64] = np.array([0] + [q + 1 if q % 2 else q - 1 for q in range(1, Q)])
#: Row of `LINK_VECTORS` of each moving direction, shape (18,): direction q is `LINK_ROW[q - 1]`.
LINK_ROW: npt.NDArray[np.int64] = np.array([direction_index(C[q].tolist()) for q in range(1, Q)])


def equilibrium(excess: npt.NDArray[np.float64], velocity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the shifted equilibrium feq - w (theory/flow, eq. 4), shape (n, 19).

    `excess` (n,) is rho - 1, `velocity` (n, 3) in sites/step.
    """
    cu = 3.0 * velocity @ C.T
    square = 1.5 * np.sum(velocity**2, axis=1)
    rho = 1.0 + excess
    return np.asarray(W * (excess[:, None] + rho[:, None] * (cu + 0.5 * cu**2 - square[:, None])))
