# SPDX-License-Identifier: BSD-3-Clause
"""Wave packets for tests on several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.domain.world import World
from seiche.ultrasound import Decomposition, Grid, Medium, Sensor, Source, simulate

C = 1500.0


def packet(shape: tuple[int, ...], steps: int, **medium: Any) -> tuple[Grid, Medium, Source, Sensor]:
    """Return a wave packet of six points a wavelength that crosses the cuts into another medium."""
    dx = 1e-4
    grid = Grid(shape, dx, 0.3 * dx / 1800.0, steps)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    beyond = x[0] > 0.25 * shape[0] * dx
    wave = 6 * dx
    squares = sum((a + 0.1 * n * dx) ** 2 for a, n in zip(x, shape, strict=True))
    carrier = np.cos(2 * np.pi * sum(x) / np.sqrt(len(shape)) / wave)
    source = Source(p0=np.exp(-squares / (2 * (1.2 * wave) ** 2)) * carrier)
    mask = np.zeros(shape, bool)
    mask[tuple(slice(2, None, 7) for _ in shape)] = True
    sensor = Sensor(
        mask, record=("p", "p_max", "p_rms", "p_max_all", "p_final", "u_final"), first=3, frequencies=(C / wave,)
    )
    return grid, Medium(np.where(beyond, 1800.0, C), np.where(beyond, 1200.0, 1000.0), **medium), source, sensor


OPTIONS: dict[str, Any] = {"pml_size": 10, "smooth_p0": False, "precision": "float64", "threads": 1}


def differences(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> dict[str, float]:
    assert set(found) == set(wanted)
    return {
        name: float(np.linalg.norm(found[name] - wanted[name]) / np.linalg.norm(wanted[name]))
        for name in wanted
        if name != "p_phase"  # of no meaning where there is no wave
    }


def compare(objects: Any, world: World, **options: Any) -> dict[str, float]:
    result = simulate(*objects, world=world, decomposition=Decomposition(**options), **OPTIONS)
    return differences(result, simulate(*objects, **OPTIONS))
