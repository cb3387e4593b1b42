# SPDX-License-Identifier: BSD-3-Clause
"""Delays of arrays that steer and focus, and delay-and-sum images of their records (theory/ultrasound, section 18).

Positions are (n, D) in metres, in two or three dimensions; directions and foci are (D,).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.numbers import positive_number, real_numbers

Floats = npt.NDArray[np.float64]


def steering_delays(positions: npt.ArrayLike, direction: npt.ArrayLike, sound_speed: float) -> Floats:
    """Return the delays (n,) in s with which elements emit a plane wave in a direction; the smallest is 0 (eq. 53).

    Args:
        positions: of the elements, m.
        direction: of the wave, of any length.
        sound_speed: m/s.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    elements, speed = _positions("positions", positions), positive_number("sound_speed", sound_speed)
    distances = elements @ _direction(direction, elements.shape[1])
    return np.asarray((distances - distances.min()) / speed)


def focus_delays(
    positions: npt.ArrayLike, focus: npt.ArrayLike, sound_speed: float, *, diverging: bool = False
) -> Floats:
    """Return the delays (n,) in s after which waves of all elements meet in a focus; the smallest is 0 (eq. 53).

    Args:
        positions: of the elements, m.
        focus: the focus, m; with `diverging` a virtual source behind the elements, from which the wave seems to come.
        sound_speed: m/s.
        diverging: see `focus`.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    elements, speed = _positions("positions", positions), positive_number("sound_speed", sound_speed)
    distances = np.linalg.norm(elements - _point("focus", focus, elements.shape[1]), axis=1)
    return np.asarray((distances - distances.min() if diverging else distances.max() - distances) / speed)


def transmit_times(
    points: npt.ArrayLike,
    positions: npt.ArrayLike,
    sound_speed: float,
    *,
    direction: npt.ArrayLike | None = None,
    focus: npt.ArrayLike | None = None,
    diverging: bool = False,
) -> Floats:
    """Return the times (...) in s at which the emitted wave reaches points (eq. 54), from the first emission.

    The wave is that of `steering_delays` or `focus_delays` with the same arguments.

    Args:
        points: (..., D), m.
        positions: of the elements, m.
        sound_speed: m/s.
        direction: of a plane wave.
        focus: of a focused wave, or the virtual source of a diverging one, m.
        diverging: as of `focus_delays`.

    Raises:
        CaseError: an impossible value, or not one of direction and focus; names the argument.
    """
    elements, speed = _positions("positions", positions), positive_number("sound_speed", sound_speed)
    places = _points(points, elements.shape[1])
    if (direction is None) == (focus is None):
        raise CaseError("direction, focus: exactly one of them is required")
    if direction is not None:
        unit = _direction(direction, elements.shape[1])
        return np.asarray((places @ unit - (elements @ unit).min()) / speed)
    centre = _point("focus", focus, elements.shape[1])
    distances, to_elements = np.linalg.norm(places - centre, axis=-1), np.linalg.norm(elements - centre, axis=1)
    if diverging:
        return np.asarray((distances - to_elements.min()) / speed)
    behind = np.sign((places - centre) @ (centre - elements.mean(axis=0)))
    return np.asarray((to_elements.max() + behind * distances) / speed)


def delay_and_sum(
    series: npt.ArrayLike,
    positions: npt.ArrayLike,
    points: npt.ArrayLike,
    dt: float,
    sound_speed: float,
    *,
    transmit: npt.ArrayLike = 0.0,
    apodisation: npt.ArrayLike | None = None,
    f_number: float | None = None,
    normal: npt.ArrayLike | None = None,
    start: float = 0.0,
) -> Floats:
    """Return the mean (...) over elements of series at the times of echoes from points: dynamic focusing (eq. 55).

    A scan line is the result at points along a line, an image that at points of a plane. Samples between two times are
    interpolated by cubic splines. Outside the series they are zero.

    Args:
        series: records (n, times) of the elements.
        positions: of the elements (n, D), m.
        points: (..., D), m.
        dt: s.
        sound_speed: m/s.
        transmit: times at which the emitted wave reaches the points, of `transmit_times`; 0 for photoacoustic sources.
        apodisation: weights (n,) of the elements.
        f_number: use only elements within half the depth over this number from the line through the point.
        normal: direction of depth for `f_number`, by default the first axis.
        start: time of the first sample, s.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    from scipy.ndimage import map_coordinates, spline_filter1d

    elements, speed = _positions("positions", positions), positive_number("sound_speed", sound_speed)
    places = _points(points, elements.shape[1])
    values = real_numbers("series", series)
    if values.ndim != 2 or len(values) != len(elements) or not values.shape[1] or not np.isfinite(values).all():
        raise CaseError(f"series: shape {values.shape} is not ({len(elements)}, times) of finite numbers")
    step = positive_number("dt", dt)
    weights = np.ones(len(elements)) if apodisation is None else real_numbers("apodisation", apodisation)
    if weights.shape != (len(elements),) or not np.isfinite(weights).all():
        raise CaseError(f"apodisation: shape {weights.shape} is not one finite number for each element")
    times = real_numbers("transmit", transmit)
    if times.shape not in ((), places.shape[:-1]):
        raise CaseError(f"transmit: shape {times.shape} is not one number, or that of the points {places.shape[:-1]}")
    axis = _direction(np.eye(elements.shape[1])[0] if normal is None else normal, elements.shape[1])
    aperture = None if f_number is None else positive_number("f_number", f_number)
    total, count = np.zeros(places.shape[:-1]), np.zeros(places.shape[:-1])
    for element, weight, signal in zip(elements, weights, values, strict=True):
        offsets = places - element
        distances = np.linalg.norm(offsets, axis=-1)
        samples = (times + distances / speed - start) / step
        spline = spline_filter1d(signal, mode="mirror") if len(signal) > 1 else signal
        interpolated_samples = map_coordinates(spline, samples.reshape(1, -1), prefilter=False, mode="mirror").reshape(
            samples.shape
        )
        interpolated_samples[(samples < 0) | (samples > len(signal) - 1)] = 0.0
        share = np.full(places.shape[:-1], weight)
        if aperture is not None:
            depths = offsets @ axis
            across = np.sqrt(np.maximum(distances**2 - depths**2, 0.0))
            share[across > np.abs(depths) / (2 * aperture)] = 0.0
        total += share * interpolated_samples
        count += share
    return np.divide(total, count, out=np.zeros_like(total), where=count != 0)


def sector_points(origin: npt.ArrayLike, angles: npt.ArrayLike, distances: npt.ArrayLike) -> Floats:
    """Return the points (lines, distances, D) of scan lines that leave an origin at angles to the first axis.

    The lines lie in the plane of the first two axes; positive angles turn them towards the second.

    Args:
        origin: (D,), m.
        angles: (lines,), rad.
        distances: from the origin, m.

    Raises:
        CaseError: an impossible value; names the argument.
    """
    start = real_numbers("origin", origin)
    if start.shape not in ((2,), (3,)) or not np.isfinite(start).all():
        raise CaseError(f"origin: shape {start.shape} is not two or three finite numbers")
    turns = np.atleast_1d(real_numbers("angles", angles))
    lengths = np.atleast_1d(real_numbers("distances", distances))
    if turns.ndim != 1 or lengths.ndim != 1 or not (np.isfinite(turns).all() and np.isfinite(lengths).all()):
        raise CaseError("angles, distances: are not two lists of finite numbers")
    directions = np.zeros((len(turns), len(start)))
    directions[:, 0], directions[:, 1] = np.cos(turns), np.sin(turns)
    return np.asarray(start + lengths[:, None] * directions[:, None, :])


def _positions(name: str, positions: npt.ArrayLike) -> Floats:
    values = real_numbers(name, positions)
    if values.ndim != 2 or values.shape[1] not in (2, 3) or not len(values) or not np.isfinite(values).all():
        raise CaseError(f"{name}: shape {values.shape} is not (n, 2) or (n, 3) of finite numbers")
    return values


def _points(points: npt.ArrayLike, dimensions: int) -> Floats:
    values = real_numbers("points", points)
    if values.ndim < 1 or values.shape[-1] != dimensions or not np.isfinite(values).all():
        raise CaseError(f"points: shape {values.shape} is not (..., {dimensions}) of finite numbers")
    return values


def _point(name: str, point: npt.ArrayLike | None, dimensions: int) -> Floats:
    values = real_numbers(name, np.nan if point is None else point)
    if values.shape != (dimensions,) or not np.isfinite(values).all():
        raise CaseError(f"{name}: shape {values.shape} is not {dimensions} finite numbers")
    return values


def _direction(direction: npt.ArrayLike, dimensions: int) -> Floats:
    vector = _point("direction", direction, dimensions)
    length = float(np.linalg.norm(vector))
    if length == 0:
        raise CaseError("direction: its length is zero")
    return np.asarray(vector / length)
