# SPDX-License-Identifier: BSD-3-Clause
"""Media of regions averaged over the cells of points, against exact scattered waves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.wave_packets import DENSITY, SPEED, WAVELENGTH, cylinder_pressure, layer_pressure, packet

from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.schema import MediumTable
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

Floats = npt.NDArray[np.float64]
NORMAL = np.array([1.0, 2.0]) / np.sqrt(5.0)
#: Distance of the front of the layer from the middle, and its thickness.
PLACE, THICKNESS = 0.13, 0.8
#: Radius of a circle whose arc is flat within the grid.
FAR = 1e4


def medium(grid: Grid, region: dict[str, Any], average: bool) -> Medium:
    inside = {"density": f"{DENSITY!r} kg/m^3", "sound_speed": f"{SPEED!r} m/s", **region}
    table = {"density": "1 kg/m^3", "sound_speed": "1 m/s", "region": [inside], "average": average}
    return medium_of(MediumTable.model_validate(table), grid, Path())


def cylinder(grid: Grid, average: bool) -> Medium:
    return medium(grid, {"kind": "ball", "center": ["0 m", "0 m"], "radius": "1 m"}, average)


def layer(grid: Grid, average: bool) -> Medium:
    """Return a layer across `NORMAL`, as a shell of large radius."""
    center = [f"{float(position)!r} m" for position in (PLACE - FAR) * NORMAL]
    shell = {"kind": "shell", "center": center, "inner": f"{FAR!r} m", "outer": f"{FAR + THICKNESS!r} m"}
    return medium(grid, shell, average)


def grid_of(side: float, per_wavelength: float) -> Grid:
    number = round(side * per_wavelength / WAVELENGTH)
    return Grid((number, number), WAVELENGTH / per_wavelength)


def places(grid: Grid) -> Floats:
    return np.stack(np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij"), -1)


def run(grid: Grid, medium: Medium, pressure: Floats, duration: float) -> tuple[Floats, float]:
    """Return the last pressure and its time from an initial pressure; half of it goes in each direction."""
    timed = grid.with_time(medium.sound_speed, end=duration, cfl=0.1)
    assert timed.dt is not None and timed.steps is not None
    results = simulate(
        timed,
        medium,
        Source(p0=pressure),
        Sensor(record=("p_final",)),
        pml_size=0,
        smooth_p0=False,
        precision="float64",
        threads=1,
    )
    return results["p_final"], timed.dt * (timed.steps - 1)


def relative(values: Floats, exact: Floats) -> float:
    return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))


def error_in_a_cylinder(per_wavelength: float, average: bool) -> float:
    grid, start = grid_of(10.0, per_wavelength), -2.6
    where = places(grid)
    values, time = run(grid, cylinder(grid, average), packet(where[..., 0] - start), 2.6)
    near = np.linalg.norm(where, axis=-1) < 1.3
    exact = cylinder_pressure(where[near], np.array([time]), start)[0] + packet(where[near][:, 0] - start + time)
    return relative(values[near], exact / 2)


def error_around_a_layer(per_wavelength: float, average: bool) -> float:
    grid, start = grid_of(12.0, per_wavelength), -2.2
    where = places(grid)
    along = where @ NORMAL - PLACE
    values, time = run(grid, layer(grid, average), packet(along - start), 3.0)
    near = np.linalg.norm(where, axis=-1) < 2.0
    along = along[near]
    return relative(values[near], (layer_pressure(along, time, start, THICKNESS) + packet(along - start + time)) / 2)


@pytest.mark.parametrize("error", [error_in_a_cylinder, error_around_a_layer])
def test_averages_are_more_accurate_than_stairs(error: Callable[[float, bool], float]) -> None:
    """By a factor of 2.4 with six points a wavelength and of 3 with eight."""
    for per_wavelength, factor in ((6.0, 2.4), (8.0, 3.0)):
        stairs, averaged = (error(per_wavelength, average) for average in (False, True))
        assert stairs > factor * averaged, (per_wavelength, stairs, averaged)
