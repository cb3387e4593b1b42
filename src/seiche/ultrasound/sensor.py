# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of the user: points of a mask, cuboids, or positions between points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.numbers import real_numbers, whole_number
from seiche.ultrasound.shapes import Shape
from seiche.ultrasound.source import mask_points
from seiche.ultrasound.weighted_sensors import nodes_of_elements

#: Names of all records.
_KINDS = ("", "_max", "_min", "_rms", "_max_all", "_min_all", "_final")
_OTHERS = ("u_non_staggered", "s_non_staggered", "g", "I", "I_avg")
RECORDS = (*(f"{quantity}{kind}" for quantity in "pus" for kind in _KINDS), *_OTHERS)


@dataclass(frozen=True)
class Sensor:
    """Positions and quantities to record: one kind of sensor, or none for whole-grid records only.

    Attributes:
        mask: points, in the shape of the grid, in C order.
        corners: cuboids (n, 2 D): first and last index (from 0, inclusive) along every axis: x1, y1, z1, x2, y2, z2.
        positions: (n, D) coordinates in metres, as of `Grid.positions`; linear interpolation.
        elements: shapes, one for each sensor, which records the mean over its curve or surface: it has the directivity
            of a receiver of this size.
        everywhere: whether every point is a sensor, absorbing layers outside the grid included.
        record: names of `RECORDS`.
        first: first recorded step, from 0.
        frequencies: frequencies (Hz) of amplitude and phase of the pressure at all points.
        frequency_window: first step and the one after the last for these; the recorded steps by default.
        frequency_response: centre (Hz) and relative width at half maximum of a Gaussian filter for the series of the
            pressure.
        absorbed_power: whether to record the power (W/m3) that an elastic medium absorbs from a continuous wave of the
            first of `frequencies`, at all points.
        directions: (D,) or (n, D), of any length: a plane wave at the angle a to the direction of a sensor is recorded
            with the factor |cos a| in the series of the pressure ("gradient" of k-Wave). Not for elements.
    """

    mask: npt.ArrayLike | None = None
    corners: npt.ArrayLike | None = None
    positions: npt.ArrayLike | None = None
    elements: Shape | Sequence[Shape] | None = None
    everywhere: bool = False
    record: tuple[str, ...] = ("p",)
    first: int = 0
    frequencies: tuple[float, ...] = ()
    frequency_window: tuple[int, int] | None = None
    frequency_response: tuple[float, float] | None = None
    absorbed_power: bool = False
    directions: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        """Convert a single record or frequency to a tuple; raise CaseError for values of other types."""
        if not isinstance(self.record, (str, Sequence)):
            raise CaseError(f"sensor.record: {self.record!r} is not a name or names of records")
        object.__setattr__(self, "record", (self.record,) if isinstance(self.record, str) else tuple(self.record))
        frequencies = np.atleast_1d(real_numbers("sensor.frequencies", self.frequencies))
        object.__setattr__(self, "frequencies", tuple(float(frequency) for frequency in frequencies))
        object.__setattr__(self, "first", whole_number("sensor.first", self.first))
        if self.elements is not None:
            elements = tuple(self.elements) if isinstance(self.elements, Sequence) else (self.elements,)
            object.__setattr__(self, "elements", elements)
        if self.frequency_response is not None:
            response = real_numbers("sensor.frequency_response", self.frequency_response)
            if response.shape != (2,) or not (np.isfinite(response).all() and response.min() > 0):
                raise CaseError(
                    f"sensor.frequency_response: {self.frequency_response!r} is not a centre (Hz) and a relative width,"
                    " both > 0"
                )
            object.__setattr__(self, "frequency_response", (float(response[0]), float(response[1])))
        if self.frequency_window is not None:
            if np.shape(self.frequency_window) != (2,):
                raise CaseError(f"sensor.frequency_window: {self.frequency_window!r} is not a first and a last step")
            window = tuple(whole_number("sensor.frequency_window", step) for step in self.frequency_window)
            object.__setattr__(self, "frequency_window", window)

    def check(self, grid: Grid) -> None:
        """Raise CaseError for unknown records, several kinds of sensor, or records at points without a sensor."""
        for name in self.record:
            if name not in RECORDS:
                raise CaseError(f"sensor.record: {name!r} is not one of {', '.join(RECORDS)}")
        kinds = "mask", "corners", "positions", "elements"
        defined = [name for name in kinds if getattr(self, name) is not None] + ["everywhere"] * self.everywhere
        if len(defined) > 1:
            raise CaseError(f"sensor: has {' and '.join(defined)}; use only one of them")
        if not defined and any(not name.endswith(("_all", "_final")) for name in self.record):
            raise CaseError("sensor.mask: is missing; records at points require a mask, corners, positions or elements")
        if grid.steps is not None and not 0 <= self.first < grid.steps:
            raise CaseError(f"sensor.first: {self.first} is not one of the {grid.steps} steps")

    def check_medium(self, *, elastic: bool) -> None:
        """Raise CaseError for records that an elastic medium, or a fluid, does not have."""
        for name in self.record:
            if name[0] == "s" and not elastic:
                raise CaseError(f"sensor.record: {name!r} requires an elastic medium; set medium.shear_speed")
        if self.absorbed_power and not elastic:
            raise CaseError(
                "sensor.absorbed_power: requires an elastic medium; use thermal.heat_deposition for the amplitude in a "
                "fluid"
            )
        if self.absorbed_power and not self.frequencies:
            raise CaseError("sensor.absorbed_power: needs sensor.frequencies, which are missing")

    def points(self, grid: Grid) -> npt.NDArray[np.int64] | None:
        """Return the indices of the points of mask or cuboids.

        Raises:
            CaseError: a mask without points, or a cuboid outside the grid.
        """
        if self.mask is not None:
            return mask_points("sensor.mask", self.mask, grid.shape)
        if self.corners is None:
            return None
        parts = [np.ravel_multi_index(np.ix_(*ranges), grid.shape).reshape(-1) for ranges in self.cuboids(grid)]
        return np.concatenate(parts).astype(np.int64)

    def unit_directions(self, sensors: int, dimensions: int) -> npt.NDArray[np.float64] | None:
        """Return the directions as unit vectors (sensors, D), None without directions.

        Raises:
            CaseError: another shape, a vector without length, or records that directions do not have.
        """
        if self.directions is None:
            return None
        vectors = real_numbers("sensor.directions", self.directions)
        if vectors.shape not in ((dimensions,), (sensors, dimensions)):
            raise CaseError(
                f"sensor.directions: shape {vectors.shape} is not ({dimensions},) or ({sensors}, {dimensions})"
            )
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise CaseError("sensor.directions: a vector has no length, or is not finite")
        if self.elements is not None or self.everywhere:
            raise CaseError("sensor.directions: require a mask, corners or positions; elements have their own response")
        for name in self.record:
            if name in ("p_max", "p_min", "p_rms", "I", "I_avg"):
                raise CaseError(f"sensor.directions: apply to the series p; omit the record {name!r}")
        return np.array(np.broadcast_to(vectors / lengths, (sensors, dimensions)))

    def cuboids(self, grid: Grid) -> list[list[npt.NDArray[np.int64]]]:
        """Return the indices of each cuboid along every axis."""
        dimensions = len(grid.shape)
        try:
            corners = np.atleast_2d(np.asarray(self.corners))
        except ValueError:
            raise CaseError("sensor.corners: cuboids have different numbers of indices") from None
        if corners.shape[1:] != (2 * dimensions,) or corners.dtype.kind not in "iu":
            raise CaseError(f"sensor.corners: shape {corners.shape} is not (n, {2 * dimensions}) of whole numbers")
        if not len(corners):
            raise CaseError("sensor.corners: has no cuboids")
        first_points, last_points = corners[:, :dimensions], corners[:, dimensions:]
        if first_points.min() < 0 or (first_points > last_points).any() or (last_points >= np.array(grid.shape)).any():
            raise CaseError(f"sensor.corners: a cuboid does not lie inside the grid of {grid.shape} points")
        return [
            [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
            for first, last in zip(first_points, last_points, strict=True)
        ]

    def nodes(self, grid: Grid) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
        """Return indices and weights (n, m) of the points around each position or element.

        Raises:
            CaseError: a position or an element outside the grid.
        """
        if self.elements is not None:
            if not self.elements:
                raise CaseError("sensor.elements: has no shapes")
            return nodes_of_elements(grid, cast(Sequence[Shape], self.elements), "sensor.elements")
        if self.positions is None:
            return None
        dimensions = len(grid.shape)
        positions = np.atleast_2d(real_numbers("sensor.positions", self.positions))
        if positions.ndim != 2 or positions.shape[1] != dimensions:
            raise CaseError(f"sensor.positions: shape {positions.shape} is not (n, {dimensions})")
        scaled = positions / grid.spacings + np.array(grid.origin)
        if not ((scaled >= 0) & (scaled <= np.array(grid.shape) - 1)).all():
            raise CaseError("sensor.positions: a position lies outside the grid")
        lower = np.minimum(np.floor(scaled).astype(np.int64), np.array(grid.shape) - 2)
        fraction = scaled - lower
        indices, weights = [], []
        for corner in np.ndindex((2,) * dimensions):
            is_upper = np.array(corner)
            indices.append(np.ravel_multi_index(tuple((lower + is_upper).T), grid.shape))
            weights.append(np.prod(np.where(is_upper == 1, fraction, 1 - fraction), axis=1))
        return np.stack(indices, 1).astype(np.int64), np.stack(weights, 1)


def filtered(series: npt.NDArray[Any], dt: float, center: float, width: float) -> npt.NDArray[Any]:
    """Return series (..., times) with steps of `dt` s, filtered by the response of a sensor (theory, eq. 42).

    Args:
        series: time series.
        dt: s.
        center: frequency of the largest response, Hz.
        width: width at half maximum, relative to the centre.
    """
    count = series.shape[-1]
    deviation = width * center / (2 * np.sqrt(2 * np.log(2)))
    response = np.exp(-((np.fft.rfftfreq(count, dt) - center) ** 2) / (2 * deviation**2))
    return np.asarray(np.fft.irfft(np.fft.rfft(series, axis=-1) * response, count, axis=-1), series.dtype)
