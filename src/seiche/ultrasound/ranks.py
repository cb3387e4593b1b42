# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound on several ranks: a part of the grid a rank (theory/ultrasound, sections 12 and 13)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.machine.collectives import WAYS
from seiche.ultrasound.advice import advice
from seiche.ultrasound.extents import lines_of, widened
from seiche.ultrasound.gathered import GatheredRows
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.local_basis import least_overlap, part_problem, points_in, taken
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.overlaps import LocalBasis
from seiche.ultrasound.plan import parts_for, plan_of
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.records import Request, finished
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.simulate import (
    PML_ALPHA,
    Layers,
    problem_of,
    refuse_others,
    refuse_unstable,
    request_of,
    results_of,
)
from seiche.ultrasound.slabs import Slabs, column_problem, slab_problem
from seiche.ultrasound.solver import Solver
from seiche.ultrasound.source import Source

#: Width of the overlaps by default: errors of 1e-3 to 1e-4 at four points a wavelength.
OVERLAP = 12


class RanksSolver:
    """A problem on all ranks of a world; every method is collective and returns the same on all of them.

    Args:
        problem: the whole problem, the same on every rank.
        world: the ranks.
        split: pieces along each axis; by default those with the least work.
        overlap: points that parts share with each neighbour, at least: some more where that makes parts whose lines the
            kernels can transform (`Solver`).
        slope: of the bell.
        transport: how messages travel.
        basis: "local" as above, "global": slabs whose transforms cover the whole grid (slabs.py, two_layouts.py), or
            "auto": what the machine file in use makes the faster. By default local, global for schemes along one axis.
        record: what sensors record; no velocities at the grid's points, no sensors between points.
        options: of `Solver`.

    Raises:
        CaseError: the grid cannot be cut, or something is not recorded on several ranks.
    """

    def __init__(
        self,
        problem: Problem,
        world: World,
        *,
        split: tuple[int, ...] | None = None,
        overlap: int = OVERLAP,
        slope: float | None = None,
        transport: str = "auto",
        basis: str | None = None,
        record: Request | None = None,
        **options: Any,
    ) -> None:
        """Cut the problem and make the solver of this rank's part."""
        request = record or Request()
        refuse_on_ranks(request)
        options["threads"] = world.threads(options.get("threads"))
        exact = options.get("scheme", "exact") == "exact"
        basis = basis or ("local" if exact else "global")
        self.plan = plan_of(problem, world, basis, options, split=split, overlap=overlap)
        basis = self.plan.basis
        lines = lines_of(options)
        self.parts = parts_for(problem.shape, world.size, basis, split=self.plan.split, overlap=overlap, lines=lines)
        if basis == "local" and lines is not None and world.size > 1:
            self._fix_transforms(lines, options)
        self.problem, self.world, self.recorder = problem, world, self
        self.part = self.parts[world.rank]
        self.sensors = 0 if request.points is None else len(request.points)
        self._chosen = np.zeros(0, np.int64)
        local: npt.NDArray[np.int64] | None = None
        if request.points is not None:
            self._chosen, local = points_in(request.points, problem.shape, self.part, core=True)
        quantities = tuple(name for name in request.quantities if name.endswith("_all") or len(self._chosen))
        self._rows = None if request.sink is None else GatheredRows(world, self._chosen, self.sensors, request.sink)
        self.basis: LocalBasis | Slabs
        if basis == "local":
            self.basis, part = LocalBasis(world, self.parts, slope, transport), part_problem(problem, self.part)
        else:
            columns = None if exact else column_problem(problem, world.size, world.rank)
            self.basis = Slabs(world, self.parts, transport if transport in WAYS else "auto", columns)
            part = slab_problem(problem, self.parts, world.rank, axis_wise=not exact)
        self.solver = Solver(
            part,
            local=self.basis,
            record=replace(request, points=local, quantities=quantities, sink=self._rows),
            **options,
        )
        for exchange in self.basis.exchanges if isinstance(self.basis, LocalBasis) else ():
            exchange.beside = lambda name: self.solver.timers.beside(name)

    def _fix_transforms(self, lines: Real, options: dict[str, Any]) -> None:
        """Let all ranks take lines, or none: where a part's cannot be transformed, those of a library."""
        if widened(self.parts, lines) is not None:
            options["transforms"] = "lines"
        elif options.get("transforms") != "lines":
            options["transforms"] = "library"
        else:
            sizes = "; ".join(sorted({"x".join(map(str, part.shape)) for part in self.parts}))
            raise CaseError(f"transforms: no lines near those of parts of {sizes} points have factors of at most 7")

    @property
    def overlap(self) -> int:
        """Return the width of the narrowest overlap, 0 where transforms cover the whole grid."""
        return least_overlap(self.parts)

    @property
    def time_step(self) -> int:
        """Return how many steps are done."""
        return self.solver.time_step

    @property
    def backend(self) -> Backend:
        """Return the device of this rank."""
        return self.solver.backend

    def run(self, steps: int | None = None) -> None:
        """Advance by `steps`, or to the end.

        Raises:
            UnstableError: the pressure is no longer finite, on every rank.
        """
        self.solver.run(steps)
        if self._rows is not None:
            self._rows.hand_on()

    def restore(
        self, time_step: int, fields: Mapping[str, npt.NDArray[Any]], aggregates: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Go on from `time_step` with whole fields, and with what `raw_aggregate` returned, as `Solver.restore`."""

        def mine(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return taken(np.reshape(values, self.problem.shape), self.part.windows, clipped=False)

        here = {
            name: mine(aggregates[name]).reshape(-1) if name.endswith("_all") else aggregates[name][self._chosen]
            for name in self.solver.recorder.aggregates
        }
        self.solver.restore(time_step, {name: mine(values) for name, values in fields.items()}, here)

    def field(self, name: str) -> npt.NDArray[Any]:
        """Return a field over the whole grid, by the names of `Solver.field`."""
        return self._whole(self.solver.field(name))

    def series_names(self) -> tuple[str, ...]:
        """Return the names of the series of all ranks."""
        every = self.world.allgather(self.solver.recorder.series_names())
        return tuple(dict.fromkeys(name for names in every for name in names))

    def series(self, name: str) -> npt.NDArray[Any]:
        """Return a series: (steps recorded, sensors)."""
        recorder = self.solver.recorder
        here = recorder.series(name) if name in recorder.series_names() else None
        found = [(chosen, part) for chosen, part in self.world.allgather((self._chosen, here)) if part is not None]
        whole = np.zeros((len(found[0][1]), self.sensors), found[0][1].dtype)
        for chosen, part in found:
            whole[:, chosen] = part
        return whole

    @property
    def aggregates(self) -> tuple[str, ...]:
        """Return the names of the aggregates of all ranks (collective)."""
        every = self.world.allgather(tuple(self.solver.recorder.aggregates))
        return tuple(dict.fromkeys(name for names in every for name in names))

    def raw_aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return an aggregate as it is while it runs, flat, as `Recorder.raw_aggregate`."""
        recorder = self.solver.recorder
        if name.endswith("_all"):
            return self._whole(recorder.raw_aggregate(name).reshape(self.part.shape)).reshape(-1)
        here = recorder.raw_aggregate(name) if name in recorder.aggregates else np.zeros(0, self.solver.state.real)
        whole = np.zeros(self.sensors, here.dtype)
        for chosen, part in self.world.allgather((self._chosen, here)):
            whole[chosen] = part
        return whole

    def aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return an aggregate: (sensors,), or the grid's shape for "_all"."""
        return finished(name, self.raw_aggregate(name), self.solver.recorder.recorded, self.problem.shape)

    def amplitude_and_phase(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return amplitude (Pa) and phase (rad) over the whole grid."""
        amplitude, phase = self.solver.recorder.amplitude_and_phase(number)
        return self._whole(amplitude), self._whole(phase)

    def close(self) -> None:
        """Give back what transports hold."""
        self.basis.close()

    def _whole(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        whole = np.empty(self.problem.shape, values.dtype)
        cores = self.world.allgather(np.ascontiguousarray(values[self.part.core]))
        for part, core in zip(self.parts, cores, strict=True):
            whole[part.place] = core
        return whole


def refuse_on_ranks(request: Request) -> None:
    """Refuse what only one rank computes.

    Raises:
        CaseError: sensors between points, or velocities at the grid's points.
    """
    if request.nodes is not None:
        raise CaseError("sensor.positions: sensors between points do not go with several ranks; use a mask")
    if any(name == "u_non_staggered" for name in request.quantities):
        raise CaseError("record: velocities at the grid's points and intensities do not go with several ranks")


def simulate_on_ranks(
    grid: Grid,
    medium: Medium,
    source: Source,
    sensor: Sensor,
    *,
    world: World | None = None,
    overlap: int = OVERLAP,
    split: tuple[int, ...] | None = None,
    slope: float | None = None,
    transport: str = "auto",
    basis: str | None = None,
    scheme: str = "exact",
    pml_size: int | tuple[int, ...] | None = None,
    pml_alpha: float | tuple[float, ...] = PML_ALPHA,
    pml_inside: bool = True,
    smooth_p0: bool = True,
    device: str = "cpu",
    precision: str = "float32",
    threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return what the sensor recorded, on every rank, as `simulate` does on one; all ranks call it together.

    What speaks against a problem is warned of on rank 0.

    Args:
        grid: as of `simulate`, as are the arguments that it has, too.
        medium: what waves travel in.
        source: what makes them.
        sensor: what is recorded: masks, cuboids and whole-grid records.
        world: the ranks; those of mpiexec by default.
        overlap: points that parts share with each neighbour, 4 to 32.
        split: pieces along each axis; by default those with the least work.
        slope: of the bell.
        transport: how messages travel.
        basis: as of `RanksSolver`.
        scheme: "exact", "separable" or "local4".
        pml_size: points of the absorbing layer.
        pml_alpha: its strength.
        pml_inside: whether it is a part of the grid.
        smooth_p0: smooth the initial pressure.
        device: "cpu", "cuda" or "cuda:1".
        precision: "float32" or "float64".
        threads: CPU threads of each rank.

    Raises:
        CaseError: something impossible is asked for.
        UnstableError: the pressure is no longer finite.
        BackendUnavailable: no such device, or too little memory.
    """
    world = world or World.from_mpi()
    refuse_others(grid, medium, source, sensor)
    grid = grid.completed(medium.sound_speed)
    layers = Layers.of(grid, pml_size, pml_alpha, pml_inside)
    sensor.check(grid)
    problem = problem_of(grid, medium, source, layers, smooth_p0=smooth_p0)
    refuse_unstable(problem, scheme)
    if world.rank == 0:
        for line in advice(problem, scheme):
            warnings.warn(line, stacklevel=2)
    solver = RanksSolver(
        problem,
        world,
        split=split,
        overlap=overlap,
        slope=slope,
        transport=transport,
        basis=basis,
        record=request_of(grid, sensor, layers),
        scheme=scheme,
        device=device,
        precision=precision,
        threads=threads,
    )
    solver.run()
    results = results_of(solver, sensor, layers)
    solver.close()
    return results
