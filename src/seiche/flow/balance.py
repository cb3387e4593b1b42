# SPDX-License-Identifier: BSD-3-Clause
"""Measured costs of fluid, wall and iolet sites, and the weights for load balancing.

The time of a sweep is modelled as a (fluid sites) + b (wall sites), that of all stages of the openings of a rank as
c (iolet sites). Each sweep and the openings of each rank give one equation; a, b, c >= 0 minimise the sum of squared
relative errors.
The extra cost of wall sites includes related costs, such as those of partly empty tiles and of reading masks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LinkKind, SiteSet
from seiche.flow.iolet_stages import OWN_WORK
from seiche.flow.state import SITES
from seiche.observe.timers import StageTimers
from seiche.solver.state import RowSet, State

if TYPE_CHECKING:
    from seiche.flow.solver import FlowSolver

Floats = npt.NDArray[np.float64]


class SiteCosts(NamedTuple):
    """Cost of a fluid site in seconds per step, and the extra cost of a site with a wall link or an iolet link."""

    fluid: float
    wall: float
    iolet: float

    def weights(self, sites: SiteSet) -> Floats:
        """Return the cost of every site (n,) relative to a site without cut links."""
        if not self.fluid > 0.0:
            return np.ones(len(sites))
        wall, iolet = kinds(sites)
        return np.asarray(1.0 + self.wall / self.fluid * wall + self.iolet / self.fluid * iolet, np.float64)


def kinds(sites: SiteSet) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return flags (n,) of the sites with a wall link and of those with an iolet link."""
    wall, iolet = np.zeros(len(sites), bool), np.zeros(len(sites), bool)
    wall[sites.boundary] = (sites.link_kind == LinkKind.WALL).any(axis=1)
    iolet[sites.boundary] = ((sites.link_kind == LinkKind.INLET) | (sites.link_kind == LinkKind.OUTLET)).any(axis=1)
    return wall, iolet


def measure_costs(solver: FlowSolver, steps: int = 48) -> SiteCosts:
    """Return the costs, from the times of `steps` steps of `solver` on all ranks (collective; advances the solver)."""
    return measure_times(solver, steps)[0]


def measure_times(solver: FlowSolver, steps: int = 48) -> tuple[SiteCosts, dict[str, float]]:
    """Return the result of `measure_costs` and the shortest time of each stage on this rank, in seconds."""
    timers = StageTimers(solver.backend.clock(), every=1, skip=8)
    previous, solver.timers = solver.timers, timers
    try:
        for _ in range(steps):
            solver.start(1)  # one step at a time, not replayed from a graph
        solver.backend.synchronize()
    finally:
        solver.timers = previous
    times = {name: time.minimum for name, time in timers.times().items() if time.samples}
    rows = [row for rank_rows in solver.world.allgather(_equations(solver, times)) for row in rank_rows]
    return fit_costs(np.array(rows).reshape(-1, 4)), times


def redistributed_state(old: FlowSolver, new: FlowSolver) -> State:
    """Return the state of `old`, redistributed to the partition of `new`, a solver of the same sites (collective)."""
    state = old.state()
    sites = state.rows[SITES]
    old_arrays = {name: values[:] for name, values in sites.arrays.items()}
    destination = new.region.owner[old.owned]
    by_rank = [np.flatnonzero(destination == rank) for rank in range(old.world.size)]
    received = old.world.alltoall(
        [(old.owned[rows], {name: values[rows] for name, values in old_arrays.items()}) for rows in by_rank]
    )
    order = np.argsort(np.concatenate([keys for keys, _ in received]))
    arrays = {name: np.concatenate([rows[name] for _, rows in received])[order] for name in old_arrays}
    return replace(state, rows={SITES: RowSet(new.owned, sites.total, arrays)})


def _equations(solver: FlowSolver, times: dict[str, float]) -> list[tuple[float, float, float, float]]:
    """Return (fluid sites, wall sites, iolet sites, seconds) of each sweep and of the openings of this rank."""
    wall = kinds(solver.sites)[0][solver.owned]
    item, interior = solver.populations.item, solver.populations.interior
    rows = []
    for name, selected in (("stream-collide interior", item < interior), ("stream-collide edge", item >= interior)):
        if name in times and selected.any():
            rows.append((float(selected.sum()), float(wall[selected].sum()), 0.0, times[name]))
    count, seconds = sum(map(len, solver.iolets.groups)), sum(times.get(name, 0.0) for name in OWN_WORK)
    if count and seconds:
        rows.append((0.0, 0.0, float(count), seconds))
    return rows


def fit_costs(rows: Floats) -> SiteCosts:
    """Return the non-negative costs that fit `rows` best (n, 4: fluid, wall and iolet sites, seconds)."""
    from scipy.optimize import nnls

    rows = rows[rows[:, 3] > 0.0]
    if not len(rows):
        return SiteCosts(1.0, 0.0, 0.0)
    fluid, wall, iolet = nnls(rows[:, :3] / rows[:, 3:], np.ones(len(rows)))[0]
    return SiteCosts(float(fluid), float(wall), float(iolet))
