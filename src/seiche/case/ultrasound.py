# SPDX-License-Identifier: BSD-3-Clause
"""An ultrasound case that runs: `seiche.case.ultrasound.load("case.toml").run()`; `seiche check` of one."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche import __version__
from seiche.case.run import listening
from seiche.case.ultrasound_setup import UltrasoundSetup, prepare
from seiche.domain.world import World
from seiche.errors import CaseError, SeicheError
from seiche.io.files import replacing
from seiche.observe.progress import Progress
from seiche.ultrasound.advice import memory, phase_error, points_per_wavelength
from seiche.ultrasound.crossing import crossing_error, cuts_on_the_way
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.plan import parts_for
from seiche.ultrasound.ranks import RanksSolver, refuse_on_ranks
from seiche.ultrasound.simulate import results_of
from seiche.ultrasound.slabs import slabs_of
from seiche.ultrasound.solver import Solver
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
    """What a run made: arrays by name, numbers, the folder with its files, and seconds of stepping."""

    arrays: Arrays
    summary: dict[str, Any]
    folder: Path
    seconds: float


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

    def solver(self) -> Solver | RanksSolver:
        """Return a new solver of the case (this allocates the fields)."""
        run, problem, request = self.setup.case.run, self.setup.problem, self.setup.request
        common: dict[str, Any] = {"device": run.device, "precision": run.precision, "scheme": run.scheme}
        common |= {"record": request, "threads": run.threads}
        if self.world.size == 1:
            return Solver(problem, **common)
        try:
            return RanksSolver(
                problem, self.world, overlap=run.overlap, basis=run.basis, transport=run.transport, **common
            )
        except CaseError as error:
            raise CaseError(f"{self.setup.source_file}: {error}") from None

    def run(self, *, visible: bool = True) -> UltrasoundOutcome:
        """Compute all steps and write the results; files of an earlier run are replaced once new ones are complete.

        Raises:
            UnstableError: the pressure is no longer finite.
            BackendUnavailable: no such device, or too little memory.
            SeicheError: a signal ended the run; nothing was written.
        """
        setup = self.setup
        solver = self.solver()
        started = time.perf_counter()
        self._advance(solver, visible and self.world.rank == 0)
        seconds = time.perf_counter() - started
        arrays = results_of(solver, setup.sensor, setup.layers)
        arrays |= self._image(arrays) | self._heat(arrays)
        summary = self._summary(solver, arrays, seconds)
        if self.world.rank == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(arrays, summary)
        if isinstance(solver, RanksSolver):
            solver.close()
        return UltrasoundOutcome(arrays, summary, self.folder, seconds)

    def _advance(self, solver: Solver | RanksSolver, visible: bool) -> None:
        steps, chunk = self.setup.problem.steps, 1
        with listening() as request, Progress(steps, self.setup.problem.points, visible=visible) as progress:
            while solver.time_step < steps:
                begin = time.perf_counter()
                solver.run(min(chunk, steps - solver.time_step))
                pace = (time.perf_counter() - begin) / chunk
                # The same decision on every rank.
                slowest, number = self.world.allreduce_max(np.array([pace, request.number], np.float64))
                chunk = max(1, int(_LOOK_EVERY / max(float(slowest), 1e-9)))
                progress.update(solver.time_step)
                if number:
                    name = signal.Signals(int(number)).name
                    raise SeicheError(f"stopped by {name} at step {solver.time_step} of {steps}; nothing was written")

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
        )
        return {"image": image}

    def _heat(self, arrays: Arrays) -> Arrays:
        setup, table = self.setup, self.setup.case.heat
        if table is None:
            return {}
        heat = heat_deposition(arrays["p_amplitude"][0], setup.case.record.frequencies[0], setup.medium)
        tissue = Tissue(setup.medium.density, table.heat_capacity, table.conductivity, table.perfusion)
        state = Bioheat(setup.grid.shape, setup.grid.spacings, tissue, table.temperature)
        state.run(table.duration, heat)
        hottest = state.temperature.copy()
        if table.cooling > 0:
            state.run(table.cooling)
        return {"heat": heat, "temperature": hottest, "dose": state.dose}

    def _summary(self, solver: Solver | RanksSolver, arrays: Arrays, seconds: float) -> dict[str, Any]:
        setup, problem = self.setup, self.setup.problem
        found: dict[str, Any] = {
            "case": setup.source_file,
            "title": setup.case.title,
            "program": f"Seiche {__version__}",
            "device": solver.backend.describe(),
            "precision": setup.case.run.precision,
            "scheme": setup.case.run.scheme,
            "ranks": self.world.size,
            "basis": solver.plan.describe() if isinstance(solver, RanksSolver) else "whole grid",
            "points": list(problem.shape),
            "spacing_m": problem.spacing[0],
            "time_step_s": problem.time_step,
            "steps": problem.steps,
            "seconds": seconds,
            "advice": list(setup.notes),
        }
        grid = setup.grid
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

    def _write(self, arrays: Arrays, summary: dict[str, Any]) -> None:
        output = self.setup.case.output
        self._replace(output.file, lambda part: self._write_arrays(part, arrays))
        self._replace(output.summary, lambda part: part.write_text(json.dumps(summary, indent=1) + "\n"))
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


def refuse_impossible(setup: UltrasoundSetup, ranks: int) -> None:
    """Refuse a case that a number of ranks cannot compute, before anything is allocated.

    Raises:
        CaseError: the case has something that goes only on one rank.
    """
    if ranks == 1:
        return
    if setup.case.image is not None:
        raise CaseError(f"{setup.source_file}: image: time reversal runs on one rank, not on {ranks}")
    try:
        refuse_on_ranks(setup.request, setup.case.run.scheme)
    except CaseError as error:
        raise CaseError(f"{setup.source_file}: {error}") from None


def unit_of(name: str) -> str:
    """Return the SI unit of a result."""
    return _UNITS[name] if name in _UNITS else _UNITS[name[0]]


def describe(setup: UltrasoundSetup, ranks: int = 1) -> Iterator[str]:
    """Yield the lines of `seiche check` for a number of ranks.

    Raises:
        CaseError: the grid cannot be cut for them, or the case has something that goes only on one rank.
    """
    refuse_impossible(setup, ranks)
    problem, case = setup.problem, setup.case
    bytes_needed = memory(problem, case.run.scheme, case.run.precision, setup.request, case.run.device)
    speeds, densities = ((float(np.min(v)), float(np.max(v))) for v in (problem.sound_speed, problem.density))
    limit = "any time step is stable" if np.isinf(setup.limit) else f"stable up to {setup.limit:.4g} s"
    rows = [
        ("case", setup.source_file + (f": {case.title}" if case.title else "")),
        ("points", f"{' x '.join(map(str, problem.shape))} = {problem.points:,}, {problem.spacing[0]:.4g} m apart"),
        ("time step", f"{problem.time_step:.4g} s ({limit}), {problem.steps:,} steps"),
        ("sound speed", f"{speeds[0]:g} to {speeds[1]:g} m/s, reference {problem.reference_speed:g} m/s"),
        ("density", f"{densities[0]:g} to {densities[1]:g} kg/m^3"),
    ]
    frequencies = sorted({one.frequency for one in case.source if hasattr(one, "frequency")})
    for frequency in frequencies:
        resolved = points_per_wavelength(problem, frequency)
        error = phase_error(problem, frequency, case.run.scheme)
        rows.append(
            (f"{frequency:.4g} Hz", f"{resolved:.2f} points per wavelength, phase error in time up to {error:.2g} rad")
        )
    rows.append(("scheme", f"{case.run.scheme}, {case.run.precision}, on {case.run.device}"))
    if ranks > 1:
        try:
            lines, work = _shared(setup, ranks, frequencies)
        except CaseError as error:
            raise CaseError(f"{setup.source_file}: {error}") from None
        rows += lines
        bytes_needed = int(bytes_needed / ranks * work)
        if case.run.basis == "global":  # messages, and densities between points
            given = problem.dimensions if np.ndim(problem.density) else 0
            bytes_needed += int((1 + given) * problem.points / ranks * np.dtype(case.run.precision).itemsize)
    rows.append(
        (
            "memory",
            f"{bytes_needed / 1e6:.4g} MB, {bytes_needed * ranks / problem.points:.1f} B a point"
            + (f", of each of {ranks} ranks" if ranks > 1 else ""),
        )
    )
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {value}" for name, value in rows)
    yield from (f"advice: {line}" for line in setup.notes)


def _shared(setup: UltrasoundSetup, ranks: int, frequencies: Sequence[float]) -> tuple[list[tuple[str, str]], float]:
    """Return what is said of several ranks, and all their work over that of one."""
    problem, overlap, basis = setup.problem, setup.case.run.overlap, setup.case.run.basis
    if basis == "auto":  # as a run chooses without a machine file
        try:
            parts_for(problem.shape, ranks, "local", None, overlap)
        except CaseError:
            basis = "global"
    if basis == "global":
        largest = max(slabs_of(problem.shape, ranks), key=lambda part: part.shape)
        extents = " x ".join(str(n) for n in largest.shape)
        work = ranks * int(np.prod(largest.shape)) / problem.points
        return [(f"{ranks} ranks", f"{extents} points, transforms of the whole grid: no error")], work
    parts = parts_for(problem.shape, ranks, "local", None, overlap)
    largest = max(parts, key=lambda part: int(np.prod(part.shape)))
    work = ranks * int(np.prod(largest.shape)) / problem.points
    extents = " x ".join(str(n) for n in largest.shape)
    rows = [(f"{ranks} ranks", f"{extents} points with overlaps of {overlap}, {work:.2f} times the work of one")]
    cfl = problem.time_step * problem.reference_speed / min(problem.spacing)
    cuts = cuts_on_the_way(parts)
    for frequency in frequencies:
        error = cuts * crossing_error(points_per_wavelength(problem, frequency), overlap, cfl=cfl)
        rows.append((f"error of ranks at {frequency:.4g} Hz", f"{error:.1e} of the field after {cuts} cuts"))
    return rows, work


def is_ultrasound(path: Path | str, overrides: Sequence[str] = ()) -> bool:
    """Return whether a case file asks for this solver; False for files that cannot be read, which others say."""
    from seiche.case.load import is_hemelb, read_tables

    if is_hemelb(path):
        return False
    try:
        return bool(read_tables(path, overrides).get("solver") == "ultrasound")
    except SeicheError:
        return False
