# SPDX-License-Identifier: BSD-3-Clause
"""What a run of waves leaves behind: snapshots in planes, seismograms, peak velocities. Rank 0 writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from seiche.case.agreement import on_rank_zero
from seiche.case.schedule import Schedule
from seiche.case.waves.schema import SnapshotOutput
from seiche.case.waves.setup import AXES, WaveSetup
from seiche.errors import CaseError
from seiche.io.files import part_path, publish, replacing
from seiche.io.formats.sac import write_sac
from seiche.report.waves_figures import film, map_figure, read_motion, seismogram_figure, snapshot_figure
from seiche.waves import Solver
from seiche.waves.planes import PlaneGrid


def new_name(path: Path, first_step: int) -> Path:
    """Return the name of a file of a run that began with `first_step`: one that goes on replaces nothing."""
    return path if first_step == 0 else path.with_name(f"{path.stem}.from-{first_step}{path.suffix}")


def with_pressure(state: npt.NDArray[Any], dim: int, acoustic: bool) -> npt.NDArray[Any]:
    """Return velocity and pressure of a state (elements, fields, nodes): (elements, dim + 1, nodes)."""
    if acoustic:
        return np.concatenate([state[:, 1:], state[:, :1]], 1)
    return np.concatenate([state[:, :dim], -state[:, dim : 2 * dim].mean(1, keepdims=True)], 1)


class Snapshots:
    """One time series in a plane: HDF5 with `time`, `velocity` (times, rows, columns, dim) and `pressure`."""

    def __init__(self, table: SnapshotOutput, setup: WaveSetup, solver: Solver, folder: Path, first_step: int) -> None:
        """Find the points of the plane (collective); the file is made by the first `take`."""
        mesh = setup.mesh
        normal = AXES.index(table.normal)
        self.table, self._setup, self._solver = table, setup, solver
        self.path = new_name(folder / table.file, first_step)
        self._folder, self._first_step = folder, first_step
        self.schedule = Schedule(setup.steps_of(table.every))
        self._grid = PlaneGrid(mesh, setup.case.mesh.nodes, table.points, normal, table.at)
        self._file: h5py.File | None = None

    def _open(self) -> h5py.File:
        grid, dim = self._grid, self._setup.mesh.dim
        file = h5py.File(part_path(self.path), "w")
        file.attrs["title"] = self._setup.case.title or self._setup.source
        file.attrs["axes"] = [AXES[axis] for axis in grid.axes]
        file.attrs["medium"] = self._solver.medium
        for name, where in (("lower", 0), ("upper", -1)):
            file.attrs[name] = grid.points[where, list(grid.axes)]
        file.create_dataset("time", (0,), "f8", maxshape=(None,))
        for name, shape in (("velocity", (*grid.shape, dim)), ("pressure", grid.shape)):
            file.create_dataset(name, (0, *shape), "f4", maxshape=(None, *shape), chunks=(1, *shape))
        return file

    def take(self, state: npt.NDArray[Any]) -> None:
        """Add the present state (collective)."""
        dim = self._setup.mesh.dim
        values = self._grid.gather(with_pressure(state, dim, self._solver.medium == "acoustic"), self._solver.world)

        def write() -> None:
            assert values is not None
            if self._file is None:
                self._file = self._open()
            rows = {"time": self._solver.time, "velocity": np.moveaxis(values[:dim], 0, -1), "pressure": values[dim]}
            for name, value in rows.items():
                series = self._file[name]
                series.resize(len(series) + 1, axis=0)
                series[-1] = value

        on_rank_zero(self._solver.world, _reporting(write, self.path))

    def close(self) -> list[Path]:
        """Complete the file and draw it, on rank 0; return what was written."""
        if self._file is None:
            return []
        self._file.close()
        publish(part_path(self.path), self.path)
        written = [self.path]
        motion = read_motion(self.path)
        if self.table.picture is not None:
            written.append(new_name(self._folder / self.table.picture, self._first_step))
            snapshot_figure(written[-1], motion, len(motion.times) - 1)
        if self.table.film is not None:
            written.append(new_name(self._folder / self.table.film, self._first_step))
            film(written[-1], motion)
        return written


def _reporting(work: Any, path: Path) -> Any:
    """Return `work` with refusals of the disk as errors that all ranks can raise."""

    def guarded() -> Any:
        try:
            return work()
        except OSError as error:
            raise CaseError(f"{path}: cannot be written: {error.strerror or error}") from None

    return guarded


def write_receivers(setup: WaveSetup, solver: Solver, outputs: Path, first_step: int) -> list[Path]:
    """Write what the receivers saw since `first_step`, on rank 0, to `outputs`; return the files (collective)."""
    if solver.receivers is None:
        return []
    samples, every = solver.samples(), solver.receivers.every
    times: npt.NDArray[np.float64] = (
        solver.dt * every * (first_step // every + 1 + np.arange(len(samples), dtype=np.float64))
    )
    table = setup.case.output.receivers
    path = new_name(outputs / table.file, first_step)

    def write() -> list[Path]:
        with replacing(path) as part, h5py.File(part, "w") as file:
            file.attrs["title"] = setup.case.title or setup.source
            file["time"], file["position"] = times, np.array(setup.receivers)
            file.attrs["velocities_earlier_by"] = solver.lead
            file["name"], file["field"] = list(setup.names), list(solver.fields)
            file["samples"] = np.moveaxis(samples, 0, 1)  # (receivers, times, fields)
        written = [path]
        velocity = [number for number, name in enumerate(solver.fields) if name.startswith("v")]
        if table.sac and len(times):
            folder = path.with_name(path.name + ".sac")
            folder.mkdir(exist_ok=True)
            for number, (name, place) in enumerate(zip(setup.names, setup.receivers, strict=True)):
                for field in velocity:
                    target = folder / f"{name}.{solver.fields[field]}.sac"
                    values = samples[:, number, field]
                    step, component = every * solver.dt, solver.fields[field]
                    write_sac(
                        target,
                        values,
                        step=step,
                        begin=float(times[0]) - solver.lead,
                        station=name,
                        component=component,
                        place=place,
                    )
                    written.append(target)
        if table.picture is not None and len(times):
            target = new_name(outputs / table.picture, first_step)
            seismogram_figure(target, times, samples[:, :, velocity], setup.names, [solver.fields[f] for f in velocity])
            written.append(target)
        return written

    return list(on_rank_zero(solver.world, _reporting(write, path)))


def write_peak(setup: WaveSetup, solver: Solver, folder: Path, first_step: int) -> list[Path]:
    """Write the peak velocities of the side that is watched, on rank 0, to `folder`; return the files (collective)."""
    table = setup.case.output.peak
    if solver.peak is None or table is None:
        return []
    found = solver.peak.gather()
    path, axis = new_name(folder / table.file, first_step), solver.peak.face // 2
    along = [a for a in range(setup.mesh.dim) if a != axis]

    def write() -> list[Path]:
        assert found is not None
        places, peaks = found
        with replacing(path) as part, h5py.File(part, "w") as file:
            file.attrs["title"] = setup.case.title or setup.source
            file["position"], file["velocity"], file["horizontal_velocity"] = places, peaks[:, 0], peaks[:, 1]
        if table.picture is None:
            return [path]
        stations = np.array(setup.receivers)[:, along] if setup.receivers else None
        target = new_name(folder / table.picture, first_step)
        map_figure(target, places[:, along], peaks[:, 0], [AXES[a] for a in along], stations)
        return [path, target]

    return list(on_rank_zero(solver.world, _reporting(write, path)))
