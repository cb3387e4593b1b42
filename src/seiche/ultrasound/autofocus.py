# SPDX-License-Identifier: BSD-3-Clause
"""Sharpness of images, and the sound speed of the sharpest one (theory/ultrasound, section 17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.numbers import real_numbers

Floats = npt.NDArray[np.float64]
Measure = Literal["brenner", "tenenbaum", "variance"]


class SharpestImage(NamedTuple):
    """The result of `autofocus`.

    Attributes:
        sound_speed: of the maximum of the sharpness, between the trial values (m/s).
        sharpness: of the image of each trial value.
    """

    sound_speed: float
    sharpness: Floats


def sharpness(image: npt.ArrayLike, measure: Measure = "brenner") -> float:
    """Return a measure of the sharpness of an image in one to three dimensions (eq. 51).

    Args:
        image: values at the points of a regular grid.
        measure: "brenner" (differences of points two apart), "tenenbaum" (gradients by the Sobel operator) or
            "variance" (normalised by the mean).

    Raises:
        CaseError: not an image, or an unknown measure.
    """
    values = real_numbers("image", image)
    if not 1 <= values.ndim <= 3 or min(values.shape, default=0) < 3 or not np.isfinite(values).all():
        raise CaseError(f"image: shape {values.shape} is not one to three axes of at least 3 finite numbers")
    if measure == "brenner":
        differences = (_shifted(values, axis, 2) - _shifted(values, axis, 0) for axis in range(values.ndim))
        return float(sum(np.sum(difference**2) for difference in differences))
    if measure == "tenenbaum":
        return float(sum(np.sum(_sobel(values, axis) ** 2) for axis in range(values.ndim)))
    if measure == "variance":
        mean = float(values.mean())
        if not mean > 0:
            raise CaseError(f'image: its mean, {mean:g}, is not positive; choose another measure than "variance"')
        return float(np.sum((values - mean) ** 2) / mean)
    raise CaseError(f"measure: {measure!r} is not brenner, tenenbaum or variance")


def autofocus(
    image_of: Callable[[float], npt.ArrayLike], sound_speeds: npt.ArrayLike, *, measure: Measure = "brenner"
) -> SharpestImage:
    """Return the sound speed of the sharpest image, from the parabola through the three largest values.

    The images must have the same number of points. Compare regions of equal size around the same object.

    Args:
        image_of: function that returns the image for a sound speed (m/s), such as one that calls `kspace_image`.
        sound_speeds: trial values in ascending order, m/s.
        measure: of `sharpness`.

    Raises:
        CaseError: fewer than three ascending trial values, or a maximum at one of their ends.
    """
    speeds = real_numbers("sound_speeds", sound_speeds)
    if speeds.ndim != 1 or len(speeds) < 3 or not np.isfinite(speeds).all() or not (np.diff(speeds) > 0).all():
        raise CaseError("sound_speeds: are not at least three numbers in ascending order")
    values = np.array([sharpness(image_of(float(speed)), measure) for speed in speeds])
    k = int(np.argmax(values))
    if k in (0, len(speeds) - 1):
        raise CaseError(f"sound_speeds: the sharpest image is at the end of the range, {speeds[k]:g} m/s; extend it")
    (left, right), (fall, rise) = np.diff(speeds[k - 1 : k + 2]), np.diff(values[k - 1 : k + 2])
    slope_left, slope_right = fall / left, rise / right
    middle = speeds[k - 1] + left / 2
    return SharpestImage(float(middle + slope_left * (left + right) / 2 / (slope_left - slope_right)), values)


def _shifted(values: Floats, axis: int, offset: int) -> Floats:
    """Return the part of an array that begins at `offset` and is two points shorter along an axis."""
    return values[(slice(None),) * axis + (slice(offset, offset + values.shape[axis] - 2),)]


def _sobel(values: Floats, axis: int) -> Floats:
    """Return the Sobel operator along an axis at inner points: differences, smoothed by 1, 2, 1 along other axes."""
    result = values
    for other in range(values.ndim):
        first, last = _shifted(result, other, 0), _shifted(result, other, 2)
        result = last - first if other == axis else first + 2 * _shifted(result, other, 1) + last
    return result
