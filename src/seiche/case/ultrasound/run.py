# SPDX-License-Identifier: BSD-3-Clause
"""A run of ultrasound: the solver with its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.kind import CaseRun, Match, Restart
from seiche.case.kind import Results as Summarised
from seiche.case.output import ChunkMonitor
from seiche.case.steering import Control
from seiche.case.ultrasound.outputs import Results
from seiche.case.ultrasound.setup import UltrasoundSetup, open_solver, signals_of
from seiche.domain.world import World
from seiche.ultrasound.solver import UltrasoundSolver


class UltrasoundCaseRun(CaseRun):
    """The solver of a case of ultrasound and its outputs."""

    solver: UltrasoundSolver
    usual_fields = ("pressure",)

    def __init__(self, setup: UltrasoundSetup, world: World, folder: Path, restart: Restart | None) -> None:
        """Make the solver, in the state of `restart` if that is given.

        Raises:
            CaseError: a checkpoint of another case.
        """
        self.setup, self.solver = setup, open_solver(setup, world)
        if restart is not None:
            restart.resume(setup, self.solver, self.matches())
        self.monitor = ChunkMonitor(self.solver)
        self.records = Results(setup, self.solver, folder)
        self.outputs = [self.records]

    def matches(self) -> Mapping[str, Match]:
        """Return grid, medium and records; sources may change when a run continues."""
        setup, problem, run = self.setup, self.setup.problem, self.setup.case.run
        grid = (problem.shape, problem.spacing, problem.time_step, [repr(one) for one in problem.pml])
        medium = (problem.reference_speed, problem.sound_speed, problem.density, problem.staggered_density)
        losses = (problem.BonA, problem.absorption, problem.relaxation)
        request = setup.request
        record = (request.points, request.nodes, request.weights, request.quantities, request.first, request.harmonics)
        return {
            "geometry": Match(_digest(grid), "grid or time step"),
            "model": Match(_digest((medium, losses, run.scheme)), "medium or scheme"),
            "record": Match(_digest(record), "table of records"),
        }

    def controls(self) -> Mapping[str, Control]:
        """Return the factors of the signals, by the number of the first source that sends each."""
        return {
            f"sources.{numbers[0]}.amplitude": Control(1.0, partial(self.solver.sources.scale, f"source.emitters[{k}]"))
            for k, numbers in enumerate(signals_of(self.setup.case))
        }

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return records, images and temperatures."""
        return self.records.arrays

    def results(self, files: Iterable[Path]) -> Summarised:
        """Return the grid and the largest values that were recorded."""
        setup, solver, problem = self.setup, self.solver, self.setup.problem
        largest = self.records.greatest()
        details = {
            "case_file": setup.source,
            "scheme": setup.case.run.scheme,
            "basis": solver.plan.describe() if solver.plan is not None else "whole grid",
            "points": list(problem.shape),
            "spacing_m": problem.spacing[0],
            "time_step_s": problem.time_step,
            "time_s": solver.step * solver.dt,
            "files": [path.name for path in files],
            "notes": list(setup.notes),
            **largest,
        }
        lines = []
        for name, found in largest.items():
            place = ", ".join(f"{1e3 * c:.4g}" for c in found["place_m"])
            lines.append(f"{name.replace('_', ' ', 1)}: {found['value']:.5g} {found['unit']} at ({place}) mm")
        return Summarised(details=details, lines=lines)


def _digest(value: Any) -> str:
    """Return a hash of numbers, arrays and dataclasses of them."""
    total = hashlib.sha256()

    def add(one: Any) -> None:
        if isinstance(one, np.ndarray):
            total.update(repr((one.shape, one.dtype.str)).encode())
            total.update(np.ascontiguousarray(one).tobytes())
        elif is_dataclass(one):
            total.update(type(one).__name__.encode())
            add([getattr(one, item.name) for item in fields(one)])
        elif isinstance(one, list | tuple):
            for each in one:
                add(each)
        else:
            total.update(repr(one).encode())

    add(value)
    return total.hexdigest()
