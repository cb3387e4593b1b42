# SPDX-License-Identifier: BSD-3-Clause
"""Time-averaged wall shear stress, oscillatory shear index and relative residence time (theory/flow, eq. 22)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.flow.solver import FlowSolver

Floats = npt.NDArray[np.float64]


class WallAverages:
    """Sums of wall shear stress samples at the wall sites of this rank, on the device in double precision."""

    def __init__(self, solver: FlowSolver) -> None:
        self._solver, self._rows = solver, solver.measures.wall_rows()
        self.samples = 0
        self._vector = solver.backend.zeros(3 * len(self._rows), np.float64)
        self._length = solver.backend.zeros(len(self._rows), np.float64)

    def sample(self) -> None:
        """Add the current wall shear stress (collective)."""
        stress = self._solver.measures.wall_shear_stress().astype(np.float64)
        x, y, z = stress[0::3], stress[1::3], stress[2::3]
        self._vector += stress
        self._length += (x * x + y * y + z * z) ** 0.5
        self.samples += 1

    def clear(self) -> None:
        """Discard all samples."""
        self.samples = 0
        self._vector[:] = 0.0
        self._length[:] = 0.0

    def means(self) -> tuple[Floats, Floats]:
        """Return the mean magnitude (n_owned,) and the mean vector (n_owned, 3) of the samples.

        Both are zero off the wall.

        Raises:
            ValueError: no sample was taken.
        """
        if not self.samples:
            raise ValueError("no sample of the wall shear stress: call sample() first")
        state = self.state()["wall_averages"] / self.samples
        return state[:, 0], state[:, 1:]

    def state(self) -> dict[str, Floats]:
        """Return the sums of all owned sites, `wall_averages` (n_owned, 4): magnitude and vector, zero elsewhere."""
        sums = np.zeros((len(self._solver.owned), 4))
        sums[self._rows, 0] = self._solver.backend.download(self._length)
        sums[self._rows, 1:] = self._solver.backend.download(self._vector).reshape(-1, 3)
        return {"wall_averages": sums}

    def load_state(self, state: dict[str, npt.NDArray[Any]], samples: int) -> None:
        """Restore the result of `state()` for the rows of `owned`; `samples` is the number of samples in the sums.

        Raises:
            CaseError: the array is missing or has another shape.
        """
        expected, sums = (len(self._solver.owned), 4), state.get("wall_averages")
        if sums is None or sums.shape != expected:
            actual = "nothing" if sums is None else sums.shape
            raise CaseError(f"state 'wall_averages': expected an array of shape {expected}, found {actual}")
        self.samples = samples
        self._solver.backend.assign(self._length, np.ascontiguousarray(sums[self._rows, 0], np.float64))
        self._solver.backend.assign(self._vector, np.ascontiguousarray(sums[self._rows, 1:], np.float64).reshape(-1))


def oscillatory_shear_index(magnitude: Floats, vector: Floats) -> Floats:
    """Return (1 - |mean vector|/mean magnitude)/2 for means (n,) and (n, 3); 0 where there is no shear."""
    length = np.linalg.norm(vector, axis=1)
    ratio = np.divide(length, magnitude, out=np.ones_like(length), where=magnitude > 0)
    return np.asarray(0.5 * (1.0 - np.minimum(ratio, 1.0)))


def relative_residence_time(vector: Floats) -> Floats:
    """Return 1/((1 - 2 OSI) TAWSS) = 1/|mean vector| for means (n, 3); 0 where the mean shear is zero."""
    length = np.linalg.norm(vector, axis=1)
    return np.asarray(np.divide(1.0, length, out=np.zeros_like(length), where=length > 0))
