# SPDX-License-Identifier: BSD-3-Clause
"""Milliseconds of an axisymmetric step of ultrasound, and its memory traffic over the copy bandwidth.

    python benchmarks/ultrasound_axisymmetric.py --device cuda --json axisymmetric-h200.json

The grids have two lossless layers and an initial pressure. The traffic is the least that the stages of a step declare.
k-wave-python 0.6.2 has no axisymmetric solver in Python: its kspaceFirstOrderASC writes a file for k-Wave's program
kspaceFirstOrder-OMP, which is not part of the package.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from seiche.backend import open_backend
from seiche.bench import results
from seiche.bench.ultrasound import step_seconds
from seiche.domain.world import World
from seiche.observe.bandwidth import copy_bandwidth
from seiche.ultrasound.problem import Pml, Problem
from seiche.ultrasound.radial import OuterEnd
from seiche.ultrasound.solver import UltrasoundSolver

SPACING, TIME_STEP = 1e-4, 1.5e-8
#: Axial and radial points of the grids.
SHAPES = ((256, 128), (512, 256), (1024, 512), (2048, 1024))


@dataclass(frozen=True)
class Row:
    """A step of one grid: milliseconds (median and minimum), declared bytes per point, and their rate over a copy's."""

    shape: str
    outer_end: str
    steps: int
    milliseconds: float
    min_milliseconds: float
    bytes_per_point: float
    fraction_of_copy: float


def problem_of(shape: tuple[int, int], outer_end: OuterEnd) -> Problem:
    """Return two layers with an initial pressure on the axis."""
    second = np.broadcast_to(np.arange(shape[0])[:, None] >= shape[0] // 2, shape)
    x, r = np.arange(shape[0])[:, None] - shape[0] / 4, np.arange(shape[1])
    return Problem(
        axes=("x", "y"),
        shape=shape,
        spacing=(SPACING, SPACING),
        dt=TIME_STEP,
        steps=1 << 30,
        reference_speed=1600.0,
        sound_speed=np.where(second, 1600.0, 1500.0),
        density=np.where(second, 1100.0, 1000.0),
        pml=(Pml(20, 2.0),) * 2,
        initial_pressure=1e5 * np.exp(-(x**2 + r**2) / 50),
        outer_end=outer_end,
    )


def measure(shape: tuple[int, int], outer_end: OuterEnd, copy: float, options: argparse.Namespace) -> Row:
    """Time one grid."""
    problem = problem_of(shape, outer_end)
    solver = UltrasoundSolver(problem, device=options.device, threads=options.threads)
    times, steps = step_seconds(solver, World.serial(), options.seconds)
    bytes_of_step = sum(stage.bytes for stage in solver.stages)
    milliseconds = [1e3 * seconds for seconds in times]
    fraction = bytes_of_step / median(times) / copy
    name = " x ".join(map(str, shape))
    rates = median(milliseconds), min(milliseconds), bytes_of_step / problem.points, fraction
    return Row(name, outer_end, steps, *rates)


def main() -> None:
    """Measure, print a table and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    backend = open_backend(options.device, options.threads)
    copy = copy_bandwidth(backend, World.serial())
    ends: tuple[OuterEnd, ...] = ("pressure-release", "rigid")
    rows = [measure(shape, end, copy, options) for shape in SHAPES for end in ends]
    columns = {
        "points": "{0.shape}",
        "outer end": "{0.outer_end}",
        "ms/step": "{0.milliseconds:.3f}",
        "minimum": "{0.min_milliseconds:.3f}",
        "B/point": "{0.bytes_per_point:.0f}",
        "of the copy": "{0.fraction_of_copy:.2f}",
    }
    where = backend.describe()
    results.show(f"{where}, copy {copy / 1e9:.1f} GB/s", columns, rows, text_columns=2)
    results.store(options.json, results.document("ultrasound-axisymmetric", where, rows, copy_bytes_per_second=copy))


if __name__ == "__main__":
    main()
