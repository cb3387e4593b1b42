# SPDX-License-Identifier: BSD-3-Clause
"""Comparison with the solver of k-wave-python in `seiche bench ultrasound --peer`, if that package is installed."""

from __future__ import annotations

import importlib.util
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

import numpy as np

from seiche.backend import parse_device
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.ultrasound.problem import Problem

#: Numbers of steps in the shorter and the longer run, whose difference is timed.
_SHORT_RUN, _LONG_RUN = 2, 8
_REPETITIONS = 3


def check_installed() -> None:
    """Check that the package is installed.

    Raises:
        CaseError: k-wave-python is not installed.
    """
    if importlib.util.find_spec("kwave") is None:
        raise CaseError("--peer requires k-wave-python: pip install k-wave-python")


@dataclass(frozen=True)
class PeerTimes:
    """Name of a solver, its array library, number of timed steps, and milliseconds per step (median and minimum)."""

    program: str
    library: str
    steps: int
    milliseconds: float
    min_milliseconds: float


def measure(problem: Problem, precision: str, device: str) -> PeerTimes:
    """Time the solver of the package, with NumPy or, on a GPU, with CuPy.

    The difference between two run lengths excludes the set-up.
    """
    times = [milliseconds(problem, precision, device) for _ in range(_REPETITIONS)]
    name = f"k-wave-python {version('k-wave-python')}"
    library = "CuPy" if parse_device(device).is_gpu else "NumPy"
    return PeerTimes(name, library, _LONG_RUN, float(np.median(times)), min(times))


def milliseconds(problem: Problem, precision: str, device: str, engine: Literal["python", "cpp"] = "python") -> float:
    """Return the milliseconds of a step from the difference between two run lengths.

    `engine` is the solver in Python, or the compiled program that the package starts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short, long = (_seconds(problem, steps, precision, device, engine) for steps in (_SHORT_RUN, _LONG_RUN))
    return 1e3 * (long - short) / (_LONG_RUN - _SHORT_RUN)


def _seconds(problem: Problem, steps: int, precision: str, device: str, engine: str) -> float:
    # The package downloads executables when it is imported, which are not needed here.
    with mock.patch("urllib.request.urlretrieve", side_effect=TimeoutError):
        from kwave.kspaceFirstOrder import kspaceFirstOrder

    objects = _objects(problem, steps)
    options: dict[str, Any] = {"pml_size": problem.pml[0].size, "pml_inside": True, "quiet": True, "dtype": precision}
    name = "gpu" if parse_device(device).is_gpu else "cpu"
    begin = time.perf_counter()
    kspaceFirstOrder(*objects, backend=engine, device=name, **options)
    return time.perf_counter() - begin


def _objects(problem: Problem, steps: int) -> tuple[Any, Any, Any, Any]:
    """Return the grid, medium, source and sensor (one point) as objects of the package."""
    from kwave.kgrid import kWaveGrid
    from kwave.kmedium import kWaveMedium
    from kwave.ksensor import kSensor
    from kwave.ksource import kSource

    grid = kWaveGrid(list(problem.shape), list(problem.spacing))
    grid.setTime(steps, problem.dt)
    medium: dict[str, Any] = {"sound_speed": problem.sound_speed, "density": problem.density}
    if problem.absorption is not None:
        medium |= {"alpha_coeff": problem.absorption.alpha_coeff, "alpha_power": problem.absorption.alpha_power}
    if problem.BonA is not None:
        medium["BonA"] = problem.BonA
    source, sensor = kSource(), kSensor(mask=np.zeros(problem.shape))
    mask = np.zeros(problem.shape)
    mask.reshape(-1)[problem.sources[0].points] = 1
    source.u_mask, source.u_mode = mask, problem.sources[0].mode
    source.uz = problem.sources[0].samples[:steps].T
    sensor.mask[0, 0, 0] = 1
    sensor.record = ["p"]
    return grid, kWaveMedium(**medium), source, sensor
