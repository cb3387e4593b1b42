# SPDX-License-Identifier: BSD-3-Clause
"""Measured costs of sites and vertices in a run with cells, and repartitioning of the present state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.couple.blood import Blood
from seiche.flow.balance import SiteCosts, measure_times, redistributed_state
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry.ibm import BRICK

Floats = npt.NDArray[np.float64]

#: Stages whose time is proportional to the number of vertices on a rank.
CELL_STAGES = (
    "interpolate velocity (shared)",
    "interpolate velocity",
    "membrane forces",
    "mark inside",
    "move vertices (shared)",
    "membrane forces (shared)",
    "locate vertices (shared)",
    "join shared stream",
    "contact forces",
    "list vertices",
    "spread force",
)


@dataclass(frozen=True)
class BloodCosts:
    """Costs of `sites`, and cost of a `vertex` in seconds per step."""

    sites: SiteCosts
    vertex: float

    def weights(self, blood: Blood) -> Floats:
        """Return the cost of each site (n,) relative to a fluid site without cells (collective).

        The cost of the vertices in a brick of 8^3 sites is distributed evenly over its sites.
        """
        sites, world = blood.solver.sites, blood.solver.world
        weights = self.sites.weights(sites)
        if not self.sites.fluid > 0.0:
            return weights
        extent = np.array([-(-length // BRICK) for length in sites.shape])
        strides = np.array([extent[1] * extent[2], extent[2], 1])
        sites_of_vertices = np.floor(blood.owned_vertices() + 0.5).astype(np.int64)
        for axis, length in enumerate(sites.shape):
            sites_of_vertices[:, axis] = (
                sites_of_vertices[:, axis] % length
                if sites.periodic[axis]
                else np.clip(sites_of_vertices[:, axis], 0, length - 1)
            )
        volume = int(np.prod(extent))
        vertices = world.allreduce_sum(
            np.bincount(sites_of_vertices // BRICK @ strides, minlength=volume).astype(np.float64)
        )
        brick = (sites.coords // BRICK).astype(np.int64) @ strides
        fluid = np.bincount(brick, minlength=volume)
        return np.asarray(weights + (self.vertex / self.sites.fluid) * (vertices / np.maximum(fluid, 1))[brick])


def measure_blood_costs(blood: Blood, steps: int = 48) -> BloodCosts:
    """Return the costs measured in `steps` steps on all ranks (collective; advances the state).

    The cost of a vertex is the time of the cell stages on all ranks divided by the number of vertices, without ghosts.
    """
    sites, times = measure_times(blood.solver, steps)
    local_costs = (sum(times.get(name, 0.0) for name in CELL_STAGES), len(blood.owned_vertices()))
    seconds, vertices = np.sum(blood.solver.world.allgather(local_costs), axis=0)
    return BloodCosts(sites, float(seconds / vertices) if vertices else 0.0)


def repartitioned(blood: Blood, weights: Floats | None = None, **options: Any) -> Blood:
    """Return the same flow and cells, bitwise identical, on a new partition (collective).

    Args:
        blood: the present coupling; it is closed.
        weights: cost of every site, from `BloodCosts.weights`.
        options: arguments of the new `FlowSolver`: device, layout, partition, transport, threads. By default the
            partition is by METIS, and the other arguments are those of the present solver.
    """
    old_solver = blood.solver
    state, vertices = blood.state(), [blood.vertices(kind) for kind in range(len(blood.cells.types))]
    options = {
        "device": old_solver.device,
        "layout": old_solver.layout,
        "transport": old_solver.halo.transport,
        **options,
    }
    new = FlowSolver(
        old_solver.sites,
        old_solver.model,
        precision=old_solver.precision,
        world=old_solver.world,
        weights=weights,
        **options,
    )
    new.set_state(redistributed_state(old_solver, new))
    old_solver.close()
    centers = [positions.mean(axis=1) for positions in vertices]
    cells = Cells(new.backend, blood.cells.types, centers, precision=blood.cells.precision)
    for kind, positions in enumerate(vertices):
        cells.set_vertices(positions, kind)
    contact = blood.contact.for_cells(cells) if blood.contact is not None else None
    result = Blood(new, cells, contact=contact, **blood.options)
    result.set_state(state)
    return result
