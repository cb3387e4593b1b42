# SPDX-License-Identifier: BSD-3-Clause
"""Images by time reversal through bone that shears: from Python, a case file, and objects of k-wave-python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.kwave_images import TimeReversal
from seiche.ultrasound.photoacoustic import time_reversal
from ultrasound_cases import case

POINTS, DX = 96, 2e-4
OPTIONS: dict[str, Any] = {"pml_size": 10, "threads": 1}


@pytest.fixture(scope="module")
def recorded() -> tuple[Grid, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return grid, bone, sensors, initial pressure, and the series at the sensors outside a ring of bone."""
    grid = Grid((POINTS, POINTS), DX, 0.2 * DX / 2800.0, 700)
    x, y = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    radius, width = np.hypot(x, y), 3e-4
    bone, mask = (radius > 4e-3) & (radius < 6e-3), np.abs(radius - 7e-3) < DX / 2
    places = ((1e-3, -0.5e-3, 1e3), (-1.5e-3, 1e-3, 600.0))
    p0 = sum(a * np.exp(-((x - u) ** 2 + (y - v) ** 2) / (2 * width**2)) for u, v, a in places)
    sensor = Sensor(mask=mask)
    return grid, bone, mask, p0, simulate(grid, skull(bone), Source(p0=p0), sensor, smooth_p0=False, **OPTIONS)["p"]


def skull(bone: np.ndarray, shear: bool = True, **loss: float) -> Medium:
    speeds = {"shear_speed": np.where(bone, 1500.0, 0.0)} if shear else {}
    return Medium(np.where(bone, 2800.0, 1500.0), np.where(bone, 1850.0, 1000.0), **speeds, **loss)


def error_of(image: np.ndarray, bone: np.ndarray, p0: np.ndarray) -> float:
    """Return the relative error inside the ring of the image scaled to the least error."""
    radius = np.hypot(*(np.indices(bone.shape) - POINTS / 2)) * DX
    found, wanted = image[radius < 3.6e-3], p0[radius < 3.6e-3]
    return float(np.linalg.norm(found * (found @ wanted) / (found @ found) - wanted) / np.linalg.norm(wanted))


def test_shear_waves_in_bone_improve_the_image(recorded):
    grid, bone, mask, p0, series = recorded
    media = {"elastic": skull(bone), "fluid": skull(bone, shear=False), "water": Medium(1500.0)}
    errors = {
        name: error_of(time_reversal(grid, medium, mask, series, **OPTIONS), bone, p0) for name, medium in media.items()
    }
    assert errors["elastic"] < 0.2
    assert errors["fluid"] > 1.1 * errors["elastic"]
    assert errors["water"] > 0.9


def test_time_reversal_of_k_wave_python_takes_elastic_media(recorded):
    grid, bone, mask, _, series = recorded
    medium, columns = skull(bone), np.argwhere(mask.T)[:, ::-1]
    order = np.array([np.count_nonzero(mask.ravel()[: i * POINTS + j]) for i, j in columns])
    objects = (
        SimpleNamespace(N=np.array(grid.shape), spacing=np.full(2, DX), dt=grid.dt, Nt=grid.steps),
        SimpleNamespace(
            sound_speed_compression=medium.sound_speed, sound_speed_shear=medium.shear_speed, density=medium.density
        ),
        SimpleNamespace(mask=mask, recorded_pressure=series[order]),
    )
    image = TimeReversal(*objects, compensation_factor=1.0)(**OPTIONS, pml_inside=True)
    np.testing.assert_array_equal(image, time_reversal(grid, medium, mask, series, **OPTIONS))


CASE = """solver = "ultrasound"
[grid]
shape = [64, 64]
spacing = "0.3 mm"
cfl = 0.2
steps = 300
[layer]
points = 8
[medium]
material = "water"
[[medium.region]]
kind = "box"
lower = ["1 mm", "-10 mm"]
upper = ["2.5 mm", "10 mm"]
sound_speed = "2800 m/s"
density = "1850 kg/m^3"
shear_speed = "1500 m/s"
[[source]]
kind = "initial-ball"
center = ["-0.6 mm", "0.3 mm"]
radius = "1.2 mm"
pressure = "1 kPa"
[record]
ring = { center = ["0 mm", "0 mm"], radius = "5 mm" }
[image]
"""


def test_a_case_makes_an_image_through_bone_and_refuses_compensation(tmp_path):
    image = load(case(tmp_path, CASE)).run(visible=False).arrays["image"]
    assert np.hypot(*(np.array(np.unravel_index(image.argmax(), image.shape)) - (30, 33))) < 3
    assert image.max() > 500.0
    with pytest.raises(CaseError, match=r"image.compensate: is not available in elastic media; omit it"):
        prepare(case(tmp_path, CASE + 'compensate = "1 MHz"\n'))
    grid = Grid((8, 8), DX, 1e-8, 2)
    with pytest.raises(CaseError, match="compensate: is not available in elastic media; omit it"):
        time_reversal(grid, Medium(2800.0, shear_speed=1500.0), np.ones((8, 8)), np.zeros((64, 2)), compensate=1e6)
