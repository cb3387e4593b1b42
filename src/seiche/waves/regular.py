# SPDX-License-Identifier: BSD-3-Clause
"""Fields on a regular grid across the mesh, by interpolation with the polynomials of the elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.domain.sharing import shared_from_root
from seiche.domain.world import World
from seiche.waves.basis import Basis
from seiche.waves.mesh import Mesh

Floats = npt.NDArray[np.float64]

#: Numbers interpolated at a time: 32 MB.
_CHUNK = 1 << 22


class RegularGrid:
    """The points at all combinations of the positions `ticks` (m) along each axis, inside a mesh.

    Attributes:
        shape: number of points along each axis.
    """

    def __init__(self, mesh: Mesh, nodes: int, ticks: Sequence[Floats]) -> None:
        """Prepare a grid for fields with a number of nodes per element and direction."""
        self._mesh, self._basis, self._ticks = mesh, Basis(nodes), tuple(ticks)
        self.shape = tuple(len(values) for values in ticks)

    def sample(self, fields: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the flat numbers of the points in elements of this rank, and the values there, (points, fields).

        `fields` is (elements, fields, nodes); nodes count along x first.
        """
        count, chunk = int(np.prod(self.shape)), max(1, _CHUNK // int(np.prod(fields.shape[1:])))
        indices, values = [np.zeros(0, np.int64)], [np.zeros((0, fields.shape[1]))]
        for first in range(0, count, chunk):
            flat = np.arange(first, min(first + chunk, count), dtype=np.int64)
            rows = np.unravel_index(flat, self.shape)
            points = np.stack([ticks[row] for ticks, row in zip(self._ticks, rows, strict=True)], axis=1)
            elements, local = self._mesh.locate(points)
            is_owned = elements >= 0
            if is_owned.any():
                indices.append(flat[is_owned])
                values.append(self._interpolated(fields[elements[is_owned]], local[is_owned]))
        return np.concatenate(indices), np.concatenate(values)

    def _interpolated(self, fields: Floats, local: Floats) -> Floats:
        """Return the values (points, fields) of the elements' fields (points, fields, nodes) at local places."""
        dim, n = self._mesh.dim, self._basis.n
        values = np.asarray(fields, np.float64).reshape(*fields.shape[:2], *(n,) * dim)
        for axis in range(dim):  # x is the last axis of the array
            values = np.einsum("pf...a,pa->pf...", values, self._basis.values(local[:, axis]))
        return np.asarray(values)

    def gather(self, fields: Floats, world: World) -> Floats:
        """Return the values at all points, (fields, *shape), on every rank (collective)."""
        parts = world.gather(self.sample(fields))

        def whole() -> Floats:
            assert parts is not None
            result = np.full((int(np.prod(self.shape)), fields.shape[1]), np.nan)
            for indices, values in parts:
                result[indices] = values
            return np.ascontiguousarray(result.T).reshape(-1, *self.shape)

        return np.asarray(shared_from_root(world, whole))
