# SPDX-License-Identifier: BSD-3-Clause
"""Energy of linear waves without losses, and the energy that sources can supply (theory/ultrasound, eqs. 38 and 39)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.advice import frequency_range
from seiche.ultrasound.problem import Field, Floats, MaskSource, Problem
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.source_stages import on_density

#: Points whose fields are downloaded at a time, and rows of signals that are squared at a time.
_POINTS, _ROWS = 1 << 22, 256
#: Highest frequency with significant energy, divided by that at which amplitudes exceed 10 % of the largest.
_HARMONIC = 2.0


def has_energy(problem: Problem) -> bool:
    """Return whether the medium is a linear fluid without losses and the axes are Cartesian.

    No wave then gains or loses energy, and every point has the same volume.
    """
    is_cartesian_fluid = problem.outer_end is None and problem.elastic is None
    return is_cartesian_fluid and problem.BonA is None and problem.absorption is None and problem.relaxation is None


def energy(solver: UltrasoundSolver) -> float:
    """Return the energy (J; per m in 2D, per m2 in 1D) of pressure and velocity on all ranks (collective).

    Velocities are half a step earlier than pressures.
    """
    problem, windows = solver.problem, solver.part.windows
    axes = problem.axes
    names = ("p", *(f"u{axis}" for axis in axes))
    fields = solver.device_fields(names)
    rows = max(1, _POINTS // max(1, math.prod(window.core for window in windows[1:])))
    total = 0.0
    for first in range(0, windows[0].core, rows):
        count = min(rows, windows[0].core - first)
        part = (slice(first, first + count), *(slice(window.core) for window in windows[1:]))
        interior = tuple(
            slice(window.start + cut.start, window.start + cut.stop)
            if k == 0
            else slice(window.start, window.start + window.core)
            for k, (window, cut) in enumerate(zip(windows, part, strict=True))
        )
        values = [np.asarray(solver.backend.download(fields[name][part]), np.float64) for name in names]
        density, speed = (_at(field, interior) for field in (problem.density, problem.sound_speed))
        total += float(np.sum(values[0] ** 2 / (density * speed**2)))
        for axis, velocity in enumerate(values[1:]):
            total += float(np.sum(_staggered_density(problem, axis, interior) * velocity**2))
    volume = math.prod(problem.spacing)
    return 0.5 * volume * float(solver.world.allreduce_sum(np.array([total]))[0])


def _at(field: Field, region: tuple[slice, ...]) -> Floats:
    return np.asarray(field, np.float64) if np.ndim(field) == 0 else np.asarray(np.asarray(field)[region], np.float64)


def _staggered_density(problem: Problem, axis: int, region: tuple[slice, ...]) -> Floats:
    """Return the density half a spacing further along an axis."""
    if problem.staggered_density is not None:
        return _at(problem.staggered_density[axis], region)
    if np.ndim(problem.density) == 0:
        return np.asarray(problem.density, np.float64)
    cut = region[axis]
    next_index = np.minimum(np.arange(cut.start, cut.stop) + 1, problem.shape[axis] - 1)
    own_density = np.asarray(problem.density)[region]
    next_density = np.take(
        np.asarray(problem.density)[(*region[:axis], slice(None), *region[axis + 1 :])], next_index, axis
    )
    return np.asarray(0.5 * (own_density + next_density), np.float64)


class SourceEnergy:
    """Largest growth of the square root of the energy due to the sources of a solver."""

    def __init__(self, solver: UltrasoundSolver) -> None:
        """Compute the energies of the increments of all steps, from the whole problem (not collective)."""
        self._solver, problem = solver, solver.problem
        self._sums = [
            (source, np.concatenate([[0.0], np.cumsum(np.sqrt(increments(source, problem)))]))
            for source in problem.sources
            if source.mode != "dirichlet"
        ]
        self._prescribed = max((source.steps for source in problem.sources if source.mode == "dirichlet"), default=0)

    def __call__(self, first: int, last: int) -> float:
        """Return the largest growth in the steps first + 1 ... last; infinite while a pressure or velocity is set."""
        if first < self._prescribed:
            return math.inf
        factor = self._solver.sources.factor
        return float(
            sum(
                abs(factor(source.origin)) * (sums[min(last, len(sums) - 1)] - sums[min(first, len(sums) - 1)])
                for source, sums in self._sums
            )
        )


def increments(source: MaskSource, problem: Problem) -> Floats:
    """Return the energy of what an additive source adds to a field in each step, (steps,)."""
    points = source.points
    speed, density = (
        np.full(len(points), field) if np.ndim(field) == 0 else np.asarray(field, np.float64).ravel()[points]
        for field in (problem.sound_speed, problem.density)
    )
    scale = (problem.dimensions * speed) ** 2 / density if on_density(source) else density
    if source.weights is not None:
        scale = scale * np.asarray(source.weights, np.float64) ** 2
    return 0.5 * math.prod(problem.spacing) * np.concatenate([*_squares(source, np.asarray(scale, np.float64))])


def _squares(source: MaskSource, scale: Floats) -> Iterator[Floats]:
    """Yield the sums over the points of the squared samples times `scale`, for the steps of a source in turn."""
    samples = source.samples
    common = samples.shape[1] == 1
    if source.delays is not None and common:
        by_delay = np.bincount(source.delays, scale)
        yield np.correlate(np.asarray(samples[:, 0], np.float64) ** 2, by_delay, "valid")[: source.steps]
        return
    column = np.arange(samples.shape[1])
    for first in range(0, source.steps, _ROWS):
        steps = np.arange(first, min(first + _ROWS, source.steps))
        if source.delays is None:
            rows: npt.NDArray[np.float64] = np.asarray(samples[steps], np.float64)
            yield (rows[:, 0] ** 2 * scale.sum()) if common else rows**2 @ scale
        else:
            yield np.array([np.asarray(samples[t + source.delays, column], np.float64) ** 2 @ scale for t in steps])


def staggering(problem: Problem) -> float:
    """Return the largest ratio between energies of one wave, minus one, since velocities are half a step earlier.

    It is infinite if the time step is too long for the highest frequency.
    """
    largest = math.sqrt(sum((math.pi / spacing) ** 2 for spacing in problem.spacing)) * problem.reference_speed
    frequencies = frequency_range(problem) if problem.initial_pressure is None else None
    if frequencies is not None:
        largest = min(largest, 2.0 * math.pi * _HARMONIC * frequencies[1])
    sine = (
        float(np.max(problem.sound_speed)) / problem.reference_speed * math.sin(min(largest * problem.dt, math.pi) / 2)
    )
    return 2.0 * sine / (1.0 - sine) if sine < 1.0 else math.inf
