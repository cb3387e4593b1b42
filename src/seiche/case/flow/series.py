# SPDX-License-Identifier: BSD-3-Clause
"""Time series of a run: states are taken at scheduled steps and written while the solver continues."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.compressed import same
from seiche.case.flow.averages import FIELDS, WindowAverages
from seiche.case.flow.extraction import Extraction
from seiche.case.flow.schema_output import FieldOutput, SurfaceOutput
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.values import components, lattice_names, to_si, unit_names, warm_up
from seiche.case.flow.wall import Wall
from seiche.case.output import Output, OutputTarget, Scheduled
from seiche.case.schedule import Schedule
from seiche.errors import FormatError

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow.snapshot import Snapshot, Snapshots
    from seiche.flow.solver import FlowSolver
    from seiche.io.background import Job
    from seiche.io.cell_files import SurfaceFiles
    from seiche.io.cells import CellGeometry
    from seiche.io.fields import FieldSeries
    from seiche.io.formats.extraction_series import ExtractionSeries


class Series(Output):
    """File with a state for each scheduled step; it is created for the number of states in the rest of the run."""

    writes = True
    key: str
    path: Path
    writer: FieldSeries | ExtractionSeries | SurfaceFiles | None = None
    _last = 0
    _closed = False
    _solver: FlowSolver

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file."""
        return (OutputTarget(self.key, self.path, series=True),)

    @abstractmethod
    def count(self, first: int, last: int) -> int:
        """Return the number of states scheduled after step `first`, up to `last`."""

    @abstractmethod
    def make(self, capacity: int) -> None:
        """Create the file for `capacity` states."""

    def open(self, first: int, last: int) -> None:
        """Create the file if a state is scheduled up to step `last`, or reopen it after a stop."""
        self._last = last
        if self._closed and self.writer is not None:
            if self.states:
                self.writer.reopen()
            else:  # an empty file was removed
                self.writer = None
        self._closed = False
        count = self.count(first, last)
        if self.writer is None and count:
            self.make(count)

    def take(self) -> Job:
        """Return the job that writes the current state; the job has copies of all data that may change."""
        if self.writer is None:  # more steps than the case has
            self.make(max(1, self.count(self._solver.step - 1, self._last)))
        return self._take()

    @abstractmethod
    def _take(self) -> Job:
        """Return the job of `take`; the file must exist."""

    @property
    def states(self) -> int:
        """Return the number of complete states."""
        return int(getattr(self.writer, "steps", 0))

    def finish(self) -> Sequence[Path]:
        """Return the file if it contains a state, compressed if the case requests that."""
        if self.writer is None or not self.states:
            return ()
        self._compress()
        return (self.writer.path,)

    def _compress(self) -> None:
        """Compress the file if the case requests that (collective)."""

    def close(self) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()
        self._closed = True


class ScheduledSeries(Scheduled, Series):
    """A file with a schedule."""

    schedule: Schedule

    def count(self, first: int, last: int) -> int:
        """Return the number of steps of the schedule."""
        return self.schedule.count(first, last)


def compress(series: FieldSeries, setup: FlowSetup, solver: FlowSolver) -> None:
    """Compress a file if its case requests that; if that fails, it remains as it is, and a warning is given."""
    try:
        series.compress(solver.world.threads(setup.case.run.threads))
    except (OSError, FormatError) as error:
        if solver.world.rank == 0:
            warnings.warn(f"{series.path}: remains uncompressed: {error}", stacklevel=2)


class FieldFile(ScheduledSeries):
    """A VTKHDF file of fields at sites or on the wall."""

    writer: FieldSeries | None = None

    def __init__(
        self,
        target: OutputTarget,
        table: FieldOutput | SurfaceOutput,
        setup: FlowSetup,
        solver: FlowSolver,
    ) -> None:
        self.key, self.path, self._names = target.key, target.path, tuple(table.fields)
        self.schedule = Schedule(setup.steps_of(table.every))
        self._compression = table.compression_of(same(table.fields))
        self._setup, self._solver = setup, solver
        self._snapshots: Snapshots | None = None

    def _compress(self) -> None:
        if self.writer is not None:
            compress(self.writer, self._setup, self._solver)

    def _open(self, world: World, cells: CellGeometry, capacity: int, rows: npt.NDArray[np.int64] | None) -> None:
        from seiche.io.fields import FieldSeries

        sizes, units = components(self._names), unit_names(self._names)
        options: dict[str, Any] = {"units": units, "compression": self._compression}
        self.writer = FieldSeries(self.path, world, cells, sizes, capacity, **options)
        self._snapshots = self._solver.measures.snapshots(lattice_names(self._names), rows)
        warm_up(self._solver, self._snapshots, self._setup.case.output.in_flight)

    def _values(self) -> Callable[[], dict[str, npt.NDArray[Any]]]:
        """Take a snapshot; the returned function returns the fields in SI units, in any thread."""
        assert self._snapshots is not None
        snapshot = self._solver.measures.snapshot(self._snapshots)
        return lambda: self._in_si(snapshot)

    def _in_si(self, snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
        return to_si(snapshot.fields(), self._setup.units, self._names)

    def _job(self, values: Callable[[], dict[str, npt.NDArray[Any]]]) -> Job:
        assert self.writer is not None
        return self.writer.step(self._solver.step * self._setup.dt, values)


class SiteFile(FieldFile):
    """Fields at all sites, or at the `rows` of the fields of this rank."""

    def __init__(self, *arguments: Any, rows: npt.NDArray[np.int64] | None) -> None:
        super().__init__(*arguments)
        self._rows = rows

    def make(self, capacity: int) -> None:
        """Create the file."""
        from seiche.io.cells import VoxelCells

        sites, owned = self._setup.vessel.sites, self._solver.owned
        selected = owned if self._rows is None else owned[self._rows]
        cells = VoxelCells(sites.shape, sites.coords, sites.spacing, sites.origin, selected)
        self._open(self._solver.world, cells, capacity, self._rows)

    def _in_si(self, snapshot: Snapshot) -> dict[str, npt.NDArray[Any]]:
        """Return the fields in the type of the file; they are converted in double precision, a few rows at a time."""
        assert self.writer is not None and self._snapshots is not None
        count, dtype = self._snapshots.count, self.writer.dtype
        values = {
            name: np.empty(count if size == 1 else (count, size), dtype)
            for name, size in components(self._names).items()
        }
        for rows, lattice in snapshot.pieces():
            for name, chunk in to_si(lattice, self._setup.units, self._names).items():
                values[name][rows] = chunk
        return values

    def _take(self) -> Job:
        return self._job(self._values())


class WallFile(FieldFile):
    """Fields on the triangles of the wall; `wall` creates the wall when it is needed."""

    def __init__(self, *arguments: Any, wall: Callable[[], Wall]) -> None:
        super().__init__(*arguments)
        self._wall = wall

    def make(self, capacity: int) -> None:
        """Create the file."""
        from seiche.io.cells import Triangles

        wall = self._wall()
        self._open(self._solver.world, Triangles(wall.vertices, wall.faces), capacity, wall.field_rows)

    def _take(self) -> Job:
        """Copy the values at wall sites to the host and to the ranks that need them; the job computes the averages."""
        wall, world = self._wall(), self._solver.world
        shared = {name: wall.share(world, values) for name, values in self._values()().items()}
        return self._job(lambda: {name: wall.average(values) for name, values in shared.items()})


class AveragesFile(Series):
    """Means over time windows on the wall."""

    writer: FieldSeries | None = None
    key = "output.averages.file"

    def __init__(
        self, path: Path, averages: WindowAverages, setup: FlowSetup, solver: FlowSolver, wall: Callable[[], Wall]
    ) -> None:
        self.path, self._averages, self._setup, self._solver, self._wall = path, averages, setup, solver, wall

    def _compress(self) -> None:
        if self.writer is not None:
            compress(self.writer, self._setup, self._solver)

    def next_after(self, step: int) -> int:
        """Return the next sample or end of a window."""
        return self._averages.next_after(step)

    def due(self, step: int) -> bool:
        """Take a sample if one is scheduled; return whether a window ends."""
        return self._averages.sample(step)

    def count(self, first: int, last: int) -> int:
        """Return the number of windows that end."""
        return self._averages.windows(first, last)

    def make(self, capacity: int) -> None:
        """Create the file."""
        from seiche.io.cells import Triangles
        from seiche.io.fields import FieldSeries

        wall, sizes = self._wall(), {name: count for name, (count, _) in FIELDS.items()}
        units = {name: unit for name, (_, unit) in FIELDS.items()}
        cells = Triangles(wall.vertices, wall.faces)
        options: dict[str, Any] = {"units": units, "compression": self._averages.table.compression_of(same(FIELDS))}
        self.writer = FieldSeries(self.path, self._solver.world, cells, sizes, capacity, **options)

    def _take(self) -> Job:
        """Compute the means and begin the next window."""
        wall, world, writer = self._wall(), self._solver.world, self.writer
        assert writer is not None
        fields = self._averages.fields()
        shared = {name: wall.share(world, values[wall.field_rows]) for name, values in fields.items()}
        time = self._solver.step * self._setup.dt
        return writer.step(time, lambda: {name: wall.average(values) for name, values in shared.items()})


class ExtractionFile(ScheduledSeries):
    """A HemeLB extraction file."""

    writer: ExtractionSeries | None = None

    def __init__(self, extraction: Extraction, schedule: Schedule, target: OutputTarget, solver: FlowSolver) -> None:
        self._extraction, self.schedule, self._solver = extraction, schedule, solver
        self.key, self.path = target.key, target.path

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file and its offset file."""
        return (OutputTarget(self.key, self.path), OutputTarget(self.key, self.path.with_suffix(".off")))

    def make(self, capacity: int) -> None:
        """Create the files, which can contain any number of records."""
        self.writer = self._extraction.open(self.path)
        self._extraction.warm_up()

    def _take(self) -> Job:
        assert self.writer is not None
        return self.writer.record_job(self._extraction.step, self._extraction.take())
