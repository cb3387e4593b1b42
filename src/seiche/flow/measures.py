# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of the current state of a flow: fields, wall shear stress, flow through openings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.flow.monitor import MonitorReader, PendingMonitor
from seiche.flow.observation import Observation
from seiche.flow.physics import Physics
from seiche.flow.snapshot import COLUMNS, ON_WALL, Snapshot, Snapshots, Staging, check_names
from seiche.flow.wall_forces import PendingForces, WallForces
from seiche.flow.walls import WallStages


class Measures:
    """Quantities of the current state of a solver, computed on its device.

    All methods but `snapshots` are collective.
    """

    def __init__(self, solver: Any, walls: WallStages, physics: Physics, forces: WallForces | None) -> None:
        self._solver, self._walls, self._physics, self._forces = solver, walls, physics, forces
        precisions = (solver.precision.compute, solver.precision.storage)
        self.observation = Observation(solver.backend, solver.populations, solver.region, physics, precisions)
        self._staging = Staging(self.observation)
        self._reader = MonitorReader(solver.backend, solver.world, self.observation, solver.iolets)

    def _refresh_halo(self) -> None:
        """Update the halo of the current state (the next step does so again) and apply the wall conditions."""
        self._exchange()
        self._walls.replace(self._solver.phase)

    def _exchange(self) -> None:
        solver = self._solver
        populations, phase = solver.populations, solver.phase
        if populations.plan.peers:
            source, mode = populations.source(phase), populations.halo_mode(phase)
            solver.halo.start(source, mode)
            solver.halo.finish(source, mode)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of the owned sites, see `FlowSolver.fields`.

        Raises:
            KeyError: an unknown name.
        """
        self._refresh_halo()
        return Snapshots(self._staging, names, bounded=True).take(self._solver.phase).fields()

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same fields as `fields`, in device arrays that the next call overwrites."""
        check_names(names)
        solver, observation, real = self._solver, self.observation, self.observation.real
        lengths = {name: int(np.diff(COLUMNS[name])[0]) for name in COLUMNS} | dict.fromkeys(ON_WALL, 3)
        shapes = {name: (lengths.get(name, 1), observation.count) for name in names}
        arrays = {name: solver.derived_field(name, shape, real) for name, shape in shapes.items()}
        self._refresh_halo()
        observation.write_columns(solver.phase, {COLUMNS[name]: arrays[name] for name in names if name in COLUMNS})
        if "density" in arrays:
            arrays["density"] += 1.0
        if "viscosity" in arrays:
            self._physics.write_viscosity(arrays["viscosity"][0], observation.items_by_row)
        for name in set(ON_WALL) & set(names):
            walls = observation.wall_stress(solver.phase)
            arrays[name][...] = 0.0
            components = walls.traction() if name == "traction" else walls.shear_stress().reshape(-1, 3).T
            for column, values in zip(arrays[name], components, strict=True):
                column[observation.wall_rows] = values
        return {name: array[0] if len(array) == 1 else array.T for name, array in arrays.items()}

    def snapshots(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> Snapshots:
        """Prepare snapshots of the fields `names` at the ascending `rows` of `owned`, or at all rows (None).

        Raises:
            KeyError: an unknown name.
        """
        return Snapshots(self._staging, names, rows)

    def snapshot(self, snapshots: Snapshots) -> Snapshot:
        """Take a snapshot of the current state; its copy to the host overlaps with the next steps."""
        self._refresh_halo()
        return snapshots.take(self._solver.phase)

    def start_monitor(self, *, totals: bool = True) -> PendingMonitor:
        """Start the reduction of the current state, without `totals` only of its flow.

        The copy overlaps with later steps.
        """
        if totals:
            self._refresh_halo()
        return self._reader.take(self._solver.phase, self._solver.step, totals=totals)

    def iolet_flow(self) -> npt.NDArray[np.float64]:
        """Return the mass that entered through each iolet in the last step, over all ranks; outflow is negative."""
        return self.start_monitor(totals=False).flow()

    def observe_outgoing(self, observe: Callable[[], None]) -> None:
        """Call `observe` while every wall returns populations like a half-way wall at rest.

        In this state the sum of the densities is the mass of the outgoing populations.
        """
        self._exchange()
        self._walls.replace(self._solver.phase, observe)
        self._walls.restore()

    def start_wall_forces(self) -> PendingForces | None:
        """Start measuring the forces on the bodies of the model; the copy overlaps with the next steps.

        None without bodies.
        """
        if self._forces is None:
            return None
        self._exchange()
        return self._forces.start(self._solver.phase, partial(self._walls.replace, self._solver.phase))

    def wall_forces(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the force and torque (6,) of the fluid on each body of `model.walls.bodies` in the next step.

        They are in lattice units; the pressure is relative to that at density 1. The result is empty without bodies.
        """
        pending = self.start_wall_forces()
        return pending.result() if pending is not None else {}

    def wall_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of `owned` that are wall sites, (w,)."""
        return self.observation.walls[0]

    def wall_shear_stress(self) -> Array:
        """Return the wall shear stress at `wall_rows()` on the device, (3 w,); the next call overwrites it."""
        self._refresh_halo()
        return self.observation.wall_stress(self._solver.phase).shear_stress()

    def mean_velocity(self) -> npt.NDArray[np.float64]:
        """Return the mean velocity (3,) of the sites of all ranks, in sites/step."""
        self._refresh_halo()
        solver = self._solver
        total: npt.NDArray[np.float64] = solver.world.allreduce_sum(self.observation.velocity_sum(solver.phase))
        return total / len(solver.sites)

    def velocity_change(self) -> float:
        """Return |u - u'|/|u| over all sites and ranks, where u' is the velocity at the previous call.

        At first infinity.
        """
        self._refresh_halo()
        sums = self._solver.world.allgather(self.observation.velocity_change(self._solver.phase))
        change, sum_of_squares = (sum(column) for column in zip(*sums, strict=True))
        return float(np.sqrt(change / sum_of_squares)) if sum_of_squares > 0 else float("inf" if change > 0 else 0.0)
