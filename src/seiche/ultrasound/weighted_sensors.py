# SPDX-License-Identifier: BSD-3-Clause
"""Sensors between points or of finite size, as weighted sums of values at grid points (theory, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.emitter import quadrature_of, weights_at
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.shapes import Shape

Floats = npt.NDArray[np.float64]
#: Largest number of weights of all sensors.
_MAX_WEIGHTS = 1 << 27


@dataclass(frozen=True)
class WeightedSensors:
    """Sums of values at grid points.

    Attributes:
        points: indices (n,) of all grid points with a weight, ascending.
        columns, weights: (sensors, m) positions in `points`, and factors.
    """

    points: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    weights: npt.NDArray[np.floating[Any]]

    @classmethod
    def of(cls, nodes: npt.NDArray[np.int64], weights: npt.NDArray[np.floating[Any]]) -> WeightedSensors:
        """Return the sums for indices and weights (sensors, m)."""
        points, columns = np.unique(nodes, return_inverse=True)
        return cls(points, columns.reshape(nodes.shape), weights)

    def sums(
        self, values: npt.NDArray[Any], sensors: npt.NDArray[np.int64] | None = None, points: Any = None
    ) -> npt.NDArray[Any]:
        """Return the values (rows, sensors) from values (rows, points), of some sensors and points if these are given.

        Args:
            values: values at `points`, by default at all points of this object.
            sensors: indices of the sensors.
            points: ascending positions in `self.points`, which include all points of these sensors.
        """
        from scipy.sparse import csr_array

        columns, weights = self.columns, self.weights
        if sensors is not None:
            columns, weights = columns[sensors], weights[sensors]
        if points is not None:
            columns = np.searchsorted(points, columns)
        count = columns.shape[1]
        layout = np.ravel(weights).astype(np.float64), columns.ravel(), np.arange(len(columns) + 1) * count
        matrix = csr_array(layout, shape=(len(columns), values.shape[1]))
        return np.asarray((matrix @ values.T.astype(np.float64)).T, values.dtype)


def nodes_of_elements(grid: Grid, elements: Sequence[Shape], name: str) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return indices and weights (n, m) of the means over shapes (eq. 41), filled up with weights of zero.

    Raises:
        CaseError: a shape that is impossible or not inside the grid; the message begins with `name`.
    """
    parts = []
    for number, shape in enumerate(elements):
        quadrature = quadrature_of(shape, grid, f"{name}[{number}]")
        shares = quadrature.weights
        if grid.symmetry is not None:  # a point of the half plane represents a circle
            shares = shares * quadrature.points[:, 1]
        indices, weights = weights_at(grid, quadrature.points, shares / shares.sum())
        if grid.symmetry is not None:  # the mirror image of a point on the axis is the point itself
            weights = np.where(indices % grid.shape[-1] == 0, 0.5 * weights, weights)
        parts.append((indices, weights))
    max_count = max(len(indices) for indices, _ in parts)
    if max_count * len(parts) > _MAX_WEIGHTS:
        raise CaseError(f"{name}: {len(parts)} elements of up to {max_count} grid points need too much memory")
    nodes, factors = np.zeros((len(parts), max_count), np.int64), np.zeros((len(parts), max_count))
    for row, (indices, weights) in enumerate(parts):
        nodes[row, : len(indices)], nodes[row, len(indices) :] = indices, indices[0]
        factors[row, : len(indices)] = weights
    return nodes, factors
