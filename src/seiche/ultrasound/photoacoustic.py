# SPDX-License-Identifier: BSD-3-Clause
"""The initial pressure that sensors heard, by sending it back (theory/ultrasound, section 10)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
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
    **options: Any,
) -> npt.NDArray[np.float64]:
    """Return the initial pressure, in the grid's shape, from `series` (n_sensors, n_times) at the points of a mask.

    The last sample is sent first. With more `iterations` the image is simulated and what differs from the series is
    sent back, too, which mends limited views. Absorption is left out on the way back.

    Args:
        grid: with the time steps of the series.
        medium: what the waves travelled in.
        mask: sensors; they count in C order.
        series: what they heard, Pa.
        iterations: images that are made.
        positive: set negative pressures to zero in every image.
        options: of `simulate`, such as `pml_size`, `device`, `scheme` or `world`: with several ranks the call is
            collective and returns the same image on all of them.

    Raises:
        CaseError: series of another shape than sensors and steps, or no iteration.
    """
    heard = np.asarray(series, np.float64)
    sensors = mask_points("mask", mask, grid.shape).size
    if heard.shape != (sensors, grid.steps):
        raise CaseError(f"series: shape {heard.shape} is not ({sensors}, {grid.steps}), sensors and time steps")
    if iterations < 1:
        raise CaseError(f"iterations: {iterations} is not at least 1")
    lossless = replace(medium, alpha_coeff=None, alpha_power=None, alpha_mode=None)

    def image_of(data: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        source = Source(p_mask=mask, p=data[:, ::-1], p_mode="dirichlet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what was heard holds whatever frequencies it holds
            found = simulate(grid, lossless, source, Sensor(record=("p_final",)), **options)
        return np.asarray(found["p_final"], np.float64)

    image = image_of(heard)
    for number in range(iterations):
        if number:
            again = simulate(grid, medium, Source(p0=image), Sensor(mask=mask), **{**options, "smooth_p0": False})["p"]
            image = image + image_of(heard - again)
        if positive:
            image = np.maximum(image, 0.0)
    return image
