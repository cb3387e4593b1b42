# SPDX-License-Identifier: BSD-3-Clause
"""An ultrasound case that runs: `seiche.case.ultrasound.simulation.load("case.toml").run()`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche import __version__
from seiche.case.account import Account, imbalance, keep_trace, serving
from seiche.case.agreement import on_rank_zero
from seiche.case.places import refuse_places
from seiche.case.run import Looks, listening
from seiche.case.ultrasound.setup import UltrasoundSetup, prepare, refuse_impossible, sharing_of
from seiche.domain.world import World
from seiche.errors import CaseError, SeicheError
from seiche.io.files import replacing
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.progress import Progress
from seiche.observe.trace import common_epoch
from seiche.report.summary import Summary, content_of, write_summary
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.simulate import results_of
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.thermal import Bioheat, Tissue, heat_deposition

Arrays = dict[str, npt.NDArray[Any]]
#: Seconds between two looks at signals and the progress bar.
_LOOK_EVERY = 0.5
_UNITS = {
    **{"p": "Pa", "u": "m/s", "I": "W/m^2", "image": "Pa", "temperature": "degC", "dose": "min", "heat": "W/m^3"},
    **{"sound_speed": "m/s", "density": "kg/m^3", "alpha_coeff": "dB/(MHz^y cm)", "BonA": "1", "p_phase": "rad"},
}


@dataclass(frozen=True)
class UltrasoundOutcome:
    """What a run made: arrays by name, the content of its summary, the folder with its files, seconds of stepping.

    `report` is the table stage | time | share | GB/s | share of the copy bandwidth; `decisions` tell what a machine
    file chose.
    """

    arrays: Arrays
    summary: dict[str, Any]
    folder: Path
    seconds: float
    report: str
    decisions: list[str] = field(default_factory=list)


def load(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] = (),
    output: Path | str | None = None,
    world: World | None = None,
) -> UltrasoundSimulation:
    """Return the simulation of the case file `path`, ready to run.

    Args:
        path: case file; the files that it names are relative to its folder.
        device: "cpu", "cuda" or "cuda:1"; the case's own by default.
        overrides: changes such as "grid.cfl=0.2".
        output: folder of the outputs; the case's own by default.
        world: the ranks that take part; those of mpiexec by default.

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
    """
    world = world or World.from_mpi()
    setup = prepare(path, [*overrides, *([f"run.device={device}"] if device else [])])
    folder = Path(output) if output is not None else Path(path).parent / setup.case.output.folder
    return UltrasoundSimulation(setup, folder, world)


class UltrasoundSimulation:
    """A case with its problem; `run` computes it and writes what it asks for. Collective over the ranks."""

    def __init__(self, setup: UltrasoundSetup, folder: Path, world: World) -> None:
        """Keep the case; nothing is allocated yet.

        Raises:
            CaseError: the case has something that goes only on one rank.
        """
        self.setup, self.folder, self.world = setup, folder, world
        refuse_impossible(setup, world.size)

    def solver(self) -> UltrasoundSolver:
        """Return a new solver of the case (this allocates the fields)."""
        run = self.setup.case.run
        try:
            return UltrasoundSolver(
                self.setup.problem,
                world=self.world,
                sharing=sharing_of(self.setup, self.world.size),
                record=self.setup.request,
                device=run.device,
                precision=run.precision,
                scheme=run.scheme,
                threads=run.threads,
            )
        except CaseError as error:
            raise CaseError(f"{self.setup.source_file}: {error}") from None

    @property
    def title(self) -> str:
        """Return the title of the case, or else its file."""
        return self.setup.case.title or self.setup.source_file

    def run(self, *, visible: bool = True, serve: int | None = None) -> UltrasoundOutcome:
        """Compute all steps and write the results; files of an earlier run are replaced once new ones are complete.

        With `serve`, a port (0: any that is free), a page on this machine's loopback address tells how far it is.

        Raises:
            CaseError: an output cannot be written or would replace another file, or the port is taken.
            UnstableError: the pressure is no longer finite.
            BackendUnavailable: no such device, or too little memory.
            SeicheError: a signal ended the run; nothing was written.
        """
        setup = self.setup
        on_rank_zero(self.world, self._refuse_places)
        solver = self.solver()
        timers = solver.timers
        trace = self.folder / setup.case.output.trace if setup.case.output.trace is not None else None
        keep_trace(trace, timers, self.world)
        solver.backend.synchronize()
        timers.align(common_epoch(self.world))
        started = time.perf_counter()
        self._advance(solver, visible and self.world.rank == 0, serve)
        seconds = time.perf_counter() - started
        arrays = results_of(solver, setup.sensor, setup.layers)
        arrays |= self._image(arrays) | self._heat(arrays)
        account = self._account(solver, seconds)
        report, summary = account.report(), self._summary(solver, account, arrays)
        if self.world.rank == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(arrays, summary)
        account.save_trace(trace, self.title)
        decisions = solver.decisions
        solver.close()
        return UltrasoundOutcome(arrays, content_of(summary), self.folder, seconds, report, decisions)

    def _refuse_places(self) -> None:
        output = self.setup.case.output
        places = {
            "output.file": (self.folder / output.file, "HDF5 file"),
            "output.summary": (self.folder / output.summary, "summary"),
        }
        if output.picture is not None:
            places["output.picture"] = (self.folder / output.picture, "picture")
        refuse_places(places, self.setup.inputs)

    def _advance(self, solver: UltrasoundSolver, visible: bool, serve: int | None) -> None:
        steps, chunk, timers = self.setup.problem.steps, 1, solver.timers
        bar, looks = Progress(steps, self.setup.problem.points, item="points", visible=visible), Looks()
        with listening() as request, serving(bar.state, self.title, serve, self.world), bar as progress:
            while solver.step < steps:
                begin = time.perf_counter()
                solver.advance(min(chunk, steps - solver.step))
                pace = (time.perf_counter() - begin) / chunk
                # The same decision on every rank.
                told = np.array([pace, request.number, looks.stale], np.float64)
                slowest, number, stale = self.world.allreduce_max(told)
                if stale:
                    looks.again(solver.exchanges)
                chunk = max(1, int(_LOOK_EVERY / max(float(slowest), 1e-9)))
                progress.update(solver.step, imbalance=imbalance(timers, self.world))
                if number:
                    name = signal.Signals(int(number)).name
                    raise SeicheError(f"stopped by {name} at step {solver.step} of {steps}; nothing was written")

    def _image(self, arrays: Arrays) -> Arrays:
        setup, case = self.setup, self.setup.case
        if case.image is None or setup.sensor.mask is None:
            return {}
        image = time_reversal(
            setup.grid,
            setup.medium,
            setup.sensor.mask,
            arrays["p"],
            iterations=case.image.iterations,
            pml_size=setup.layers.sizes,
            pml_alpha=setup.layers.alphas,
            pml_inside=setup.layers.inside,
            scheme=case.run.scheme,
            device=case.run.device,
            precision=case.run.precision,
            threads=case.run.threads,
            world=self.world,
            sharing=sharing_of(setup, self.world.size),
        )
        return {"image": image}

    def _heat(self, arrays: Arrays) -> Arrays:
        setup, table = self.setup, self.setup.case.heat
        if table is None:
            return {}
        heat = heat_deposition(arrays["p_amplitude"][0], setup.case.record.frequencies[0], setup.medium)
        tissue = Tissue(setup.medium.density, table.heat_capacity, table.conductivity, table.perfusion)
        grid, run = setup.grid, setup.case.run
        state = Bioheat(grid.shape, grid.spacings, tissue, table.temperature, device=run.device, threads=run.threads)
        state.run(table.duration, heat)
        hottest = state.temperature
        if table.cooling > 0:
            state.run(table.cooling)
        return {"heat": heat, "temperature": hottest, "dose": state.dose}

    def _account(self, solver: UltrasoundSolver, seconds: float) -> Account:
        """Return the account of a run of `seconds` (collective)."""
        return Account(
            solver.timers,
            solver.backend,
            self.world,
            solver.phases,
            items=solver.items,
            transport=solver.transport,
            seconds=seconds,
            bandwidth=copy_bandwidth(solver.backend, self.world),
            weights=solver.weights,
        )

    def _summary(self, solver: UltrasoundSolver, account: Account, arrays: Arrays) -> Summary:
        """Return the summary; of movement it tells on rank 0 only (collective)."""
        setup, problem, run = self.setup, self.setup.problem, self.setup.case.run
        rows, movement = account.rows(), account.movement()
        return Summary(
            case=self.title,
            device=solver.backend.describe(),
            sites=problem.points,
            steps=problem.steps,
            seconds=account.seconds,
            ranks=self.world.size,
            threads=self.world.threads(run.threads),
            solver="ultrasound",
            item="points",
            layout=solver.layout,
            precision=run.precision,
            copy_bandwidth=account.bandwidth,
            stages=rows,
            efficiency=movement.efficiencies() if movement is not None else {},
            movement=movement.as_dict() if movement is not None else {},
            details={
                "case_file": setup.source_file,
                "scheme": run.scheme,
                "basis": "whole grid" if solver.plan is None else solver.plan.describe(),
                "points": list(problem.shape),
                "spacing_m": problem.spacing[0],
                "time_step_s": problem.time_step,
                "notes": list(setup.notes),
                **self._greatest(arrays),
            },
        )

    def _greatest(self, arrays: Arrays) -> dict[str, Any]:
        """Return the greatest values of what was recorded everywhere, and where they are."""
        found: dict[str, Any] = {}
        grid = self.setup.grid
        for name in ("p_amplitude", "p_max_all", "image", "temperature", "dose"):
            if name not in arrays:
                continue
            values = arrays[name][0] if name == "p_amplitude" else arrays[name]
            place = np.unravel_index(int(np.argmax(values)), grid.shape)
            found[f"greatest_{name}"] = {
                "value": float(values[place]),
                "unit": unit_of(name),
                "place_m": [float(grid.positions(axis)[k]) for axis, k in zip(grid.axes, place, strict=True)],
            }
        return found

    def _write(self, arrays: Arrays, summary: Summary) -> None:
        output = self.setup.case.output
        self._replace(output.file, lambda part: self._write_arrays(part, arrays))
        (self.folder / output.summary).parent.mkdir(parents=True, exist_ok=True)
        write_summary(self.folder / output.summary, summary)
        if output.picture is not None:
            self._replace(output.picture, lambda part: self._draw(part, str(output.picture), arrays))

    def _replace(self, name: str, write: Callable[[Path], Any]) -> None:
        """Write a file beside its place and then put it there."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            write(part)

    def _write_arrays(self, part: Path, arrays: Arrays) -> None:
        import h5py

        grid, medium = self.setup.grid, self.setup.medium
        media = {name: getattr(medium, name) for name in ("sound_speed", "density", "alpha_coeff", "BonA")}
        with h5py.File(part, "w") as file:
            file.attrs["program"] = f"Seiche {__version__}"
            file.attrs["spacing"] = grid.spacings
            file.attrs["time_step"] = grid.time_step
            file.attrs["first_recorded_step"] = self.setup.sensor.first
            for axis in grid.axes:
                file[axis] = grid.positions(axis)
                file[axis].attrs["unit"] = "m"
            if self.setup.sensor.mask is not None:
                file["sensor_mask"] = np.asarray(self.setup.sensor.mask, np.uint8)
            for name, values in [*arrays.items(), *((k, v) for k, v in media.items() if v is not None)]:
                file[name] = np.asarray(values)
                file[name].attrs["unit"] = unit_of(name)

    def _draw(self, part: Path, name: str, arrays: Arrays) -> None:
        from seiche.report.ultrasound_figure import Panel, middle_slice, ultrasound_figure

        setup, grid = self.setup, self.setup.grid
        panels = []
        if setup.problem.initial_pressure is not None:
            inside = tuple(slice(m, n - m) for n, m in zip(setup.problem.shape, setup.layers.outside, strict=True))
            start = middle_slice(setup.problem.initial_pressure[inside])
            panels.append(Panel("pressure at the start", "Pa", start))
        fields = {
            "p_amplitude": ("pressure amplitude", "kPa", 1e-3),
            "p_max_all": ("greatest pressure", "kPa", 1e-3),
            "p_final": ("pressure at the end", "Pa", 1.0),
            "temperature": ("temperature", "°C", 1.0),
            "dose": ("thermal dose", "equivalent min at 43 °C", 1.0),
            "image": ("picture by time reversal", "Pa", 1.0),
        }
        for key, (title, label, factor) in fields.items():
            if key in arrays:
                values = arrays[key][0] if key == "p_amplitude" else arrays[key]
                through = np.unravel_index(int(np.argmax(values)), grid.shape)
                plane = factor * middle_slice(values, [int(k) for k in through])
                panels.append(Panel(title, label, plane, both_signs=key == "p_final"))
        speed = np.asarray(setup.medium.sound_speed)
        shown = middle_slice(speed) if speed.ndim else None
        places = [grid.positions(axis) for axis in grid.axes[:2]]
        ultrasound_figure(part, name, places, panels[:4], shown, setup.case.title)


def unit_of(name: str) -> str:
    """Return the SI unit of a result."""
    return _UNITS[name] if name in _UNITS else _UNITS[name[0]]


def is_ultrasound(path: Path | str, overrides: Sequence[str] = ()) -> bool:
    """Return whether a case file asks for this solver; False for files that cannot be read, which others say."""
    from seiche.case.load import is_hemelb, read_tables

    if is_hemelb(path):
        return False
    try:
        return bool(read_tables(path, overrides).get("solver") == "ultrasound")
    except SeicheError:
        return False
