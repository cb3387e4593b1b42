# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a wave run, written by rank 0: snapshots in planes, seismograms, peak velocities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.output import Final, OutputTarget
from seiche.case.snapshots import SnapshotSource, reporting
from seiche.case.waves.schema import PeakOutput, SnapshotOutput
from seiche.case.waves.setup import AXES, WaveSetup
from seiche.domain.sharing import on_root
from seiche.errors import CaseError
from seiche.io.cell_files import continued
from seiche.io.files import replacing
from seiche.io.formats.sac import write_sac
from seiche.io.mark import new_hdf5
from seiche.report.section_figure import SectionStyle, distances_along_line, section_figure, section_of
from seiche.report.waves_figures import map_figure, seismogram_figure
from seiche.waves.planes import PlaneGrid
from seiche.waves.solver import WaveSolver


class WavePlane(SnapshotSource):
    """The velocity and the pressure in a plane, (rows, columns, dim) and (rows, columns)."""

    def __init__(self, table: SnapshotOutput, setup: WaveSetup, solver: WaveSolver) -> None:
        normal, dim = AXES.index(table.normal), setup.mesh.dim
        self._solver, self._dim = solver, dim
        self._grid = PlaneGrid(setup.mesh, setup.case.mesh.nodes, table.points, normal, table.at, box=setup.box)
        grid = self._grid
        lower, upper = grid.points[[0, -1]][:, list(grid.axes)]
        self.shapes = {"velocity": (*grid.shape, dim), "pressure": tuple(grid.shape)}
        axes = [AXES[axis] for axis in grid.axes]
        self.attributes = {"axes": axes, "medium": solver.medium, "lower": lower, "upper": upper}

    def values(self) -> dict[str, npt.NDArray[np.float32]] | None:
        """Return both fields on rank 0 (collective)."""
        fields = self._solver.fields(("velocity", "pressure"))
        state = np.concatenate([fields["velocity"], fields["pressure"][:, None]], 1)
        values = self._grid.gather(state, self._solver.world)
        if values is None:
            return None
        return {"velocity": np.moveaxis(values[: self._dim], 0, -1), "pressure": values[self._dim]}

    def time(self, step: int) -> float:
        """Return the time of the state after `step` steps."""
        return step * self._solver.dt


class Seismograms(Final):
    """Seismograms of the receivers as HDF5, SAC and a picture, including samples before a checkpoint."""

    def __init__(self, setup: WaveSetup, solver: WaveSolver, folder: Path) -> None:
        self._setup, self._solver, self._folder = setup, solver, folder
        assert solver.receivers is not None
        self._receivers = solver.receivers
        self._first = solver.receivers.first * solver.receivers.every
        self._table = setup.case.output.receivers
        self.path = continued(folder / self._table.file, self._first)
        names = (self._table.picture, self._table.section)
        self._picture, self._section = (continued(folder / name, self._first) if name else None for name in names)
        self._positions = np.array(setup.receivers, np.float64)
        if self._section is not None and distances_along_line(self._positions) is None:
            raise CaseError("output.receivers.section: the receivers are not on a line, or two are at one position")

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file, those of SAC and the picture."""
        files = [OutputTarget("output.receivers.file", self.path, "HDF5 file")]
        if self._table.sac:
            names = [self._sac_path(name, number) for name in self._setup.names for number in self._velocities()]
            files += [OutputTarget("output.receivers.sac", path) for path in names]
        pictures = {"picture": self._picture, "section": self._section}
        return files + [OutputTarget(f"output.receivers.{key}", path) for key, path in pictures.items() if path]

    def _velocities(self) -> list[int]:
        """Return the numbers of the unknowns that are components of the velocity."""
        return [number for number, name in enumerate(self._solver.unknowns) if name.startswith("v")]

    def _sac_path(self, station: str, field: int) -> Path:
        return self.path.with_name(self.path.name + ".sac") / f"{station}.{self._solver.unknowns[field]}.sac"

    def finish(self) -> list[Path]:
        """Write all samples on rank 0."""
        samples, solver = self._solver.samples(), self._solver
        return list(on_root(solver.world, reporting(lambda: self._write(samples), self.path)))

    def _write(self, samples: npt.NDArray[np.float64]) -> list[Path]:
        setup, solver, every = self._setup, self._solver, self._receivers.every
        sample_indices = self._receivers.first + 1 + np.arange(len(samples), dtype=np.float64)
        times: npt.NDArray[np.float64] = solver.dt * every * sample_indices
        with replacing(self.path) as temporary, new_hdf5(temporary) as file:
            file.attrs["title"] = setup.title
            file["time"], file["position"] = times, np.array(setup.receivers)
            file.attrs["velocities_earlier_by"] = solver.velocity_time_offset
            file["name"], file["field"] = list(setup.names), list(solver.unknowns)
            file["samples"] = np.moveaxis(samples, 0, 1)  # (receivers, times, fields)
        written = [self.path]
        if len(times) == 0:
            return written
        velocity = self._velocities()
        if self._table.sac:
            written += self._write_sac(samples, float(times[0]), velocity)
        if self._picture is not None:
            names = [solver.unknowns[field] for field in velocity]
            seismogram_figure(self._picture, times, samples[:, :, velocity], setup.names, names)
            written.append(self._picture)
        last = velocity[-1] if velocity else 0
        unit = "m/s" if velocity else "Pa"
        section = section_of(self._positions, times, samples[:, :, last].T, (solver.unknowns[last], unit))
        if self._section is not None and section is not None:
            section_figure(self._section, section, SectionStyle())
            written.append(self._section)
        return written

    def _write_sac(self, samples: npt.NDArray[np.float64], begin: float, velocity: Sequence[int]) -> list[Path]:
        setup, solver = self._setup, self._solver
        written = []
        for number, (name, position) in enumerate(zip(setup.names, setup.receivers, strict=True)):
            for field in velocity:
                written.append(self._sac_path(name, field))
                written[-1].parent.mkdir(exist_ok=True)
                write_sac(
                    written[-1],
                    samples[:, number, field],
                    step=self._receivers.every * solver.dt,
                    begin=begin - solver.velocity_time_offset,
                    station=name,
                    component=solver.unknowns[field],
                    position=position,
                )
        return written


class Peaks(Final):
    """Peak velocities of a side during the whole run, including steps before a checkpoint, with a map."""

    def __init__(self, table: PeakOutput, setup: WaveSetup, solver: WaveSolver, folder: Path) -> None:
        self._table, self._setup, self._solver = table, setup, solver
        self.path = folder / table.file
        self._picture = folder / table.picture if table.picture is not None else None

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file and the picture."""
        files = [OutputTarget("output.peak.file", self.path, "HDF5 file")]
        return files + ([OutputTarget("output.peak.picture", self._picture)] if self._picture is not None else [])

    def finish(self) -> list[Path]:
        """Write the peak velocities on rank 0."""
        assert self._solver.peak is not None
        gathered = self._solver.peak.gather()
        return list(on_root(self._solver.world, reporting(lambda: self._write(gathered), self.path)))

    def _write(self, gathered: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None) -> list[Path]:
        assert gathered is not None and self._solver.peak is not None
        (positions, peaks), setup = gathered, self._setup
        tangential_axes = [axis for axis in range(setup.mesh.dim) if axis != self._solver.peak.face // 2]
        within = setup.within_box(positions[:, tangential_axes], tangential_axes)
        positions, peaks = positions[within], peaks[within]
        with replacing(self.path) as temporary, new_hdf5(temporary) as file:
            file.attrs["title"] = setup.title
            file["position"], file["velocity"], file["horizontal_velocity"] = positions, peaks[:, 0], peaks[:, 1]
        if self._picture is None:
            return [self.path]
        stations = np.array(setup.receivers)[:, tangential_axes] if setup.receivers else None
        map_figure(
            self._picture,
            positions[:, tangential_axes],
            peaks[:, 0],
            [AXES[axis] for axis in tangential_axes],
            stations,
        )
        return [self.path, self._picture]
