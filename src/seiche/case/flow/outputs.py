# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves behind: time series at the sites and on the wall, checkpoints, and a record of the flow rates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.case.agreement import on_rank_zero
from seiche.case.flow.averages import WindowAverages
from seiche.case.flow.extraction import Extraction
from seiche.case.flow.limits import refuse_too_many_states
from seiche.case.flow.openings import steps_of
from seiche.case.flow.picture import Moment, capture, draw, picture_step
from seiche.case.flow.restart import checkpoint_of
from seiche.case.flow.schema import FieldOutput
from seiche.case.flow.schema_geometry import Bifurcation
from seiche.case.flow.series import AveragesFile, ExtractionFile, Series, SiteFile, WallFile
from seiche.case.flow.setup import Setup
from seiche.case.flow.wall import Wall, make_wall, wall_surface
from seiche.case.flow.where import select
from seiche.case.flow.written import overwritten, refuse_strangers, written
from seiche.case.schedule import Schedule
from seiche.domain.sharing import shared_by_rank_zero
from seiche.errors import CaseError, UnstableError
from seiche.io.background import BackgroundWriter
from seiche.io.cell_files import continued

if TYPE_CHECKING:
    from seiche.case.blood.run import BloodRun
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.flow.watch import Watch
    from seiche.io.background import Job

#: Samples of the flow rates that a run records when the case does not say.
RECORDS = 200
#: Beyond the speed of sound a run is on its way to infinity: no checkpoint of it is worth keeping.
MACH_BROKEN = 1.0


@dataclass
class Record:
    """Volume flow (m^3/s, positive into the fluid) through every iolet at `times` (s), and the mass of fluid (kg)."""

    times: list[float] = field(default_factory=list)
    flows: list[npt.NDArray[np.float64]] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    largest_mach: float = 0.0


@dataclass(frozen=True)
class Look:
    """A look at a state under way, and what it is for: to check that state, to record the flow rates."""

    watch: Watch
    checking: bool
    recording: bool


class Outputs:
    """Takes and writes what is due at a step; every method but `close` is collective over the ranks of `world`."""

    def __init__(self, setup: Setup, solver: Solver, world: World, folder: Path, blood: BloodRun | None = None) -> None:
        """Plan the outputs of `setup` into `folder`, which is made; nothing else is written yet.

        `blood` are the cells in the flow: they are looked after whenever something is due.

        Raises CaseError when the folder cannot be made, a file would get more states than it can hold, or one would
        replace a file of another kind.
        """
        self.setup, self.solver, self.world, self.folder, self.blood = setup, solver, world, folder, blood
        self.first_step = solver.step
        refuse_too_many_states(setup, self.first_step)
        for message in overwritten(setup, folder):
            raise CaseError(f"{setup.source}: {message}")
        on_rank_zero(world, lambda: refuse_strangers(setup.case, folder))
        self.record = Record()
        self.last_checkpoint: int | None = None
        self._wall: Wall | None = None
        self._moment: Moment | None = None
        self._captured = False
        drawn = setup.case.output.picture and blood is None
        self._picture_step = picture_step(setup, setup.steps) if drawn else None
        if world.rank == 0:
            try:
                made = folder
                for made in (folder, *((folder / name).parent for _, name in written(setup.case))):
                    made.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CaseError(f"{setup.source}: output.folder: cannot make {made}: {error.strerror}") from None
            self._write_surface()
        world.barrier()
        output, units = setup.case.output, setup.units
        self.averages = WindowAverages(output.averages, setup, solver) if output.averages is not None else None
        self.writer = BackgroundWriter(world, output.in_flight)
        #: Seconds of the main thread beside the steps, by what it did.
        self.seconds = {"monitor": 0.0, "snapshots": 0.0}
        if blood is not None and blood.openings is not None:
            self.seconds |= {"reservoirs": 0.0, "openings": 0.0}
        self._series = list(self._planned())
        self._saving = False
        #: What was taken at the last event, and waits for the look at that state to say that it is sound.
        self._looked: Look | None = None
        self._checked: int | None = None
        self._held: list[Job] = []
        table = setup.case.time
        self._steady = Schedule(steps_of(table.steady_interval, units)) if table.steady is not None else None
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

    def _planned(self) -> Iterator[Series]:
        """Yield the time series of the case."""
        output, setup, solver = self.setup.case.output, self.setup, self.solver
        for table in output.fields:
            path, schedule = self._new_name(table.file), Schedule(steps_of(table.every, setup.units))
            yield SiteFile(path, schedule, table.fields, setup, solver, rows=self._rows(table))
        for surface in output.surface:
            path, schedule = self._new_name(surface.file), Schedule(steps_of(surface.every, setup.units))
            yield WallFile(path, schedule, surface.fields, setup, solver, wall=self.wall)
        for extraction in output.extraction:
            schedule = Schedule(steps_of(extraction.every, setup.units))
            chosen = Extraction(extraction, setup, solver, self.world)
            yield ExtractionFile(chosen, schedule, self._new_name(extraction.file))
        if self.blood is not None:
            from seiche.case.blood.series import CellsFile

            for cells in output.cells:
                schedule = Schedule(steps_of(cells.every, setup.units))
                yield CellsFile(self.folder / cells.file, schedule, self.blood, setup, self.first_step)
        if self.averages is not None and output.averages is not None:
            yield AveragesFile(self._new_name(output.averages.file), self.averages, setup, solver, self.wall)

    def begin(self) -> None:
        """Make the files that the rest of the case needs: that takes time which no step should wait for."""
        step, last = self.solver.step, self.setup.steps
        for series in self._series:
            count = series.count(step, last)
            if series.writer is None and count:
                series.open(count)

    def next_event(self, step: int) -> int:
        """Return the first step after `step` at which something is due."""
        schedules = [self._monitor, self._records, self._checkpoints, self._steady]
        events = [schedule.next_after(step) for schedule in schedules if schedule is not None]
        events += [series.next_after(step) for series in self._series]
        if self.blood is not None and (look := self.blood.next_after(step)) is not None:
            events.append(look)
        if self._picture_step is not None and self._picture_step > step:
            events.append(self._picture_step)
        return min(events)

    def take_due(self) -> None:
        """Take what is due at the solver's step; on a device, only cells wait for it. `settle` does the rest."""
        step = self.solver.step
        if self.blood is not None and self.blood.due(step):
            self.solver.finish()
            with self._counted("reservoirs"):
                self.blood.feed()
            with self._counted("openings"):
                self.blood.look()
        due = [series for series in self._series if series.due(step)]
        saving = self._checkpoints is not None and self._checkpoints.due(step)
        drawing = step == self._picture_step
        checking = self._monitor.due(step) or bool(due) or saving or drawing
        recording = self._records.due(step)
        if checking or recording:
            if checking and self.blood is not None:
                self.solver.finish()
            with self._counted("monitor"):
                self._looked = Look(self.solver.watch(totals=checking), checking, recording)
                if checking and self.blood is not None:
                    self.blood.check()
        for series in due:
            self._take(series)
        if saving:
            self._save_beside()
        if self._steady is not None and self._steady.due(step):
            with self._counted("monitor"):
                self._compare()
        if drawing:
            self._moment, self._captured = capture(self), True

    def settle(self) -> None:
        """Check and record the state at which something was last taken, and only then have that written.

        Raises UnstableError before anything false is written. By then the device may be at later steps.
        """
        if self._looked is not None:
            look, self._looked = self._looked, None
            with self._counted("monitor"):
                self._note(look)
        held, self._held = self._held, []
        for job in held:
            self.writer.submit(job)

    def _take(self, series: Series) -> None:
        """Take the present state of a series; the writer's thread does the rest."""
        if series.writer is None:  # more states than the case had in mind
            series.open(max(1, series.count(self.solver.step - 1, self.setup.steps)))
        self._make_room()
        with self._counted("snapshots"):
            self._held.append(series.take())

    def _make_room(self) -> None:
        """Wait until one more state may be under way."""
        if self._held and self.writer.unfinished + len(self._held) >= self.setup.case.output.in_flight:
            self.settle()
        self.writer.make_room()

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            end = time.perf_counter_ns()
            self.seconds[name] += (end - begin) * 1e-9
            self.solver.timers.note(name, begin, end)

    def look(self) -> None:
        """Commit what all ranks have stored, without waiting; OSError on every rank if a disk refused."""
        self.writer.look()

    def drain(self) -> None:
        """Wait until everything taken so far is complete; OSError on every rank if a disk refused."""
        self.settle()
        self.writer.drain()

    def give_up(self) -> None:
        """Complete what was handed on before a state that is not sound, and forget what was taken of that one."""
        self._looked, held, self._held = None, self._held, []
        for job in held:
            job.finish(False)
        self.writer.drain()

    def check(self) -> None:
        """Raise UnstableError if a field is no longer finite or nothing physical; note mass and Mach number."""
        with self._counted("monitor"):
            self._note(Look(self.solver.watch(), checking=True, recording=False))
            if self.blood is not None:
                self.blood.check()

    def check_last(self) -> None:
        """Check the state with which a run ends, if nothing has looked at it yet."""
        if self._checked != self.solver.step:
            self.check()

    def _note(self, look: Look) -> None:
        """Note what a look has seen; UnstableError if that is nothing physical."""
        step, units = look.watch.step, self.setup.units
        if look.checking:
            self._checked = step
            monitor = look.watch.monitor()
            if monitor.mach > MACH_BROKEN:
                raise UnstableError(f"Mach number {monitor.mach:.3g}, step {step}; fastest {self._fastest_place()}")
            self.record.largest_mach = max(self.record.largest_mach, float(monitor.mach))
            self.record.masses.append(units.to_si("mass", float(monitor.mass)))
        if look.recording:
            flow = monitor.flow if look.checking else look.watch.flow()
            self.record.times.append(step * units.step)
            self.record.flows.append(units.to_si("flow_rate", np.asarray(flow, np.float64)))

    def save(self) -> None:
        """Write the checkpoint, and wait until it and all before it is complete."""
        self._save_beside()
        self.drain()

    def _save_beside(self) -> None:
        if self._saving:  # two would share a temporary name
            self.drain()
        self._make_room()
        step = self.solver.step

        def finished(complete: bool) -> None:
            self._saving = False
            self.last_checkpoint = step if complete else self.last_checkpoint

        with self._counted("snapshots"):
            cells = self.blood.state() if self.blood is not None else None
            job = checkpoint_of(self.checkpoint_path, self.setup, self.solver, self.averages, finished, cells)
        self._saving = True
        self._held.append(job)

    def wall(self) -> Wall:
        """Return this rank's share of the vessel wall."""
        if self._wall is None:
            vessel = self.setup.vessel
            surface = vessel.surface if vessel.surface is not None else wall_surface(vessel.sites)
            self._wall = make_wall(vessel.sites, surface, self.solver.owned, self.world.rank, self.world.size)
        return self._wall

    def finish(self) -> None:
        """Complete and close every file and draw the picture, of the present state if its moment was not reached."""
        self.drain()
        self.close()
        name, sites = self.setup.case.output.picture, self.setup.vessel.sites
        if self.blood is not None:
            self.blood.note()
        if name is None:
            return
        if self.blood is not None:
            self._draw_blood(self.folder / name)
            return
        if not self._captured:
            self._moment = capture(self)
        if self._moment is not None:
            draw(self.folder / name, sites, self._moment, self.record)

    def _draw_blood(self, path: Path) -> None:
        """Draw the cells as they are now, from rank 0 (collective)."""
        from seiche.case.blood.series import surfaces_of, wall_of
        from seiche.report.cells_figure import cells_figure

        assert self.blood is not None
        populations, time = self.blood.populations(), self.solver.step * self.setup.units.step
        if self.world.rank == 0:
            cells_figure(path, surfaces_of(self.blood, populations, time), wall_of(self.setup))

    def close(self) -> None:
        """Close every file; states that are not complete are given up (not collective)."""
        self.writer.stop()
        for series in self._series:
            series.close()

    def files(self) -> list[Path]:
        """Return the names of the time series that hold at least one state."""
        return [series.path for series in self._series if series.states]

    def _rows(self, table: FieldOutput) -> npt.NDArray[np.int64] | None:
        """Return which rows of this rank's fields a series holds, None for all of them."""
        if table.where is None:
            return None
        key = f'{self.setup.source}: output.fields["{table.file}"].where'
        where, sites = table.where, self.setup.vessel.sites
        taken = shared_by_rank_zero(self.world, lambda: select(where, sites, key))
        return np.flatnonzero(np.isin(self.solver.owned, taken))

    def _compare(self) -> None:
        """Note when the velocity no longer changes."""
        wanted, interval = self.setup.case.time.steady or 0.0, self._steady.interval if self._steady else 0.0
        change = self.solver.measures.velocity_change()
        if change < wanted:
            self.settled = f"a steady flow (velocity changed by {change:.2g} of itself in {interval:.0f} steps)"

    def _fastest_place(self) -> str:
        """Say where the fluid is fastest by now (collective)."""
        speed = np.linalg.norm(self.solver.fields(("velocity",))["velocity"], axis=1)
        row = int(speed.argmax())
        place = self.setup.vessel.sites.coords[self.solver.owned[row]].tolist()
        _, rank, site = max(self.world.allgather((float(speed[row]), self.world.rank, place)))
        return f"at site {site}, rank {rank}, step {self.solver.step}"

    def _write_surface(self) -> None:
        """Write the surface of a built-in shape whose table names an STL file; its coordinates are metres."""
        shape, surface = self.setup.case.geometry.shape, self.setup.vessel.surface
        if isinstance(shape, Bifurcation) and shape.stl is not None and surface is not None:
            from seiche.io.formats.stl import write_stl

            write_stl(self.folder / shape.stl, surface)

    def _new_name(self, name: str) -> Path:
        # A continued run must not replace the part of the series that came before it.
        return continued(self.folder / name, self.first_step)
