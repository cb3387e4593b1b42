# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench ultrasound`: time of a step of the k-space solver by stage, and its memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from seiche.backend import open_backend, parse_device
from seiche.bench import kwave, results
from seiche.bench.splits import Split, grown
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.observe.bandwidth import copy_bandwidth
from seiche.ultrasound.advice import memory
from seiche.ultrasound.problem import Absorption, Field, MaskSource, Pml, Problem
from seiche.ultrasound.relaxation import Relaxation, fit
from seiche.ultrasound.solver import UltrasoundSolver

#: Media: water, two lossless layers, or two nonlinear layers that absorb, by a power law or by relaxation processes.
Physics: TypeAlias = Literal["homogeneous", "lossless", "full", "relaxation"]
SCHEMES = ("exact", "separable", "local4")
#: Numbers of warm-up steps, of timed runs, and of steps timed by stage.
_WARM_UP_STEPS, _REPETITIONS, _STAGE_STEPS = 3, 3, 5
_SPACING, _TIME_STEP = 1e-4, 1.5e-8
#: Frequencies (Hz) at which relaxation processes follow a power law.
_BAND = (2e5, 2e6)


@dataclass(frozen=True)
class UltrasoundRow:
    """One measurement.

    Attributes:
        program: "seiche", or the name of another solver that was measured in the same run.
        milliseconds: time of a step, the median of three runs; `min_milliseconds` is the minimum.
        predicted_bytes: memory in bytes per point that `seiche check` predicts; 0 for other programs.
        measured_bytes: increase of the used device memory in bytes per point; 0 for other programs.
        stages: milliseconds of each stage in steps timed by stage.
    """

    program: str
    size: int
    scheme: str
    physics: str
    precision: str
    threads: int
    transforms: str
    steps: int
    milliseconds: float
    min_milliseconds: float
    predicted_bytes: float = 0.0
    measured_bytes: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def nanoseconds_per_point(self) -> float:
        """Time of a step in nanoseconds, divided by the number of points."""
        return self.milliseconds * 1e6 / self.size**3

    @property
    def bytes_texts(self) -> tuple[str, str]:
        """Bytes per point as texts for the table, empty for other programs."""
        return (f"{self.predicted_bytes:.1f}", f"{self.measured_bytes:.1f}") if self.program == "seiche" else ("", "")


def problem_of(size: int, physics: Physics, split: Split = (1, 1, 1)) -> Problem:
    """Return cubes of `size`^3 points stacked along the axes as `split`, with a small source in the first cube.

    Raises:
        CaseError: a cube is too small for its absorbing layers.
    """
    if size < 24:
        raise CaseError(f"--size: {size} points per edge are too few: use at least 24")
    shape = grown((size,) * 3, split)
    layered, steps = physics != "homogeneous", 100_000

    second_layer = np.arange(shape[0])[:, None, None] >= size // 2

    def field(first: float, second: float) -> Field:
        return np.broadcast_to(np.where(second_layer, second, first).astype(np.float32), shape)

    speeds, density = (1500.0, 1600.0), field(1000.0, 1100.0)
    absorption = Absorption(field(0.5, 0.5), 1.5) if physics == "full" else None
    relaxation: Relaxation | None = None
    if physics == "relaxation":
        strengths, times, unrelaxed = zip(*(fit(0.5, 1.5, speed, _BAND) for speed in speeds), strict=True)
        labels = np.broadcast_to(second_layer, shape).astype(np.uint8)
        relaxation = Relaxation(labels, np.stack(strengths), np.stack(times), np.array(unrelaxed))
        speeds = unrelaxed
    signal = np.sin(2 * np.pi * 1e6 * np.arange(steps) * _TIME_STEP)[:, None]
    points = np.arange(64, dtype=np.int64) + np.ravel_multi_index((size // 2, 0, 0), shape)
    return Problem(
        axes=("x", "y", "z"),
        shape=shape,
        spacing=(_SPACING,) * 3,
        dt=_TIME_STEP,
        steps=1 << 30,
        reference_speed=1600.0 if layered else 1500.0,
        sound_speed=field(*speeds) if layered else 1500.0,
        density=density if layered else 1000.0,
        BonA=field(6.0, 6.0) if physics in ("full", "relaxation") else None,
        absorption=absorption,
        relaxation=relaxation,
        pml=(Pml(10, 2.0),) * 3,
        sources=(MaskSource("z", points, signal, "additive-no-correction", steps),),
    )


def step_seconds(solver: UltrasoundSolver, world: World, seconds: float) -> tuple[list[float], int]:
    """Return the seconds per step of the slowest rank in runs of about `seconds`, and steps per run (collective)."""
    solver.timers.every = 1 << 30

    def seconds_per_step(steps: int) -> float:
        world.barrier()
        begin = time.perf_counter()
        solver.advance(steps)
        return float(world.allreduce_max(np.array([(time.perf_counter() - begin) / steps]))[0])

    solver.advance(_WARM_UP_STEPS)
    steps = max(1, min(1000, int(seconds / max(seconds_per_step(2), 1e-9))))
    return [seconds_per_step(steps) for _ in range(_REPETITIONS)], steps


def stage_milliseconds(solver: UltrasoundSolver) -> dict[str, float]:
    """Return the mean milliseconds of each stage in a few steps that are timed by stage."""
    solver.timers.reset()
    solver.timers.every, solver.timers.skip = 1, 0
    solver.advance(_STAGE_STEPS)
    return {name: timing.mean * 1e3 for name, timing in solver.timers.times().items()}


def measure(
    size: int,
    scheme: str,
    physics: Physics,
    precision: str,
    *,
    device: str = "cpu",
    threads: int | None = None,
    seconds: float = 2.0,
) -> UltrasoundRow:
    """Time one cube on one device, in three runs of about `seconds` each."""
    problem = problem_of(size, physics)
    gc.collect()
    backend = open_backend(device, threads)
    used_before = backend.used_memory()
    solver = UltrasoundSolver(problem, device=device, precision=precision, scheme=scheme, threads=threads)
    solver.advance(_WARM_UP_STEPS)
    bytes_per_point = (solver.backend.used_memory() - used_before) / problem.points
    times, steps = step_seconds(solver, World.serial(), seconds)
    return UltrasoundRow(
        "seiche",
        size,
        scheme,
        physics,
        precision,
        getattr(solver.backend, "threads", 0),
        solver.transforms,
        steps,
        float(np.median(times)) * 1e3,
        min(times) * 1e3,
        memory(problem, scheme, precision, device=device) / problem.points,
        bytes_per_point,
        stage_milliseconds(solver),
    )


def main(
    *,
    device: str = "cpu",
    sizes: Sequence[int] = (),
    schemes: Sequence[str] = ("exact",),
    physics: Sequence[Physics] = ("homogeneous", "full"),
    precision: str = "float32",
    threads: int | None = None,
    seconds: float = 2.0,
    peer: bool = False,
    output: Path | None = None,
) -> list[UltrasoundRow]:
    """Measure, print a table and store JSON at `output`; return the rows.

    With `peer`, k-wave-python computes the same cubes with the exact scheme.

    Raises:
        CaseError: a cube is too small, or k-wave-python is required and not installed.
    """
    if peer:
        kwave.check_installed()
    backend = open_backend(device, threads)
    device_name, copy = backend.describe(), copy_bandwidth(backend, World.serial())
    rows: list[UltrasoundRow] = []
    for size in sizes or ((256, 384) if parse_device(device).is_gpu else (64, 128)):
        for name in physics:
            for scheme in schemes:
                rows.append(measure(size, scheme, name, precision, device=device, threads=threads, seconds=seconds))
            if peer:
                peer_times = kwave.measure(problem_of(size, name), precision, device)
                program, library, times = (
                    peer_times.program,
                    peer_times.library,
                    (peer_times.milliseconds, peer_times.min_milliseconds),
                )
                rows.append(
                    UltrasoundRow(program, size, "exact", name, precision, 0, library, peer_times.steps, *times)
                )
    show(rows, device_name, copy)
    results.store(output, results.document("ultrasound", device_name, rows, copy_bytes_per_second=copy))
    return rows


#: Headings of the table and formats of their values.
_COLUMNS = {
    **{name: f"{{0.{name}}}" for name in ("program", "scheme", "physics", "precision", "transforms")},
    "points": "{0.size}^3",
    "ms/step": "{0.milliseconds:.2f}",
    "minimum": "{0.min_milliseconds:.2f}",
    "ns/point": "{0.nanoseconds_per_point:.3f}",
    "B/point predicted": "{0.bytes_texts[0]}",
    "measured": "{0.bytes_texts[1]}",
}


def show(rows: Sequence[UltrasoundRow], device: str, copy: float) -> None:
    """Print the rows as a table, followed by the stages."""
    results.show(f"{device}, copy {copy / 1e9:.1f} GB/s", _COLUMNS, rows, text_columns=5, width=140)
    for row in rows:
        if row.stages:
            stages = ", ".join(f"{name} {value:.2f}" for name, value in row.stages.items())
            print(f"{row.size}^3 {row.physics}, {row.scheme}: ms by stage: {stages}")
