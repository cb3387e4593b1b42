# SPDX-License-Identifier: BSD-3-Clause
"""What sites and vertices cost, measured while cells flow, and a new partition with the state carried over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.couple.blood import Blood
from seiche.flow.balance import SiteCosts, measure_times, moved_state
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry.ibm import BRICK

Floats = npt.NDArray[np.float64]

#: Stages whose time goes with the vertices that a rank has.
CELL_STAGES = (
    "interpolate shared",
    "interpolate velocity",
    "membrane forces",
    "mark inside",
    "move shared",
    "forces of shared",
    "settle shared",
    "await shared",
    "contact forces",
    "list vertices",
    "spread force",
)


@dataclass(frozen=True)
class BloodCosts:
    """Seconds a step of `sites`, and of a `vertex`."""

    sites: SiteCosts
    vertex: float

    def weights(self, blood: Blood) -> Floats:
        """Return the cost of every site (n,), that of a fluid site without cells being one (collective).

        The vertices in a brick of 8^3 sites are shared by its sites.
        """
        sites, world = blood.solver.sites, blood.solver.world
        found = self.sites.weights(sites)
        if not self.sites.fluid > 0.0:
            return found
        extent = np.array([-(-length // BRICK) for length in sites.shape])
        strides = np.array([extent[1] * extent[2], extent[2], 1])
        place = np.floor(blood.own_vertices() + 0.5).astype(np.int64)
        for axis, length in enumerate(sites.shape):
            place[:, axis] = place[:, axis] % length if sites.periodic[axis] else np.clip(place[:, axis], 0, length - 1)
        volume = int(np.prod(extent))
        vertices = world.allreduce_sum(np.bincount(place // BRICK @ strides, minlength=volume).astype(np.float64))
        brick = (sites.coords // BRICK).astype(np.int64) @ strides
        fluid = np.bincount(brick, minlength=volume)
        return np.asarray(found + (self.vertex / self.sites.fluid) * (vertices / np.maximum(fluid, 1))[brick])


def measure_blood_costs(blood: Blood, steps: int = 48) -> BloodCosts:
    """Return the costs that `steps` steps show on all ranks (collective; the state moves on).

    The cost of a vertex is the time of all cells' stages of all ranks over their vertices, copies not counted.
    """
    sites, times = measure_times(blood.solver, steps)
    own = (sum(times.get(name, 0.0) for name in CELL_STAGES), len(blood.own_vertices()))
    seconds, vertices = np.sum(blood.solver.world.allgather(own), axis=0)
    return BloodCosts(sites, float(seconds / vertices) if vertices else 0.0)


def repartitioned(blood: Blood, weights: Floats | None = None, **options: Any) -> Blood:
    """Return the same flow and cells on a new partition, going on from the present state to the last bit (collective).

    Args:
        blood: is closed.
        weights: cost of every site, as `BloodCosts.weights` returns it.
        options: of the new `FlowSolver`: device, layout, partition, transport, threads; by default those of the old one
            but for the partition, which is by METIS.
    """
    old = blood.solver
    state, vertices = blood.state(), [blood.vertices(kind) for kind in range(len(blood.cells.types))]
    given = {"device": old.device, "layout": old.layout, "transport": old.halo.transport, **options}
    new = FlowSolver(old.sites, old.model, precision=old.precision, world=old.world, weights=weights, **given)
    new.set_state(moved_state(old, new))
    old.close()
    centers = [each.mean(axis=1) for each in vertices]
    cells = Cells(new.backend, blood.cells.types, centers, precision=blood.cells.precision)
    for kind, each in enumerate(vertices):
        cells.set_vertices(each, kind)
    contact = blood.contact.of(cells) if blood.contact is not None else None
    moved = Blood(new, cells, contact=contact, **blood.options)
    moved.set_state(state)
    return moved
