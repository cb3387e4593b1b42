# SPDX-License-Identifier: BSD-3-Clause
"""Seconds of a whole call, from objects of k-wave-python to results: Seiche, and k-wave-python if it is installed.

    python benchmarks/ultrasound_call.py --device cuda --json benchmarks/results/ultrasound-call-h200.json

The grid has two nonlinear media with power-law absorption, the source is an initial pressure that is smoothed, and a
sensor at some points records the pressure. A first call of each program is not counted, then the programs take turns.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import importlib.util
import pstats
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.bench import results
from seiche.ultrasound.kwave import kspaceFirstOrder

SPACING, TIME_STEP = 1e-4, 1e-8


def two_layers(size: int, first: float, second: float) -> npt.NDArray[np.float64]:
    """Return a field that is `first` in one half of a cube of size^3 points and `second` in the other one."""
    halves = np.where(np.arange(size)[:, None, None] < size // 2, first, second)
    return np.ascontiguousarray(np.broadcast_to(halves, (size,) * 3))


def objects(size: int, steps: int) -> tuple[Any, Any, Any, Any]:
    """Return grid, medium, source and sensor, of k-wave-python if it is installed."""
    pressure, mask = np.zeros((size,) * 3), np.zeros((size,) * 3, bool)
    middle = slice(size // 2 - 8, size // 2 + 8)
    pressure[middle, middle, middle] = 1e5
    mask[12:-12:16, 12:-12:16, size // 8] = True
    medium = {
        "sound_speed": two_layers(size, 1500.0, 1600.0),
        "density": two_layers(size, 1000.0, 1100.0),
        "alpha_coeff": two_layers(size, 0.5, 0.6),
        "alpha_power": 1.5,
        "BonA": two_layers(size, 6.0, 7.0),
    }
    if importlib.util.find_spec("kwave") is None:
        grid = SimpleNamespace(N=(size,) * 3, spacing=(SPACING,) * 3, dt=TIME_STEP, Nt=steps)
        return grid, SimpleNamespace(**medium), SimpleNamespace(p0=pressure), SimpleNamespace(mask=mask, record=["p"])
    from kwave.kgrid import kWaveGrid
    from kwave.kmedium import kWaveMedium
    from kwave.ksensor import kSensor
    from kwave.ksource import kSource

    grid = kWaveGrid([size] * 3, [SPACING] * 3)
    grid.setTime(steps, TIME_STEP)
    source, sensor = kSource(), kSensor(mask=mask)
    source.p0, sensor.record = pressure, ["p"]
    return grid, kWaveMedium(**medium), source, sensor


def programs() -> dict[str, Callable[..., Any]]:
    """Return the functions that are timed."""
    functions: dict[str, Callable[..., Any]] = {"seiche": kspaceFirstOrder}
    if importlib.util.find_spec("kwave") is not None:
        # The package downloads executables when it is imported, which are not needed here.
        with mock.patch("urllib.request.urlretrieve", side_effect=TimeoutError):
            functions["k-wave-python"] = importlib.import_module("kwave.kspaceFirstOrder").kspaceFirstOrder
    return functions


def main() -> None:
    """Time the calls and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print where Seiche spends time on the host")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    name = "cpu" if options.device == "cpu" else "gpu"
    common: dict[str, Any] = {"pml_size": 10, "pml_inside": True, "quiet": True, "dtype": "float32", "device": name}
    seconds: dict[str, list[float]] = {program: [] for program in programs()}
    for turn in range(options.rounds + 1):
        for program, function in programs().items():
            arguments = objects(options.size, options.steps)
            begin = time.perf_counter()
            function(*arguments, **common)
            if turn:
                seconds[program].append(time.perf_counter() - begin)
    for program, values in seconds.items():
        print(f"{program}: {median(values):.3f} s (least {min(values):.3f}) for {options.steps} steps")
    if options.profile:
        arguments, profile = objects(options.size, options.steps), cProfile.Profile()
        profile.runcall(kspaceFirstOrder, *arguments, **common)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    where = open_backend(options.device).describe()
    extra = {"size": options.size, "steps": options.steps, "seconds": seconds}
    results.store(options.json, results.document("ultrasound-call", where, [], **extra))


if __name__ == "__main__":
    main()
