# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots: time series of fields in a plane or in the whole domain, with pictures and films, written by rank 0."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.case.compressed import same
from seiche.case.kind import Setup
from seiche.case.labels import Labelled, LabelledParts
from seiche.case.output import Output, OutputTarget, Scheduled
from seiche.case.run_tables import SnapshotTable
from seiche.case.schedule import Schedule
from seiche.domain.sharing import on_root
from seiche.errors import CaseError, FormatError
from seiche.io.arrays import HDF5_ERRORS, hdf5_file, values_of
from seiche.io.cell_files import continued
from seiche.io.files import part_path
from seiche.io.series_file import SeriesFile, complete_series, states_until
from seiche.report.motion import motion_film, read_motion, states_figure
from seiche.solver import SolverBase

T = TypeVar("T")
#: SI units of the stored fields.
_UNITS = {"pressure": "Pa", "velocity": "m/s"}


class SnapshotSource(ABC):
    """The fields that a file of snapshots stores.

    Attributes:
        shapes: shapes of the fields by name; the axes of space are in reverse order, components are last.
        attributes: `axes` (names in space), `lower` and `upper` (positions of the first and last points, m), `medium`.
    """

    shapes: Mapping[str, tuple[int, ...]]
    attributes: Mapping[str, Any]

    @abstractmethod
    def values(self) -> Mapping[str, npt.NDArray[Any]] | None:
        """Return the fields of the current state on rank 0, None elsewhere (collective)."""

    @abstractmethod
    def time(self, step: int) -> float:
        """Return the time (s) of the state after `step` steps."""


class SnapshotFile(Scheduled):
    """A time series of a source: HDF5 with `time` and the fields (times, ...).

    The first `take` creates the file. If the run is killed or the power fails, all states with a stored time remain
    readable. A continued run preserves those up to its checkpoint: in the files of the earlier runs, or if `joined` in
    its own file, which is then the same as that of an uninterrupted run.
    """

    schedule: Schedule

    def __init__(
        self,
        table: SnapshotTable,
        source: SnapshotSource,
        setup: Setup,
        solver: SolverBase,
        folder: Path,
        *,
        joined: bool = False,
    ) -> None:
        self.table, self._setup, self._solver, self._source = table, setup, solver, source
        self._folder, self._first_step, self._joined = folder, solver.step, joined
        self.path = self._named(table.file, solver.step)
        self.schedule = Schedule(setup.steps_of(table.every))
        self._compression = table.compression_of(same(source.shapes))
        self._file: SeriesFile | None = None
        self._is_open, self._capacity = False, 1
        #: First steps of killed runs, and complete files by the first steps of their runs.
        self._killed, self._complete = [] if joined else self._find_killed(), dict[int, Path]()
        #: The file with the states of the run before.
        self._earlier: Path | None = None

    def _named(self, file: str, first: int) -> Path:
        """Return the path of a file of the run that began at the step `first`."""
        return self._folder / file if self._joined else continued(self._folder / file, first)

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the files, pictures and films."""
        key, table = f'output.snapshots["{self.table.file}"]', self.table
        names = {"file": (table.file, "HDF5 file"), "picture": (table.picture, ""), "film": (table.film, "")}
        return [
            OutputTarget(f"{key}.{name}", self._named(file, first), kind)
            for first in (self._first_step, *self._killed)
            for name, (file, kind) in names.items()
            if file is not None
        ]

    def _find_killed(self) -> list[int]:
        """Return the first steps of earlier runs whose files still have temporary names."""
        path = self._folder / self.table.file
        suffix = re.escape(part_path(path).name[len(path.stem) :])
        name = re.compile(rf"{re.escape(path.stem)}(?:\.from-(\d+))?{suffix}")
        steps = {int(match[1] or 0) for file in path.parent.glob("*.part") if (match := name.fullmatch(file.name))}
        return sorted(step for step in steps if step < self._first_step)

    def open(self, first: int, last: int) -> None:
        """Complete the files of killed runs with the states up to the checkpoint, or find those states."""
        self._capacity = max(1, self.schedule.count(0 if self._joined else self._first_step, last))
        if first == self._first_step:
            recover = self._find_earlier if self._joined and first > 0 else self._recover_killed
            on_root(self._solver.world, reporting(recover, self.path))

    def _recover_killed(self) -> None:
        for first in self._killed:
            path = continued(self._folder / self.table.file, first)
            with suppress(FormatError, *HDF5_ERRORS):  # killed before the file was created, or already recovered
                count, path = complete_series(path, self._end, compressed=self._compression is not None)
                if count:
                    self._complete[first] = path

    @property
    def _end(self) -> float:
        """Return the time (s) after the state of the checkpoint and before the next one."""
        return self._source.time(self._first_step) + 0.5 * self._solver.dt

    def _find_earlier(self) -> None:
        """Find the file of the run before: the unfinished one of a killed run, or a complete one."""
        for path in (part_path(self.path), self.path):
            with suppress(FormatError, *HDF5_ERRORS), hdf5_file(path, "no snapshots") as file:
                if states_until(values_of(file, "time"), self._end):
                    self._check_earlier(path, file)
                    self._earlier = path
                    return

    def _check_earlier(self, path: Path, file: Any) -> None:
        expected = self._attributes()
        shapes = {name: tuple(file[name].shape[1:]) for name in self._source.shapes if name in file}
        differs = [name for name, value in expected.items() if not np.array_equal(file.attrs.get(name), value)]
        if differs or shapes != dict(self._source.shapes):
            raise CaseError(
                f'output.snapshots["{self.table.file}"]: {path} has snapshots of another plane, grid or case'
                f" ({', '.join(differs) or 'shape'}), which this run cannot continue; choose another file"
            )

    def _attributes(self) -> dict[str, Any]:
        return {"title": self._setup.title, **self._source.attributes}

    def _open(self) -> SeriesFile:
        if self._file is not None and self._first_step in self._complete:  # the run was stopped and continues
            del self._complete[self._first_step]
            self._file.reopen(self._capacity)
            return self._file
        earlier, self._earlier = self._earlier, None
        shapes, attributes = self._source.shapes, self._attributes()
        options: dict[str, Any] = {"earlier": earlier, "end": self._end, "compression": self._compression}
        return SeriesFile(self.path, shapes, attributes, self._capacity, **options)

    def take(self) -> None:
        """Append the current state (collective)."""
        values = self._source.values()

        def write() -> None:
            assert values is not None
            self._opened().append(self._source.time(self._solver.step), values)

        on_root(self._solver.world, reporting(write, self.path))

    def _opened(self) -> SeriesFile:
        if not self._is_open:
            self._file, self._is_open = self._open(), True
        assert self._file is not None
        return self._file

    def finish(self) -> list[Path]:
        """Draw pictures and films on rank 0; return all files."""
        return list(on_root(self._solver.world, reporting(self._draw, self.path)))

    def _draw(self) -> list[Path]:
        if self._earlier is not None:  # the checkpoint is from the last state
            self._opened()
            self.close()
        written = []
        for first, path in self._complete.items():
            written.append(path)
            motion = read_motion(written[-1])
            if self.table.picture is not None:
                written.append(self._named(self.table.picture, first))
                states_figure(written[-1], motion)
            if self.table.film is not None:
                written.append(self._named(self.table.film, first))
                motion_film(written[-1], motion)
        return written

    def close(self) -> None:
        """Close the file and rename it to its final name."""
        if self._file is not None and self._is_open:
            self._is_open = False  # even if closing fails, on a full disk
            self._file.close()
            self._complete[self._first_step] = self._file.path

    def labelled(self) -> LabelledParts:
        """Return the series of the closed file as arrays with coordinates, on every rank (collective).

        Names begin with that of the file: `film_pressure` has the dimensions `film_time`, `film_y` and `film_x`.
        """
        return on_root(self._solver.world, reporting(self._read, self.path))

    def _read(self) -> LabelledParts:
        if (path := self._complete.get(self._first_step)) is None:
            return {}, {}
        prefix = re.sub(r"\W+", "_", Path(self.table.file).stem)
        attributes = self._source.attributes
        axes = [str(name) for name in attributes["axes"]]
        dims = tuple(f"{prefix}_{name}" for name in ("time", *reversed(axes)))
        arrays, coordinates = {}, {}
        with hdf5_file(path, "no snapshots") as file:
            coordinates[dims[0]] = Labelled(np.asarray(values_of(file, "time")), dims[:1], "s")
            for name, shape in self._source.shapes.items():
                names = (*dims, "component") if len(shape) == len(dims) else dims
                arrays[f"{prefix}_{name}"] = Labelled(values_of(file, name), names, _UNITS[name])
        counts = dict(zip(reversed(axes), next(iter(self._source.shapes.values())), strict=False))
        for name, lower, upper in zip(axes, attributes["lower"], attributes["upper"], strict=True):
            dim = f"{prefix}_{name}"
            coordinates[dim] = Labelled(np.linspace(lower, upper, counts[name]), (dim,), "m")
        return arrays, coordinates


def labelled_snapshots(
    outputs: Sequence[Output], arrays: dict[str, Labelled], coordinates: dict[str, Labelled]
) -> LabelledParts:
    """Return arrays and coordinates with those of the snapshots among `outputs` (collective)."""
    for output in outputs:
        if isinstance(output, SnapshotFile):
            series, positions = output.labelled()
            arrays, coordinates = arrays | series, coordinates | positions
    return arrays, coordinates


def reporting(work: Callable[[], T], path: Path) -> Callable[[], T]:
    """Return a function that calls `work` and converts disk errors to CaseError, which all ranks can raise."""

    def guarded() -> T:
        try:
            return work()
        except OSError as error:
            raise CaseError(f"{path}: cannot be written: {error.strerror or error}") from None

    return guarded
