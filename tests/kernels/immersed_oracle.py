# SPDX-License-Identifier: BSD-3-Clause
"""The immersed boundary in plain NumPy, site by site, and vertices with given forces for the tests."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.sites import SiteSet
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]

SUPPORT = {"hat": 2, "roma": 3, "peskin": 4, "cosine": 4}


def delta(name: str, distance: npt.ArrayLike) -> Floats:
    """Return the function of a distance along one axis, as it is printed in the literature."""
    r = np.abs(np.asarray(distance, np.float64))

    def root(x: Floats) -> Floats:
        return np.sqrt(np.maximum(x, 0.0))

    if name == "hat":
        return np.where(r < 1, 1 - r, 0.0)
    if name == "roma":
        near = (1 + root(1 - 3 * r**2)) / 3
        far = (5 - 3 * r - root(-2 + 6 * r - 3 * r**2)) / 6
        return np.where(r <= 0.5, near, np.where(r < 1.5, far, 0.0))
    if name == "peskin":
        near = (3 - 2 * r + root(1 + 4 * r - 4 * r**2)) / 8
        far = (5 - 2 * r - root(-7 + 12 * r - 4 * r**2)) / 8
        return np.where(r <= 1, near, np.where(r < 2, far, 0.0))
    return np.where(r < 2, (1 + np.cos(np.pi * r / 2)) / 4, 0.0)


def weights(name: str, sites: SiteSet, points: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the sites (n, P^3) around points (n, 3), -1 off the fluid, and weights, of sum 1 over the fluid."""
    P = SUPPORT[name]
    first = np.ceil(points - P / 2).astype(np.int64)
    offsets = np.array(list(product(range(P), repeat=3)))
    coords = first[:, None, :] + offsets
    weight = delta(name, coords - points[:, None, :]).prod(axis=2)
    result = sites.find(coords)
    weight = np.where(result >= 0, weight, 0.0)
    return result, weight / weight.sum(axis=1, keepdims=True)


def spread(name: str, sites: SiteSet, points: Floats, forces: Floats) -> Floats:
    """Return the force density (sites, 3)."""
    actual, weight = weights(name, sites, points)
    result = np.zeros((len(sites), 3))
    good = actual >= 0
    np.add.at(result, actual[good], (weight[:, :, None] * forces[:, None, :])[good])
    return result


def interpolate(name: str, sites: SiteSet, points: Floats, velocity: Floats) -> Floats:
    """Return the velocity (n, 3) at points."""
    result, weight = weights(name, sites, points)
    return np.einsum("ns,nsa->na", weight, velocity[result])


class GivenForces:
    """Vertices whose forces a test gives, or computes on the host from their places."""

    def __init__(self, backend: Backend, points: Floats, forces: Any, precision: str = "float64") -> None:
        self.backend, self.vertex_count, self.stride = backend, len(points), -(-len(points) // 32) * 32
        host = np.zeros((3, self.stride))
        host[:, : len(points)] = points.T
        self.positions: Array = backend.upload(host)
        self.force: Array = backend.zeros((3, self.stride), precision)
        self._forces, self._precision = forces, precision
        self._given = False

    @property
    def points(self) -> Floats:
        return np.asarray(self.backend.download(self.positions)[:, : self.vertex_count].T)

    def put(self, points: Floats) -> None:
        host = np.zeros((3, self.stride))
        host[:, : len(points)] = points.T
        self.backend.assign(self.positions, host)

    def compute(self) -> None:
        if self._given:  # nothing to do, which a graph can hold
            return
        self._given = not callable(self._forces)
        host = np.zeros((3, self.stride), self._precision)
        inputs = self._forces(self.points) if callable(self._forces) else self._forces
        host[:, : self.vertex_count] = inputs.T
        self.backend.assign(self.force, host)

    slip = None

    def stage(self) -> Stage:
        return Stage("forces on the vertices", self.compute)
