# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a flow run, created from the tables of its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.flow.averages import WindowAverages
from seiche.case.flow.extraction import Extraction
from seiche.case.flow.monitor import FlowMonitor
from seiche.case.flow.picture import PictureData, capture, draw, picture_step
from seiche.case.flow.schema_output import FieldOutput
from seiche.case.flow.schema_shapes import GENERATED_SURFACES
from seiche.case.flow.series import AveragesFile, ExtractionFile, SiteFile, WallFile
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.wall import Wall, make_wall, wall_surface
from seiche.case.flow.where import select
from seiche.case.output import Final, Output, OutputTarget
from seiche.case.schedule import Schedule
from seiche.domain.sharing import on_root, shared_from_root
from seiche.flow.solver import FlowSolver
from seiche.io.cell_files import continued
from seiche.io.formats.stl import write_stl
from seiche.report.style import FIGURE_MODULES


class FlowOutputs:
    """Factory of the outputs of a run in `folder`; nothing is written yet."""

    def __init__(self, setup: FlowSetup, solver: FlowSolver, folder: Path) -> None:
        self._setup, self._solver, self._folder = setup, solver, folder
        self._first_step = solver.step
        self._wall: Wall | None = None
        table = setup.case.output.averages
        self.averages = WindowAverages(table, setup, solver) if table is not None else None

    def wall(self) -> Wall:
        """Return the part of the vessel wall on this rank, which is created on first use."""
        if self._wall is None:
            vessel, world = self._setup.vessel, self._solver.world
            surface = vessel.surface if vessel.surface is not None else wall_surface(vessel.sites)
            self._wall = make_wall(vessel.sites, surface, self._solver.owned, world.rank, world.size)
        return self._wall

    def series(self) -> Iterator[Output]:
        """Yield the time series of the case."""
        output, setup, solver = self._setup.case.output, self._setup, self._solver
        for table in output.fields:
            yield SiteFile(self._target("fields", table.file), table, setup, solver, rows=self._rows(table))
        for surface in output.surface:
            yield WallFile(self._target("surface", surface.file), surface, setup, solver, wall=self.wall)
        for extraction in output.extraction:
            schedule = Schedule(setup.steps_of(extraction.every))
            values = Extraction(extraction, setup, solver, solver.world)
            yield ExtractionFile(values, schedule, self._target("extraction", extraction.file), solver)
        if self.averages is not None and output.averages is not None:
            yield AveragesFile(self._new_name(output.averages.file), self.averages, setup, solver, self.wall)

    def _target(self, kind: str, name: str) -> OutputTarget:
        return OutputTarget(f'output.{kind}["{name}"]', self._new_name(name))

    def _new_name(self, name: str) -> Path:
        # A continued run must not replace the earlier part of the series.
        return continued(self._folder / name, self._first_step)

    def _rows(self, table: FieldOutput) -> npt.NDArray[np.int64] | None:
        """Return the rows of this rank's fields that a series contains, or None for all."""
        if table.where is None:
            return None
        key = f'{self._setup.source}: output.fields["{table.file}"].where'
        where, sites = table.where, self._setup.vessel.sites
        selected = shared_from_root(self._solver.world, lambda: select(where, sites, key))
        return np.flatnonzero(np.isin(self._solver.owned, selected))


class VesselSurface(Final):
    """Surface of a built-in shape as an STL file (metres), written before the first step if requested."""

    def __init__(self, setup: FlowSetup, solver: FlowSolver, folder: Path) -> None:
        shape = setup.case.geometry.shape
        name = shape.stl if isinstance(shape, GENERATED_SURFACES) else None
        self._surface, self._world = setup.vessel.surface, solver.world
        self._path = folder / name if name is not None and self._surface is not None else None

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file."""
        return (OutputTarget("geometry.shape.stl", self._path, "STL file"),) if self._path is not None else ()

    def open(self, first: int, last: int) -> None:
        """Write the file."""
        path, surface = self._path, self._surface
        if path is not None and surface is not None and (first == 0 or not path.exists()):
            on_root(self._world, lambda: write_stl(path, surface))


class Picture(Output):
    """Picture of a run at peak inflow or at its end, with the flow rates of `monitor`."""

    modules = (*FIGURE_MODULES, "seiche.report.figures")

    def __init__(
        self, setup: FlowSetup, solver: FlowSolver, path: Path, monitor: FlowMonitor, wall: Callable[[], Wall]
    ) -> None:
        self._setup, self._solver, self._path, self._monitor, self._wall = setup, solver, path, monitor, wall
        self._step = picture_step(setup, setup.steps)
        self._captured = False
        self._data: PictureData | None = None

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file."""
        return (OutputTarget("output.picture", self._path),)

    def next_after(self, step: int) -> int | None:
        """Return the step to be drawn; None after this step."""
        return self._step if self._step > step else None

    def due(self, step: int) -> bool:
        """Return whether `step` is the step to be drawn."""
        return step == self._step

    def take(self) -> None:
        """Capture the current state."""
        self._data, self._captured = capture(self._setup, self._solver, self._wall), True

    def finish(self) -> Sequence[Path]:
        """Draw the picture on rank 0, with the current state if the step to be drawn was not reached."""
        if not self._captured:
            self.take()
        if self._data is None:
            return ()
        return (self._path,) if draw(self._path, self._setup.vessel.sites, self._data, self._monitor.record) else ()
