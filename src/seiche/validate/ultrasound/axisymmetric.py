# SPDX-License-Identifier: BSD-3-Clause
"""Axisymmetric grids: a ball, transducers in water, and transducers in front of plates, which also run in 3D."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from seiche.report.figures import convergence_figure, observed_order
from seiche.ultrasound import Bowl, Disc, Emitter, Grid, Medium, Sensor, Source, simulate
from seiche.validate.check import Check, Floats, Setting
from seiche.validate.ultrasound.continuous_waves import ONEIL, on_axis_amplitude, ramped_sine
from seiche.validate.ultrasound.layers import case_medium, field_behind
from seiche.validate.ultrasound.plates import AUBRY, Beam, benchmarks, full_size, small
from seiche.validate.ultrasound.pulses import C, computed_plot

_FREQUENCY = 5e5
_TREEBY = "Treeby et al. 2020, doi:10.1121/10.0002177"


def axisymmetric_ball(setting: Setting) -> list[Check]:
    """Check a Gaussian ball of three spacings after 40 spacings over c, and the order in time."""
    courants = np.array([0.4, 0.2, 0.1])
    errors = [_ball_error(setting, float(cfl)) for cfl in courants]
    observed = observed_order(1 / courants, errors)
    return [
        Check("axisymmetric ball, CFL 0.2: largest error over peak", errors[1], 2e-3, reference=_TREEBY),
        Check(
            "axisymmetric ball: order in time",
            observed,
            1.9,
            "above",
            plot=lambda path: convergence_figure(
                path, sizes=1 / courants, errors={"ball": errors}, order=2.0, x_label="1 / Courant number"
            ),
        ),
    ]


def _ball_error(setting: Setting, cfl: float) -> float:
    width, time = 3.0, 40.0
    steps = round(time / cfl)
    grid = Grid((112, 57), 1.0, cfl, steps + 1, symmetry="axisymmetric")
    x, r = (grid.positions(axis) for axis in grid.axes)
    distance = np.hypot(x[:, None], r[None])
    options: dict[str, Any] = {"pml_size": 0, "smooth_p0": False, "device": setting.device, "precision": "float64"}
    pressure = np.exp(-(distance**2) / (2 * width**2))
    result = simulate(grid, Medium(1.0, 1.0), Source(p0=pressure), Sensor(record=("p_final",)), **options)["p_final"]

    def wave(s: Floats) -> Floats:
        return np.asarray(s * np.exp(-(s**2) / (2 * width**2)))

    positive_distance = np.where(distance > 0, distance, 1.0)
    exact = (wave(distance - time) + wave(distance + time)) / (2 * positive_distance)
    exact[distance == 0] = (1 - (time / width) ** 2) * np.exp(-(time**2) / (2 * width**2))
    return float(np.abs(result - exact).max() / np.abs(exact).max())


def axisymmetric_transducers(setting: Setting) -> list[Check]:
    """Check the on-axis pressure of a bowl and of a piston at 500 kHz, six points per wavelength, CFL 0.2 and 0.1."""
    bowl, piston = (20e-3, 12e-3) if setting.quick else (64e-3, 20e-3)
    checks = []
    for name, size in (("bowl", bowl), ("piston", piston)):
        for period, bound in ((30, 1e-2), (60, 2.5e-3)):
            z, computed = _on_axis(setting, name, size, period)
            exact = on_axis_amplitude(name, z, size, _FREQUENCY)
            error = float(np.abs(computed - exact).max() / exact.max())
            plot = computed_plot(z * 1e3, exact, computed, every=2, labels=("distance (mm)", "pressure over rho c u"))
            title = f"axisymmetric {name} of {size * 1e3:g} mm, CFL {6 / period:g}: largest error on the axis over peak"
            checks.append(Check(title, error, bound, reference=ONEIL, plot=plot))
    return checks


def _on_axis(setting: Setting, name: str, size: float, period: int) -> tuple[Floats, Floats]:
    """Return distances from a source (m), beyond eight points, and the amplitude relative to that at its surface."""
    dx, front_points, layer = C / _FREQUENCY / 6, 14, 20
    length = int((1.3 if name == "bowl" else 2.5) * size / dx) + front_points
    radius = int(size / 2 / dx) + 10
    steps = period * int(np.ceil(np.hypot(length, 2 * radius) * dx / C * _FREQUENCY + 8))
    grid = Grid((length, radius), dx, 1 / _FREQUENCY / period, steps, symmetry="axisymmetric")
    start = float(grid.positions("x")[front_points])
    vertex, focus = (start, 0.0), (start + size, 0.0)
    shape = Bowl(vertex, focus, size, size) if name == "bowl" else Disc(vertex, focus, size)
    source = Source(emitters=(Emitter(shape, ramped_sine(grid, _FREQUENCY, 3)),))
    sensor = Sensor(record=(), frequencies=(_FREQUENCY,), frequency_window=(steps - 4 * period, steps))
    options: dict[str, Any] = {"pml_size": layer, "pml_inside": False, "device": setting.device}
    amplitude = simulate(grid, Medium(C), source, sensor, **options)["p_amplitude"][0]
    inside = slice(front_points + 8, length)
    return grid.positions("x")[inside] - start, np.asarray(amplitude[inside, 0], np.float64)


def axisymmetric_plates(setting: Setting) -> list[Check]:
    """Check the bowls of benchmarks 1 to 4, in water and in front of plates, against the angular spectrum.

    Without `quick`, the transducers have their full size, and small ones are also compared with the 3D solver.
    """
    checks = []
    for name, layers in benchmarks().items():
        beam = small(layers, 0) if setting.quick else full_size(layers, 0)
        for refinement, bound in ((1, 0.08), (2, 0.03)):
            x, r, found = amplitude(beam, setting, refinement)
            is_behind = x > beam.front + beam.plates.thickness + 1e-3
            exact = np.abs(field_behind(beam.plates, beam.front, beam.source, x[is_behind], r))
            error = float(np.linalg.norm(found[is_behind] - exact) / np.linalg.norm(exact))
            size, points = f"{1e3 * beam.source.diameter:g} mm", 6 * refinement
            title = f"axisymmetric {name}, bowl of {size}, {points} points per wavelength: L2 error"
            checks.append(Check(title, error, bound, reference=AUBRY))
        if not setting.quick and layers.layers:
            checks.append(_against_3d(name, small(layers, 0), setting))
    return checks


def _against_3d(name: str, beam: Beam, setting: Setting) -> Check:
    """Compare the amplitudes behind plates with those of the 3D solver on the same grid spacing."""
    x, r, found = amplitude(beam, setting, 1)
    whole_x, y, plane = beam.amplitude(setting)
    half = plane[:, np.searchsorted(y, 0.0) :][:, : len(r)]
    behind = (whole_x > beam.front + beam.plates.thickness + 1e-3)[: len(x)]
    difference = np.linalg.norm((found - half)[behind]) / np.linalg.norm(half[behind])
    title = f"axisymmetric {name}, bowl of {1e3 * beam.source.diameter:g} mm: L2 difference from the 3D solver"
    return Check(title, float(difference), 0.01)


def amplitude(beam: Beam, setting: Setting, refinement: int) -> tuple[Floats, Floats, Floats]:
    """Return x and r (m) from the transducer and the relative amplitude, with `refinement` times the points of 3D."""
    whole = beam.grid()
    assert whole.dt is not None and whole.steps is not None
    coarse = round(1 / (_FREQUENCY * whole.dt))
    period = int(1.2 * coarse * refinement)  # Stokes absorption limits the time step on fine grids
    steps = whole.steps // coarse * period
    shape = (whole.shape[0] * refinement, (whole.shape[1] // 2 + 1) * refinement)
    spacing = whole.spacings[0] / refinement
    grid = Grid(shape, spacing, 1 / _FREQUENCY / period, steps, symmetry="axisymmetric")
    start = float(grid.positions("x")[5 * refinement])
    vertex, focus = (start, 0.0), (start + beam.source.radius, 0.0)
    emitter = Emitter(Bowl(vertex, focus, beam.source.radius, beam.source.diameter), ramped_sine(grid, _FREQUENCY, 4))
    medium = replace(case_medium(beam.plates, start + beam.front, grid, 0), sound_speed_ref=C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # layers and phase errors are part of the comparison
        found = simulate(
            grid,
            medium,
            Source(emitters=(emitter,)),
            Sensor(record=(), frequencies=(_FREQUENCY,), frequency_window=(steps - 3 * period, steps)),
            pml_size=beam.layer * 2,
            pml_inside=False,
            device=setting.device,
            threads=setting.threads,
        )["p_amplitude"][0]
    return grid.positions("x") - start, grid.positions("y"), np.asarray(found, np.float64)
