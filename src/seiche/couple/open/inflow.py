# SPDX-License-Identifier: BSD-3-Clause
"""Volume flow through the openings of a vessel: mass flow divided by the local density."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.flow.solver import FlowSolver

Floats = npt.NDArray[np.float64]


class VolumeInflow:
    """Volume flow from the mass flow and the density at the sites adjacent to each opening.

    The pressure that drives blood through a long vessel compresses the lattice fluid by a few per cent; the inflow of
    volume is smaller than that of mass by this fraction.
    """

    def __init__(self, solver: FlowSolver) -> None:
        """Find the sites of this rank that are adjacent to openings."""
        self._solver, sites = solver, solver.sites
        adjacent = [sites.boundary[(sites.link_iolet == k).any(axis=1)] for k in range(len(sites.iolets))]
        adjacent_sites = np.unique(np.concatenate([*adjacent, np.zeros(0, np.int64)]))
        self._count = len(adjacent_sites)
        #: Rows among these sites, by opening.
        self._rows = [np.searchsorted(adjacent_sites, sites_of) for sites_of in adjacent]
        owned_sites = np.intersect1d(adjacent_sites, solver.owned, assume_unique=True)
        self._own_rows = np.searchsorted(adjacent_sites, owned_sites)
        self._snapshots = solver.measures.snapshots(("density",), np.searchsorted(solver.owned, owned_sites))

    def volumes(self) -> Floats:
        """Return the volume, in sites, that entered through each opening in the last step, (iolets,) (collective)."""
        own_density = self._solver.measures.snapshot(self._snapshots).fields()["density"]
        density: Floats = np.ones(self._count)
        for rows, values in self._solver.world.allgather((self._own_rows, own_density)):
            density[rows] = values
        means = np.array([density[rows].mean() for rows in self._rows])
        return np.asarray(self._solver.measures.iolet_flow() / means, np.float64)
