# SPDX-License-Identifier: BSD-3-Clause
"""The wave of a volume source in a homogeneous fluid, to a given error: Seiche and Devito.

Density and sound speed are 1. The source is rho q'(t) delta(x) with a Gaussian q of width `SIGMA`; the exact
pressure is q'(t - r)/(4 pi r). The cube is so large that no reflection arrives at the receivers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.peers.program import Place, Program, UnavailableError

Floats: TypeAlias = npt.NDArray[np.float64]
Parameters = Mapping[str, Any]

SIGMA, DELAY = 0.5, 3.0
#: Where the spectrum w exp(-w^2 sigma^2/2) of the source is 1 % of its peak: w sigma = 3.57.
SHORTEST_WAVELENGTH = 2 * math.pi * SIGMA / 3.57
#: Positions of the receivers, divided by the greatest distance along an axis.
DIRECTIONS = ((1.0, 0.0, 0.0), (0.6, 0.5, 0.4), (-0.3, 0.8, 0.0), (0.2, -0.5, -0.7))


@dataclass(frozen=True)
class Setting:
    """Half the edge of the cube, the greatest distance of receivers along an axis, and the duration.

    The last of the direct wave has passed the receivers before the first reflection arrives.
    """

    half: float
    reach: float
    duration: float

    @classmethod
    def of(cls, edge: float) -> Setting:
        """Return the setting of a cube of `edge` shortest wavelengths."""
        half = 0.5 * edge * SHORTEST_WAVELENGTH
        reach = half - 4.5 * SIGMA
        return cls(half, reach, DELAY + reach + 4.5 * SIGMA)


def source(t: Floats) -> Floats:
    """Return q'(t)."""
    z = (t - DELAY) / SIGMA
    return np.asarray(-z / SIGMA * np.exp(-0.5 * z * z) / (SIGMA * math.sqrt(2 * math.pi)))


def largest_error(times: Floats, pressures: Floats, receivers: Floats) -> float:
    """Return the largest error of the `pressures` (times, receivers), relative to the peak of each receiver."""
    r = np.linalg.norm(receivers, axis=1)
    exact = source(times[:, None] - r) / (4 * math.pi * r)
    return float((np.abs(pressures - exact).max(axis=0) / np.abs(exact).max(axis=0)).max())


#: A run: seconds of its steps, error, description of the grid.
Run: TypeAlias = tuple[float, float, dict[str, Any]]


def coarsest(runs: Iterator[Callable[[], Run]], bound: float) -> Callable[[], tuple[float, Mapping[str, Any]]]:
    """Return a measurement of the first of the `runs`, from coarse to fine, with an error of at most `bound`."""
    errors = []
    for run in runs:
        _, error, _ = run()
        if error <= bound:

            def measure(run: Callable[[], Run] = run) -> tuple[float, Mapping[str, Any]]:
                seconds, error, grid = run()
                return seconds, {"error": error, **grid}

            return measure
        errors.append(round(error, 4))
    raise UnavailableError(f"no grid has an error below {bound:g}: {errors}")


def seiche(parameters: Parameters, place: Place) -> Program:
    """Return discontinuous elements of six nodes a direction."""
    import seiche as package
    from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Solver

    setting, nodes = Setting.of(parameters["edge"]), 6
    receivers = setting.reach * np.array(DIRECTIONS)

    def run(per_wavelength: float) -> Run:
        elements = math.ceil(parameters["edge"] * per_wavelength / nodes)
        spacing = 2 * setting.half / elements
        brick = Brick((elements,) * 3, (False,) * 3)
        mesh = Mesh.of_forest(Forest.uniform(brick, 0), tree_size=spacing, origin=-setting.half)
        solver = Solver(
            mesh,
            Material.uniform(mesh.count, 1.0, 1.0),
            nodes=nodes,
            precision="float32",
            device=place.device,
            threads=place.threads,
            sources=[PointSource((0.0, 0.0, 0.0), Gaussian(SIGMA, DELAY), volume=1.0)],
            receivers=receivers.tolist(),
            sample_every=2,
        )
        samples = int(setting.duration / (2 * solver.dt))
        begin = time.perf_counter()
        solver.advance(2 * samples)
        pressures = solver.samples()[..., 0]
        elapsed = time.perf_counter() - begin
        times = 2 * solver.dt * np.arange(1, samples + 1, dtype=np.float64)
        grid = {"points per wavelength": elements * nodes / parameters["edge"], "steps": 2 * samples}
        return elapsed, largest_error(times, pressures, receivers), grid

    tries = (lambda p=p: run(p) for p in (3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 10.0))
    return Program(package.__version__, coarsest(tries, parameters["bound"]))


def devito(parameters: Parameters, place: Place) -> Program:
    """Return finite differences of order 8 in space and 4 in time, receivers and source on points of the grid."""
    try:
        import devito as package
    except ImportError as error:
        raise UnavailableError("pip install devito") from error
    if place.on_gpu:
        raise UnavailableError("the open Devito needs a compiler for GPUs that this comparison does not set up")
    package.configuration["language"], package.configuration["log-level"] = "openmp", "ERROR"
    setting = Setting.of(parameters["edge"])

    def run(per_wavelength: float) -> Run:
        points = 2 * math.ceil(0.5 * parameters["edge"] * per_wavelength) + 1
        h = 2 * setting.half / (points - 1)
        dt = 0.6 * h  # the limit in three dimensions with these orders is about 0.8 h
        steps = math.ceil(setting.duration / dt)
        grid = package.Grid(
            shape=(points,) * 3, extent=(2 * setting.half,) * 3, origin=(-setting.half,) * 3, dtype=np.float32
        )
        u = package.TimeFunction(name="u", grid=grid, time_order=2, space_order=8)
        s = grid.stepping_dim.spacing
        laplacian = u.laplace + s**2 / 12 * u.biharmonic(1)
        update = package.Eq(u.forward, 2 * u - u.backward + s**2 * laplacian)
        shot = package.SparseTimeFunction(name="shot", grid=grid, npoint=1, nt=steps + 1, coordinates=np.zeros((1, 3)))
        times = dt * np.arange(steps + 1)
        shot.data[:, 0] = source(times)
        receivers = h * np.round(setting.reach * np.array(DIRECTIONS) / h)
        record = package.SparseTimeFunction(
            name="record", grid=grid, npoint=len(receivers), nt=steps + 1, coordinates=receivers
        )
        equations = [update, shot.inject(u.forward, expr=shot * s**2 / h**3), record.interpolate(u)]
        operator = package.Operator(equations)
        operator.cfunction  # noqa: B018 - compiles
        begin = time.perf_counter()
        operator.apply(time_m=0, time_M=steps - 1, dt=dt, nthreads=place.threads)
        elapsed = time.perf_counter() - begin
        error = largest_error(times[:steps], np.asarray(record.data[:steps], np.float64), receivers)
        return elapsed, error, {"points per wavelength": (points - 1) / parameters["edge"], "steps": steps}

    tries = (lambda p=p: run(p) for p in (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 10.0))
    return Program(version("devito"), coarsest(tries, parameters["bound"]))


PROGRAMS = {"seiche": seiche, "devito": devito}
