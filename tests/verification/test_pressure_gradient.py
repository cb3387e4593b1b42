# SPDX-License-Identifier: BSD-3-Clause
"""The recorded gradient of the pressure against exact waves, and against transforms of the pressure by NumPy."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest

from seiche.case.loading import load
from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from ultrasound_cases import BASIC, case

C, DX = 1500.0, 1e-4
OPTIONS: dict[str, Any] = {"pml_size": 0, "smooth_p0": False, "precision": "float64", "threads": 1}


@pytest.mark.parametrize("shape", [(24,), (24, 20), (12, 15, 10)], ids=str)
def test_a_standing_plane_wave_has_its_exact_gradient(shape, device):
    """P = cos(k.x) cos(w t) on a periodic grid, where the scheme is exact."""
    grid = Grid(shape, DX, 0.3 * DX / C, 12)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    k = [2 * np.pi * m / (n * DX) for m, n in zip((2, 3, 1), shape, strict=False)]
    phase = sum(a * b for a, b in zip(k, x, strict=True))
    mask = np.random.default_rng(3).random(shape) < 0.2
    sensor, source = Sensor(mask, record=("p", "g")), Source(p0=np.cos(phase))
    found = simulate(grid, Medium(C), source, sensor, device=device, **OPTIONS)
    angles = C * float(np.linalg.norm(k)) * grid.dt * np.arange(12)
    np.testing.assert_allclose(found["p"], np.cos(phase)[mask][:, None] * np.cos(angles), atol=1e-11)
    for axis, number in zip(grid.axes, k, strict=True):
        exact = -number * np.sin(phase)[mask][:, None] * np.cos(angles)
        np.testing.assert_allclose(found[f"g{axis}"], exact, atol=1e-10 * max(k))


@pytest.mark.parametrize("options", [{}, {"scheme": "local4"}, {"scheme": "separable"}, {"shear": 1000.0}], ids=str)
def test_it_is_the_derivative_of_the_pressure_in_every_scheme(options, device):
    grid = Grid((20, 18), DX, 0.15 * DX / C, 8)
    x, y = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    speed = np.where(x > 2e-4, 1700.0, C)
    medium = Medium(speed, 1000.0, shear_speed=options.get("shear"))
    source = Source(p0=np.exp(-((x + DX) ** 2 + y**2) / (2 * (3 * DX) ** 2)))
    scheme = options.get("scheme", "exact")
    sensor = Sensor(everywhere=True, record=("p", "g"))
    found = simulate(grid, medium, source, sensor, device=device, scheme=scheme, **{**OPTIONS, "pml_size": 4})
    p = found["p"].reshape(20, 18, -1)
    for axis, name in enumerate("xy"):
        k = 2 * np.pi * np.fft.fftfreq(p.shape[axis], DX)
        k[len(k) // 2] = 0.0
        expected = np.fft.ifft(1j * np.moveaxis(k[:, None, None], 0, axis) * np.fft.fft(p, axis=axis), axis=axis).real
        np.testing.assert_allclose(found[f"g{name}"], expected.reshape(360, -1), atol=1e-11 * np.abs(expected).max())


def test_along_a_radius_the_pressure_is_even(device):
    grid = Grid((28, 32), DX, 0.3 * DX / C, 3, symmetry="axisymmetric")
    x, r = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    width = 2 * DX
    p0 = np.exp(-(x**2 + r**2) / (2 * width**2))
    sensor = Sensor(everywhere=True, record=("p", "g"))
    found = simulate(grid, Medium(C), Source(p0=p0), sensor, device=device, **OPTIONS)
    for name, place in (("gx", x), ("gy", r)):
        exact = (-place / width**2 * p0).ravel()
        assert np.abs(found[name][:, 0] - exact).max() < 1e-6 * np.abs(exact).max()


def test_a_case_stores_it_with_its_unit(tmp_path):
    text = BASIC.replace("periods = 1", 'periods = 1\nquantities = ["p", "g"]')
    load(case(tmp_path, text)).run(visible=False)
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        assert {file[name].attrs["unit"] for name in ("gx", "gy")} == {"Pa/m"}
        assert file["gx"].shape == file["p"].shape
        assert 0 < np.abs(file["gx"][:]).max() < 1e3 * np.abs(file["p"][:]).max() * 2 * np.pi / 0.5


def test_it_has_no_aggregates():
    with pytest.raises(CaseError, match=r"sensor.record: 'g_max' is not one of"):
        simulate(Grid((8, 8), DX), Medium(C), Source(p0=np.ones((8, 8))), Sensor(np.ones((8, 8)), record="g_max"))
