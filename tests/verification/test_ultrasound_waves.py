# SPDX-License-Identifier: BSD-3-Clause
"""The ultrasound solver against exact solutions: photoacoustic sources, absorption, layers."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

C, RHO = 1500.0, 1000.0
DB = 100 / (20 * np.log10(np.e))  # dB/cm in Np/m


def gaussian(grid: Grid, width: float) -> np.ndarray:
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    return np.exp(-sum(one * one for one in x) / (2 * width**2))


def point_mask(grid: Grid, *offsets: int) -> np.ndarray:
    mask = np.zeros(grid.shape, bool)
    mask[tuple(n // 2 + k for n, k in zip(grid.shape, offsets, strict=True))] = True
    return mask


def test_gaussian_pressure_spreads_as_the_exact_spherical_wave(device):
    """P = p0/(2r) [f(r - ct) + f(r + ct)], f(x) = x exp(-x^2/2s^2)."""
    n, dx, s, away = 60, 1e-4, 3e-4, 16
    grid = Grid((n,) * 3, dx, 0.3 * dx / C, 80)
    result = simulate(
        grid,
        Medium(C),
        Source(p0=gaussian(grid, s)),
        Sensor(point_mask(grid, away, 0, 0)),
        smooth_p0=False,
        device=device,
    )
    t, r = np.arange(80) * grid.dt, away * dx
    f = lambda x: x * np.exp(-(x**2) / (2 * s**2))  # noqa: E731
    exact = (f(r - C * t) + f(r + C * t)) / (2 * r)
    assert np.abs(result["p"][0] - exact).max() < 1e-5 * exact.max()


def test_ball_of_pressure_sends_out_an_n_wave(device):
    """P = p0 (r - ct)/(2r) for |r - ct| < a (Diebold, Sun and Khan 1991); its flanks are as wide as the filter."""
    n, dx, a, away = 72, 1e-4, 12e-4, 24
    grid = Grid((n,) * 3, dx, 0.3 * dx / C, 120)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    ball = (np.sqrt(sum(one * one for one in x)) < a).astype(float)
    p = simulate(grid, Medium(C), Source(p0=ball), Sensor(point_mask(grid, away, 0, 0)), device=device)["p"][0]
    t, r = np.arange(120) * grid.dt, away * dx
    arrival = r - C * t
    exact = np.where(np.abs(arrival) < a, arrival / (2 * r), 0.0)
    away_from_edges = (np.abs(np.abs(arrival) - a) > 4 * dx) & (arrival > -1.5 * a)
    assert np.abs(p - exact)[away_from_edges].max() < 0.07 * exact.max()  # the ball is a staircase


@pytest.mark.parametrize(("y", "losses"), [(0.8, 0.02), (1.1, 0.025), (1.5, 0.01), (2.0, 0.006)])
def test_plane_wave_is_absorbed_and_dispersed_by_the_power_law(y, losses, device):
    """Alpha = a0 w^y and 1/c(w) = 1/c0 + a0 tan(pi y/2) w^(y-1) between 1 and 4 MHz."""
    n, dx, steps = 1024, 5e-5, 4000
    grid = Grid((n,), dx, 4e-9, steps)
    x = np.arange(n)
    mask = np.isin(x, (300, 500))
    alpha = 0.5
    p = simulate(
        grid,
        Medium(C, RHO, alpha_coeff=alpha, alpha_power=y),
        Source(p0=np.exp(-((x - 150) ** 2) / 8.0)),
        Sensor(mask),
        pml_size=40,
        smooth_p0=False,
        device=device,
        precision="float64",
    )["p"]
    spectrum, f = np.fft.rfft(p, 8192, axis=1), np.fft.rfftfreq(8192, grid.dt)
    band = (f > 1e6) & (f < 4e6)
    length = 200 * dx
    result = np.log(np.abs(spectrum[0, band] / spectrum[1, band])) / length
    phase = np.unwrap(np.angle(spectrum[0] * spectrum[1].conj()))[band]
    w = 2 * np.pi * f[band]
    a0 = alpha * DB * (1e-6 / (2 * np.pi)) ** y
    dispersion = a0 * np.tan(np.pi * y / 2) * w ** (y - 1) if y != 2 else 0.0
    assert np.abs(result / (a0 * w**y) - 1).max() < losses
    assert np.abs(w * length / phase * (1 / C + dispersion) - 1).max() < 4e-4


@pytest.mark.parametrize("scheme", ["exact", "local4"])
@pytest.mark.parametrize("y", [0.8, 1.0, 1.1, 1.5, 2.0])
def test_relaxation_follows_the_power_law_from_half_to_five_megahertz(y, scheme, device):
    """Absorption and speed within 1 percent, two exponents in one medium, the exponent 1 included."""
    n, dx, steps = 1024, 5e-5, 4000
    x = np.arange(n)
    band, centre = (0.5e6, 5e6), np.sqrt(0.5e6 * 5e6)
    medium = Medium(
        C, RHO, alpha_coeff=0.5, alpha_power=np.where(x < 900, y, 0.9), alpha_mode="relaxation", relaxation_band=band
    )
    grid = Grid((n,), dx, 4e-9, steps)
    source = Source(p0=np.exp(-((x - 150) ** 2) / 8.0))
    p = simulate(
        grid,
        medium,
        source,
        Sensor(np.isin(x, (300, 500))),
        pml_size=40,
        smooth_p0=False,
        scheme=scheme,
        device=device,
        precision="float64",
    )["p"]
    spectrum, f = np.fft.rfft(p, 8192, axis=1), np.fft.rfftfreq(8192, grid.dt)
    inside = (f > band[0]) & (f < band[1])
    w, w0, length = 2 * np.pi * f[inside], 2 * np.pi * centre, 200 * dx
    a0 = 0.5 * DB * (1e-6 / (2 * np.pi)) ** y
    if y == 1:
        dispersion = -2 / np.pi * a0 * np.log(w / w0)
    else:
        dispersion = a0 * np.tan(np.pi * y / 2) * (w ** (y - 1) - w0 ** (y - 1)) if y != 2 else 0.0
    result = np.log(np.abs(spectrum[0, inside] / spectrum[1, inside])) / length
    phase = np.unwrap(np.angle(spectrum[0] * spectrum[1].conj()))[inside]
    assert np.abs(result / (a0 * w**y) - 1).max() < 0.012
    assert np.abs(w * length / phase * (1 / C + dispersion) - 1).max() < 0.01


def test_layer_at_normal_incidence_transmits_what_theory_says(device):
    """Cortical bone of 6.5 mm in water at 500 kHz, lossless: the transfer matrix of one layer."""
    f, c1, rho1, thick = 5e5, 2800.0, 1850.0, 6.5e-3
    dx = thick / 52
    n, dt = 800, 0.2 * dx / c1
    x = np.arange(n)
    bone = (x >= 360) & (x < 412)
    period = round(1 / f / dt)
    dt = 1 / f / period
    steps = int(46e-6 / dt)
    ramp = np.minimum(1.0, np.arange(steps) / (3 * period))
    source = Source(p_mask=x == 200, p=np.sin(2 * np.pi * f * np.arange(steps) * dt) * ramp)
    heard = []
    for layer in (False, True):
        medium = Medium(np.where(bone & layer, c1, C), np.where(bone & layer, rho1, RHO), sound_speed_ref=c1)
        p = simulate(Grid((n,), dx, dt, steps), medium, source, Sensor(x == 500), pml_size=60, device=device)["p"][0]
        heard.append(2 / period * np.abs((p[-period:] * np.exp(-2j * np.pi * np.arange(period) / period)).sum()))
    k, ratio = 2 * np.pi * f / c1, rho1 * c1 / (RHO * C)
    exact = 1 / abs(np.cos(k * thick) + 0.5j * (ratio + 1 / ratio) * np.sin(k * thick))
    assert abs(heard[1] / heard[0] - exact) < 0.01


def test_absorbing_layer_reflects_less_than_80_db(device):
    n, dx = 256, 1e-4
    grid = Grid((n,), dx, 0.3 * dx / C, 1400)
    x = np.arange(n)
    p0 = np.exp(-((x - 128) ** 2) / (2 * 4.0**2))
    p = simulate(grid, Medium(C), Source(p0=p0), Sensor(x == 128), smooth_p0=False, device=device, precision="float64")[
        "p"
    ]
    assert np.abs(p[0, 500:]).max() < 1e-4 * np.abs(p[0]).max()


def test_solution_does_not_depend_on_the_time_step_in_a_uniform_medium(device):
    """The correction makes the scheme exact in time: two Courant numbers, one result at equal times."""
    n, dx = 64, 1e-4
    results = []
    for cfl, every in ((0.1, 4), (0.4, 1)):
        grid = Grid((n, n), dx, cfl * dx / C, 40 * every)
        source = Source(p0=gaussian(grid, 3e-4))
        p = simulate(
            grid,
            Medium(C),
            source,
            Sensor(point_mask(grid, 9, 4)),
            pml_alpha=0.0,
            smooth_p0=False,
            device=device,
            precision="float64",
        )["p"][0]
        results.append(p[::every])
    assert np.abs(results[0] - results[1]).max() < 1e-10 * np.abs(results[0]).max()


def final_pressure(grid: Grid, speed: np.ndarray, p0: np.ndarray, device: str, **layer: float) -> np.ndarray:
    """Return the pressure after all steps from an initial one, in double precision."""
    medium, source, sensor = Medium(speed, 1.0), Source(p0=p0), Sensor(record=("p_final",))
    options = {"smooth_p0": False, "device": device, "precision": "float64"}
    return simulate(grid, medium, source, sensor, **options, **layer)["p_final"]


def error_of(points: int, cfl: float, device: str) -> float:
    """Return the relative error after a pulse has passed a contrast of 1.5, against CFL 0.01."""
    x = np.arange(points) / points
    speed = 1 + 0.25 * (1 + np.tanh((x - 0.5) * 40))
    p0 = np.exp(-((x - 0.35) ** 2) / (2 * 0.02**2))
    finals = []
    for number in (cfl, 0.0125):
        steps = round(0.25 / (number / points / 1.5))
        grid = Grid((points,), 1 / points, 0.25 / steps, steps + 1)
        finals.append(final_pressure(grid, speed, p0, device, pml_alpha=0.0))
    return float(np.linalg.norm(finals[0] - finals[1]) / np.linalg.norm(finals[1]))


def test_order_in_time_is_two_where_the_sound_speed_varies(device):
    errors = [error_of(256, cfl, device) for cfl in (0.4, 0.2, 0.1)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 1.8).all()


def test_convergence_in_space_is_faster_than_any_power(device):
    """A smooth field is resolved to round-off once it has a few points a wavelength."""
    n_fine, errors = 256, []

    def final(points: int) -> np.ndarray:
        grid = Grid((points,), 1 / points, 2e-4, 501)
        x = np.arange(points) / points
        speed, p0 = 1 + 0.2 * np.sin(2 * np.pi * x), np.exp(np.cos(2 * np.pi * x) * 6 - 6)
        return final_pressure(grid, speed, p0, device, pml_size=0)

    fine = final(n_fine)
    for points in (16, 32, 64):
        errors.append(np.abs(final(points) - fine[:: n_fine // points]).max())
    assert errors[0] / errors[1] > 50
    assert errors[2] < 1e-9
