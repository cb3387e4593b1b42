# SPDX-License-Identifier: BSD-3-Clause
"""Transducers of k-wave-python, kWaveArray and NotATransducer, as sources and sensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.emitter import Emitter
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.shapes import Annulus, Arc, Bowl, Disc, Line, PointSet, Rectangle, Shape

#: Points of a flat element that fills an area in two dimensions, along its longer side.
_POINTS_ALONG = 64


def is_array(value: Any) -> bool:
    """Return whether an object is a kWaveArray."""
    return hasattr(value, "elements") and hasattr(value, "array_transformation")


def is_transducer(value: Any) -> bool:
    """Return whether an object is a NotATransducer."""
    return hasattr(value, "indexed_active_elements_mask") and hasattr(value, "delay_mask")


def shapes_of(array: Any) -> list[Shape]:
    """Return the elements of a kWaveArray, in its position; raise CaseError for an element of unknown type."""
    if not len(array.elements):
        raise CaseError("kWaveArray: has no elements")
    matrix = np.asarray(array.array_transformation, np.float64)

    def moved(point: Any) -> tuple[float, ...]:
        vector = real_numbers("kWaveArray", point).ravel()
        return tuple((matrix @ [*vector, 1.0])[:-1].tolist() if matrix.size else vector.tolist())

    return [_shape_of(element, moved, number) for number, element in enumerate(array.elements)]


def _shape_of(element: Any, moved: Any, number: int) -> Shape:
    """Return one element; `moved` transforms its positions."""
    kind = element.type
    if kind == "line":
        return Line(moved(element.start_point), moved(element.end_point))
    if kind == "custom":
        points = np.stack([moved(point) for point in np.asarray(element.integration_points, np.float64).T])
        return PointSet(points, float(element.measure), int(element.dim))
    if kind in ("rect", "disc", "arc", "bowl", "annulus"):
        position = moved(element.position)
        if kind == "rect":
            return _rectangle(element, position)
        if kind == "disc" and len(position) == 2:
            return _flat_disc(position, float(element.diameter))
        if kind == "disc" and element.focus_position is None:
            return Disc(position, (*position[:2], position[2] + 1.0), float(element.diameter))
        focus = moved(element.focus_position)
        if kind == "disc":
            return Disc(position, focus, float(element.diameter))
        radius = float(element.radius_of_curvature)
        if kind == "annulus":
            return Annulus(position, focus, radius, float(element.inner_diameter), float(element.outer_diameter))
        return (Arc if kind == "arc" else Bowl)(position, focus, radius, float(element.diameter))
    raise CaseError(f"kWaveArray: element {number} has the type {kind!r}, which is not available")


def _rectangle(element: Any, position: tuple[float, ...]) -> Shape:
    """Return a rectangle with sides along x and y, rotated by angles in degrees (3D: about x, y and z in turn)."""
    sides = float(element.length), float(element.width)
    if len(position) == 3:
        from scipy.spatial.transform import Rotation

        rotation = Rotation.from_euler("xyz", np.asarray(element.orientation, np.float64), degrees=True).as_matrix()
        first, second = rotation[:, 0] * sides[0], rotation[:, 1] * sides[1]
        return Rectangle(position, tuple(first.tolist()), tuple(second.tolist()))
    angle = np.deg2rad(float(element.orientation))
    counts = [max(1, round(_POINTS_ALONG * side / max(sides))) for side in sides]
    x, y = (side * ((np.arange(n) + 0.5) / n - 0.5) for side, n in zip(sides, counts, strict=True))
    across, along = (values.ravel() for values in np.meshgrid(x, y, indexing="ij"))
    rotated = across * np.cos(angle) - along * np.sin(angle), across * np.sin(angle) + along * np.cos(angle)
    return PointSet(np.asarray(position) + np.stack(rotated, axis=1), sides[0] * sides[1], 2)


def _flat_disc(position: tuple[float, ...], diameter: float) -> PointSet:
    """Return a disc that fills an area in two dimensions, by points of equal area on a spiral."""
    count = _POINTS_ALONG**2
    radii = diameter / 2 * np.sqrt((np.arange(count) + 0.5) / count)
    angles = np.arange(count) * np.pi * (3 - np.sqrt(5))
    points = np.asarray(position) + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return PointSet(points, np.pi * diameter**2 / 4, 2)


def emitters_of(array: Any, signals: Any, mode: Any, factor: float) -> tuple[Emitter, ...]:
    """Return the emitters of a kWaveArray: one for a common signal, else one for each element.

    Args:
        array: kWaveArray.
        signals: (times,) or (elements, times), Pa.
        mode: of the source.
        factor: of the signals.
    """
    if mode == "dirichlet":
        raise CaseError('source.p_mode: "dirichlet" is not available for the elements of a kWaveArray')
    shapes = shapes_of(array)
    samples = np.atleast_2d(real_numbers("source.p", signals)) * factor
    if samples.shape[0] not in (1, len(shapes)):
        raise CaseError(f"source.p: {samples.shape[0]} signals for {len(shapes)} elements; expected 1 or one for each")
    if samples.shape[0] == 1:
        return (Emitter(shapes, samples[0], mode=mode),)
    return tuple(Emitter(shape, signal, mode=mode) for shape, signal in zip(shapes, samples, strict=True))


def transducer_source(transducer: Any, grid: Grid, sound_speed: npt.ArrayLike) -> dict[str, Any]:
    """Return the arguments of a Source for a NotATransducer: velocities along x with delays and apodisation.

    k-Wave scales the signal with the mean sound speed at the points of the transducer. A point with the delay d emits
    sample t + d at step t.
    """
    mask = np.asarray(transducer.active_elements_mask) != 0
    if mask.shape != grid.shape:
        raise CaseError(f"source: the transducer belongs to a grid of {mask.shape} points, not {grid.shape}")
    signal = real_numbers("source.input_signal", transducer.input_signal).ravel()
    delays = np.asarray(transducer.delay_mask())[mask].astype(np.int64)
    latest = int(delays.max())
    if len(signal) <= latest or np.any(signal[:latest]):
        raise CaseError(f"source.input_signal: must begin with {latest} zeros, the largest delay")
    weights = np.asarray(transducer.transmit_apodization_mask, np.float64)[mask]
    speed = np.broadcast_to(np.asarray(sound_speed, np.float64), grid.shape)[mask]
    return {
        "u_mask": mask,
        "ux": signal[latest:],
        "u_mode": "additive-no-correction",
        "u_delays": latest - delays,
        "u_weights": weights * speed.mean() / speed,
    }


def element_signals(transducer: Any, series: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the signals (active elements, times) of a NotATransducer from series (points, times) in C order.

    An element records the mean over its points; with an elevation focus, each point is first advanced by its delay.
    """
    mask = np.asarray(transducer.active_elements_mask) != 0
    elements = np.asarray(transducer.indexed_active_elements_mask)[mask].astype(np.int64) - 1
    delays = np.zeros(len(elements), np.int64)
    if np.isfinite(transducer.elevation_focus_distance):
        delays = np.asarray(transducer.delay_mask(2))[mask].astype(np.int64)
    result = np.zeros((int(elements.max()) + 1, series.shape[1]), series.dtype)
    for element, delay, signal in zip(elements, delays, series, strict=True):
        result[element, : series.shape[1] - delay] += signal[delay:]
    return np.asarray(result / np.bincount(elements)[:, None], series.dtype)
