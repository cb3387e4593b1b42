# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves behind: time series at the sites and on the wall, checkpoints, and a record of the flow rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.averages import FIELDS, WindowAverages
from seiche.case.extraction import Extraction
from seiche.case.limits import refuse_too_many_states
from seiche.case.openings import steps_of
from seiche.case.picture import Moment, capture, draw, picture_step
from seiche.case.restart import save
from seiche.case.schedule import Schedule
from seiche.case.schema import FieldOutput
from seiche.case.schema_geometry import Bifurcation
from seiche.case.setup import Setup
from seiche.case.values import components, si_fields, unit_names
from seiche.case.wall import Wall, make_wall, wall_surface
from seiche.case.where import select
from seiche.errors import CaseError, UnstableError

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.io.fields import FieldSeries

#: Samples of the flow rates that a run records when the case does not say.
RECORDS = 200
#: Beyond the speed of sound a run is on its way to infinity: no checkpoint of it is worth keeping.
MACH_BROKEN = 1.0


@dataclass(eq=False)
class _Series:
    """One time series: its file is made when its first state is due."""

    path: Path
    schedule: Schedule
    fields: Sequence[str]
    on_wall: bool
    rows: npt.NDArray[np.int64] | None = None  # of the fields of this rank; None: all
    writer: FieldSeries | None = None


@dataclass
class Record:
    """Volume flow (m^3/s, positive into the fluid) through every iolet at `times` (s), and the mass of fluid (kg)."""

    times: list[float] = field(default_factory=list)
    flows: list[npt.NDArray[np.float64]] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    largest_mach: float = 0.0


class Outputs:
    """Writes what is due at a step; every method is collective over the ranks of `world`."""

    def __init__(self, setup: Setup, solver: Solver, world: World, folder: Path) -> None:
        """Plan the outputs of `setup` into `folder`, which is made; nothing else is written yet.

        Raises CaseError when the folder cannot be made or a file would get more states than it can hold.
        """
        self.setup, self.solver, self.world, self.folder = setup, solver, world, folder
        self.first_step = solver.time_step
        refuse_too_many_states(setup, self.first_step)
        self.record = Record()
        self.last_checkpoint: int | None = None
        self._wall: Wall | None = None
        self._moment: Moment | None = None
        self._captured = False
        self._picture_step = picture_step(setup, setup.steps) if setup.case.output.picture else None
        if world.rank == 0:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CaseError(f"{setup.source}: output.folder: cannot make {folder}: {error.strerror}") from None
            self._write_surface()
        world.barrier()
        output, units = setup.case.output, setup.units
        self._series = [
            _Series(self._new_name(t.file), Schedule(steps_of(t.every, units)), t.fields, False, self._rows(t))
            for t in output.fields
        ]
        self._extractions = [
            Extraction(table, setup, solver, world, self._new_name(table.file)) for table in output.extraction
        ]
        self._series += [
            _Series(self._new_name(t.file), Schedule(steps_of(t.every, units)), t.fields, True) for t in output.surface
        ]
        self.averages = WindowAverages(output.averages, setup, solver) if output.averages is not None else None
        self._averages_writer: FieldSeries | None = None
        time = setup.case.time
        self._steady = Schedule(steps_of(time.steady_interval, units)) if time.steady is not None else None
        self.settled: str | None = None
        every = output.checkpoint.every
        self._checkpoints = Schedule(steps_of(every, units)) if every is not None else None
        self._monitor = Schedule(setup.case.run.monitor_every)
        interval = setup.steps / RECORDS if output.record_every is None else steps_of(output.record_every, units)
        self._records = Schedule(max(1.0, interval))

    @property
    def checkpoint_path(self) -> Path:
        """Return the name of the checkpoint file."""
        return self.folder / self.setup.case.output.checkpoint.file

    def next_event(self, step: int) -> int:
        """Return the first step after `step` at which something is due."""
        schedules = [item.schedule for item in self._series] + [self._monitor, self._records]
        schedules += [item.schedule for item in self._extractions]
        schedules += [self._checkpoints] if self._checkpoints else []
        events = [schedule.next_after(step) for schedule in schedules]
        schedules_of_others = [s.next_after(step) for s in (self.averages, self._steady) if s is not None]
        events += schedules_of_others
        if self._picture_step is not None and self._picture_step > step:
            events.append(self._picture_step)
        return min(events)

    def write_due(self) -> None:
        """Check, record and write what is due at the solver's step; UnstableError before anything false is written."""
        step = self.solver.time_step
        series = [item for item in self._series if item.schedule.due(step)]
        extractions = [item for item in self._extractions if item.schedule.due(step)]
        saving = self._checkpoints is not None and self._checkpoints.due(step)
        drawing = step == self._picture_step
        if self._monitor.due(step) or series or extractions or saving or drawing:
            self.check()
        if self._records.due(step):
            self._sample()
        for item in series:
            self._write(item)
        for extraction in extractions:
            extraction.write()
        if saving:
            self.save()
        if self.averages is not None and self.averages.look(step):
            self._write_averages(self.averages)
        if self._steady is not None and self._steady.due(step):
            self._compare()
        if drawing:
            self._moment, self._captured = capture(self), True

    def check(self) -> None:
        """Raise UnstableError if a field is no longer finite or nothing physical; note mass and Mach number."""
        monitor = self.solver.monitor()
        if monitor.mach > MACH_BROKEN:
            raise UnstableError(f"Mach number {monitor.mach:.3g} {self._fastest_place()}, step {monitor.step}")
        self.record.largest_mach = max(self.record.largest_mach, float(monitor.mach))
        self.record.masses.append(self.setup.units.to_si("mass", float(monitor.mass)))

    def save(self) -> None:
        """Write the checkpoint."""
        save(self.checkpoint_path, self.setup, self.solver, self.world, self.averages)
        self.last_checkpoint = self.solver.time_step

    def wall(self) -> Wall:
        """Return this rank's share of the vessel wall."""
        if self._wall is None:
            vessel = self.setup.vessel
            surface = vessel.surface if vessel.surface is not None else wall_surface(vessel.sites)
            self._wall = make_wall(vessel.sites, surface, self.solver.owned, self.world.rank, self.world.size)
        return self._wall

    def finish(self) -> None:
        """Close every file and draw the picture, of the present state if its moment was not reached."""
        self.close()
        name, sites = self.setup.case.output.picture, self.setup.vessel.sites
        if name is None:
            return
        if not self._captured:
            self._moment = capture(self)
        if self._moment is not None:
            draw(self.folder / name, sites, self._moment, self.record)

    def close(self) -> None:
        """Close every file."""
        for item in self._series:
            if item.writer is not None:
                item.writer.close()
        for extraction in self._extractions:
            extraction.close()
        if self._averages_writer is not None:
            self._averages_writer.close()

    def files(self) -> list[Path]:
        """Return the names of the time series that hold at least one state."""
        paths = [item.path for item in self._series if item.writer is not None]
        paths += [item.path for item in self._extractions if item.writer is not None]
        return paths + ([self._averages_writer.path] if self._averages_writer is not None else [])

    def _rows(self, table: FieldOutput) -> npt.NDArray[np.int64] | None:
        """Return which rows of this rank's fields a series holds, None for all of them."""
        if table.where is None:
            return None
        key = f'{self.setup.source}: output.fields["{table.file}"].where'
        return np.flatnonzero(np.isin(self.solver.owned, select(table.where, self.setup.vessel.sites, key)))

    def _compare(self) -> None:
        """Note when the velocity no longer changes."""
        wanted, interval = self.setup.case.time.steady or 0.0, self._steady.interval if self._steady else 0.0
        change = self.solver.velocity_change()
        if change < wanted:
            self.settled = f"a steady flow (velocity changed by {change:.2g} of itself in {interval:.0f} steps)"

    def _fastest_place(self) -> str:
        """Say where the fluid is fastest (collective)."""
        speed = np.linalg.norm(self.solver.fields(("velocity",))["velocity"], axis=1)
        row = int(speed.argmax())
        place = self.setup.vessel.sites.coords[self.solver.owned[row]].tolist()
        _, rank, site = max(self.world.allgather((float(speed[row]), self.world.rank, place)))
        return f"at site {site}, rank {rank}"

    def _write_surface(self) -> None:
        """Write the surface of a built-in shape whose table names an STL file; its coordinates are metres."""
        shape, surface = self.setup.case.geometry.shape, self.setup.vessel.surface
        if isinstance(shape, Bifurcation) and shape.stl is not None and surface is not None:
            from seiche.io.formats.stl import write_stl

            write_stl(self.folder / shape.stl, surface)

    def _new_name(self, name: str) -> Path:
        # A continued run must not replace the part of the series that came before it.
        path = self.folder / name
        return path.with_stem(f"{path.stem}.from-{self.first_step}") if self.first_step else path

    def _sample(self) -> None:
        flow = np.asarray(self.solver.iolet_flow(), np.float64)
        self.record.times.append(self.solver.time_step * self.setup.units.step)
        self.record.flows.append(self.setup.units.to_si("flow_rate", flow))

    def _write(self, item: _Series) -> None:
        values: dict[str, Any] = si_fields(self.solver, self.setup.units, item.fields)
        if item.on_wall:
            wall = self.wall()
            values = {name: wall.sample(self.world, array) for name, array in values.items()}
        elif item.rows is not None:
            values = {name: array[item.rows] for name, array in values.items()}
        if item.writer is None:
            item.writer = self._open(item)
        item.writer.write(self.solver.time_step * self.setup.units.step, values)

    def _write_averages(self, averages: WindowAverages) -> None:
        wall = self.wall()
        values = {name: wall.sample(self.world, array) for name, array in averages.fields().items()}
        if self._averages_writer is None:
            from seiche.io.fields import FieldSeries, Triangles

            table = self.setup.case.output.averages
            assert table is not None
            self._averages_writer = FieldSeries(
                self._new_name(table.file),
                self.world,
                Triangles(wall.vertices, wall.faces),
                {name: count for name, (count, _) in FIELDS.items()},
                max(1, averages.windows(self.solver.time_step - 1, self.setup.steps)),
                units={name: unit for name, (_, unit) in FIELDS.items()},
            )
        self._averages_writer.write(self.solver.time_step * self.setup.units.step, values)

    def _open(self, item: _Series) -> FieldSeries:
        from seiche.io.fields import FieldSeries, Triangles, VoxelCells

        sites = self.setup.vessel.sites
        cells: Triangles | VoxelCells
        if item.on_wall:
            cells = Triangles(self.wall().vertices, self.wall().faces)
        else:
            owned = self.solver.owned if item.rows is None else self.solver.owned[item.rows]
            cells = VoxelCells(sites.shape, sites.coords, sites.spacing, sites.origin, owned)
        capacity = max(1, item.schedule.count(self.solver.time_step - 1, self.setup.steps))
        return FieldSeries(
            item.path, self.world, cells, components(item.fields), capacity, units=unit_names(item.fields)
        )
