# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of the duration of an ultrasound case: waves must be emitted, and arrive, before they are recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.medium import properties_of
from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.case.ultrasound.sources import (
    BallSource,
    FocusedGeometry,
    LineGeometry,
    LineSource,
    RectangleGeometry,
    Signal,
)
from seiche.solver import Estimate

_BOUNDS = "theory/ultrasound.md#automatic-checks"


def arrival_estimates(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the delays of the signals, and the travel times to what is recorded, relative to the duration."""
    yield from _delays(setup)
    yield from _amplitudes(setup)
    yield from _image(setup)
    yield from _sensors(setup)


def _delays(setup: UltrasoundSetup) -> Iterator[Estimate]:
    duration = setup.steps * setup.dt
    delays = {
        f"source[{number}]": table.delay / duration
        for number, table in enumerate(setup.case.source)
        if isinstance(table, Signal) and table.delay > 0
    }
    if delays:
        where = max(delays, key=delays.__getitem__)
        yield Estimate(
            name="delay over the duration of the run",
            value=delays[where],
            where=where,
            upper_bound=1.0,
            effect="the source emits nothing during the run",
            remedy=f"use grid.duration of more than {delays[where] * duration:.3g} s, or a shorter delay",
            source=_BOUNDS,
        )


def _amplitudes(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the time before the maps of amplitudes begin, over that in which waves cross the grid."""
    window = setup.sensor.frequency_window
    tones = {n: table for n, table in enumerate(setup.case.source) if isinstance(table, Signal)}
    if window is None or not setup.case.record.frequencies or not tones:
        return
    corners, speed = _corners(setup), _speed(setup)
    needed = {}
    for number, tone in tones.items():
        points = _points(tone)
        far = max(float(np.linalg.norm(corner - points, axis=1).min()) for corner in corners)
        periods = tone.ramp if tone.cycles is None else 0.0
        needed[number] = tone.delay + periods / tone.frequency + far / speed
    number = max(needed, key=needed.__getitem__)
    recorded = (window[1] - window[0]) * setup.dt
    yield Estimate(
        name="time before the amplitudes are recorded, over the travel time across the grid",
        value=window[0] * setup.dt / needed[number],
        where=f"source[{number}]",
        lower_bound=1.0,
        effect="the waves have not reached all of the grid, and amplitudes beyond their front are those of transients",
        remedy=f"use grid.duration of at least {needed[number] + recorded:.3g} s",
        source=_BOUNDS,
    )


def _image(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the duration over the travel time from an initial pressure to the farthest sensor of an image."""
    balls = [table for table in setup.case.source if isinstance(table, BallSource)]
    ring = setup.case.record.ring
    if setup.case.image is None or ring is None or not balls:
        return
    far = max(math.dist(ball.center, ring.center) + ring.radius + ball.radius for ball in balls)
    needed = far / _speed(setup)
    yield Estimate(
        name="duration over the travel time to the farthest sensor",
        value=setup.steps * setup.dt / needed,
        where="image",
        lower_bound=1.0,
        effect="the sensors do not record all of the waves, of which the image is computed",
        remedy=f"use grid.duration of at least {needed:.3g} s",
        source=_BOUNDS,
    )


def _sensors(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the duration over the shortest travel time from a source to the farthest sensor.

    Nothing is known of an initial pressure from a file, and an image has a bound of its own.
    """
    record = setup.case.record
    sources = [_ball_of(table) for table in setup.case.source]
    if setup.case.image is not None or None in sources:
        return
    sensors = {f"record.points[{n}]": (np.array(position), 0.0) for n, position in enumerate(record.points)}
    sensors |= {f"record.element[{n}]": ball for n, table in enumerate(record.element) if (ball := _ball_of(table))}
    if record.ring is not None:  # its farthest point from a source is as far beyond the centre as the radius
        sensors["record.ring"] = np.array(record.ring.center), -record.ring.radius
    distances = {
        where: min(float(np.linalg.norm(middle - place)) - size - reach for place, reach in filter(None, sources))
        for where, (middle, size) in sensors.items()
    }
    where = max(distances, key=distances.__getitem__, default="")
    arrival = distances.get(where, 0.0) / float(np.max(setup.problem.sound_speed))
    if arrival > 0:
        yield Estimate(
            name="duration over the travel time from the nearest source at the highest speed",
            value=setup.steps * setup.dt / arrival,
            where=where,
            lower_bound=1.0,
            effect="no wave reaches all of the ring" if record.ring is not None else "no wave reaches this sensor",
            remedy=f"use grid.duration of more than {arrival:.3g} s",
            source=_BOUNDS,
        )


def _ball_of(table: object) -> tuple[npt.NDArray[np.float64], float] | None:
    """Return middle and radius (m) of a ball that contains a source or sensor; None for one of unknown position."""
    match table:
        case BallSource():
            return np.array(table.center), table.radius
        case FocusedGeometry():
            return np.array(table.position), table.diameter
        case RectangleGeometry():
            sides = np.array([table.first, table.second])
            return np.array(table.position), 0.5 * float(np.linalg.norm(sides, axis=1).sum())
        case LineGeometry():
            start, end = np.array(table.start), np.array(table.end)
            return (start + end) / 2, 0.5 * float(np.linalg.norm(end - start))
    return None


def _speed(setup: UltrasoundSetup) -> float:
    """Return the sound speed outside all regions, or the mean of the points for a medium from a file, m/s."""
    table = setup.case.medium
    speed = properties_of(table, None).get("sound_speed")
    if table.file is None and table.ct is None and speed is not None:
        return float(speed)
    return float(np.mean(setup.problem.sound_speed))


def _corners(setup: UltrasoundSetup) -> npt.NDArray[np.float64]:
    """Return the corners of the grid of the case, (2^d, d), in m."""
    ends = [setup.grid.positions(axis)[[0, -1]] for axis in setup.grid.axes]
    return np.stack(np.meshgrid(*ends, indexing="ij"), -1).reshape(-1, len(ends))


def _points(tone: Signal) -> npt.NDArray[np.float64]:
    """Return the middle of a source, or the middle and the ends of a line, (n, d), in m."""
    if isinstance(tone, LineSource):
        start, end = np.array([tone.start, tone.end], np.float64)
        return np.array([start, (start + end) / 2, end])
    position: tuple[float, ...] = tone.position  # type: ignore[attr-defined]
    return np.array([position], np.float64)
