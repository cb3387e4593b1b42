# SPDX-License-Identifier: BSD-3-Clause
"""Exact temperatures in uniform tissue against heat kernels and steady states, and Pennes' equation against them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad_vec

from seiche.errors import CaseError
from seiche.ultrasound.thermal import Bioheat, Tissue
from seiche.ultrasound.uniform_heat import thermal_dose, uniform_temperature

TISSUE = Tissue(1050.0, 3600.0, 0.5, 0.01)
DIFFUSIVITY, COOLING = 0.5 / (1050 * 3600), 0.01 * 1060 * 3617 / (1050 * 3600)
SHAPES = [(90,), (72, 64), (40, 44, 36)]


def squares(shape: tuple[int, ...], spacing: float) -> np.ndarray:
    return np.asarray(sum(np.ix_(*(((np.arange(n) - (n - 1) / 2) * spacing) ** 2 for n in shape))))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("border", ["insulated", "fixed", "periodic"])
@pytest.mark.parametrize("perfusion", [0.0, 0.01])
def test_a_gaussian_spreads_and_a_gaussian_source_heats_as_heat_kernels_predict(shape, border, perfusion):
    spacing, width, seconds, dimensions = 1e-3, 3e-3, 12.0, len(shape)
    tissue = Tissue(1050.0, 3600.0, 0.5, perfusion)
    r2, cooling = squares(shape, spacing), COOLING * perfusion / 0.01

    def kernel(time: float) -> np.ndarray:
        wide = width**2 + 2 * DIFFUSIVITY * time
        return np.exp(-cooling * time) * (width**2 / wide) ** (dimensions / 2) * np.exp(-r2 / (2 * wide))

    heat = 2e6 * np.exp(-r2 / (2 * width**2))
    found = uniform_temperature(37 + 8 * kernel(0.0), seconds, spacing, tissue, heat=heat, border=border)
    gained = quad_vec(kernel, 0.0, seconds, epsabs=1e-12)[0] * 2e6 / (1050 * 3600)
    reach = {1: 1e-9, 2: 1e-9, 3: 1e-6}[dimensions]  # what reaches the border
    assert np.abs(found - 37 - 8 * kernel(seconds) - gained).max() < reach * np.abs(found - 37).max()


def test_conduction_between_fixed_borders_ends_at_the_exact_steady_state():
    """Heat of half a wave between the borders: q sin(pi x/l) makes the tissue warmer by q/(lambda (pi/l)^2) sin."""
    n, spacing = 50, 1e-3
    wave = np.sin(np.pi * (np.arange(n) + 0.5) / n)
    tissue = Tissue(conductivity=0.5)
    found = uniform_temperature(np.full(n, 30.0), 1e6, spacing, tissue, heat=1e4 * wave, border="fixed")
    np.testing.assert_allclose(found, 37 + 1e4 / (0.5 * (np.pi / (n * spacing)) ** 2) * wave, rtol=1e-12)


def test_perfused_tissue_ends_at_the_balance_of_heat_and_blood():
    tissue = Tissue(1050.0, 3600.0, 0.5, 0.005)
    found = uniform_temperature(np.full((6, 5), 20.0), 1e6, 1e-3, tissue, heat=2e4)
    np.testing.assert_allclose(found, 37 + 2e4 / (0.005 * 1060 * 3617), rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pennes_equation_converges_to_the_exact_temperature(shape, device):
    """With insulated borders, also where heat reaches them; the error is of second order."""
    errors = []
    for factor in (1, 2):
        points = tuple(factor * (n // 4) for n in shape)
        phases = [np.pi * (np.arange(n) + 0.5) / n for n in points]
        start, heat = np.full(points, 37.0), np.zeros(points)
        for order, warmer, hotter in ((1, 3.0, 2e5), (2, 2.0, -1e5)):  # no flux through the borders
            wave = np.asarray(sum(np.ix_(*(np.cos(order * phase) for phase in phases))))
            start, heat = start + warmer * wave, heat + hotter * (wave + len(shape))
        spacing = 4e-3 / factor
        state = Bioheat(points, (spacing,) * len(shape), TISSUE, start, device=device)
        state.run(200.0, heat)
        exact = uniform_temperature(start, 200.0, spacing, TISSUE, heat=heat)
        errors.append(float(np.sqrt(np.mean((state.temperature - exact) ** 2))))
    assert errors[1] < 0.02
    assert errors[0] / errors[1] > 3.3


def test_the_dose_of_a_rising_temperature_is_its_exact_integral():
    """From 41 to 46 degrees in 50 minutes: the integral of R^(43 - T) is exponential on either side of 43."""
    time = np.linspace(0.0, 3000.0, 4001)
    ramp = 41.0 + time / 600.0
    exact = 10 * ((1 - 4.0**-2) / np.log(4) + (2.0**3 - 1) / np.log(2))
    np.testing.assert_allclose(thermal_dose(np.stack([ramp, ramp - 5]), 0.75)[0], exact, rtol=1e-5)
    assert thermal_dose(np.stack([ramp - 10, ramp]).T, 0.75, axis=0)[0] == 0.0
    np.testing.assert_allclose(thermal_dose(np.full(121, 43.0), 1.0), 2.0)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: uniform_temperature(37.0, 1.0, 1.0, TISSUE), "temperature: shape () is not one to three axes"),
        (lambda: uniform_temperature(np.ones(4), 0.0, 1.0, TISSUE), "seconds: 0 is not a finite number > 0"),
        (lambda: uniform_temperature(np.ones(4), 1.0, (1.0, 2.0), TISSUE), "spacing: [1.0, 2.0] is not one positive"),
        (
            lambda: uniform_temperature(np.ones(4), 1.0, 1.0, Tissue(perfusion=np.ones(4))),
            "tissue.perfusion: shape (4,)",
        ),
        (lambda: uniform_temperature(np.ones(4), 1.0, 1.0, Tissue(density=0.0)), "tissue.density: 0 is not a finite"),
        (
            lambda: uniform_temperature(np.ones(4), 1.0, 1.0, TISSUE, heat=np.ones(3)),
            "heat: shape (3,) is not the grid",
        ),
        (lambda: uniform_temperature(np.ones(4), 1.0, 1.0, TISSUE, border="open"), "border: 'open' is not insulated"),
        (lambda: thermal_dose([43.0], 1.0), "temperatures: shape (1,) is not finite numbers at two or more times"),
        (lambda: thermal_dose([43.0, 43.0], -1.0), "dt: -1 is not a finite number > 0"),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
