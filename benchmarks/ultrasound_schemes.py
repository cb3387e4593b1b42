# SPDX-License-Identifier: BSD-3-Clause
"""Draw the measured phase error of the three schemes of ultrasound with the formulas of theory/ultrasound.

    python benchmarks/ultrasound_schemes.py docs/figures/ultrasound-schemes.png

A standing wave in water with a sound speed c0 that differs from the reference, as behind bone. After 16 1/4 periods the
exact pressure is zero everywhere, so the computed one is the sine of the phase error.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.io.files import replacing
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, save
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

Floats = npt.NDArray[np.float64]
PERIODS, CFL = 16.25, 0.3
SCHEMES = ("exact", "separable", "local4")


def measured(scheme: str, contrast: float, points: float) -> float:
    """Return the phase error (rad) for points per wavelength and a reference of `contrast` times the sound speed."""
    waves = 4
    n = round(waves * points)
    x, period = np.arange(n, dtype=np.float64), n / waves
    steps = round(PERIODS * period / (CFL / contrast))
    grid = Grid((n,), 1.0, PERIODS * period / steps, steps + 1)
    options: dict[str, Any] = {"pml_size": 0, "smooth_p0": False, "precision": "float64", "scheme": scheme}
    medium, source = Medium(1.0, 1.0, sound_speed_ref=contrast), Source(p0=np.cos(2 * np.pi * x / period))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the error that is measured here
        field = simulate(grid, medium, source, Sensor(record=("p_final",)), **options)["p_final"]
    return float(np.arcsin(np.abs(field).max()))


def predicted(scheme: str, contrast: float | Floats, points: float | Floats) -> float | Floats:
    """Return the phase errors by the formulas of section 4, for a sound speed of 1."""
    k, dt = 2 * np.pi / points, CFL / contrast
    turns = 2 * np.pi * PERIODS
    first = turns * (contrast**2 - 1) * (k * dt) ** 2 / 24
    if scheme == "exact":
        return first
    if scheme == "separable":
        return first + turns * (contrast * k * dt / 2) ** 4 / 180
    return turns * (k * dt / 2) ** 4 / 45


def main(path: str) -> None:
    """Draw the error over the contrast and over the points per wavelength."""
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 0.4 * DOUBLE_COLUMN)
        left, right = figure.subplots(1, 2, sharey=True)
        contrasts, points = np.linspace(1.0, 2.0, 6), np.array([4.0, 5.0, 6.0, 8.0, 12.0, 16.0])
        for color, marker, size, scheme in zip(COLORS, "os^", (7, 4, 5), SCHEMES, strict=False):
            style: dict[str, Any] = {"color": color, "fillstyle": "none", "markersize": size, "label": scheme}
            smooth, fine = np.linspace(1.0, 2.0, 101), np.linspace(4.0, 16.0, 101)
            left.semilogy(smooth, predicted(scheme, smooth, 5.0), "-", color=color)
            right.loglog(fine, predicted(scheme, 1.8, fine), "-", color=color)
            errors = [measured(scheme, value, 5.0) for value in contrasts]
            left.semilogy(contrasts, errors, marker, **style)
            errors = [measured(scheme, 1.8, value) for value in points]
            right.loglog(points, errors, marker, **style)
        left.set_ylim(1e-5, 2.0)
        left.set_xlabel("reference over sound speed, 5 points per wavelength")
        left.set_ylabel("phase error (rad)")
        right.set_xlabel("points per wavelength, reference 1.8 times the speed")
        right.set_xticks([4, 6, 8, 12, 16], ["4", "6", "8", "12", "16"])
        right.minorticks_off()
        right.legend()
        with replacing(path) as part:
            save(figure, part, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
