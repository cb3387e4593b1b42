# SPDX-License-Identifier: BSD-3-Clause
"""Continuous waves against exact solutions: transducers, harmonics, bone layers, and the order of the schemes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.report.figures import convergence_figure, observed_order
from seiche.ultrasound import Bowl, Disc, Emitter, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.materials import MATERIALS
from seiche.validate.check import Check, Floats, Setting, relative_error
from seiche.validate.ultrasound.layers import BENCHMARK_PLATES, Plates
from seiche.validate.ultrasound.pulses import DB, RHO, C, computed_plot

ONEIL = "O'Neil 1949, doi:10.1121/1.1906542"
_FUBINI = "Blackstock 1966, doi:10.1121/1.1909986"
_MENDOUSSE = "Mendousse 1953, doi:10.1121/1.1907007"
_AUBRY = "Aubry et al. 2022, doi:10.1121/10.0013426"
_FREQUENCY = 5e5


def transducers(setting: Setting) -> list[Check]:
    """Check the on-axis pressure of a bowl and of a piston in water at 500 kHz, with six points per wavelength."""
    bowl, piston = (20e-3, 12e-3) if setting.quick else (64e-3, 20e-3)
    checks = []
    for name, size in (("bowl", bowl), ("piston", piston)):
        z, computed = _on_axis(setting, name, size)
        exact = on_axis_amplitude(name, z, size, _FREQUENCY)
        error = float(np.abs(computed - exact).max() / exact.max())
        plot = computed_plot(z * 1e3, exact, computed, every=2, labels=("distance (mm)", "pressure over rho c u"))
        title = f"{name} of {size * 1e3:g} mm: largest error on the axis over peak"
        checks.append(Check(title, error, 2e-3, reference=ONEIL, plot=plot))
    return checks


def on_axis_amplitude(name: str, z: Floats, size: float, frequency: float) -> Floats:
    """Return the exact amplitude over rho c u at distances z (m) from a "bowl" or "piston" of diameter `size` in water.

    The radius of curvature of the bowl is its diameter.
    """
    k, half = 2 * np.pi * frequency / C, size / 2
    if name == "piston":
        return np.asarray(2 * np.abs(np.sin(k / 2 * (np.sqrt(z**2 + half**2) - z))))
    height = size - np.sqrt(size**2 - half**2)
    edge_distance = np.sqrt((z - height) ** 2 + half**2)
    is_focus = np.isclose(z, size)
    ratio = np.where(is_focus, 1.0, 1 - z / size)
    return np.asarray(np.where(is_focus, k * height, np.abs(2 / ratio * np.sin(k * (edge_distance - z) / 2))))


def _on_axis(setting: Setting, name: str, size: float) -> tuple[Floats, Floats]:
    """Return distances from a source (m), beyond eight points, and the amplitude relative to that at its surface."""
    dx, period = C / _FREQUENCY / 6, 20
    front_points, layer = 14, 10
    length = int((1.3 if name == "bowl" else 2.5) * size / dx) + front_points + layer
    width = int(size / dx) + 2 * (layer + 4)
    shape = (length + length % 2, width + width % 2, width + width % 2)
    travel = np.hypot(length, width) * dx / C * _FREQUENCY
    steps = period * int(np.ceil(travel + 8))
    grid = Grid(shape, dx, 1 / _FREQUENCY / period, steps)
    start = float(grid.positions("x")[front_points])
    vertex, focus = (start, 0.0, 0.0), (start + size, 0.0, 0.0)
    shape_of_source = Bowl(vertex, focus, size, size) if name == "bowl" else Disc(vertex, focus, size)
    emitter = Emitter(shape_of_source, ramped_sine(grid, _FREQUENCY, 3))
    sensor = Sensor(record=(), frequencies=(_FREQUENCY,), frequency_window=(steps - 4 * period, steps))
    options: dict[str, Any] = {"pml_size": layer, "device": setting.device}
    amplitude = simulate(grid, Medium(C), Source(emitters=(emitter,)), sensor, **options)["p_amplitude"][0]
    inside = slice(front_points + 8, shape[0] - layer - 2)
    axis = amplitude[inside, shape[1] // 2, shape[2] // 2]
    return grid.positions("x")[inside] - start, np.asarray(axis, np.float64)


def ramped_sine(grid: Grid, frequency: float, ramp: float) -> Floats:
    """Return a sine whose amplitude increases linearly to 1 over `ramp` cycles, at the steps of a grid."""
    assert grid.steps is not None and grid.dt is not None
    cycles = frequency * np.arange(grid.steps) * grid.dt
    return np.asarray(np.sin(2 * np.pi * cycles) * np.minimum(1.0, cycles / ramp))


def harmonics(setting: Setting) -> list[Check]:
    """Check five harmonics of a 5 MPa plane wave at 1 MHz, 0.8 shock distances away, against Fubini and Mendousse."""
    from scipy.special import ive, jv

    checks = []
    for alpha in (0.0, 0.25):
        computed, s, shock = _harmonics(setting, alpha)
        n = np.arange(1, 6)
        if alpha == 0:
            exact, name, source = 2 / (n * s) * jv(n, n * s), "Fubini", _FUBINI
        else:
            gol = 1 / (alpha * DB * shock)
            m, theta = np.arange(1, 61)[:, None], np.linspace(0, 2 * np.pi, 2000, endpoint=False)
            weights = ive(m, gol / 2) * np.exp(-m * m * s / gol) * (-1.0) ** m
            wave = -4 / gol * (weights * m * np.sin(m * theta)).sum(0)
            wave /= ive(0, gol / 2) + 2 * (weights * np.cos(m * theta)).sum(0)
            exact, name, source = 2 / 2000 * np.abs(np.fft.rfft(wave))[1:6], "Mendousse", _MENDOUSSE
        error = float(np.abs(computed - exact).max())
        checks.append(Check(f"{name}: largest error of five harmonics over p0", error, 3e-4, reference=source))
    return checks


def _harmonics(setting: Setting, alpha: float) -> tuple[Floats, float, float]:
    frequency, p0, bona, per_wave = 1e6, 5e6, 5.0, 50 if setting.quick else 100
    shock = RHO * C**3 / ((1 + bona / 2) * 2 * np.pi * frequency * p0)
    dx = C / frequency / per_wave
    far = round(0.8 * shock / dx)
    n = 160 + far + far % 2
    dt = 0.25 * dx / C
    steps = round((far + 80) * dx / C / dt + 6 * per_wave / 0.25)
    signal = p0 * np.sin(2 * np.pi * frequency * np.arange(steps) * dt)
    x = np.arange(n)
    medium = Medium(C, RHO, BonA=bona, alpha_coeff=alpha or None, alpha_power=2.0 if alpha else None)
    source, sensor = Source(p_mask=x == 45, p=signal), Sensor(x == 45 + far)
    p = simulate(Grid((n,), dx, dt, steps), medium, source, sensor, pml_size=40, device=setting.device)["p"][0]
    period = round(per_wave / 0.25)
    return 2 / period * np.abs(np.fft.rfft(p[-period:].astype(float)))[1:6] / p0, far * dx / shock, shock


def bone(setting: Setting) -> list[Check]:
    """Check transmission at normal incidence through the flat bone of two benchmarks, including absorption."""
    checks = []
    for name, (layers, last) in BENCHMARK_PLATES.items():
        exact = float(abs(Plates.named(layers, last, _FREQUENCY).transmission()))
        for scheme in ("local4", "exact"):
            computed = _transmitted(setting, layers, last, scheme)
            title = f"{name}, {scheme}: transmission at 500 kHz, difference from {exact:.4f}"
            checks.append(Check(title, abs(computed - exact), 0.01, reference=_AUBRY))
    return checks


def _transmitted(setting: Setting, layers: Any, last_medium: str, scheme: str) -> float:
    """Return the transmission computed in one dimension, with absorption by relaxation fitted around the frequency."""
    dx = 0.125e-3 if setting.quick else 0.0625e-3
    refinement = round(0.125e-3 / dx)
    n, first = 640 * refinement, 240 * refinement
    period = int(np.ceil(1 / _FREQUENCY / ((0.15 if setting.quick else 0.08) * dx / 2800.0)))
    steps = int(60e-6 * _FREQUENCY * period)
    grid = Grid((n,), dx, 1 / _FREQUENCY / period, steps)
    x = np.arange(n)
    amplitudes = []
    for present in (False, True):
        speed, density, alpha = np.full(n, C), np.full(n, RHO), np.zeros(n)
        begin = first
        for material, thickness in [*layers, (last_medium, None)]:
            end = n if thickness is None else begin + round(thickness / dx)
            properties = MATERIALS[material]
            if present:
                absorbed = 0.0 if thickness is None else properties.alpha_coeff(2.0)
                speed[begin:end], density[begin:end], alpha[begin:end] = (
                    properties.sound_speed,
                    properties.density,
                    absorbed,
                )
            begin = end
        medium = Medium(speed, density, alpha_coeff=alpha, alpha_power=2.0, sound_speed_ref=2800.0)
        if not present:
            medium = Medium(speed, density, sound_speed_ref=2800.0)
        source = Source(p_mask=x == 120 * refinement, p=ramped_sine(grid, _FREQUENCY, 3))
        sensor = Sensor(x == 400 * refinement)
        options: dict[str, Any] = {"pml_size": 60, "device": setting.device, "precision": "float64", "scheme": scheme}
        p = simulate(grid, medium, source, sensor, **options)["p"][0]
        amplitudes.append(np.abs((p[-period:] * np.exp(-2j * np.pi * np.arange(period) / period)).sum()))
    return float(amplitudes[1] / amplitudes[0])


def contrast(setting: Setting) -> list[Check]:
    """Check a wave over 16 wavelengths across a sound-speed step of 1.8, five points per wavelength, CFL 0.3."""
    fine = _pulse_after_crossing(setting, "local4", 0.3 / 8)
    errors = {
        scheme: relative_error(_pulse_after_crossing(setting, scheme, 0.3), fine) for scheme in ("exact", "local4")
    }
    return [
        Check("contrast 1.8, local4: relative error of the field", errors["local4"], 2e-3),
        Check("contrast 1.8, exact: relative error of the field, with a warning", errors["exact"], 0.1, "above"),
    ]


def orders(setting: Setting) -> list[Check]:
    """Check the temporal orders in a medium with varying sound speed; the remaining error is spatial."""
    checks, courants = [], np.array([0.4, 0.2, 0.1])
    for scheme, order in (("exact", 2.0), ("local4", 4.0)):
        fine = _pulse_after_crossing(setting, scheme if scheme == "local4" else "local4", 0.0125, smooth=True)
        errors = [relative_error(_pulse_after_crossing(setting, scheme, cfl, smooth=True), fine) for cfl in courants]
        plot = partial(
            convergence_figure, sizes=1 / courants, errors={scheme: errors}, order=order, x_label="1 / Courant number"
        )
        observed = observed_order(1 / courants, errors)
        checks.append(Check(f"{scheme}: order in time", observed, order - 0.2, "above", plot=plot))
    return checks


def _pulse_after_crossing(
    setting: Setting, scheme: str, cfl: float, *, smooth: bool = False
) -> npt.NDArray[np.float64]:
    """Return a modulated pulse after it has crossed from the slow into the fast part of a row."""
    n, wave, ratio = (256, 12.0, 1.5) if smooth else (240, 5.0, 1.8)
    x = np.arange(n, dtype=np.float64)
    steepness = 0.1 if smooth else 1e3
    step = 0.5 * (1 + np.tanh(np.clip((x - 0.62 * n) * steepness, -20, 20)))
    speed = 1 + (ratio - 1) * step
    start = 0.22 * n
    pulse = np.exp(-((x - start) ** 2) / (2 * (1.6 * wave) ** 2)) * np.cos(2 * np.pi * (x - start) / wave)
    travel = 16.0 * 5.0 if not smooth else 0.5 * n
    steps = round(travel / (cfl / ratio))
    grid = Grid((n,), 1.0, travel / steps, steps + 1)
    options: dict[str, Any] = {"pml_alpha": 0.0, "smooth_p0": False, "device": setting.device, "precision": "float64"}
    medium, sensor = Medium(speed, 1.0), Sensor(record=("p_final",))
    return np.asarray(simulate(grid, medium, Source(p0=pulse), sensor, scheme=scheme, **options)["p_final"])
