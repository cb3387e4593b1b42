# SPDX-License-Identifier: BSD-3-Clause
"""Continuous waves in one step against exact solutions and simulations, in one to three dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hankel2

from seiche.errors import CaseError
from seiche.ultrasound import Arc, Bowl, Disc, Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.angular_spectrum import wave_number
from seiche.ultrasound.beamforming import steering_delays
from seiche.ultrasound.steady_field import _transfer, shape_amplitudes, steady_field, steering_amplitudes
from seiche.validate.ultrasound.continuous_waves import on_axis_amplitude

C, F = 1500.0, 500e3
WAVE = C / F
MEDIA = {
    "lossless": Medium(C),
    "power law": Medium(C, alpha_coeff=5.0, alpha_power=1.3),
    "stokes": Medium(C, alpha_coeff=5.0, alpha_mode="stokes"),
}


@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA)
@pytest.mark.parametrize(
    ("shape", "spacing"),
    [((160,), WAVE / 8), ((96, 70), (WAVE / 8, WAVE / 7)), ((48, 52, 44), (WAVE / 8, WAVE / 8.5, WAVE / 7))],
    ids=["1D", "2D", "3D"],
)
def test_the_field_of_a_gaussian_source_is_that_of_a_point_times_its_spectrum(shape, spacing, medium):
    """Outside a source A exp(-r^2/2 s^2) the field is (2 pi s^2)^(D/2) exp(-k^2 s^2/2) times the Green's function."""
    grid = Grid(shape, spacing)
    k, width, amplitude = complex(wave_number(medium, F)), WAVE / 4, 2.0 - 1.0j
    place = [positions[n // 4] for positions, n in zip(map(grid.positions, grid.axes), shape, strict=True)]
    axes = (grid.positions(axis) - at for axis, at in zip(grid.axes, place, strict=True))
    r = np.sqrt(sum(np.ix_(*(x**2 for x in axes))))
    found = steady_field(grid, amplitude * np.exp(-(r**2) / (2 * width**2)), F, medium)
    with np.errstate(divide="ignore", invalid="ignore"):
        green = (
            np.exp(-1j * k * r) / (2j * k),
            -0.25j * hankel2(0, k * r),
            np.exp(-1j * k * r) / (4 * np.pi * np.where(r > 0, r, 1.0)),
        )[len(shape) - 1]
    factor = 2j * (2 * np.pi * F / C) / grid.spacings[0] * amplitude
    expected = factor * (2 * np.pi * width**2) ** (len(shape) / 2) * np.exp(-(k**2) * width**2 / 2) * green
    away = r > 6.5 * width
    assert np.abs(found - expected)[away].max() < 1e-6 * np.abs(expected[away]).max()


def test_the_transfer_function_is_continuous_at_its_pole():
    k, reach = 2000.0 + 0.0j, 0.05
    for dimensions in (1, 2, 3):
        at, beside = (_transfer(np.array([s]), k, reach, 1e-3, dimensions)[0] for s in (2000.0, 2000.0 + 1e-4))
        assert at == pytest.approx(beside, rel=1e-4)


@pytest.mark.parametrize("name", ["bowl", "piston"])
def test_the_pressure_on_the_axis_of_transducers_is_exact(name):
    size, dx = 5 * WAVE, WAVE / 5
    grid = Grid((50, 36, 36), dx)
    start, end = (-20 * dx, 0.0, 0.0), (30 * dx, 0.0, 0.0)
    shape = Bowl(start, end, size, size) if name == "bowl" else Disc(start, end, size)
    field = steady_field(grid, shape_amplitudes(grid, shape, 1.0), F, Medium(C))
    z = grid.positions("x") - start[0]
    ahead = z > (8 * dx if name == "bowl" else 6 * dx)
    exact = on_axis_amplitude(name, z[ahead], size, F)
    found = np.abs(field[ahead, 18, 18])
    assert np.abs(found - exact).max() < 2e-3 * exact.max()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("medium", [MEDIA["lossless"], Medium(C, alpha_coeff=3.0, alpha_power=1.5)], ids=["0", "y"])
def test_the_field_is_that_of_a_simulation_of_an_arc_and_of_a_steered_array(medium, device):
    dx, dt = WAVE / 6, 1 / F / 40
    grid = Grid((90, 90), dx, dt, 2000)
    time, middle = (np.arange(grid.steps) - 0.5) * dt, np.s_[18:72, 18:72]
    ramp = np.clip(time * F / 6, 0, 1)
    arc = Arc((-22 * dx, 0.0), (10 * dx, 0.0), 30 * dx, 30 * dx)
    lines = [Line((-20 * dx, (4 * j - 0.9) * dx), (-20 * dx, (4 * j + 0.9) * dx)) for j in range(-5, 6)]
    delays = steering_delays([line.start for line in lines], (1.0, 0.4), C)
    for shapes, lags in ((arc, np.zeros(1)), (lines, delays)):
        emitter = Emitter(shapes, ramp * np.cos(2 * np.pi * F * time), delays=lags)
        sensor = Sensor(record=("p_final",), frequencies=(F,), frequency_window=(grid.steps - 80, grid.steps))
        options = {"pml_size": 12, "precision": "float64", "device": device}
        result = simulate(grid, medium, Source(emitters=emitter), sensor, **options)
        simulated = (result["p_amplitude"][0] * np.exp(1j * result["p_phase"][0]))[middle]
        factors = steering_amplitudes(lags, F)
        amplitudes = shape_amplitudes(grid, shapes, factors[0] if len(factors) == 1 else factors)
        found = steady_field(grid, amplitudes, F, medium)[middle]
        assert np.abs(found - simulated).max() < 0.01 * np.abs(simulated).max()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"amplitudes": np.ones(3)}, "amplitudes: shape (3,) is not that of the grid, (8, 8), of finite numbers"),
        ({"amplitudes": np.full((8, 8), np.nan)}, "amplitudes: shape (8, 8) is not that of the grid"),
        ({"frequency": 0.0}, "frequency: 0 is not a finite number > 0"),
        ({"medium": Medium(np.full((8, 8), C))}, "medium: must be uniform"),
        ({"grid": Grid((8, 8), 1e-3, symmetry="axisymmetric")}, "grid.symmetry: must be None"),
    ],
)
def test_impossible_fields_are_named(change, words):
    arguments = {"grid": Grid((8, 8), 1e-3), "amplitudes": np.ones((8, 8)), "frequency": F, "medium": Medium(C)}
    with pytest.raises(CaseError) as caught:
        steady_field(**(arguments | change))
    assert str(caught.value).startswith(words)


def test_impossible_elements_are_named():
    line = Line((0.0, 0.0), (1e-3, 0.0))
    with pytest.raises(CaseError, match=r"amplitudes: shape \(3,\) is not one number"):
        shape_amplitudes(Grid((8, 8), 1e-3), [line, line], [1, 2, 3])
    with pytest.raises(CaseError, match=r"shapes\[0\]: a Line does not lie inside the grid"):
        shape_amplitudes(Grid((8, 8), 1e-3), Line((0.0, 0.0), (5e-3, 0.0)), 1.0)
    with pytest.raises(CaseError, match="delays: are not finite numbers"):
        steering_amplitudes([np.nan], F)
