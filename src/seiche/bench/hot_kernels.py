# SPDX-License-Identifier: BSD-3-Clause
"""Small cases of all hot kernels, which `make bench-guard` times in two versions of Seiche alternately.

`python -m seiche.bench.hot_kernels DEVICE` reads one command per line and answers each with one line of JSON:

- `cases`: the names of all cases;
- `open NAME`: prepare this case, in place of the previous one;
- `time STEPS`: the minimum seconds of each stage in this number of steps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TextIO

import numpy as np

from seiche.backend import parse_device
from seiche.bench import blood, flow, ultrasound, waves
from seiche.cells import Cells, Contact, Repulsion
from seiche.couple import Blood
from seiche.errors import CaseError
from seiche.flow import Newtonian, Precision, Solver
from seiche.observe.timers import StageTimers
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.waves import Brick, Material, Mesh, SizeField
from seiche.waves import Solver as WavesSolver

#: Sites of the flow, edge of blood in sites, edge of ultrasound in points, and edge of waves in elements.
SIZES = {"cpu": (200_000, 32, 48, 6), "cuda": (4_000_000, 128, 192, 24)}
#: Hematocrit of blood.
HEMATOCRIT = 0.3
#: Number of steps before the first timed one.
WARM_UP_STEPS = 4


class Stepping(Protocol):
    """A solver whose stages are timed."""

    timers: StageTimers

    def advance(self, steps: int) -> None:
        """Run this number of steps."""


def flow_case(device: str, sites: int, layout: str, precision: Precision) -> Stepping:
    """Return the flow in a tube between two openings."""
    geometry = flow.tube_case(sites)
    model = flow.model_of(geometry, Newtonian(0.1), layout)
    solver = Solver(geometry, model, device=device, precision=precision, layout=layout, threads=1)
    flow.fill_random(solver)
    return solver


def blood_case(device: str, edge: int, precision: str, support: int) -> Stepping:
    """Return a suspension of cells with 642 vertices in a periodic cube, at a spacing of 0.25 um."""
    suspension = blood.Suspension(edge, device, precision, "tiles-8", threads=1)
    spacing, cell = 0.25, blood.red_cell(0.25, 642, 3)
    packing = blood.packing_of(edge * spacing)
    volume = (edge * spacing) ** 3
    selected = blood.random_subset(packing, HEMATOCRIT, volume, cell.mesh.volume * spacing**3)
    placed = [selected.centers / spacing], [selected.rotations]
    cells = Cells(suspension.backend, [cell], *placed, precision=precision)  # type: ignore[arg-type]
    contact = Contact(cells, Repulsion(cell.model.law.shear, 1.0), lengths=(float(edge),) * 3)
    Blood(suspension.solver, cells, contact=contact, delta=blood.DELTAS[support])
    return suspension.solver


def ultrasound_case(device: str, size: int, physics: ultrasound.Physics, scheme: str) -> Stepping:
    """Return a cube of `size`^3 points in which a small source transmits."""
    problem = ultrasound.problem_of(size, physics)
    return UltrasoundSolver(problem, device=device, precision="float32", scheme=scheme, threads=1)


def waves_case(device: str, edge: int, medium: str, flux: str, integrator: str) -> Stepping:
    """Return a plane wave in a periodic cube of edge^3 elements with 8 nodes per direction."""
    mesh = Mesh.generate(Brick((edge,) * 3, (True,) * 3), SizeField.uniform(1.0, 3))
    material = Material.uniform(mesh.count, 1.0, 2.0, 1.0 if medium == "elastic" else 0.0)
    options = {"nodes": 8, "flux": flux, "precision": "float32", "integrator": integrator}
    solver = WavesSolver(mesh, material, device=device, threads=1, **options)  # type: ignore[arg-type]
    waves.start(solver)
    return solver


def cases(device: str, sizes: Sequence[int] = ()) -> dict[str, Callable[[], Stepping]]:
    """Return the cases by name; `sizes` are those of `SIZES`, by default those for the kind of device."""
    on_gpu = parse_device(device).is_gpu
    sites, box, cube, brick = sizes or SIZES["cuda" if on_gpu else "cpu"]
    pairs = [("float32", "float32"), ("float64", "float64"), *([("float32", "float16")] if on_gpu else [])]
    cases_by_name: dict[str, Callable[[], Stepping]] = {}
    for layout in ("tiles-8", "list-aa", "moments"):
        for compute, storage in pairs:
            precision = Precision(compute, storage)  # type: ignore[arg-type]
            cases_by_name[f"flow {layout} {compute}/{storage}"] = partial(flow_case, device, sites, layout, precision)
    for real, support in (("float32", 4), ("float32", 3), ("float64", 2)):
        cases_by_name[f"blood {real} support {support}"] = partial(blood_case, device, box, real, support)
    for physics in ("homogeneous", "lossless", "full"):
        cases_by_name[f"ultrasound {physics} exact"] = partial(ultrasound_case, device, cube, physics, "exact")
    for scheme in ("separable", "local4"):
        cases_by_name[f"ultrasound lossless {scheme}"] = partial(ultrasound_case, device, cube, "lossless", scheme)
    for medium in ("acoustic", "elastic"):
        for flux, integrator in (("upwind", "runge-kutta"), ("central", "leapfrog")):
            cases_by_name[f"waves {medium} {integrator}"] = partial(waves_case, device, brick, medium, flux, integrator)
    return cases_by_name


def stage_seconds(solver: Stepping, steps: int) -> dict[str, float]:
    """Return the minimum seconds of each stage in `steps` steps."""
    solver.timers.reset()
    solver.timers.every, solver.timers.skip = 1, 0
    solver.advance(steps)
    return {name: stage.minimum for name, stage in solver.timers.times().items()}


def answer(commands: TextIO, answers: TextIO, available: Mapping[str, Callable[[], Stepping]]) -> None:
    """Answer commands until their end.

    Raises:
        CaseError: a command is unknown, or `time` comes before `open`.
    """
    solver: Stepping | None = None
    for line in commands:
        command, _, argument = line.strip().partition(" ")
        reply: object
        if command == "cases":
            reply = list(available)
        elif command == "open" and argument in available:
            solver = None  # its memory is released before the next case
            solver = available[argument]()
            solver.advance(WARM_UP_STEPS)
            reply = argument
        elif command == "time" and solver is not None:
            reply = stage_seconds(solver, int(argument))
        else:
            raise CaseError(f"{line.strip()}: expected cases, open NAME or, after it, time STEPS")
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    with np.errstate(all="ignore"):  # flow with random populations is not physical
        answer(sys.stdin, sys.stdout, cases(sys.argv[1]))
