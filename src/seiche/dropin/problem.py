# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of an input file of k-Wave to a problem of the k-space solver.

Axes are (z, y, x), with x last, as in the file. On an axisymmetric grid they are (x, y), so that the radius is last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.io.formats.kwave import KWaveInput
from seiche.ultrasound.problem import Absorption, Field, MaskSource, Mode, Pml, Problem

_MODES: tuple[Mode, ...] = ("dirichlet", "additive-no-correction", "additive")
#: Relative difference up to which a staggered density counts as the mean of neighbours: single precision.
_MEAN_TOLERANCE = 3e-7


def problem_of(data: KWaveInput, steps: int | None = None) -> Problem:
    """Return the problem of an input file, limited to `steps` steps; raise FormatError if it is invalid."""
    axes = tuple(data.axes) if data.axisymmetric else tuple(reversed(data.axes))

    def on_grid(value: npt.NDArray[np.float32] | float) -> Field:
        return in_solver(data, value) if isinstance(value, np.ndarray) else value

    medium, scalars = data.medium, data.scalars
    density = on_grid(medium["rho0"])
    staggered = tuple(on_grid(medium[f"rho0_sg{axis}"]) for axis in axes)
    absorption = None
    if scalars["absorbing_flag"]:
        stokes = scalars["absorbing_flag"] == 2
        power = float(medium["alpha_power"])
        absorption = Absorption(on_grid(medium["alpha_coeff"]), 2.0 if stokes else power, stokes)
    pressure = data.initial_pressure
    try:
        return Problem(
            axes=axes,
            shape=tuple(data.shape["zyx".index(axis)] for axis in axes),
            spacing=tuple(scalars[f"d{axis}"] for axis in axes),
            dt=scalars["dt"],
            steps=int(scalars["Nt"]) if steps is None else min(steps, int(scalars["Nt"])),
            reference_speed=scalars["c_ref"],
            sound_speed=on_grid(medium["c0"]),
            density=density,
            staggered_density=None if _are_means(density, staggered) else staggered,
            BonA=on_grid(medium["BonA"]) if scalars["nonlinear_flag"] else None,
            absorption=absorption,
            pml=tuple(Pml(int(scalars[f"pml_{axis}_size"]), scalars[f"pml_{axis}_alpha"]) for axis in axes),
            initial_pressure=None if pressure is None else in_solver(data, pressure),
            sources=tuple(_sources(data)),
            outer_end="pressure-release" if data.axisymmetric else None,
        )
    except CaseError as error:
        raise data.fail("input", str(error)) from error


def in_solver(data: KWaveInput, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values over the grid of the file in the shape of the problem."""
    grid = values.reshape(data.shape[-len(data.axes) :])
    return np.ascontiguousarray(grid.T) if data.axisymmetric else grid


def in_file(data: KWaveInput, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values over the grid of the problem in the shape of the file, (Nz, Ny, Nx)."""
    if data.axisymmetric:
        values = np.ascontiguousarray(values.reshape(data.shape[:0:-1]).T)
    return values.reshape(data.shape)


def _points_in_solver(data: KWaveInput, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return indices of points of the file as those of the problem, in the same order."""
    if not data.axisymmetric:
        return points
    _, radial, axial = data.shape
    return points % axial * radial + points // axial


def _sources(data: KWaveInput) -> list[MaskSource]:
    sources = []
    for name, source in data.sources.items():
        kind = "p" if name == "p" else "u"
        points = _points_in_solver(data, data.source_points[kind])
        if name == "transducer":
            sources.append(
                MaskSource("x", points, source.samples, _MODES[1], source.steps, delays=data.transducer_delays)
            )
        else:
            mode = _MODES[int(data.scalars[f"{kind}_source_mode"])]
            sources.append(MaskSource("p" if kind == "p" else name[1], points, source.samples, mode, source.steps))
    return sources


def _are_means(density: Field, staggered: tuple[Field, ...]) -> bool:
    """Return whether the staggered densities are the means that the solver computes itself, without an array."""
    for axis, values in enumerate(staggered):
        if not isinstance(density, np.ndarray):
            if isinstance(values, np.ndarray) or abs(values / density - 1) > _MEAN_TOLERANCE:
                return False
            continue
        shifted = np.concatenate([density.take(range(1, density.shape[axis]), axis), density.take([-1], axis)], axis)
        if np.max(np.abs(np.asarray(values) / (0.5 * (density + shifted)) - 1)) > _MEAN_TOLERANCE:
            return False
    return True


def sensor_points(data: KWaveInput) -> npt.NDArray[np.int64]:
    """Return the indices of the sensor's points; those of cuboids in the order of the cuboids."""
    if data.sensor_points is not None:
        return _points_in_solver(data, data.sensor_points)
    assert data.sensor_corners is not None
    _, middle, last = data.shape
    indices = []
    for x1, y1, z1, x2, y2, z2 in data.sensor_corners:
        z, y, x = np.ix_(np.arange(z1, z2 + 1), np.arange(y1, y2 + 1), np.arange(x1, x2 + 1))
        indices.append(((z * middle + y) * last + x).reshape(-1))
    return _points_in_solver(data, np.concatenate(indices))
