# SPDX-License-Identifier: BSD-3-Clause
"""Functions of k-wave-python around a simulation, by its names and with its arguments.

from seiche.ultrasound.kwave_images import kspaceLineRecon    instead of    from kwave.kspaceLineRecon import ...
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound import autofocus, b_mode
from seiche.ultrasound.kspace_image import kspace_image
from seiche.ultrasound.kwave_elastic import elastic_medium_of, rank_in_first_axis_order
from seiche.ultrasound.kwave_objects import field_of, grid_of, medium_of
from seiche.ultrasound.numbers import positive_number, real_numbers
from seiche.ultrasound.photoacoustic import time_reversal

Floats = npt.NDArray[np.float64]
_MEASURES = {"Brenner": "brenner", "Tenenbaum": "tenenbaum", "NormVariance": "variance"}
_INTERPOLATIONS = ("nearest", "linear", "cubic")


def kspaceLineRecon(  # noqa: N802 (name and arguments of k-wave-python)
    p: npt.ArrayLike,
    dy: float,
    dt: float,
    c: float,
    data_order: str = "ty",
    *,
    interp: str = "nearest",
    pos_cond: bool = False,
) -> Floats:
    """Return the initial pressure (x, y) from series of a line of sensors, see `kspace_image`.

    Args:
        p: pressure (t, y), or (y, t) for the order "yt".
        dy: between sensors, m.
        dt: s.
        c: sound speed, m/s.
        data_order: "ty" or "yt".
        interp: "nearest", "linear" or "cubic", without effect: interpolation is always band-limited.
        pos_cond: set negative pressures to zero.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    return _reconstructed(p, (dy,), dt, c, order=data_order, expected="ty", interp=interp, positive=pos_cond)


def kspacePlaneRecon(  # noqa: N802 (name and arguments of k-wave-python)
    p: npt.ArrayLike,
    dy: float,
    dz: float,
    dt: float,
    c: float,
    *,
    data_order: str = "tyz",
    interp: str = "nearest",
    pos_cond: bool = False,
) -> Floats:
    """Return the initial pressure (x, y, z) from series of a plane of sensors, see `kspace_image`.

    Args:
        p: pressure (t, y, z), or (y, z, t) for the order "yzt".
        dy: between sensors along y, m.
        dz: along z, m.
        dt: s.
        c: sound speed, m/s.
        data_order: "tyz" or "yzt".
        interp: as of `kspaceLineRecon`.
        pos_cond: set negative pressures to zero.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    return _reconstructed(p, (dy, dz), dt, c, order=data_order, expected="tyz", interp=interp, positive=pos_cond)


class TimeReversal:
    """Time reversal with objects of k-wave-python; called, it returns the initial pressure in the grid's shape."""

    def __init__(self, kgrid: Any, medium: Any, sensor: Any, compensation_factor: float = 2.0) -> None:
        """Keep the objects.

        Args:
            kgrid: a kWaveGrid with its time set.
            medium: a kWaveMedium; with sound_speed_shear the elastic solver is used.
            sensor: a kSensor with a binary mask, and `recorded_pressure` (n_sensor, n_times) in C order of the mask, in
                elastic media in the order of `pstd_elastic_2d`.
            compensation_factor: of the image, 2 for sensors on one side and 1 for sensors all around.

        Raises:
            CaseError: the time is not set, or an impossible factor.
        """
        self._grid = grid_of(kgrid)
        self._elastic, self._sensor = getattr(medium, "sound_speed_shear", None) is not None, sensor
        self._medium = elastic_medium_of(medium, self._grid) if self._elastic else medium_of(medium, self._grid)
        self._factor = positive_number("compensation_factor", compensation_factor)

    def __call__(
        self,
        simulation_function: Any = None,
        simulation_options: Any = None,
        execution_options: Any = None,
        **options: Any,
    ) -> Floats:
        """Return the image, without negative pressures.

        Args:
            simulation_function: without effect.
            simulation_options: without effect.
            execution_options: without effect.
            options: of `time_reversal`, such as `pml_size`, `pml_inside`, `iterations` or `compensate`. The layer is
                outside the grid by default, as in k-wave-python.

        Raises:
            CaseError: no recorded pressure, or an impossible value.
        """
        series = getattr(self._sensor, "recorded_pressure", None)
        if series is None:
            raise CaseError("sensor.recorded_pressure: is missing; set it to the series p of a simulation")
        mask = np.asarray(field_of("sensor.mask", self._sensor.mask, self._grid.shape, as_array=True)) != 0
        if self._elastic and len(series) == np.count_nonzero(mask):
            series = np.asarray(series)[rank_in_first_axis_order(mask)]
        arguments = {"pml_inside": False, **options}
        return self._factor * time_reversal(self._grid, self._medium, mask, series, **arguments)


def sharpness(im: npt.ArrayLike, mode: str | None = "Brenner") -> float:
    """Return a measure of sharpness, see `seiche.ultrasound.autofocus.sharpness`.

    Args:
        im: image in two or three dimensions.
        mode: "Brenner", "Tenenbaum" (with zeros around the image, as in k-Wave) or "NormVariance".

    Raises:
        CaseError: an unknown mode, or not an image.
    """
    name = "Brenner" if mode is None else mode
    if name not in _MEASURES:
        raise CaseError(f"mode: {mode!r} is not {', '.join(_MEASURES)}")
    image = np.pad(real_numbers("im", im), 2) if name == "Tenenbaum" else im
    return autofocus.sharpness(image, cast(autofocus.Measure, _MEASURES[name]))


def envelope_detection(signal: npt.ArrayLike) -> Floats:
    """Return the envelope along the last axis, see `seiche.ultrasound.b_mode.envelope`."""
    return b_mode.envelope(signal)


def log_compression(signal: npt.ArrayLike, cf: float, normalize: bool = False) -> Floats:
    """Return amplitudes compressed by a factor, see `seiche.ultrasound.b_mode.log_compression`.

    Args:
        signal: amplitudes (..., times).
        cf: factor.
        normalize: relative to the maximum of each row.

    Raises:
        CaseError: negative amplitudes, or a factor that is not positive.
    """
    rows = real_numbers("signal", signal)
    if not normalize or rows.ndim < 2:
        return b_mode.log_compression(rows, cf, normalise=normalize)
    flat = rows.reshape(-1, rows.shape[-1])
    return np.stack([b_mode.log_compression(row, cf, normalise=True) for row in flat]).reshape(rows.shape)


def scan_conversion(
    scan_lines: npt.ArrayLike,
    steering_angles: npt.ArrayLike,
    image_size: tuple[float, float],
    c0: float,
    dt: float,
    *,
    resolution: tuple[int, int] | None = None,
) -> Floats:
    """Return an image (x, y) of scan lines, zero outside the sector.

    Args:
        scan_lines: (lines, times); sample n, counted from one, belongs to the depth n c0 dt / 2.
        steering_angles: of the lines in degrees, ascending.
        image_size: along x from the apex and along y about it, m.
        c0: m/s.
        dt: s.
        resolution: points of the image, 256 x 256 by default.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    lines = real_numbers("scan_lines", scan_lines)
    times = lines.shape[-1] if lines.ndim else 0
    distances = np.arange(1, times + 1) * (positive_number("c0", c0) * positive_number("dt", dt) / 2)
    size = real_numbers("image_size", image_size)
    points = (256, 256) if resolution is None else tuple(int(n) for n in resolution)
    if size.shape != (2,) or not (np.isfinite(size) & (size > 0)).all() or len(points) != 2 or min(points) < 2:
        raise CaseError("image_size, resolution: are not two positive numbers and two numbers of points >= 2")
    x, y = np.linspace(0, size[0], points[0]), np.linspace(-size[1] / 2, size[1] / 2, points[1])
    angles = np.deg2rad(real_numbers("steering_angles", steering_angles))
    return b_mode.sector_values(lines, angles, distances, x, y, outside=0.0)


def _reconstructed(
    p: npt.ArrayLike,
    spacing: tuple[float, ...],
    dt: float,
    c: float,
    *,
    order: str,
    expected: str,
    interp: str,
    positive: bool,
) -> Floats:
    """Return an image whose first axis is the depth, from series of sensors in either order of axes."""
    if order not in (expected, expected[1:] + "t"):
        raise CaseError(f"data_order: {order!r} is not {expected!r} or {expected[1:] + 't'!r}")
    if interp.removeprefix("*") not in _INTERPOLATIONS:
        raise CaseError(f"interp: {interp!r} is not {', '.join(_INTERPOLATIONS)}")
    values = real_numbers("p", p)
    if values.ndim != len(expected):
        raise CaseError(f"p: shape {values.shape} has not the axes {order}")
    series = np.moveaxis(values, 0, -1) if order == expected else values
    return np.moveaxis(kspace_image(series, spacing, dt, c, positive=positive), -1, 0)
