# SPDX-License-Identifier: BSD-3-Clause
"""Photoacoustic image reconstruction by time reversal (theory/ultrasound, section 10)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import one_number
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.simulate import simulate
from seiche.ultrasound.source import Source, mask_points


def time_reversal(
    grid: Grid,
    medium: Medium,
    mask: npt.ArrayLike,
    series: npt.ArrayLike,
    *,
    iterations: int = 1,
    positive: bool = True,
    compensate: float | None = None,
    **options: Any,
) -> npt.NDArray[np.float64]:
    """Return the initial pressure, in the grid's shape, from `series` (n_sensors, n_times) at the points of a mask.

    The sensors emit their series in reversed time order; in an elastic medium they impose minus the pressure on all
    normal stresses. Each further iteration simulates the series of the current image and adds the reconstruction of the
    residual, which improves images from a limited view. The time-reversed simulations have no absorption, or with
    `compensate` a gain that restores what the medium has absorbed (eq. 52).

    Args:
        grid: grid, with the time steps of the series.
        medium: medium in which the waves were measured.
        mask: sensors, in C order.
        series: recorded pressure, Pa.
        iterations: number of images.
        positive: set negative pressures to zero in every image.
        compensate: frequency (Hz) up to which absorption is compensated. Noise is amplified by up to
            exp(a c0 t) for the absorption a at 1.41 times this frequency and the duration t of the series.
        options: of `simulate`, such as `pml_size`, `device`, `scheme` or `world`: with several ranks the call is
            collective and returns the same image on all of them.

    Raises:
        CaseError: series of another shape than sensors and steps, no iteration, nothing to compensate, or `compensate`
            in an elastic medium.
    """
    recorded = np.asarray(series, np.float64)
    sensors = mask_points("mask", mask, grid.shape).size
    if recorded.shape != (sensors, grid.steps):
        raise CaseError(f"series: shape {recorded.shape} is not (sensors, time steps) = ({sensors}, {grid.steps})")
    if iterations < 1:
        raise CaseError(f"iterations: {iterations} must be at least 1")
    if compensate is None:
        backwards = replace(medium, alpha_coeff=None, alpha_power=None, alpha_mode=None, shear_alpha_coeff=None)
    elif medium.shear_speed is not None:
        raise CaseError("compensate: is not available in elastic media; omit it")
    else:
        backwards = replace(medium, gain_below=one_number("compensate", compensate))
        backwards.absorption(grid.shape)  # names the key if there is no power law

    def image_of(data: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        source = Source(p_mask=mask, p=data[:, ::-1], p_mode="dirichlet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # recorded frequencies may exceed the resolution
            reversed_fields = simulate(grid, backwards, source, Sensor(record=("p_final",)), **options)
        return np.asarray(reversed_fields["p_final"], np.float64)

    image = image_of(recorded)
    for iteration in range(iterations):
        if iteration:
            predicted = simulate(grid, medium, Source(p0=image), Sensor(mask=mask), **{**options, "smooth_p0": False})[
                "p"
            ]
            image = image + image_of(recorded - predicted)
        if positive:
            image = np.maximum(image, 0.0)
    return image
