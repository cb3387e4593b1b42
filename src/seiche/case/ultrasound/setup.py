# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the tables of an ultrasound case to grid, medium, sources, sensors and the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from seiche.case.kind import Setup
from seiche.case.load import check_tables
from seiche.case.solids import files_of_solids
from seiche.case.source import CaseFile
from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.planes import plane_of
from seiche.case.ultrasound.points import check_axes, distance
from seiche.case.ultrasound.schema import RecordTable, UltrasoundCase
from seiche.case.ultrasound.sources import InitialPressure, Signal, shape_of
from seiche.case.ultrasound.target import sonication_of, steering_of
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.images import files_of_image
from seiche.ultrasound import Emitter, Grid, Medium, Sensor, Source
from seiche.ultrasound.advice import MIN_PPW, kind_of_slowest, points_per_wavelength
from seiche.ultrasound.crossing import crossing_error, cuts_along_diagonal, onset_error
from seiche.ultrasound.extents import line_precision, slow_extent_advice
from seiche.ultrasound.local_basis import Part, min_overlap
from seiche.ultrasound.plan import OVERLAP, Decomposition, basis_of, parts_for
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.simulate import Layers, check_stability, problem_of, request_of
from seiche.ultrasound.solver import UltrasoundSolver, check_axisymmetric_support, check_elastic_support


@dataclass(frozen=True)
class UltrasoundSetup(Setup):
    """A case as input of the solver; `request` has no sink, and `limit` is the maximum stable time step in s."""

    case: UltrasoundCase
    source: str
    grid: Grid
    medium: Medium
    sensor: Sensor
    layers: Layers
    problem: Problem
    request: Request
    limit: float
    notes: tuple[str, ...] = ()
    #: Delays (s) by which sources are steered to the target, by their numbers.
    steering: Mapping[int, float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return self.problem.steps

    @property
    def dt(self) -> float:
        """Return the duration of a step in s."""
        return self.problem.dt

    @property
    def inputs(self) -> list[Path]:
        """Return the input files of the case."""
        path, medium = Path(self.source), self.case.medium
        names = [medium.file]
        names += [name for source in self.case.source for name in source.files]
        files = [path.parent / name for name in names if name is not None]
        files += [] if medium.ct is None else files_of_image(path.parent / medium.ct.file)
        return [path, *files, *files_of_solids(medium.region, path.parent)]


#: Ranges of sound speed (m/s) and density (kg/m^3) that include all gases, liquids and solids.
_SPEEDS, _DENSITIES = (10.0, 1e5), (1e-3, 1e5)
#: Range of Courant numbers; the highest is that of `grid.cfl`.
_COURANT = (1e-5, 2.0)
#: Number of points per wavelength above which a frequency must have a wrong unit.
_MAX_PPW = 1e4
#: Overlaps (points) tried for `run.error`, in ascending order.
WIDTHS = (4, 6, 8, 10, 12, 16, 20, 24, 32)


def prepare(source: CaseFile, world: World | None = None, *, initial_state: bool = True) -> UltrasoundSetup:
    """Create the problem of a case on every rank; nothing is allocated on a device.

    Raises:
        CaseError: a key or value is wrong, or the case cannot run.
        FormatError: a file is invalid.
    """
    case = check_tables(source.tables, str(source.path), UltrasoundCase).located
    try:
        setup = _setup(case, source.path, world)
    except CaseError as error:
        raise CaseError(f"{source.path}: {error}") from None
    if world is not None:
        check_limits(setup, world.size)
    return setup


def open_solver(setup: UltrasoundSetup, world: World, *, device: str | None = None) -> UltrasoundSolver:
    """Return the solver of a case (this allocates the fields; collective)."""
    run = setup.case.run
    try:
        return UltrasoundSolver(
            setup.problem,
            world=world,
            decomposition=decompose(setup, world.size),
            record=setup.request,
            device=device or run.device,
            precision=run.precision,
            scheme=run.scheme,
            threads=run.threads,
        )
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None


def _setup(case: UltrasoundCase, path: Path, world: World | None = None) -> UltrasoundSetup:
    spatial_grid = case.grid.spatial_grid
    medium = medium_of(case.medium, spatial_grid, path.parent)
    grid = with_time(case, spatial_grid, medium)
    check_plausible(medium, grid)
    for table in case.output.snapshots:
        plane_of(table, grid)
    if grid.symmetry is not None:
        check_axisymmetric_support(case.run.scheme, ranks=1)
    if case.medium.is_elastic:
        check_elastic_support(case.run.scheme)
    layers = Layers.of(grid, case.layer.points, case.layer.strength, case.layer.inside)
    steering = steering_of(case, grid, medium, layers, world)
    source, sensor = _source(case, grid, path.parent, steering), sensor_of(case, grid, _ring(case, grid))
    sensor.check(grid)
    sensor.check_medium(elastic=case.medium.is_elastic)
    sonication_of(case, grid, medium)
    problem = problem_of(grid, medium, source, layers)
    check_frequencies(case, problem)
    limit = check_stability(problem, case.run.scheme, "grid")
    request = request_of(grid, sensor, layers, elastic=case.medium.is_elastic)
    notes = slow_extent_advice(problem)
    return UltrasoundSetup(case, str(path), grid, medium, sensor, layers, problem, request, limit, notes, steering)


def check_plausible(medium: Medium, grid: Grid) -> None:
    """Raise a CaseError for a medium or a time step that is wrong by orders of magnitude."""
    assert grid.dt is not None
    for name, values, unit, (low, high) in (
        ("sound_speed", medium.sound_speed, "m/s", _SPEEDS),
        ("density", medium.density, "kg/m^3", _DENSITIES),
    ):
        for value in (float(np.min(values)), float(np.max(values))):
            if 0 < value < low or high < value < np.inf:  # the problem rejects other values
                raise CaseError(
                    f"medium.{name}: {value:g} {unit} is not between {low:g} and {high:g} {unit}, which include all"
                    " known media; check its unit"
                )
    courant = grid.dt * float(np.max(medium.sound_speed)) / min(grid.spacings)
    if not _COURANT[0] <= courant <= _COURANT[1]:
        raise CaseError(
            f"grid: a time step of {grid.dt:g} s is a Courant number of {courant:.3g}, not between {_COURANT[0]:g}"
            f" and {_COURANT[1]:g}; check its unit and that of grid.spacing"
        )


def check_frequencies(case: UltrasoundCase, problem: Problem) -> None:
    """Raise a CaseError for a frequency that the grid cannot represent or that is wrong by orders of magnitude."""
    frequencies = {number: tone.frequency for number, tone in enumerate(case.source) if isinstance(tone, Signal)}
    for number, frequency in frequencies.items():
        if (resolved := points_per_wavelength(problem, frequency)) < MIN_PPW:
            raise CaseError(
                f"source[{number}].frequency: {frequency:g} Hz has {resolved:.2f} points per wavelength at the lowest"
                f" {kind_of_slowest(problem)} speed; at least {MIN_PPW:g} are needed"
            )
        if resolved > _MAX_PPW:
            raise CaseError(
                f"source[{number}].frequency: {frequency:g} Hz has {resolved:.2g} points per wavelength, more than"
                f" {_MAX_PPW:g}; check its unit and that of grid.spacing"
            )


def with_time(case: UltrasoundCase, grid: Grid, medium: Medium) -> Grid:
    """Return the grid with the time steps of a case."""
    table = case.grid
    cfl = 0.3 if table.cfl is None else table.cfl
    speed = medium.sound_speed
    if table.time_step is not None:
        cfl = table.time_step * float(np.max(speed)) / min(grid.spacings)
    elif len(case.record.frequencies) == 1:  # amplitudes are exact if a period is a whole number of steps
        frequency = case.record.frequencies[0]
        max_step = cfl * min(grid.spacings) / float(np.max(speed))
        cfl *= 1 / (frequency * np.ceil(1 / (frequency * max_step))) / max_step
    default = grid.with_time(speed, end=table.duration, cfl=cfl)
    steps = default.steps if table.steps is None else table.steps
    step = default.dt if table.time_step is None else table.time_step
    if table.duration is not None and step is not None and table.duration < 0.5 * step:
        raise CaseError(f"grid.duration: {table.duration:g} s is shorter than half a time step of {step:.3g} s")
    return replace(grid, dt=step, steps=steps)


def signal_of(tone: Signal, grid: Grid) -> npt.NDArray[np.float64]:
    """Return the samples of a tone of amplitude 1: a burst with a Hann window, or a ramped continuous tone."""
    assert grid.dt is not None and grid.steps is not None
    phase = tone.frequency * np.arange(grid.steps) * grid.dt
    wave = np.sin(2 * np.pi * phase)
    if tone.cycles is None:
        return np.asarray(wave * (np.minimum(1.0, phase / tone.ramp) if tone.ramp > 0 else 1.0))
    burst = phase <= tone.cycles
    return np.asarray((wave * np.sin(np.pi * phase / tone.cycles) ** 2)[burst])


def signals_of(case: UltrasoundCase) -> list[list[int]]:
    """Return the numbers of the sources of each emitter, which are those with the same signal."""
    groups: dict[tuple[float, float | None, float], list[int]] = {}
    for number, source in enumerate(case.source):
        if isinstance(source, Signal):
            groups.setdefault((source.frequency, source.cycles, source.ramp), []).append(number)
    return list(groups.values())


def _source(case: UltrasoundCase, grid: Grid, folder: Path, steering: Mapping[int, float]) -> Source:
    pressure: npt.NDArray[np.float64] | None = None
    for number, source in enumerate(case.source):
        if isinstance(source, InitialPressure):
            values = source.field(f"source[{number}]", grid, folder)
            pressure = values if pressure is None else pressure + values
    emitters = []
    for source_indices in signals_of(case):
        tones = {number: cast(Signal, case.source[number]) for number in source_indices}
        max_amplitude = max(tone.amplitude for tone in tones.values())
        emitters.append(
            Emitter(
                [shape_of(tone, grid, f"source[{number}]") for number, tone in tones.items()],
                max_amplitude * signal_of(tones[source_indices[0]], grid),
                delays=[tone.delay + steering.get(number, 0.0) for number, tone in tones.items()],
                apodisation=[tone.amplitude / max_amplitude for tone in tones.values()],
            )
        )
    return Source(p0=pressure, emitters=tuple(emitters))


def _ring(case: UltrasoundCase, grid: Grid) -> npt.NDArray[np.bool_] | None:
    """Return the points of `record.ring` as a mask; CaseError if there are none."""
    ring = case.record.ring
    if ring is None:
        return None
    check_axes("record.ring.center", ring.center, grid)
    mask = np.asarray(np.abs(distance(grid, ring.center) - ring.radius) <= min(grid.spacings) / 2)
    if not mask.any():
        raise CaseError("record.ring: no point of the grid is near the ring; check center and radius")
    return mask


def sensor_of(case: UltrasoundCase, grid: Grid, mask: npt.NDArray[np.bool_] | None) -> Sensor:
    """Return the sensor of a case with the `mask` of its ring."""
    record = case.record
    assert grid.dt is not None and grid.steps is not None
    start = record.start if isinstance(record.start, int) else round(record.start / grid.dt)
    for number, position in enumerate(record.points):
        check_axes(f"record.points[{number}]", position, grid)
    elements = [shape_of(table, grid, f"record.element[{k}]") for k, table in enumerate(record.element)]
    has_sensors = record.points or record.ring is not None or elements
    response = record.frequency_response
    window = None
    if record.frequencies:
        steps = round(record.periods / min(record.frequencies) / grid.dt)
        if not 0 < steps <= grid.steps:
            raise CaseError(
                f"record.periods: {record.periods} periods of {min(record.frequencies):g} Hz are {steps} steps, but the"
                f" run has {grid.steps}"
            )
        window = (grid.steps - steps, grid.steps)
    return Sensor(
        mask=mask,
        directions=_directions(record, grid, mask),
        positions=np.asarray(record.points) if record.points else None,
        elements=elements or None,
        record=(*(record.quantities if has_sensors else ()), *record.maps),
        first=start,
        frequencies=record.frequencies,
        frequency_window=window,
        frequency_response=None if response is None else (response.center, response.width),
        absorbed_power=case.heat is not None and case.medium.is_elastic,
    )


def _directions(record: RecordTable, grid: Grid, mask: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.float64] | None:
    """Return `record.direction` as one vector (axes,), or one for each point of the ring; None without them."""
    if record.direction is None or (record.ring is not None and mask is None):
        return None
    if isinstance(record.direction, str):
        assert record.ring is not None and mask is not None
        numbers = np.nonzero(mask)
        places = [np.asarray(grid.positions(axis))[k] for axis, k in zip(grid.axes, numbers, strict=True)]
        return np.asarray(np.stack(places, axis=1) - np.asarray(record.ring.center))
    check_axes("record.direction", record.direction, grid)
    return np.asarray(record.direction, np.float64)


def decompose(setup: UltrasoundSetup, ranks: int) -> Decomposition:
    """Return the partition of the grid.

    With `run.error`, the overlap is the smallest one with a sufficiently small predicted error. If there is none, the
    basis "auto" becomes "global".

    Raises:
        CaseError: there is no such overlap, or no source has a frequency.
    """
    run, problem = setup.case.run, setup.problem
    if ranks == 1:
        return Decomposition()
    basis = basis_of(run.basis, run.scheme, problem.shape, elastic=problem.elastic is not None)
    if run.split is not None and basis == "global":
        raise CaseError(f"run.split: {run.split} is only allowed with the local basis; the global basis uses slabs")
    if run.error is None or basis == "global":
        return Decomposition(basis, OVERLAP if run.overlap is None else run.overlap, run.split, transport=run.transport)
    frequencies = [source.frequency for source in setup.case.source if hasattr(source, "frequency")]
    if not frequencies:
        raise CaseError("run.error: no source has a frequency, which the prediction needs; use run.overlap")
    predicted_error = np.inf
    for width in WIDTHS:
        try:
            parts = local_parts(setup, ranks, run.split, width)
        except CaseError:
            break
        predicted_error = error_of_ranks(problem, parts, max(frequencies))
        if predicted_error <= run.error:
            return Decomposition(basis, width, run.split, transport=run.transport)
    if basis == "auto" and run.split is None:
        return Decomposition("global", transport=run.transport)
    remedy = 'run.basis = "global"' if problem.elastic is None else "fewer ranks or a finer grid"
    raise CaseError(
        f"run.error: {run.error:g} cannot be reached with {ranks} ranks; the error of the widest overlap is"
        f" {predicted_error:.1e}; use {remedy}"
    )


def local_parts(setup: UltrasoundSetup, ranks: int, split: tuple[int, ...] | None, overlap: int) -> list[Part]:
    """Return the parts of the local basis; overlaps are wider than `overlap` if the line transforms require it.

    Raises:
        CaseError: the grid cannot be partitioned in this way.
    """
    run, elastic = setup.case.run, setup.problem.elastic is not None
    options = {"device": run.device, "precision": run.precision, "scheme": run.scheme}
    lines = line_precision(options, elastic=elastic)
    return parts_for(setup.problem.shape, ranks, "local", split=split, overlap=overlap, lines=lines)


def error_of_ranks(problem: Problem, parts: Sequence[Part], frequency: float) -> float:
    """Return the predicted relative error of a wave, and of its onset, that crosses the cuts of the local basis."""
    cfl = problem.dt * problem.reference_speed / min(problem.spacing)
    resolved = points_per_wavelength(problem, frequency)
    width = min_overlap(parts)
    per_cut = np.hypot(crossing_error(resolved, width, cfl=cfl), onset_error(problem, width, cfl))
    return float(cuts_along_diagonal(parts) * per_cut)


def check_limits(setup: UltrasoundSetup, ranks: int) -> None:
    """Raise a CaseError for a case that cannot run on `ranks` ranks, before anything is allocated."""
    if ranks == 1:
        return
    try:
        if setup.grid.symmetry is not None:
            check_axisymmetric_support(setup.case.run.scheme, ranks)
        decompose(setup, ranks)
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None
