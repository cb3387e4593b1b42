# SPDX-License-Identifier: BSD-3-Clause
"""Comparison with the solver of k-wave-python in `seiche bench ultrasound --peer`, if that package is installed."""

from __future__ import annotations

import importlib.util
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The package downloads executables when it is imported, which are not needed here.
        with mock.patch("urllib.request.urlretrieve", side_effect=TimeoutError):
            import kwave

        on_gpu = parse_device(device).is_gpu
        times = []
        for _ in range(_REPETITIONS):
            short, long = (_seconds(problem, steps, precision, on_gpu) for steps in (_SHORT_RUN, _LONG_RUN))
            times.append(1e3 * (long - short) / (_LONG_RUN - _SHORT_RUN))
    name = f"k-wave-python {getattr(kwave, '__version__', '')}".strip()
    library = "CuPy" if on_gpu else "NumPy"
    return PeerTimes(name, library, _LONG_RUN, float(np.median(times)), min(times))


def _seconds(problem: Problem, steps: int, precision: str, on_gpu: bool) -> float:
    from kwave.kspaceFirstOrder import kspaceFirstOrder

    objects = _objects(problem, steps)
    options: dict[str, Any] = {"pml_size": problem.pml[0].size, "pml_inside": True, "quiet": True, "dtype": precision}
    begin = time.perf_counter()
    kspaceFirstOrder(*objects, backend="python", device="gpu" if on_gpu else "cpu", **options)
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
