# SPDX-License-Identifier: BSD-3-Clause
"""Simulation in one call: from grid, medium, source and sensor to recorded arrays."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.solver.estimate import warnings_of
from seiche.ultrasound.absorbed_power import elastic_power
from seiche.ultrasound.advice import estimates
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.host_fields import extremes
from seiche.ultrasound.medium import Medium, max_time_step, on_grid
from seiche.ultrasound.numbers import one_number, real_numbers, whole_number
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.problem import MAX_POINTS, Elastic, Field, Pml, Problem
from seiche.ultrasound.recorded_values import half_step_later
from seiche.ultrasound.records import Request, components_of
from seiche.ultrasound.sensor import Sensor, filtered
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.source import Source, smoothed, smoothed_about_axis
from seiche.ultrasound.tones import Harmonics

#: Points of the absorbing layer by number of dimensions, and its strength.
PML_SIZES, PML_ALPHA = {1: 20, 2: 20, 3: 10}, 2.0


@dataclass(frozen=True)
class Layers:
    """Absorbing layers: size and strength along each axis, and whether they are inside the grid.

    Along the axes in `radial` the layer is at the outer end only.
    """

    sizes: tuple[int, ...]
    alphas: tuple[float, ...]
    inside: bool
    radial: tuple[bool, ...]

    @classmethod
    def of(
        cls, grid: Grid, size: int | tuple[int, ...] | None, alpha: float | tuple[float, ...], inside: bool
    ) -> Layers:
        """Return the layers of a grid; a single number applies to every axis. Raise CaseError for other counts."""
        dimensions = len(grid.shape)
        size = PML_SIZES[dimensions] if size is None else size
        size_values = np.atleast_1d(real_numbers("pml_size", size))
        strengths = np.atleast_1d(real_numbers("pml_alpha", alpha))
        sizes = tuple(whole_number("pml_size", n) for n in size_values) * (dimensions if np.ndim(size) == 0 else 1)
        alphas = tuple(float(a) for a in strengths) * (dimensions if np.ndim(alpha) == 0 else 1)
        if len(sizes) != dimensions or len(alphas) != dimensions:
            raise CaseError(f"pml_size, pml_alpha: {size} and {alpha} are not one number for each of {dimensions} axes")
        if min(sizes) < 0:
            raise CaseError(f"pml_size: {min(sizes)} is negative")
        layers = cls(sizes, alphas, inside, tuple(grid.is_radial(axis) for axis in grid.axes))
        if math.prod(layers.enlarged(grid.shape)) >= MAX_POINTS > math.prod(grid.shape):
            raise CaseError(f"pml_size: with layers of {size} points outside, the grid has {MAX_POINTS} or more")
        return layers

    @property
    def outside(self) -> tuple[tuple[int, int], ...]:
        """Return the number of points added before the first and after the last point of each axis."""
        if self.inside:
            return ((0, 0),) * len(self.sizes)
        return tuple((0 if radial else size, size) for size, radial in zip(self.sizes, self.radial, strict=True))

    def enlarged(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a grid with the layers outside it."""
        return tuple(n + sum(added) for n, added in zip(shape, self.outside, strict=True))

    def grid_slices(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the part of an enlarged grid of `shape` that is the grid of the user."""
        return tuple(slice(before, n - after) for n, (before, after) in zip(shape, self.outside, strict=True))


def simulate(
    grid: Grid,
    medium: Medium,
    source: Source,
    sensor: Sensor,
    *,
    world: World | None = None,
    decomposition: Decomposition | None = None,
    pml_size: int | tuple[int, ...] | None = None,
    pml_alpha: float | tuple[float, ...] = PML_ALPHA,
    pml_inside: bool = True,
    smooth_p0: bool = True,
    scheme: str = "exact",
    device: str = "cpu",
    precision: str = "float32",
    threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the records of the sensor by name, on every rank; no argument is changed. Collective.

    Rank 0 issues warnings, for example about too few points per wavelength or an unsuitable scheme.

    Series are (n_sensors, n_times), aggregates (n_sensors,), whole-grid records have the grid's shape (without layers
    outside). Velocities have one entry per axis ("ux"), stresses one per pair of axes ("sxx", "sxy"). Series of cuboids
    are in the order of the cuboids, each in C order. "g" is the gradient of the pressure (Pa/m), with entries such as
    "gx". "I" is the intensity p u (in elastic media, minus stress times velocity) at the same points and times, "I_avg"
    its mean. With frequencies, "p_amplitude" and "p_phase" are (n_frequencies, *grid).

    Args:
        grid: with its time steps; defaults are a Courant number of 0.3 and one crossing of the diagonal.
        medium: acoustic properties; with a shear speed, the elastic solver is used.
        source: sources.
        sensor: sensors and records.
        world: the ranks; this process alone by default.
        decomposition: of the grid.
        pml_size: points of the absorbing layer, 20 (1D, 2D) or 10 (3D) by default.
        pml_alpha: its strength.
        pml_inside: whether it is a part of the grid; else the grid is enlarged.
        smooth_p0: smooth the initial pressure.
        scheme: "exact", "separable" or "local4".
        device: "cpu", "cuda" or "cuda:1".
        precision: "float32" or "float64".
        threads: CPU threads of each rank.

    Raises:
        CaseError: an impossible value; names the argument.
        UnstableError: the pressure is no longer finite.
        BackendUnavailable: no such device, or too little memory.
    """
    check_types(grid, medium, source, sensor)
    grid = grid.completed(medium.sound_speed)
    layers = Layers.of(grid, pml_size, pml_alpha, pml_inside)
    sensor.check(grid)
    sensor.check_medium(elastic=medium.shear_speed is not None)
    problem = problem_of(grid, medium, source, layers, smooth_p0=smooth_p0)
    check_stability(problem, scheme)
    world = world or World.serial()
    for line in warnings_of(estimates(problem, scheme)) if world.rank == 0 else ():
        warnings.warn(line, stacklevel=2)
    solver = UltrasoundSolver(
        problem,
        world=world,
        decomposition=decomposition,
        device=device,
        precision=precision,
        scheme=scheme,
        record=request_of(grid, sensor, layers, elastic=problem.elastic is not None),
        threads=threads,
    )
    for line in solver.backend.notes if world.rank == 0 else ():
        warnings.warn(line, stacklevel=2)
    solver.advance(problem.steps)
    results = results_of(solver, sensor, layers)
    solver.close()
    return results


def check_types(grid: Grid, medium: Medium, source: Source, sensor: Sensor) -> None:
    """Raise CaseError for arguments of other types, including those of k-wave-python."""
    arguments = ("grid", grid, Grid), ("medium", medium, Medium), ("source", source, Source), ("sensor", sensor, Sensor)
    for name, value, kind in arguments:
        if not isinstance(value, kind):
            raise CaseError(
                f"{name}: a {type(value).__name__} is not a seiche.ultrasound.{kind.__name__}; for objects of"
                " k-wave-python use seiche.ultrasound.kwave.kspaceFirstOrder"
            )


def check_stability(problem: Problem, scheme: str, name: str = "grid.dt") -> float:
    """Return the longest stable time step in s, or infinity; raise CaseError if that of the problem is longer."""
    limit = max_time_step(problem, scheme)
    if problem.dt > limit:
        raise CaseError(
            f"{name}: a time step of {problem.dt:.4g} s is unstable in this medium; the longest stable step is"
            f" {limit:.4g} s"
        )
    return limit


def problem_of(grid: Grid, medium: Medium, source: Source, layers: Layers, *, smooth_p0: bool = True) -> Problem:
    """Return the problem that these objects define; raise CaseError for impossible values."""
    assert grid.dt is not None and grid.steps is not None
    shape, grow = grid.shape, layers.outside

    def enlarged(value: Field) -> Field:
        return np.pad(value, grow, mode="edge") if np.ndim(value) and np.any(grow) else value

    speed = on_grid("medium.sound_speed", medium.sound_speed, shape)
    absorption, relaxation, elastic = medium.absorption(shape), medium.relaxation(shape), medium.elastic(shape)
    if relaxation is not None:
        unrelaxed_speed = relaxation.unrelaxed_speeds[relaxation.labels]
        speed = (
            float(unrelaxed_speed.ravel()[0])
            if (unrelaxed_speed == unrelaxed_speed.ravel()[0]).all()
            else unrelaxed_speed
        )
        relaxation = replace(relaxation, labels=np.pad(relaxation.labels, grow, mode="edge"))
    if elastic is not None:
        losses = elastic.shear_alpha_coeff
        elastic = Elastic(enlarged(elastic.shear_speed), None if losses is None else enlarged(losses))
    if absorption is not None:
        absorption = replace(absorption, alpha_coeff=enlarged(absorption.alpha_coeff))
    reference = extremes(speed)[1]
    if medium.sound_speed_ref is not None:
        reference = one_number("medium.sound_speed_ref", medium.sound_speed_ref)
    return Problem(
        axes=grid.axes,
        shape=layers.enlarged(shape),
        spacing=grid.spacings,
        dt=grid.dt,
        steps=grid.steps,
        reference_speed=reference,
        sound_speed=enlarged(speed),
        density=enlarged(on_grid("medium.density", medium.density, shape)),
        staggered_density=_staggered(medium, grid, enlarged),
        BonA=None if medium.BonA is None else enlarged(on_grid("medium.BonA", medium.BonA, shape)),
        absorption=absorption,
        relaxation=relaxation,
        pml=tuple(Pml(size, alpha) for size, alpha in zip(layers.sizes, layers.alphas, strict=True)),
        outer_end=None if grid.symmetry is None else grid.outer_end,
        elastic=elastic,
        **_source_of(grid, source, speed, layers, smooth_p0=smooth_p0),
    )


def with_source(problem: Problem, grid: Grid, source: Source, layers: Layers, *, smooth_p0: bool = True) -> Problem:
    """Return a problem of `problem_of` with another source; raise CaseError for an impossible one."""
    speed = problem.sound_speed
    if np.ndim(speed):
        speed = np.asarray(speed)[layers.grid_slices(problem.shape)]
    return replace(problem, **_source_of(grid, source, speed, layers, smooth_p0=smooth_p0))


def _source_of(grid: Grid, source: Source, speed: Field, layers: Layers, *, smooth_p0: bool) -> dict[str, Any]:
    """Return the initial pressure and the sources of a problem; `speed` is that of the grid without layers outside."""
    shape, grow, pressure = grid.shape, layers.outside, None
    if source.p0 is not None:
        pressure = real_numbers("source.p0", source.p0)
        if pressure.shape != shape:
            raise CaseError(f"source.p0: shape {pressure.shape} is not the grid's {shape}")
        if not np.isfinite(extremes(pressure)).all():
            raise CaseError("source.p0: not every value is a finite number")
        pressure = np.pad(pressure, grow) if np.any(grow) else pressure
        if smooth_p0:
            pressure = smoothed(pressure) if grid.symmetry is None else smoothed_about_axis(pressure)
    sources = source.on(grid, speed)
    if pressure is None and not sources:
        raise CaseError("source: has neither p0 nor a signal p, ux, uy or uz")
    moved = tuple(replace(source, points=_enlarged_indices(source.points, shape, layers)) for source in sources)
    return {"initial_pressure": pressure, "sources": moved}


def _staggered(medium: Medium, grid: Grid, enlarged: Callable[[Field], Field]) -> tuple[Field, ...] | None:
    """Return the density at staggered points of the enlarged grid, None for means; CaseError for a wrong count."""
    densities = medium.staggered_density
    if densities is None:
        return None
    if len(densities) != len(grid.shape):
        raise CaseError(
            f"medium.staggered_density: {len(densities)} arrays; expected one for each of {len(grid.shape)} axes"
        )
    return tuple(enlarged(on_grid("medium.staggered_density", density, grid.shape)) for density in densities)


def _enlarged_indices(points: npt.NDArray[np.int64], shape: tuple[int, ...], layers: Layers) -> npt.NDArray[np.int64]:
    """Return indices in the grid with the layers outside it."""
    if layers.enlarged(shape) == shape:
        return points
    indices = np.unravel_index(points, shape)
    shifted = tuple(index + before for index, (before, _) in zip(indices, layers.outside, strict=True))
    return np.asarray(np.ravel_multi_index(shifted, layers.enlarged(shape)), np.int64)


def request_of(grid: Grid, sensor: Sensor, layers: Layers, *, elastic: bool = False) -> Request:
    """Return the request of a sensor to the solver; in an `elastic` medium, intensities need stresses."""
    assert grid.steps is not None
    nodes = sensor.nodes(grid)
    quantities = [name for name in sensor.record if not name.endswith("_final") and name not in ("I", "I_avg")]
    if {"I", "I_avg"} & set(sensor.record):
        quantities += ["s_non_staggered" if elastic else "p", "u_non_staggered"]
    window = sensor.frequency_window or (sensor.first, grid.steps)
    points = _sensor_points(grid, sensor, layers)
    count = len(nodes[0]) if nodes is not None else 0 if points is None else len(points)
    return Request(
        points=points,
        directions=sensor.unit_directions(count, len(grid.shape)),
        nodes=None if nodes is None else _enlarged_indices(nodes[0], grid.shape, layers),
        weights=None if nodes is None else nodes[1],
        quantities=tuple(dict.fromkeys(quantities)),
        first=sensor.first,
        harmonics=tuple(Harmonics(f, *window) for f in sensor.frequencies),
        stress_tone=sensor.absorbed_power,
    )


def _sensor_points(grid: Grid, sensor: Sensor, layers: Layers) -> npt.NDArray[np.int64] | None:
    """Return the indices of the sensors in the grid with the layers outside it."""
    if sensor.everywhere:
        return np.arange(math.prod(layers.enlarged(grid.shape)), dtype=np.int64)
    points = sensor.points(grid)
    return None if points is None else _enlarged_indices(points, grid.shape, layers)


def results_of(solver: UltrasoundSolver, sensor: Sensor, layers: Layers) -> dict[str, npt.NDArray[Any]]:
    """Return the records of a finished solver, on every rank (collective)."""
    recorder, axes = solver.recorder, solver.problem.axes
    inside = layers.grid_slices(solver.problem.shape)
    results: dict[str, npt.NDArray[Any]] = {}
    series = {name: recorder.series(name) for name in recorder.series_names()}
    for name in sensor.record:
        if name in ("I", "I_avg"):
            for axis in axes:
                product = _intensity(series, axis, axes).T
                results[f"I{axis}{name[1:]}"] = product if name == "I" else product.mean(axis=1)
            continue
        for key in components_of(name, axes):
            if name.endswith("_final"):
                results[key] = solver.field(key.removesuffix("_final"))[inside]
            elif key in series:
                results[key] = np.ascontiguousarray(series[key].T)
                if key == "p" and sensor.frequency_response is not None:
                    results[key] = filtered(results[key], solver.dt, *sensor.frequency_response)
            else:
                values = recorder.aggregate(key)
                results[key] = values[inside] if name.endswith("_all") else values
    if sensor.frequencies:
        harmonics = [recorder.amplitude_and_phase(k) for k in range(len(sensor.frequencies))]
        results["p_amplitude"] = np.stack([amplitude[inside] for amplitude, _ in harmonics])
        results["p_phase"] = np.stack([phase[inside] for _, phase in harmonics])
    if sensor.absorbed_power:
        stresses = recorder.stress_amplitudes()
        results["absorbed_power"] = elastic_power(stresses, sensor.frequencies[0], solver.problem)[inside]
    return results


def _intensity(series: Mapping[str, npt.NDArray[Any]], axis: str, axes: Sequence[str]) -> npt.NDArray[Any]:
    """Return the component p u of the intensity, (times, sensors), in an elastic medium -s u."""
    velocities = {other: half_step_later(series[f"u{other}_non_staggered"]) for other in axes}
    if "p" in series and "sxx_non_staggered" not in series:
        return np.asarray(series["p"] * velocities[axis])
    terms = (series[f"s{min(axis, k)}{max(axis, k)}_non_staggered"] * velocities[k] for k in axes)
    return np.asarray(-sum(terms))
