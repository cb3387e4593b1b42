# SPDX-License-Identifier: BSD-3-Clause
"""A case of waves that runs: `sim = seiche.load("basin.toml"); sim.run(); print(sim.report())`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.account import Account, imbalance, keep_trace, serving
from seiche.case.agreement import on_rank_zero
from seiche.case.flow.simulation import Outcome
from seiche.case.run import LOOK_EVERY, Looks, listening
from seiche.case.schedule import Schedule
from seiche.case.waves.outputs import Snapshots, write_peak, write_receivers
from seiche.case.waves.setup import AXES, WaveSetup, prepare
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.io.checkpoint import inspect_checkpoint, read_checkpoint, write_checkpoint
from seiche.io.state import RowSet, State
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.progress import Progress
from seiche.observe.trace import common_epoch
from seiche.report.summary import Summary, write_summary

#: The row set of a checkpoint.
_ROWS = "elements"
#: Largest square of a velocity component on a side, in a checkpoint.
_PEAK = "peak"
#: Stresses of the bodies of attenuation, in a checkpoint.
_MEMORY = "memory"


def load_waves(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] = (),
    restart: Path | str | None = None,
    output: Path | str | None = None,
    world: World | None = None,
) -> WaveSimulation:
    """Return the simulation of a case of waves, ready to run; arguments and errors are those of `seiche.load`."""
    world = world or World.from_mpi()
    setup = prepare(path, [*overrides, *([f"run.device={device}"] if device else [])], world)
    folder = Path(output) if output is not None else Path(path).parent / setup.case.output.folder
    return WaveSimulation(setup, folder, Path(restart) if restart is not None else None)


class WaveSimulation:
    """Waves with the outputs of their case; every method is collective over the ranks.

    Attributes:
        setup: the case with its mesh.
        solver: the discontinuous Galerkin solver, in SI units.
        folder: of the outputs.
        files: what the run has written (rank 0 knows).
    """

    def __init__(self, setup: WaveSetup, folder: Path, restart: Path | None = None) -> None:
        """Make the solver (this allocates the fields) and load the state in `restart`, if given.

        Raises:
            CaseError: a folder that cannot be made, or a checkpoint of another case.
        """
        self.setup, self.folder, self.world = setup, folder, setup.world
        self.started, self.seconds, self.files = time.monotonic(), 0.0, list[Path]()
        output, mesh = setup.case.output, setup.mesh
        peak = None
        if output.peak is not None:
            side = output.peak.side or AXES[mesh.dim - 1] + "+"
            peak = 2 * AXES.index(side[0]) + (side[1] == "+")
        self.solver = setup.solver(sponge=setup.case.boundary.sponge or 0.0, peak_side=peak)
        if restart is not None:
            self._resume(restart)
        elif setup.start is not None:
            self.solver.set_state(setup.start.state(self.solver.medium, self.solver.positions))
        self.first_step = self.solver.steps
        on_rank_zero(self.world, lambda: _make(setup, folder))
        self._snapshots = [Snapshots(table, setup, self.solver, folder, self.first_step) for table in output.snapshots]
        every = output.checkpoint.every
        self._checkpoints = Schedule(setup.steps_of(every)) if every is not None else None
        self._bandwidth: float | None = None
        #: Step of the last checkpoint, and seconds between steps by what was done.
        self._saved: int | None = None
        self._beside = {"snapshots": 0.0, "checkpoints": 0.0}
        self._trace = folder / output.trace if output.trace is not None else None
        keep_trace(self._trace, self.solver.timers, self.world)

    @property
    def title(self) -> str:
        """Return the title of the case, or else its file."""
        return self.setup.case.title or self.setup.source

    @property
    def time(self) -> float:
        """Return the physical time reached, in seconds."""
        return self.solver.time

    @property
    def checkpoint_path(self) -> Path:
        """Return where the state is kept from which a run can go on."""
        return self.folder / self.setup.case.output.checkpoint.file

    def run(self, steps: int | None = None, *, serve: int | None = None) -> Outcome:
        """Advance by `steps`, or to the end of the case; at the end write seismograms, pictures and the summary.

        With `serve`, a port (0: any that is free), a page on this machine's loopback address tells how far it is.

        SIGTERM, SIGINT and the wall-clock limit finish the step, write a checkpoint and return.
        Raises UnstableError when the state is no longer finite; snapshots and the last checkpoint stay.
        """
        solver, target = self.solver, self.setup.steps if steps is None else self.solver.steps + steps
        solver.backend.synchronize()
        solver.timers.align(common_epoch(self.world))
        begin = time.monotonic()
        nodes = self.setup.mesh.total * self.setup.case.mesh.nodes**self.setup.mesh.dim
        bar = Progress(target, nodes, item="nodes", first=solver.steps, visible=self.world.rank == 0)
        stopped = None
        with listening() as request, serving(bar.state, self.title, serve, self.world), bar as progress:
            pace, looks = 1, Looks()
            while solver.steps < target:
                last = min(target, self._next_event(solver.steps), solver.steps + pace)
                mark = time.monotonic()
                try:
                    solver.run(last - solver.steps)
                except UnstableError as error:
                    self._close_snapshots()
                    raise UnstableError(f"{error}; {self._last_checkpoint()}") from None
                spent = (time.monotonic() - mark) / max(1, pace)
                self._take_due()
                busiest = imbalance(solver.timers, self.world)
                progress.update(solver.steps, imbalance=busiest, checkpoint=self._saved)
                limit = self.setup.case.run.wall_clock
                late = limit is not None and time.monotonic() - self.started >= limit
                told = np.array([request.number, late, spent, looks.stale], np.float64)
                seen, over, slowest, stale = self.world.allreduce_max(told)
                if stale and solver.ghosts is not None:
                    looks.again(solver.ghosts.exchanges)
                pace = max(1, min(4 * pace, int(LOOK_EVERY / max(slowest, 1e-9))))
                if (seen or over) and solver.steps < target:
                    stopped = f"signal {int(seen)}" if seen else f"wall-clock limit of {limit:g} s"
                    self.save()
                    break
        self.seconds += time.monotonic() - begin
        if stopped is not None or solver.steps >= self.setup.steps:
            self.close(stopped)
        return Outcome(solver.steps, self.seconds, stopped)

    def _next_event(self, step: int) -> int:
        schedules = [series.schedule for series in self._snapshots]
        schedules += [self._checkpoints] if self._checkpoints is not None else []
        return min((schedule.next_after(step) for schedule in schedules), default=self.setup.steps + 1)

    def _take_due(self) -> None:
        step = self.solver.steps
        due = [series for series in self._snapshots if series.schedule.due(step)]
        if due:
            with self._timed("snapshots"):
                state = self.solver.state()
                for series in due:
                    series.take(state)
        if self._checkpoints is not None and self._checkpoints.due(step):
            self.save()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Count the time of the block as one between steps."""
        begin = time.perf_counter_ns()
        yield
        end = time.perf_counter_ns()
        self._beside[name] += (end - begin) * 1e-9
        self.solver.timers.note(name, begin, end)

    def _rows(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return this rank's elements along the curve, and their numbers there."""
        order = np.argsort(self.setup.mesh.number)
        return order, self.setup.mesh.number[order].astype(np.int64)

    def save(self) -> None:
        """Write a checkpoint."""
        with self._timed("checkpoints"):
            self._write_checkpoint()
        self._saved = self.solver.steps

    def _write_checkpoint(self) -> None:
        solver, mesh = self.solver, self.setup.mesh
        order, numbers = self._rows()
        state = solver.state()[order]
        arrays = {name: np.ascontiguousarray(state[:, field]) for field, name in enumerate(solver.fields)}
        if solver.peak is not None:
            squares = solver.peak.squares()
            every = np.zeros((mesh.count, *squares.shape[1:]))
            every[solver.peak.elements] = squares
            arrays[_PEAK] = every[order]
        if solver.bodies is not None:
            arrays[_MEMORY] = np.ascontiguousarray(solver.bodies.state()[order])
        write_checkpoint(
            self.checkpoint_path,
            self.world,
            State(solver.steps, {_ROWS: RowSet(numbers, mesh.total, arrays)}),
            attributes=self._attributes(),
        )

    def _attributes(self) -> dict[str, str | float | int]:
        """Return what must be equal for a run to go on from a checkpoint."""
        mesh, material, case = self.setup.mesh, self.setup.material, self.setup.case
        places = mesh.keys[: mesh.count] * np.uint64(32) + mesh.level[: mesh.count].astype(np.uint64)
        values = np.stack([material.density, material.cp, material.cs]).reshape(3, mesh.count, -1)
        bits = np.ascontiguousarray(values).view(np.uint64) * (2 * places[:, None] + np.uint64(1))
        sums = [_mixed(places).sum(dtype=np.uint64), _mixed(bits).sum(dtype=np.uint64)]
        # Sums that wrap around do not depend on the order, nor on the number of ranks.
        geometry, media = self.world.allreduce_sum(np.array(sums, np.uint64)).tolist()
        extent = [bound.tolist() for bound in mesh.extent]
        scheme: str = case.mesh.flux if case.time.integrator == "runge-kutta" else case.time.integrator
        if case.attenuation is not None:
            scheme += f" {case.attenuation.band} {case.attenuation.mechanisms}"
        return {
            "geometry": f"{mesh.total} elements {geometry} {extent}",
            "model": f"{media} {case.mesh.nodes} {scheme} {self.solver.medium}",
            "boundary": f"{' '.join(self.setup.sides)} {case.boundary.sponge or 0.0}",
            "step": repr(self.solver.dt),
            "seconds": self.solver.time,
        }

    def _resume(self, path: Path) -> None:
        solver, mesh = self.solver, self.setup.mesh
        order, numbers = self._rows()
        wanted = self._attributes()
        try:
            found = inspect_checkpoint(path).attributes
            same = found.get("geometry") == wanted["geometry"]
            checkpoint = read_checkpoint(path, self.world, {_ROWS: numbers}) if same else None
        except OSError as error:
            raise CaseError(f"--restart {path}: cannot read the checkpoint: {error.strerror or error}") from None
        for name, what in (("geometry", "mesh"), ("model", "medium or discretisation"), ("boundary", "boundary")):
            if found.get(name) != wanted[name]:
                raise CaseError(f"--restart {path}: the checkpoint belongs to another {what} than {self.setup.source}")
        if found.get("step") != wanted["step"]:
            raise CaseError(
                f"--restart {path}: its time steps are of {found.get('step')} s, those of {self.setup.source} of"
                f' {wanted["step"]} s; give time.step = "{found.get("step")} s"'
            )
        assert checkpoint is not None
        if checkpoint.step >= self.setup.steps:
            raise CaseError(
                f"--restart {path}: its step {checkpoint.step} is not before the end of {self.setup.source} at"
                f" step {self.setup.steps}; make the run longer"
            )
        state = np.empty((mesh.count, len(solver.fields), checkpoint[solver.fields[0]].shape[1]))
        for field, name in enumerate(solver.fields):
            state[order, field] = checkpoint[name]
        memory = None
        if solver.bodies is not None:
            memory = np.empty(solver.bodies.shape)
            memory[order] = checkpoint[_MEMORY]
        solver.set_state(state, checkpoint.step, staggered=True, memory=memory)
        if solver.peak is not None and _PEAK in checkpoint:
            squares = np.empty((mesh.count, *checkpoint[_PEAK].shape[1:]))
            squares[order] = checkpoint[_PEAK]
            solver.peak.load(squares[solver.peak.elements])

    def _last_checkpoint(self) -> str:
        there = self.checkpoint_path.exists()
        return f"last good checkpoint: {self.checkpoint_path}" if there else "no checkpoint was written"

    def _close_snapshots(self) -> None:
        for series in self._snapshots:
            self.files += on_rank_zero(self.world, series.close)

    def close(self, stopped: str | None = None) -> None:
        """Write seismograms, peak velocities, pictures and the summary; done by `run` at the end of the case."""
        output = self.setup.case.output
        self._close_snapshots()
        self.files += write_receivers(self.setup, self.solver, self.folder, self.first_step)
        if output.peak is not None:
            self.files += write_peak(self.setup, self.solver, self.folder, self.first_step)
        self._save_summary(stopped)
        self.account().save_trace(self._trace, self.title)

    def account(self) -> Account:
        """Return the account of the steps done so far."""
        solver, setup = self.solver, self.setup
        if self._bandwidth is None:
            self._bandwidth = copy_bandwidth(solver.backend, self.world)
        return Account(
            solver.timers,
            solver.backend,
            self.world,
            solver.phases,
            items=setup.mesh.count * setup.case.mesh.nodes**setup.mesh.dim,
            transport=solver.ghosts.transport_name if solver.ghosts is not None else "none",
            seconds=self.seconds,
            bandwidth=self._bandwidth,
            beside=self._beside,
        )

    def report(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth of the steps done so far."""
        return self.account().report()

    def _save_summary(self, stopped: str | None) -> None:
        solver, setup = self.solver, self.setup
        account, energy = self.account(), solver.energy()
        rows, movement = account.rows(), account.movement()
        nodes = setup.mesh.total * setup.case.mesh.nodes**setup.mesh.dim
        if movement is None:
            return
        summary = Summary(
            case=self.title,
            device=solver.backend.describe(),
            sites=nodes,
            solver="waves",
            item="nodes",
            steps=solver.steps - self.first_step,
            seconds=self.seconds,
            ranks=self.world.size,
            threads=self.world.threads(setup.case.run.threads),
            layout=f"{solver.medium} {setup.mesh.dim}D, {setup.case.mesh.nodes} nodes, {setup.case.mesh.flux}"
            + (", leapfrog" if solver.lead else ""),
            precision=setup.case.run.precision,
            copy_bandwidth=account.bandwidth,
            stages=rows,
            invariants={"energy": energy},
            efficiency=movement.efficiencies(),
            movement=movement.as_dict(),
            details={
                "elements": setup.mesh.total,
                "time_step_s": solver.dt,
                "time_s": solver.time,
                "files": [path.name for path in self.files],
                "notes": list(setup.notes),
            },
            stopped=stopped,
        )
        write_summary(self.folder / setup.case.output.summary, summary)


def _mixed(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers of 64 bits whose bits all depend on all bits of the given ones."""
    mixed = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))


def _make(setup: WaveSetup, folder: Path) -> None:
    """Make the folders of the outputs; none of them may be a file that the case is or reads, or a folder."""
    case = setup.case
    names = [table.file for table in case.material]
    names += [
        name for table in case.material if table.segy for name in (table.segy.density, table.segy.cp, table.segy.cs)
    ]
    pulses = [table.time for table in case.source] + ([case.plane_wave.time] if case.plane_wave else [])
    names += [getattr(pulse, "file", None) for pulse in pulses]
    read = {(setup.folder / name).resolve() for name in names if name is not None} | {Path(setup.source).resolve()}
    for name in case.output.names():
        if (folder / name).resolve() in read:
            raise CaseError(
                f"output: would overwrite {folder / name}, which the case reads; give it another name or folder"
            )
        if (folder / name).is_dir():
            raise CaseError(f"output: {folder / name} is a folder; give it another name")
    for part in {folder, *((folder / name).parent for name in case.output.names())}:
        try:
            part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CaseError(f"{part}: the folder of the outputs cannot be made: {error.strerror}") from None
