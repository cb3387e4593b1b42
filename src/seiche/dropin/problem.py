# SPDX-License-Identifier: BSD-3-Clause
"""An input file of k-Wave as a problem of the k-space solver; axes are (z, y, x), so that x is the last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.io.formats.kwave import KWaveInput
from seiche.ultrasound.problem import Absorption, Field, MaskSource, Mode, Pml, Problem

_MODES: tuple[Mode, ...] = ("dirichlet", "additive-no-correction", "additive")
#: Relative difference up to which a given staggered density counts as the mean of neighbours: single precision.
_SAME = 3e-7


def problem_of(found: KWaveInput, steps: int | None = None) -> Problem:
    """Return the problem of an input file, of the first `steps` steps only if they are given.

    Raises:
        FormatError: the file asks for something impossible.
    """
    axes = tuple(reversed(found.axes))
    shape = found.shape[-len(axes) :]

    def on_grid(value: npt.NDArray[np.float32] | float) -> Field:
        return value.reshape(shape) if isinstance(value, np.ndarray) else value

    medium, scalars = found.medium, found.scalars
    density = on_grid(medium["rho0"])
    staggered = tuple(on_grid(medium[f"rho0_sg{axis}"]) for axis in axes)
    absorption = None
    if scalars["absorbing_flag"]:
        stokes = scalars["absorbing_flag"] == 2
        power = float(medium["alpha_power"])
        absorption = Absorption(on_grid(medium["alpha_coeff"]), 2.0 if stokes else power, stokes)
    pressure = found.initial_pressure
    try:
        return Problem(
            axes=axes,
            shape=shape,
            spacing=tuple(scalars[f"d{axis}"] for axis in axes),
            time_step=scalars["dt"],
            steps=int(scalars["Nt"]) if steps is None else min(steps, int(scalars["Nt"])),
            reference_speed=scalars["c_ref"],
            sound_speed=on_grid(medium["c0"]),
            density=density,
            staggered_density=None if _are_means(density, staggered) else staggered,
            BonA=on_grid(medium["BonA"]) if scalars["nonlinear_flag"] else None,
            absorption=absorption,
            pml=tuple(Pml(int(scalars[f"pml_{axis}_size"]), scalars[f"pml_{axis}_alpha"]) for axis in axes),
            initial_pressure=None if pressure is None else pressure.reshape(shape),
            sources=tuple(_sources(found)),
        )
    except CaseError as error:
        raise found.fail("input", str(error)) from error


def _sources(found: KWaveInput) -> list[MaskSource]:
    sources = []
    for name, source in found.sources.items():
        kind = "p" if name == "p" else "u"
        points = found.source_points[kind]
        if name == "transducer":
            sources.append(
                MaskSource("x", points, source.samples, _MODES[1], source.steps, delays=found.transducer_delays)
            )
        else:
            mode = _MODES[int(found.scalars[f"{kind}_source_mode"])]
            sources.append(MaskSource("p" if kind == "p" else name[1], points, source.samples, mode, source.steps))
    return sources


def _are_means(density: Field, staggered: tuple[Field, ...]) -> bool:
    """Return whether the staggered densities are what the solver finds itself: then they need no memory."""
    for axis, given in enumerate(staggered):
        if not isinstance(density, np.ndarray):
            if isinstance(given, np.ndarray) or abs(given / density - 1) > _SAME:
                return False
            continue
        moved = np.concatenate([density.take(range(1, density.shape[axis]), axis), density.take([-1], axis)], axis)
        if np.max(np.abs(np.asarray(given) / (0.5 * (density + moved)) - 1)) > _SAME:
            return False
    return True


def sensor_points(found: KWaveInput) -> npt.NDArray[np.int64]:
    """Return the indices of the sensor's points, cuboid after cuboid where it has cuboids."""
    if found.sensor_points is not None:
        return found.sensor_points
    assert found.sensor_corners is not None
    _, middle, last = found.shape
    parts = []
    for x1, y1, z1, x2, y2, z2 in found.sensor_corners:
        z, y, x = np.ix_(np.arange(z1, z2 + 1), np.arange(y1, y2 + 1), np.arange(x1, x2 + 1))
        parts.append(((z * middle + y) * last + x).reshape(-1))
    return np.concatenate(parts)
