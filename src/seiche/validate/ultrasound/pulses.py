# SPDX-License-Identifier: BSD-3-Clause
"""Pulses against exact solutions: photoacoustic sources, absorption and dispersion, absorbing layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seiche.report.figures import profile_figure
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.validate.check import Check, Floats, Setting

#: Water, m/s and kg/m3; dB/cm in Np/m.
C, RHO, DB = 1500.0, 1000.0, 100 / (20 * np.log10(np.e))
_TREEBY = "Treeby, Cox 2010, doi:10.1117/1.3360308"
_DIEBOLD = "Diebold, Sun, Khan 1991, doi:10.1103/PhysRevLett.67.3384"
_SZABO = "Szabo 1995, doi:10.1121/1.412332"


def computed_plot(
    x: Floats, exact: Floats, computed: Floats, *, every: int, labels: tuple[str, str]
) -> Callable[[Path], None]:
    """Return a function that plots every `every`-th computed value and the exact curve.

    `labels` are those of x and y.
    """
    x_label, y_label = labels
    measured = {"computed": (x[::every], computed[::every])}
    return partial(profile_figure, exact=(x, exact), measured=measured, x_label=x_label, y_label=y_label)


def photoacoustic_gaussian(setting: Setting) -> list[Check]:
    """Check a Gaussian pressure source: p = p0/(2r) [f(r - ct) + f(r + ct)], f(x) = x exp(-x^2/2s^2)."""
    n, dx, width = (60, 1e-4, 3e-4) if setting.quick else (128, 1e-4, 3e-4)
    offset, steps = (16, 80) if setting.quick else (48, 220)
    grid = Grid((n,) * 3, dx, 0.3 * dx / C, steps)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij", sparse=True)
    pressure = np.exp(-(x[0] ** 2 + x[1] ** 2 + x[2] ** 2) / (2 * width**2))
    mask = np.zeros(grid.shape, bool)
    mask[n // 2 + offset, n // 2, n // 2] = True
    p = simulate(grid, Medium(C), Source(p0=pressure), Sensor(mask), smooth_p0=False, **_options(setting))["p"][0]
    t, r = np.asarray(np.arange(steps) * (0.3 * dx / C), np.float64), offset * dx

    def f(x: Floats) -> Floats:
        return np.asarray(x * np.exp(-(x**2) / (2 * width**2)))

    exact = (f(r - C * t) + f(r + C * t)) / (2 * r)
    plot = computed_plot(t * 1e6, exact, p, every=3, labels=("time (us)", "pressure over p0"))
    error = float(np.abs(p - exact).max() / exact.max())
    return [Check("photoacoustic Gaussian: largest error over peak", error, 1e-5, reference=_TREEBY, plot=plot)]


def photoacoustic_sphere(setting: Setting) -> list[Check]:
    """Check a pressure ball: an N-wave p0 (r - ct)/(2r), with edges as wide as the filter of the initial pressure."""
    n, radius, offset, steps = (72, 12e-4, 24, 120) if setting.quick else (160, 30e-4, 60, 300)
    dx = 1e-4
    grid = Grid((n,) * 3, dx, 0.3 * dx / C, steps)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij", sparse=True)
    ball = np.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2) < radius
    mask = np.zeros(grid.shape, bool)
    mask[n // 2 + offset, n // 2, n // 2] = True
    p = simulate(grid, Medium(C), Source(p0=ball), Sensor(mask), **_options(setting))["p"][0]
    t, r = np.arange(steps) * (0.3 * dx / C), offset * dx
    arrival = r - C * t
    exact = np.where(np.abs(arrival) < radius, arrival / (2 * r), 0.0)
    smooth = (np.abs(np.abs(arrival) - radius) > 4 * dx) & (arrival > -1.5 * radius)
    error = float(np.abs(p - exact)[smooth].max() / exact.max())
    bound = 0.07 if setting.quick else 0.05
    name = "photoacoustic sphere: largest error over peak, away from the flanks"
    return [Check(name, error, bound, reference=_DIEBOLD)]


def power_laws(setting: Setting) -> list[Check]:
    """Check absorption and phase speed of plane waves from 1 to 4 MHz, for exponents from 0.8 to 2."""
    checks = []
    for y, mode, losses in (
        (0.8, None, 0.02),
        (1.0, "relaxation", 0.012),
        (1.1, None, 0.025),
        (1.5, None, 0.01),
        (2.0, None, 0.006),
    ):
        computed, speed, f = _spectra(setting, y, mode)
        w, a0 = 2 * np.pi * f, 0.5 * DB * (1e-6 / (2 * np.pi)) ** y
        centre = 2 * np.pi * np.sqrt(0.5e6 * 5e6)
        if y == 1:
            dispersion = -2 / np.pi * a0 * np.log(w / centre)
        else:
            dispersion = a0 * np.tan(np.pi * y / 2) * w ** (y - 1) if y != 2 else 0.0 * w
        exact = a0 * w**y
        plot = computed_plot(f / 1e6, exact, computed, every=8, labels=("frequency (MHz)", "absorption (Np/m)"))
        kind = f"power law y = {y:g}{', by relaxation' if mode else ''}"
        error = float(np.abs(computed / exact - 1).max())
        speed_error = float(np.abs(speed * (1 / C + dispersion) - 1).max())
        checks += [
            Check(f"{kind}: relative error of the absorption", error, losses, reference=_SZABO, plot=plot),
            Check(f"{kind}: relative error of the phase speed", speed_error, 0.002 if mode else 4e-4, reference=_SZABO),
        ]
    return checks


def _spectra(setting: Setting, y: float, mode: str | None) -> tuple[Floats, Floats, Floats]:
    """Return absorption (Np/m) and phase speed (m/s) between two points, and their frequencies (Hz)."""
    n, dx, steps = 1024, 5e-5, 4000
    x = np.arange(n)
    p = simulate(
        Grid((n,), dx, 4e-9, steps),
        Medium(C, RHO, alpha_coeff=0.5, alpha_power=y, alpha_mode=mode),  # type: ignore[arg-type]
        Source(p0=np.exp(-((x - 150) ** 2) / 8.0)),
        Sensor(np.isin(x, (300, 500))),
        pml_size=40,
        smooth_p0=False,
        precision="float64",
        **_options(setting),
    )["p"]
    spectrum, f = np.fft.rfft(p, 8192, axis=1), np.fft.rfftfreq(8192, 4e-9)
    band = (f > 1e6) & (f < 4e6)
    length = 200 * dx
    absorbed = np.log(np.abs(spectrum[0, band] / spectrum[1, band])) / length
    phase = np.unwrap(np.angle(spectrum[0] * spectrum[1].conj()))[band]
    frequencies = np.asarray(f[band], np.float64)
    return absorbed, 2 * np.pi * frequencies * length / phase, frequencies


def absorbing_layer(setting: Setting) -> list[Check]:
    """Check reflections from the absorbing layers at normal incidence and at 45 degrees."""
    n, dx = 256, 1e-4
    x = np.arange(n)
    start = np.exp(-((x - 128) ** 2) / (2 * 4.0**2))
    grid = Grid((n,), dx, 0.3 * dx / C, 1400)
    options: dict[str, Any] = {"smooth_p0": False, "precision": "float64", **_options(setting)}
    p = simulate(grid, Medium(C), Source(p0=start), Sensor(x == 128), **options)["p"][0]
    straight = 20 * np.log10(np.abs(p[500:]).max() / np.abs(p).max())
    # A wave from (0, -40) to (0, 40) that is reflected at the boundary, compared with the same wave in a wider grid.
    recorded = []
    for width in (96, 224):
        plane = Grid((width, 224), dx, 0.3 * dx / C, 520)
        a, b = np.meshgrid(*[plane.positions(axis) for axis in plane.axes], indexing="ij")
        pulse = np.exp(-(a**2 + (b + 40 * dx) ** 2) / (2 * (4 * dx) ** 2))
        mask = (a == 0) & (np.abs(b - 40 * dx) < dx / 2)
        recorded.append(simulate(plane, Medium(C), Source(p0=pulse), Sensor(mask), **options)["p"][0])
    oblique = 20 * np.log10(np.abs(recorded[0] - recorded[1]).max() / np.abs(recorded[1]).max())
    return [
        Check("absorbing layer of 20 points, normal incidence: reflection", float(straight), -80.0, unit="dB"),
        Check("absorbing layer of 20 points, 45 degrees: reflection", float(oblique), -80.0, unit="dB"),
    ]


def _options(setting: Setting) -> dict[str, Any]:
    return {"device": setting.device}
