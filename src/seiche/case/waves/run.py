# SPDX-License-Identifier: BSD-3-Clause
"""A run of waves: the solver with its seismograms, snapshots and peak velocities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.kind import CaseRun, Match, Restart, Results
from seiche.case.output import ChunkMonitor
from seiche.case.steering import Control
from seiche.case.waves.outputs import Peaks, Seismograms, Snapshots
from seiche.case.waves.setup import WaveSetup
from seiche.domain.world import World
from seiche.waves.solver import WaveSolver

_STEP_REMEDY = 'its time steps are of {0} s, those of the case of {1} s; give time.step = "{0} s"'


class WaveRun(CaseRun):
    """The solver of a case of waves and its outputs."""

    solver: WaveSolver
    usual_fields = ("velocity", "pressure")

    def __init__(self, setup: WaveSetup, world: World, folder: Path, restart: Restart | None) -> None:
        """Make the solver, in the state of `restart`, in that of a plane wave, or at rest.

        Raises:
            CaseError: a checkpoint of another case.
        """
        self.setup, self.solver = setup, setup.solver()
        if restart is not None:
            restart.resume(setup, self.solver, self.matches())
        elif setup.start is not None:
            self.solver.start_from(setup.start.state(self.solver.medium, self.solver.positions))
        output, solver = setup.case.output, self.solver
        self.monitor = ChunkMonitor(solver)
        self.outputs = [Snapshots(table, setup, solver, folder) for table in output.snapshots]
        self.outputs += [Seismograms(setup, solver, folder)] if solver.receivers is not None else []
        self.outputs += [Peaks(output.peak, setup, solver, folder)] if output.peak is not None else []

    def matches(self) -> Mapping[str, Match]:
        """Return mesh, media, scheme, boundary and time step (collective)."""
        setup, solver, case = self.setup, self.solver, self.setup.case
        mesh, material = setup.mesh, setup.material
        places = mesh.keys[: mesh.count] * np.uint64(32) + mesh.level[: mesh.count].astype(np.uint64)
        values = np.stack([material.density, material.cp, material.cs]).reshape(3, mesh.count, -1)
        bits = np.ascontiguousarray(values).view(np.uint64) * (2 * places[:, None] + np.uint64(1))
        sums = [_mixed(places).sum(dtype=np.uint64), _mixed(bits).sum(dtype=np.uint64)]
        # Sums that wrap around do not depend on the order, nor on the number of ranks.
        geometry, media = setup.world.allreduce_sum(np.array(sums, np.uint64)).tolist()
        extent = [bound.tolist() for bound in mesh.extent]
        scheme: str = case.mesh.flux if case.time.integrator == "runge-kutta" else case.time.integrator
        if case.attenuation is not None:
            scheme += f" {case.attenuation.band} {case.attenuation.mechanisms}"
        return {
            "geometry": Match(f"{mesh.total} elements {geometry} {extent}", "mesh"),
            "model": Match(f"{media} {case.mesh.nodes} {scheme} {solver.medium}", "medium or discretisation"),
            "boundary": Match(f"{' '.join(setup.sides)} {case.boundary.sponge or 0.0}", "boundary"),
            "step": Match(repr(solver.dt), "time step", _STEP_REMEDY),
        }

    def exchange_seconds(self) -> float:
        """Return the seconds of all messages of a step: one exchange for each stage of the scheme."""
        return sum(stage.name == "send halo" for stage in self.solver.stages) * super().exchange_seconds()

    def controls(self) -> Mapping[str, Control]:
        """Return the factors of the sources, by their numbers in the case."""
        if (sources := self.solver.sources) is None:
            return {}
        count = len(sources.factors)
        return {f"sources.{k}.amplitude": Control(1.0, partial(sources.factors.__setitem__, k)) for k in range(count)}

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
        return Results({"energy": solver.energy()}, details=details)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers of 64 bits whose bits all depend on all bits of the given ones."""
    mixed = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))
