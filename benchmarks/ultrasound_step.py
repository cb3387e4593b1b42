# SPDX-License-Identifier: BSD-3-Clause
"""Seconds a step of the k-space solver: `ultrasound_step.py [--device cuda] [--precision float32] [EXTENT ...]`.

Prints a line a case (lossless homogeneous; heterogeneous, power law, nonlinear) with milliseconds a step, and the
stages with their share.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from seiche.ultrasound.problem import Absorption, MaskSource, Pml, Problem
from seiche.ultrasound.solver import Solver


def problem_of(extent: int, full: bool) -> Problem:
    """Return a cube with a small source of pressure in a layered medium, or in water."""
    shape = (extent,) * 3
    speed, density, bona, alpha = (np.full(shape, value, np.float32) for value in (1500.0, 1000.0, 6.0, 0.5))
    speed[extent // 2 :], density[extent // 2 :] = 1600.0, 1100.0
    steps = 100_000
    signal = np.sin(2 * np.pi * 1e6 * np.arange(steps) * 1e-8)[:, None]
    points = np.arange(64, dtype=np.int64) + extent**3 // 2
    return Problem(
        axes=("x", "y", "z"),
        shape=shape,
        spacing=(1e-4,) * 3,
        time_step=1.5e-8,
        steps=steps,
        reference_speed=1600.0 if full else 1500.0,
        sound_speed=speed if full else 1500.0,
        density=density if full else 1000.0,
        BonA=bona if full else None,
        absorption=Absorption(alpha, 1.5) if full else None,
        pml=(Pml(10, 2.0),) * 3,
        sources=(MaskSource("z", points, signal, "additive-no-correction", steps),),
    )


def measure(extent: int, full: bool, arguments: argparse.Namespace) -> None:
    """Time one case."""
    solver = Solver(
        problem_of(extent, full),
        device=arguments.device,
        precision=arguments.precision,
        scheme=arguments.scheme,
        threads=arguments.threads,
    )
    solver.timers.every = 10**9
    solver.run(5)
    seconds = []
    for _ in range(arguments.repeat):
        begin = time.perf_counter()
        solver.run(arguments.steps)
        seconds.append((time.perf_counter() - begin) / arguments.steps)
    solver.timers.reset()
    solver.timers.every, solver.timers.skip = 1, 0
    solver.run(6)
    times = solver.timers.times()
    total = sum(one.mean for one in times.values())
    stages = ", ".join(f"{name} {one.mean * 1e3:.2f}" for name, one in times.items())
    kind = "full physics" if full else "lossless homogeneous"
    print(
        f"{extent}^3 {kind}: median {1e3 * np.median(seconds):.2f} ms a step, least {1e3 * min(seconds):.2f}"
        f" ({arguments.scheme}; stages sum {total * 1e3:.2f}: {stages})",
        flush=True,
    )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extents", type=int, nargs="*", default=[64, 128])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--scheme", default="exact")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    for extent in arguments.extents:
        for full in (False, True):
            measure(extent, full, arguments)


if __name__ == "__main__":
    main()
