# SPDX-License-Identifier: BSD-3-Clause
"""What a run of waves leaves behind: snapshots in planes, seismograms, peak velocities. Rank 0 writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from seiche.case.agreement import on_rank_zero
from seiche.case.output import Final, Place, Scheduled
from seiche.case.schedule import Schedule
from seiche.case.waves.schema import PeakOutput, SnapshotOutput
from seiche.case.waves.setup import AXES, WaveSetup
from seiche.errors import CaseError
from seiche.io.files import part_path, publish, replacing
from seiche.io.formats.sac import write_sac
from seiche.report.waves_figures import film, map_figure, read_motion, seismogram_figure, snapshot_figure
from seiche.waves.planes import PlaneGrid
from seiche.waves.solver import WaveSolver

#: HDF5 1.10 is the first with the mode for one writer and many readers.
_LIBVER = ("v110", "v110")


def new_name(path: Path, first_step: int) -> Path:
    """Return the name of a file of a run that began with `first_step`: one that goes on replaces nothing."""
    return path if first_step == 0 else path.with_name(f"{path.stem}.from-{first_step}{path.suffix}")


class Snapshots(Scheduled):
    """One time series in a plane: HDF5 with `time`, `velocity` (times, rows, columns, dim) and `pressure`.

    While the run lasts, the file is in the mode of HDF5 for one writer and many readers: after a kill all states of
    which the time is stored can be read. A run that continues keeps those up to its checkpoint.
    """

    def __init__(self, table: SnapshotOutput, setup: WaveSetup, solver: WaveSolver, folder: Path) -> None:
        """Find the points of the plane (collective); the file is made by the first `take`."""
        normal = AXES.index(table.normal)
        self.table, self._setup, self._solver = table, setup, solver
        self.path = new_name(folder / table.file, solver.step)
        self._folder, self._first_step = folder, solver.step
        self.schedule = Schedule(setup.steps_of(table.every))
        self._grid = PlaneGrid(setup.mesh, setup.case.mesh.nodes, table.points, normal, table.at)
        self._file: h5py.File | None = None
        #: The first steps of runs that were killed, and of those whose files are complete.
        self._killed, self._complete = self._find_killed(), list[int]()

    @property
    def places(self) -> Sequence[Place]:
        """Return file, picture and film."""
        key = f'output.snapshots["{self.table.file}"]'
        names = {"picture": self.table.picture, "film": self.table.film}
        found = []
        for first in (self._first_step, *self._killed):
            found.append(Place(f"{key}.file", new_name(self._folder / self.table.file, first), "HDF5 file"))
            pictures = {name: new_name(self._folder / file, first) for name, file in names.items() if file is not None}
            found += [Place(f"{key}.{name}", path) for name, path in pictures.items()]
        return found

    def _find_killed(self) -> list[int]:
        """Return the first steps of earlier runs whose states have temporary names still."""
        path = self._folder / self.table.file
        name = re.compile(
            rf"{re.escape(path.stem)}(?:\.from-(\d+))?{re.escape(part_path(path).name[len(path.stem) :])}"
        )
        steps = {int(found[1] or 0) for one in path.parent.glob("*.part") if (found := name.fullmatch(one.name))}
        return sorted(step for step in steps if step < self._first_step)

    def open(self, first: int, last: int) -> None:
        """Complete the files of runs that were killed, with the states up to the checkpoint."""
        if first == self._first_step:
            on_rank_zero(self._solver.world, _reporting(self._keep_killed, self.path))

    def _keep_killed(self) -> None:
        end = (self._first_step + 0.5) * self._solver.dt
        for first in self._killed:
            path = new_name(self._folder / self.table.file, first)
            with suppress(OSError, KeyError):  # killed before the file was made, or already done
                if _cut(part_path(path), end):
                    publish(part_path(path), path)
                    self._complete.append(first)

    def _open(self) -> h5py.File:
        grid, dim = self._grid, self._setup.mesh.dim
        if self._first_step in self._complete:  # the run was stopped, and goes on
            self._complete.remove(self._first_step)
            self.path.replace(part_path(self.path))
            file = h5py.File(part_path(self.path), "r+", libver=_LIBVER, locking=False)
            file.swmr_mode = True
            return file
        file = h5py.File(part_path(self.path), "w", libver=_LIBVER, locking=False)
        file.attrs["title"] = self._setup.title
        file.attrs["axes"] = [AXES[axis] for axis in grid.axes]
        file.attrs["medium"] = self._solver.medium
        for name, where in (("lower", 0), ("upper", -1)):
            file.attrs[name] = grid.points[where, list(grid.axes)]
        file.create_dataset("time", (0,), "f8", maxshape=(None,))
        for name, shape in (("velocity", (*grid.shape, dim)), ("pressure", grid.shape)):
            file.create_dataset(name, (0, *shape), "f4", maxshape=(None, *shape), chunks=(1, *shape))
        file.swmr_mode = True
        return file

    def take(self) -> None:
        """Add the present state (collective)."""
        dim, fields = self._setup.mesh.dim, self._solver.fields(("velocity", "pressure"))
        state = np.concatenate([fields["velocity"], fields["pressure"][:, None]], 1)
        values = self._grid.gather(state, self._solver.world)

        def write() -> None:
            assert values is not None
            if self._file is None:
                self._file = self._open()
            number = len(self._file["time"])
            rows = {"velocity": np.moveaxis(values[:dim], 0, -1), "pressure": values[dim], "time": self._solver.time}
            for name, value in rows.items():
                self._file.flush()  # the time, which makes the state count, comes after the state
                self._file[name].resize(number + 1, axis=0)
                self._file[name][number] = value
            self._file.flush()

        on_rank_zero(self._solver.world, _reporting(write, self.path))

    def finish(self) -> list[Path]:
        """Draw what the files have, on rank 0; return what was written."""
        return list(on_rank_zero(self._solver.world, _reporting(self._draw, self.path)))

    def _draw(self) -> list[Path]:
        written = []
        for first in self._complete:
            written.append(new_name(self._folder / self.table.file, first))
            motion = read_motion(written[-1])
            if self.table.picture is not None:
                written.append(new_name(self._folder / self.table.picture, first))
                snapshot_figure(written[-1], motion, len(motion.times) - 1)
            if self.table.film is not None:
                written.append(new_name(self._folder / self.table.film, first))
                film(written[-1], motion)
        return written

    def close(self) -> None:
        """Complete the file: each state in it is sound."""
        if self._file is not None:
            self._file.close()
            publish(part_path(self.path), self.path)
            self._file = None
            self._complete.append(self._first_step)


def _cut(path: Path, end: float) -> int:
    """Keep the states of a file of snapshots up to a time `end` (s); return their number, the file stays without any.

    Raises:
        OSError, KeyError: no file of snapshots, or one that was not made completely.
    """
    with h5py.File(path, "r", libver=_LIBVER, locking=False, swmr=True) as file:
        times = file["time"][:]
        # A time that is not stored yet reads as 0.
        count = int(np.argmax([*((times > end) | (times <= 0.0)), True]))
        if count:
            with replacing(path) as part, h5py.File(part, "w", libver=_LIBVER, locking=False) as kept:
                for name, value in file.attrs.items():
                    kept.attrs[name] = value
                for name, rows in file.items():
                    shape = (count, *rows.shape[1:])
                    series = kept.create_dataset(name, shape, rows.dtype, maxshape=rows.maxshape, chunks=rows.chunks)
                    for number in range(count):
                        series[number] = rows[number]
    return count


def _reporting(work: Any, path: Path) -> Any:
    """Return `work` with refusals of the disk as errors that all ranks can raise."""

    def guarded() -> Any:
        try:
            return work()
        except OSError as error:
            raise CaseError(f"{path}: cannot be written: {error.strerror or error}") from None

    return guarded


class Seismograms(Final):
    """What the receivers recorded: HDF5, SAC and a picture."""

    def __init__(self, setup: WaveSetup, solver: WaveSolver, folder: Path) -> None:
        """Write to `folder` at the end; a run that continues another one from a checkpoint has all samples."""
        self._setup, self._solver, self._folder = setup, solver, folder
        assert solver.receivers is not None
        self._receivers = solver.receivers
        self._first = solver.receivers.first * solver.receivers.every
        self._table = setup.case.output.receivers
        self.path = new_name(folder / self._table.file, self._first)
        self._picture = None
        if self._table.picture is not None:
            self._picture = new_name(folder / self._table.picture, self._first)

    @property
    def places(self) -> Sequence[Place]:
        """Return file and picture."""
        found = [Place("output.receivers.file", self.path, "HDF5 file")]
        return found + ([Place("output.receivers.picture", self._picture)] if self._picture is not None else [])

    def finish(self) -> list[Path]:
        """Write all samples, from rank 0."""
        samples, solver = self._solver.samples(), self._solver
        return list(on_rank_zero(solver.world, _reporting(lambda: self._write(samples), self.path)))

    def _write(self, samples: npt.NDArray[np.float64]) -> list[Path]:
        setup, solver, every = self._setup, self._solver, self._receivers.every
        numbers = self._receivers.first + 1 + np.arange(len(samples), dtype=np.float64)
        times: npt.NDArray[np.float64] = solver.dt * every * numbers
        with replacing(self.path) as part, h5py.File(part, "w", locking=False) as file:
            file.attrs["title"] = setup.title
            file["time"], file["position"] = times, np.array(setup.receivers)
            file.attrs["velocities_earlier_by"] = solver.velocity_lead
            file["name"], file["field"] = list(setup.names), list(solver.unknowns)
            file["samples"] = np.moveaxis(samples, 0, 1)  # (receivers, times, fields)
        written = [self.path]
        if len(times) == 0:
            return written
        velocity = [number for number, name in enumerate(solver.unknowns) if name.startswith("v")]
        if self._table.sac:
            written += self._write_sac(samples, float(times[0]), velocity)
        if self._picture is not None:
            names = [solver.unknowns[field] for field in velocity]
            seismogram_figure(self._picture, times, samples[:, :, velocity], setup.names, names)
            written.append(self._picture)
        return written

    def _write_sac(self, samples: npt.NDArray[np.float64], begin: float, velocity: Sequence[int]) -> list[Path]:
        setup, solver = self._setup, self._solver
        folder, written = self.path.with_name(self.path.name + ".sac"), []
        folder.mkdir(exist_ok=True)
        for number, (name, place) in enumerate(zip(setup.names, setup.receivers, strict=True)):
            for field in velocity:
                component = solver.unknowns[field]
                written.append(folder / f"{name}.{component}.sac")
                write_sac(
                    written[-1],
                    samples[:, number, field],
                    step=self._receivers.every * solver.dt,
                    begin=begin - solver.velocity_lead,
                    station=name,
                    component=component,
                    place=place,
                )
        return written


class Peaks(Final):
    """The peak velocities of a side, with a map."""

    def __init__(self, table: PeakOutput, setup: WaveSetup, solver: WaveSolver, folder: Path) -> None:
        """Write to `folder` at the end; peaks are those of the whole run, also of the steps before a checkpoint."""
        self._table, self._setup, self._solver = table, setup, solver
        self.path = folder / table.file
        self._picture = folder / table.picture if table.picture is not None else None

    @property
    def places(self) -> Sequence[Place]:
        """Return file and picture."""
        found = [Place("output.peak.file", self.path, "HDF5 file")]
        return found + ([Place("output.peak.picture", self._picture)] if self._picture is not None else [])

    def finish(self) -> list[Path]:
        """Write them, from rank 0."""
        assert self._solver.peak is not None
        found = self._solver.peak.gather()
        return list(on_rank_zero(self._solver.world, _reporting(lambda: self._write(found), self.path)))

    def _write(self, found: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None) -> list[Path]:
        assert found is not None and self._solver.peak is not None
        (places, peaks), setup = found, self._setup
        with replacing(self.path) as part, h5py.File(part, "w", locking=False) as file:
            file.attrs["title"] = setup.title
            file["position"], file["velocity"], file["horizontal_velocity"] = places, peaks[:, 0], peaks[:, 1]
        if self._picture is None:
            return [self.path]
        along = [axis for axis in range(setup.mesh.dim) if axis != self._solver.peak.face // 2]
        stations = np.array(setup.receivers)[:, along] if setup.receivers else None
        map_figure(self._picture, places[:, along], peaks[:, 0], [AXES[axis] for axis in along], stations)
        return [self.path, self._picture]
