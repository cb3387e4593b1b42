# SPDX-License-Identifier: BSD-3-Clause
"""What is measured of the present state of a flow: fields, the wall's shear stress, what flows through openings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.flow.observation import Observation
from seiche.flow.physics import Physics
from seiche.flow.snapshot import COLUMNS, Snapshot, Snapshots, Staging
from seiche.flow.walls import WallStages
from seiche.flow.watch import Watch, Watcher


class Measures:
    """Measures of the present state of a solver, computed on its device; what takes the state is collective."""

    def __init__(self, solver: Any, walls: WallStages, physics: Physics) -> None:
        """Prepare for the populations, walls and physics of `solver`, a `FlowSolver`."""
        self._solver, self._walls = solver, walls
        precisions = (solver.precision.compute, solver.precision.storage)
        self.observation = Observation(solver.backend, solver.populations, solver.region, physics, precisions)
        self._staging = Staging(self.observation)
        self._watcher = Watcher(solver.backend, solver.world, self.observation, solver.iolets)

    def _refresh_halo(self) -> None:
        """Bring the halo of the current state up to date (the next step does it again) and let walls send back."""
        solver = self._solver
        populations, phase = solver.populations, solver.phase
        if populations.plan.peers:
            source, mode = populations.source(phase), populations.halo_mode(phase)
            solver.halo.start(source, mode)
            solver.halo.finish(source, mode)
        self._walls.replace(phase)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return what `FlowSolver.fields` does.

        Raises:
            KeyError: an unknown name.
        """
        self._refresh_halo()
        return Snapshots(self._staging, names, bounded=True).take(self._solver.phase).fields()

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return what `fields` does as arrays of the device, for the caller alone."""
        observation, phase, backend = self.observation, self._solver.phase, self.observation.backend
        others = [name for name in names if name not in (*COLUMNS, "wall_shear_stress")]
        found = {name: backend.upload(values) for name, values in (self.fields(others) if others else {}).items()}
        self._refresh_halo()
        found |= observation.columns(phase, {name: COLUMNS[name] for name in names if name in COLUMNS})
        if "density" in found:
            found["density"] += 1.0
        if "wall_shear_stress" in names:
            found["wall_shear_stress"] = everywhere = backend.zeros((observation.count, 3), observation.real)
            everywhere[backend.upload(self.wall_rows())] = observation.wall_shear_stress(phase).reshape(-1, 3)
        return found

    def snapshots(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> Snapshots:
        """Return what `snapshot` takes: the fields `names` of ascending rows of `owned`, None for all of them.

        Raises:
            KeyError: an unknown name.
        """
        return Snapshots(self._staging, names, rows)

    def snapshot(self, wanted: Snapshots) -> Snapshot:
        """Take fields of the present state; they reach the host during the steps that follow."""
        self._refresh_halo()
        return wanted.take(self._solver.phase)

    def watch(self, *, totals: bool = True) -> Watch:
        """Take totals of the present state, or its flow alone; they reach the host during the steps that follow."""
        if totals:
            self._refresh_halo()
        return self._watcher.take(self._solver.phase, self._solver.step, totals=totals)

    def iolet_flow(self) -> npt.NDArray[np.float64]:
        """Return the mass that entered through each iolet in the last step (positive: into the fluid), of all ranks."""
        return self.watch(totals=False).flow()

    def wall_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of `owned` that are wall sites, (w,)."""
        return self.observation.walls[0]

    def wall_shear_stress(self) -> Array:
        """Return the wall shear stress at `wall_rows()` in the device's memory, (3 w,); the next call overwrites it."""
        self._refresh_halo()
        return self.observation.wall_shear_stress(self._solver.phase)

    def mean_velocity(self) -> npt.NDArray[np.float64]:
        """Return the mean velocity of all sites of all ranks, (3,), in sites a step."""
        self._refresh_halo()
        solver = self._solver
        total: npt.NDArray[np.float64] = solver.world.allreduce_sum(self.observation.velocity_sum(solver.phase))
        return total / len(solver.sites)

    def velocity_change(self) -> float:
        """Return |u - u'|/|u|, norms over all sites and ranks, u' of the call before; infinity for the first one."""
        self._refresh_halo()
        parts = self._solver.world.allgather(self.observation.velocity_change(self._solver.phase))
        change, square = (sum(column) for column in zip(*parts, strict=True))
        return float(np.sqrt(change / square)) if square > 0 else float("inf" if change > 0 else 0.0)
