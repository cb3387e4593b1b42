# SPDX-License-Identifier: BSD-3-Clause
"""Power absorbed by elastic media: exact plane waves, energy balance, fluids, intensity, and heat of a case."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.absorbed_power import elastic_power
from seiche.ultrasound.problem import Absorption, Elastic, Pml, Problem
from seiche.ultrasound.thermal import heat_deposition

SPEED, SHEAR, DENSITY, FREQUENCY = 2800.0, 1500.0, 1850.0, 5e5
#: dB/(MHz^2 cm) of compression and shear.
LOSS = 6.0, 12.0


def solid(dimensions: int) -> Problem:
    return Problem(
        axes=("x", "y", "z")[:dimensions],
        shape=(12, 10, 8)[:dimensions],
        spacing=(1e-4,) * dimensions,
        dt=1e-9,
        steps=10,
        reference_speed=SPEED,
        sound_speed=SPEED,
        density=DENSITY,
        elastic=Elastic(SHEAR, LOSS[1]),
        absorption=Absorption(LOSS[0], 2.0, stokes=True),
        pml=(Pml(0, 0.0),) * dimensions,
    )


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("kind", ["P", "S"])
def test_a_plane_wave_loses_twice_its_attenuation_times_its_intensity(dimensions, kind):
    """Strains of an oblique wave of 1 nm with w/c as wave number, and stresses by the law of Kelvin and Voigt."""
    problem, omega = solid(dimensions), 2 * np.pi * FREQUENCY
    speed, loss = (SPEED, LOSS[0]) if kind == "P" else (SHEAR, LOSS[1])
    along = np.array([0.6, -0.7, 0.4])[:dimensions]
    along /= np.linalg.norm(along)
    across = np.array([0.7, 0.6, 0.0])[:dimensions]
    across -= along * (across @ along)
    motion = 1e-9 * (along if kind == "P" else across / np.linalg.norm(across))
    alpha_per_square = [100 * a / (20 * np.log10(np.e)) / (2 * np.pi * 1e6) ** 2 for a in LOSS]  # Np s^2/m
    mu, eta = DENSITY * SHEAR**2, 2 * DENSITY * SHEAR**3 * alpha_per_square[1]
    stiff, chi = DENSITY * SPEED**2 - 2 * mu, 2 * DENSITY * SPEED**3 * alpha_per_square[0] - 2 * eta
    bulk, shear = stiff + 1j * omega * chi, mu + 1j * omega * eta
    stresses = {}
    for i, a in enumerate(problem.axes):
        for j, b in enumerate(problem.axes[i:], start=i):
            shifts = [0.5 * (i != j and k in (i, j)) for k in range(dimensions)]
            lines = [1e-4 * (np.arange(n) + s) for n, s in zip(problem.shape, shifts, strict=True)]
            phase = sum(k * x for k, x in zip(along, np.meshgrid(*lines, indexing="ij"), strict=True))
            wave = -1j * omega / speed * np.exp(-1j * omega / speed * phase)
            strain = (motion[i] * along[j] + motion[j] * along[i]) / 2 * wave
            stresses[f"s{a}{b}"] = 2 * shear * strain + (bulk * (motion @ along) * wave if i == j else 0)
    intensity = 0.5 * DENSITY * speed * (omega * 1e-9) ** 2
    attenuation = 100 * loss / (20 * np.log10(np.e)) * (FREQUENCY / 1e6) ** 2
    power = elastic_power(stresses, FREQUENCY, problem)
    np.testing.assert_allclose(power, 2 * attenuation * intensity, rtol=1e-12)


def balance(bone: Medium, spacing: float, cfl: float, periods: int) -> float:
    """Return the power absorbed in a box over that which flows into it, for a line source of force beside the box."""
    shape = (round(30e-3 / spacing), round(26e-3 / spacing))
    period = int(np.ceil(1 / (FREQUENCY * cfl * spacing / SPEED)))
    grid = Grid(shape, spacing, dt=1 / FREQUENCY / period, steps=period * periods)
    time = np.arange(grid.steps) * grid.dt
    force = np.sin(2 * np.pi * FREQUENCY * time) * np.minimum(1, FREQUENCY * time / 3)
    points = np.zeros(shape, bool)
    points[round(7e-3 / spacing), round(9e-3 / spacing) : round(15e-3 / spacing)] = True
    first, last = np.array(shape) * 0.4, np.array(shape) * 0.7
    (a, c), (b, d) = (np.rint(corner).astype(int) for corner in (first, last))
    rim = np.zeros(shape, bool)
    rim[a : b + 1, c : d + 1] = True
    rim[a + 1 : b, c + 1 : d] = False
    sensor = Sensor(
        mask=rim, record=("I_avg",), first=grid.steps - 2 * period, frequencies=(FREQUENCY,), absorbed_power=True
    )
    sources = Source(u_mask=points, ux=force, uy=0.7 * force)
    result = simulate(grid, bone, sources, sensor, pml_size=round(4e-3 / spacing), precision="float64", threads=1)
    flux = np.zeros((2, *shape))
    flux[0][rim], flux[1][rim] = result["Ix_avg"], result["Iy_avg"]
    along_x, along_y = (np.r_[0.5, np.ones(n - 1), 0.5] for n in (b - a, d - c))
    inflow = (flux[0, a, c : d + 1] - flux[0, b, c : d + 1]) @ along_y
    inflow += (flux[1, a : b + 1, c] - flux[1, a : b + 1, d]) @ along_x
    absorbed = along_x @ result["absorbed_power"][a : b + 1, c : d + 1] @ along_y
    return float(absorbed * spacing / inflow)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_power_that_flows_into_a_box_is_absorbed_in_it():
    """Compression and shear in uniform bone; stresses and velocities are interpolated to the points of the rim."""
    bone = Medium(SPEED, DENSITY, alpha_coeff=LOSS[0], alpha_power=2, shear_speed=SHEAR, shear_alpha_coeff=LOSS[1])
    assert balance(bone, 0.4e-3, 0.15, 16) == pytest.approx(1.0, abs=0.003)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_shear_it_is_the_heat_of_a_fluid():
    grid = Grid((48, 40), 0.5e-3, dt=5e-8, steps=160)
    tone = np.sin(2 * np.pi * FREQUENCY * grid.dt * np.arange(160))
    speed = np.where(np.arange(48)[:, None] < 24, 1500.0, 1700.0) + np.zeros((48, 40))
    medium = Medium(speed, 1000.0, alpha_coeff=2.0, alpha_power=2, shear_speed=0.0)
    source = Source(emitters=Emitter(Line((-8e-3, -3e-3), (-8e-3, 3e-3)), tone))
    sensor = Sensor(record=("p_final",), frequencies=(FREQUENCY, 1e6), frequency_window=(80, 160), absorbed_power=True)
    result = simulate(grid, medium, source, sensor, pml_size=8, threads=1)
    expected = heat_deposition(result["p_amplitude"][0], FREQUENCY, medium)
    # the viscous part of the pressure is not small at all frequencies: |1 + i w chi/lambda|^2
    loss = 2 * 1500.0 * (100 * 2.0 / (20 * np.log10(np.e)) * 0.25) / (2 * np.pi * FREQUENCY)
    np.testing.assert_allclose(result["absorbed_power"], expected, rtol=2 * loss**2, atol=1e-9 * expected.max())
    assert expected.max() > 0
    with pytest.raises(CaseError, match=r"absorbed_power: requires an elastic medium; use thermal.heat_deposition"):
        simulate(grid, Medium(1500.0), source, sensor)
    with pytest.raises(CaseError, match=r"absorbed_power: needs sensor.frequencies, which are missing"):
        simulate(grid, medium, source, Sensor(record=("p_final",), absorbed_power=True))
