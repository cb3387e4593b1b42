# SPDX-License-Identifier: BSD-3-Clause
"""Simulations of many sources in one medium, such as the lines of a scan, several at once on one device.

The arrays of the medium and of the operators exist once. Every line has its own fields and its own records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.backend.host_threads import host_threads
from seiche.errors import CaseError
from seiche.solver.estimate import warnings_of
from seiche.solver.together import advance_together
from seiche.ultrasound.advice import estimates
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import whole_number
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.simulate import (
    PML_ALPHA,
    Layers,
    check_stability,
    check_types,
    problem_of,
    request_of,
    results_of,
    with_source,
)
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.source import Source

#: Limits of lines at once on a GPU: their number, and the points of all of them.
_MAX_LINES, _MAX_POINTS = 32, 1 << 25
#: Share of the free memory that lines may use, and bytes of the records of a line.
_MEMORY_SHARE, _RECORD_BYTES = 0.7, 64 << 20

Results = dict[str, npt.NDArray[Any]]


def simulate_lines(
    grid: Grid,
    medium: Medium,
    sources: Sequence[Source],
    sensor: Sensor,
    *,
    at_once: int | None = None,
    pml_size: int | tuple[int, ...] | None = None,
    pml_alpha: float | tuple[float, ...] = PML_ALPHA,
    pml_inside: bool = True,
    smooth_p0: bool = True,
    scheme: str = "exact",
    device: str = "cpu",
    precision: str = "float32",
    threads: int | None = None,
) -> list[Results]:
    """Return the records of one simulation for each source: the same bits as `simulate` with each of them.

    The medium is set up once. On a CPU, lines run at the same time on different threads, which for small grids is
    faster than all threads on one line after another. On a GPU, the steps of several lines overlap.

    Args:
        grid: with its time steps, as of `simulate`.
        medium: of all lines.
        sources: one for each line.
        sensor: of all lines.
        at_once: lines in memory at the same time; by default as many as threads, or on a GPU up to 32, if they fit.
        pml_size: as of `simulate`, like the following arguments.
        pml_alpha: as of `simulate`.
        pml_inside: as of `simulate`.
        smooth_p0: as of `simulate`.
        scheme: as of `simulate`.
        device: as of `simulate`.
        precision: as of `simulate`.
        threads: CPU threads of all lines together.

    Raises:
        CaseError: an impossible value; names the argument.
        UnstableError: the pressure is no longer finite.
        BackendUnavailable: no such device, or too little memory.
    """
    if not len(sources):
        raise CaseError("sources: there are none; expected one for each line")
    for source in sources:
        check_types(grid, medium, source, sensor)
    grid = grid.completed(medium.sound_speed)
    layers = Layers.of(grid, pml_size, pml_alpha, pml_inside)
    sensor.check(grid)
    sensor.check_medium(elastic=medium.shear_speed is not None)
    problem = problem_of(grid, medium, sources[0], layers, smooth_p0=smooth_p0)
    check_stability(problem, scheme)
    for line in warnings_of(estimates(problem, scheme)):
        warnings.warn(line, stacklevel=2)
    backend = open_backend(device, threads)
    workers = 1 if backend.is_gpu else threads or host_threads()
    most = min(_MAX_LINES, max(1, _MAX_POINTS // problem.points)) if backend.is_gpu else workers
    record = request_of(grid, sensor, layers, elastic=problem.elastic is not None)
    wanted = most if at_once is None else whole_number("at_once", at_once)
    if wanted < 1:
        raise CaseError(f"at_once: {wanted} is not a whole number >= 1")
    if at_once is None:
        stored = len(record.quantities) + 2 * len(sensor.frequencies)
        wanted = min(wanted, max(1, _fitting_lines(problem, precision, stored, backend.free_memory())))
    count = min(wanted, len(sources))
    options: dict[str, Any] = {"precision": precision, "scheme": scheme, "record": record, "device": device}
    options["threads"] = threads if backend.is_gpu else max(1, workers // count)

    def opened(k: int, shared: UltrasoundSolver | None) -> UltrasoundSolver:
        own = problem if k == 0 else with_source(problem, grid, sources[k], layers, smooth_p0=smooth_p0)
        return UltrasoundSolver(own, shared=shared, **options)

    def finished(solver: UltrasoundSolver) -> Results:
        results = results_of(solver, sensor, layers)
        solver.close()
        return results

    first = opened(0, None)
    for line in first.backend.notes:
        warnings.warn(line, stacklevel=2)
    run = _in_batches if backend.is_gpu else _in_threads
    return run(first, opened, finished, lines=len(sources), at_once=count)


def _in_threads(
    first: UltrasoundSolver,
    opened: Callable[[int, UltrasoundSolver | None], UltrasoundSolver],
    finished: Callable[[UltrasoundSolver], Results],
    *,
    lines: int,
    at_once: int,
) -> list[Results]:
    """Return the records of all lines, each of which runs in one of `at_once` threads of Python."""

    def run(k: int) -> Results:
        solver = first if k == 0 else opened(k, first)
        solver.advance(solver.problem.steps)
        return finished(solver)

    if at_once == 1:
        return [run(k) for k in range(lines)]
    pool = ThreadPoolExecutor(at_once)
    try:
        return list(pool.map(run, range(lines)))
    finally:
        pool.shutdown(cancel_futures=True)


def _in_batches(
    first: UltrasoundSolver,
    opened: Callable[[int, UltrasoundSolver | None], UltrasoundSolver],
    finished: Callable[[UltrasoundSolver], Results],
    *,
    lines: int,
    at_once: int,
) -> list[Results]:
    """Return the records of all lines, `at_once` of which advance together."""
    results: list[Results] = []
    for begin in range(0, lines, at_once):
        batch = [first if k == 0 else opened(k, first) for k in range(begin, min(begin + at_once, lines))]
        advance_together(batch, batch[0].problem.steps)
        results += [finished(solver) for solver in batch]
    return results


def _fitting_lines(problem: Problem, precision: str, records: int, free: int) -> int:
    """Return how many lines fit the free memory in bytes (0: unknown) by an upper limit of their fields."""
    processes = 0 if problem.relaxation is None else problem.relaxation.times.shape[1]
    arrays = 1 + 5 * problem.dimensions + processes + records
    each = problem.points * np.dtype(precision).itemsize * arrays + _RECORD_BYTES
    return int(_MEMORY_SHARE * free / each) if free else problem.points
