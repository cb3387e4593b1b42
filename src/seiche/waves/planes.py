# SPDX-License-Identifier: BSD-3-Clause
"""The unknowns on a regular grid in a plane, by interpolation with the polynomials of the elements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.basis import Basis
from seiche.waves.mesh import Mesh

Floats = npt.NDArray[np.float64]


class PlaneGrid:
    """A grid of points across a mesh: all of it in two dimensions, a plane perpendicular to axis `normal` in three.

    Attributes:
        axes: the two axes of the mesh in the plane.
        shape: number of points along the second and along the first of them.
        points: positions, (n, dim), the first axis fastest.
    """

    def __init__(
        self,
        mesh: Mesh,
        nodes: int,
        max_points: int,
        normal: int = 1,
        at: float | None = None,
        *,
        box: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Create at most `max_points` points along a side, in the plane `at` (by default the middle) of axis `normal`.

        `box` has the corners of the grid, by default those of the mesh.
        """
        lower, upper = mesh.extent if box is None else box
        self._mesh, self._basis = mesh, Basis(nodes)
        self.axes = (0, 1) if mesh.dim == 2 else tuple(axis for axis in range(3) if axis != normal)
        sides = (upper - lower)[list(self.axes)]
        counts = np.maximum(2, np.round(max_points * sides / sides.max())).astype(int)
        self.shape = (int(counts[1]), int(counts[0]))
        ticks = [np.linspace(lower[axis], upper[axis], count) for axis, count in zip(self.axes, counts, strict=True)]
        self.points = np.empty((self.shape[0] * self.shape[1], mesh.dim))
        if mesh.dim == 3:
            self.points[:, normal] = (lower + upper)[normal] / 2 if at is None else at
        self.points[:, self.axes[0]] = np.tile(ticks[0], self.shape[0])
        self.points[:, self.axes[1]] = np.repeat(ticks[1], self.shape[1])
        elements, local = mesh.locate(self.points)
        self._own_points = np.nonzero(elements >= 0)[0]
        self._elements, row = np.unique(elements[self._own_points], return_inverse=True)
        self._row = row.reshape(-1)
        local = local[self._own_points]
        self._in_plane_basis = [self._basis.values(local[:, axis]) for axis in self.axes]
        self._normal_basis: Floats | None = None
        self._normal = normal
        if mesh.dim == 3:
            _, first = np.unique(self._row, return_index=True)
            self._normal_basis = self._basis.values(local[first, normal])

    @property
    def elements(self) -> npt.NDArray[np.int64]:
        """Return the elements of this rank that contain points, (e,)."""
        return self._elements

    def sample(self, fields: Floats) -> Floats:
        """Return values of this rank's fields (elements, fields, nodes) at its points, (owned points, fields)."""
        return self._sample(fields[self._elements])

    def _sample(self, fields: Floats) -> Floats:
        """Return values of the fields of `elements` at the points of this rank."""
        n, dim = self._basis.n, self._mesh.dim
        values = np.asarray(fields, np.float64).reshape(-1, fields.shape[1], *(n,) * dim)
        if self._normal_basis is not None:  # x varies fastest among nodes: the axes of the array are z, y, x
            values = np.moveaxis(values, -1 - self._normal, -1)
            values = np.einsum("efabm,em->efab", values, self._normal_basis)
        lines = np.einsum("pfba,pa->pfb", values[self._row], self._in_plane_basis[0])
        return np.asarray(np.einsum("pfb,pb->pf", lines, self._in_plane_basis[1]))

    def gather(self, fields: Floats, world: World) -> Floats | None:
        """Return values at all points on rank 0, (fields, *shape), None elsewhere (collective)."""
        return self.gather_from(fields[self._elements], world)

    def gather_from(self, fields: Floats, world: World) -> Floats | None:
        """Return the same from the fields of `elements` alone, (e, fields, nodes)."""
        gathered = world.gather((self._own_points, self._sample(fields).astype(np.float32)))
        if gathered is None:
            return None
        result = np.zeros((len(self.points), fields.shape[1]), np.float32)
        for rows, values in gathered:
            result[rows] = values
        return np.asarray(result.T.reshape(-1, *self.shape))
