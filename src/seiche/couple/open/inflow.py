# SPDX-License-Identifier: BSD-3-Clause
"""What flows through the openings of a vessel as a volume: the mass over the density there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.flow.solver import FlowSolver

Floats = npt.NDArray[np.float64]


class VolumeInflow:
    """The sites beside each opening, whose density is asked for.

    A pressure that drives blood through a long vessel compresses the fluid of a lattice by some per cent, and what
    enters at the higher density is by so much less than its mass.
    """

    def __init__(self, solver: FlowSolver) -> None:
        """Find them among the sites of this rank."""
        self._solver, sites = solver, solver.sites
        beside = [sites.boundary[(sites.link_iolet == k).any(axis=1)] for k in range(len(sites.iolets))]
        self._every = np.unique(np.concatenate([*beside, np.zeros(0, np.int64)]))
        #: Rows of `_every` by opening.
        self._places = [np.searchsorted(self._every, each) for each in beside]
        mine = np.intersect1d(self._every, solver.owned, assume_unique=True)
        self._mine = np.searchsorted(self._every, mine)
        self._snapshots = solver.measures.snapshots(("density",), np.searchsorted(solver.owned, mine))

    def volumes(self) -> Floats:
        """Return the volume, in sites, that entered through each opening in the last step, (iolets,) (collective)."""
        mine = self._solver.measures.snapshot(self._snapshots).fields()["density"]
        density: Floats = np.ones(len(self._every))
        for rows, values in self._solver.world.allgather((self._mine, mine)):
            density[rows] = values
        means = np.array([density[rows].mean() for rows in self._places])
        return np.asarray(self._solver.measures.iolet_flow() / means, np.float64)
