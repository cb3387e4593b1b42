# SPDX-License-Identifier: BSD-3-Clause
"""Positions of the sensors of an ultrasound case, and of its absorbing layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.ultrasound.emitter import quadrature_of

Floats = npt.NDArray[np.float64]


def sensor_places(setup: UltrasoundSetup) -> Floats | None:
    """Return the positions (sensors, axes) in m, in the order of the records; None without sensors.

    The position of an element of finite size is the mean over its curve or surface.
    """
    sensor, grid = setup.sensor, setup.grid
    if sensor.positions is not None:
        return np.asarray(sensor.positions, np.float64)
    if sensor.mask is not None:
        numbers = np.nonzero(np.asarray(sensor.mask))
        columns = [np.asarray(grid.positions(axis))[k] for axis, k in zip(grid.axes, numbers, strict=True)]
        return np.stack(columns, axis=1)
    if sensor.elements is None:
        return None
    elements = sensor.elements if isinstance(sensor.elements, Sequence) else (sensor.elements,)
    rules = [quadrature_of(shape, grid, "record.element") for shape in elements]
    return np.array([np.average(rule.points, axis=0, weights=rule.weights) for rule in rules])


def inner_box(setup: UltrasoundSetup) -> Floats:
    """Return the ends (2, axes) in m of the part of the grid outside the absorbing layer."""
    grid, layers = setup.grid, setup.layers
    inner = np.array([[grid.positions(axis)[0], grid.positions(axis)[-1]] for axis in grid.axes]).T
    if not layers.inside:
        return inner
    width = np.array(layers.sizes) * np.array(grid.spacings)
    return np.stack([inner[0] + np.where(layers.radial, 0.0, width), inner[1] - width])
