# SPDX-License-Identifier: BSD-3-Clause
"""A wave run: the solver with its seismograms, snapshots and peak velocities."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.energy_growth import EnergyGrowth, EnergyMonitor, chunk_physics
from seiche.case.fingerprint import fingerprint_of, values_of
from seiche.case.kind import MAX_CURVES, CaseRun, LiveParts, Match, Restart, Results
from seiche.case.labels import GridRequest, LabelledParts
from seiche.case.snapshots import SnapshotFile, labelled_snapshots
from seiche.case.steering import Control
from seiche.case.waves.estimates import energy_estimate
from seiche.case.waves.labelled import labelled_waves
from seiche.case.waves.live import WaveView
from seiche.case.waves.outputs import Peaks, Seismograms, WavePlane
from seiche.case.waves.setup import WaveSetup
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.report.display_units import display
from seiche.solver import Estimate
from seiche.waves.solver import WaveSolver
from seiche.waves.supply import EnergySupply

_STEP_REMEDY = "its time step is {0} s, but time.step is {1} s; omit time.step to keep that of the checkpoint"


class WaveCaseRun(CaseRun):
    """The solver of a wave case and its outputs; CaseError for a checkpoint of another case."""

    solver: WaveSolver
    monitor: EnergyMonitor
    default_fields = ("velocity", "pressure")

    def __init__(self, setup: WaveSetup, world: World, folder: Path, restart: Restart | None) -> None:
        self.setup, self.solver = setup, setup.solver()
        if restart is not None:
            restart.resume(setup, self.solver, self.matches())
        elif setup.start is not None:
            self.solver.start_from(setup.start.state(self.solver.medium, self.solver.positions))
        output, solver = setup.case.output, self.solver
        moving = solver.step > 0 or setup.start is not None
        initial_energy = solver.energy() if moving else 0.0
        self.growth = EnergyGrowth(solver, solver.energy, _supply_of(setup, solver), initial_energy)
        self.monitor = EnergyMonitor(solver, self.growth)
        planes = [(table, WavePlane(table, setup, solver)) for table in output.snapshots]
        self.outputs = [SnapshotFile(table, plane, setup, solver, folder) for table, plane in planes]
        self.outputs += [Seismograms(setup, solver, folder)] if solver.receivers is not None else []
        self.outputs += [Peaks(output.peak, setup, solver, folder)] if output.peak is not None else []

    def matches(self) -> Mapping[str, Match]:
        """Return mesh, media, scheme, boundary, time step, receivers and the initial plane wave (collective)."""
        setup, solver, case = self.setup, self.solver, self.setup.case
        mesh, material = setup.mesh, setup.material
        leaves = mesh.keys[: mesh.count] * np.uint64(32) + mesh.level[: mesh.count].astype(np.uint64)
        values = np.stack([material.density, material.cp, material.cs]).reshape(3, mesh.count, -1)
        bits = np.ascontiguousarray(values).view(np.uint64) * (2 * leaves[:, None] + np.uint64(1))
        sums = [_hashed(leaves).sum(dtype=np.uint64), _hashed(bits).sum(dtype=np.uint64)]
        # Integer sums with wrap-around depend neither on the order nor on the number of ranks.
        geometry, media = setup.world.allreduce_sum(np.array(sums, np.uint64)).tolist()
        receivers = hashlib.sha256(np.array(setup.receivers, np.float64).tobytes()).hexdigest()
        extent = [bound.tolist() for bound in mesh.extent]
        scheme: str = case.mesh.flux if case.time.integrator == "runge-kutta" else case.time.integrator
        if case.attenuation is not None:
            scheme += f" {case.attenuation.band} {case.attenuation.mechanisms}"
        if solver.sources is not None and solver.sources.incident is not None:
            scheme += " incident fields"
        return {
            "geometry": Match(f"{mesh.total} elements {geometry} {extent}", "mesh"),
            "model": Match(f"{media} {case.mesh.nodes} {scheme} {solver.medium}", "medium or discretisation"),
            "boundary": Match(f"{' '.join(setup.sides)} {setup.sponge}", "boundary"),
            "step": Match(repr(solver.dt), "time step", _STEP_REMEDY),
            "record": Match(f"{setup.sample_every} {receivers}", "set of receivers or interval", optional=True),
            "initial": Match(self._initial, "initial plane wave", optional=True),
        }

    @cached_property
    def _initial(self) -> str:
        """Return the fingerprint of the initial plane wave, with the file of its pulse (collective)."""
        table, folder = self.setup.case.plane_wave, self.setup.read.folder
        files = [folder / name for name in table.time.files if name is not None] if table is not None else []
        return on_root(self.setup.world, lambda: fingerprint_of(values_of(table), files))

    def estimates(self) -> list[Estimate]:
        """Return the growth of the energy beyond the supply of the sources."""
        self.growth.compare()
        return list(energy_estimate(self.setup, self.growth.largest))

    def physics(self) -> Mapping[str, str]:
        """Return the largest component of the velocity in the mesh and the latest growth of the energy."""
        return chunk_physics(self.monitor, "largest_velocity", "m/s", self.growth)

    def live_parts(self) -> LiveParts:
        """Return the motion in a plane, seismograms and the largest velocity."""
        view = WaveView(self.setup, self.solver)
        return LiveParts(view.slice, lambda: view.curves(self.monitor.history, MAX_CURVES))

    def exchange_seconds(self) -> float:
        """Return the time (s) of all messages of a step: one exchange for each stage of the scheme."""
        return sum(stage.name == "send halo" for stage in self.solver.stages) * super().exchange_seconds()

    def controls(self) -> Mapping[str, Control]:
        """Return the amplitude factors of the sources, by their numbers in the case."""
        if (sources := self.solver.sources) is None:
            return {}
        count = len(sources.factors)
        return {f"sources.{k}.amplitude": Control(1.0, partial(sources.factors.__setitem__, k)) for k in range(count)}

    def labelled(self, names: Sequence[str], grid: GridRequest | None = None) -> LabelledParts:
        """Return fields at the nodes of the elements or on a regular grid, the seismograms and the snapshots."""
        arrays, coordinates = labelled_waves(self.setup, self.solver, self.fields(names), grid)
        return labelled_snapshots(self.outputs, arrays, coordinates)

    def results(self, files: Iterable[Path]) -> Results:
        """Return energy, mesh and time (collective)."""
        setup, solver = self.setup, self.solver
        details = {
            "elements": setup.mesh.total,
            "time_step_s": solver.dt,
            "time_s": solver.time,
            "files": [path.name for path in files],
            "notes": list(setup.notes),
        }
        self.growth.compare()
        lines = [f"energy of the waves: {self.growth.energy:.4g} {'J/m' if setup.mesh.dim == 2 else 'J'}"]
        peaks = self.monitor.history.values.get("largest_velocity", [])
        if peaks:
            lines.append(f"largest component of the velocity at the checks of the state: {display(max(peaks), 'm/s')}")
        return Results({"energy": self.growth.energy}, details=details, lines=lines)


def _supply_of(setup: WaveSetup, solver: WaveSolver) -> Callable[[int, int], float]:
    """Return the largest growth of the square root of the energy due to sources, in a range of steps (collective)."""
    if solver.sources is None:
        return lambda first, last: 0.0
    attenuation = solver.memory.attenuation if solver.memory is not None else None
    return EnergySupply(
        solver.operator, setup.sources, solver.sources, solver.dt, solver.world, attenuation=attenuation
    )


def _hashed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes of 64-bit numbers; each bit depends on all bits of the number."""
    hashes = (values ^ (values >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(hashes ^ (hashes >> np.uint64(29)))
