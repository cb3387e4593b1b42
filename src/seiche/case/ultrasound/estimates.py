# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of an ultrasound case, at each source frequency and for its layers, sources and sensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.amplitude_estimates import amplitude_estimates
from seiche.case.ultrasound.arrival_estimates import arrival_estimates
from seiche.case.ultrasound.medium import averages
from seiche.case.ultrasound.setup import UltrasoundSetup, signal_of
from seiche.case.ultrasound.sources import BallSource, Signal
from seiche.solver import Estimate
from seiche.ultrasound.advice import estimates, initial_frequencies, points_per_wavelength
from seiche.ultrasound.energy import staggering
from seiche.ultrasound.problem import Problem

#: Maximum advised fraction of a wave that passes the absorbing layers at normal incidence (-60 dB).
ADVISED_WRAPPED_FRACTION = 1e-3
#: Points of the thinnest absorbing layer whose transmission was measured.
FEWEST_POINTS = 4
#: Points per wavelength below which absorbing layers reflect more than they transmit.
SMOOTH_PPW = 5.0
#: Error of waves at interfaces that are stairs, times points per wavelength, over the reflection coefficient: L2 errors
#: of 14.5, 10.6 and 7.6 % at 4, 6 and 8 points for a fluid cylinder with a coefficient of 0.28; its advised bound.
_STAIRS, ADVISED_STAIRS = 2.2, 0.1
#: Minimum advised radius of an initial pressure, in points; smoothing removes the edges of smaller ones (eq. 18).
ADVISED_RADIUS = 3.0
#: Maximum advised temperature of tissue, degrees Celsius.
ADVISED_TEMPERATURE = 100.0
#: Minimum advised amplitude of the sources at a recorded frequency, relative to their largest.
ADVISED_SHARE = 0.1
_BOUNDS = "theory/ultrasound.md#automatic-checks"


def ultrasound_estimates(setup: UltrasoundSetup) -> list[Estimate]:
    """Return the estimates of a case before a run, from spectra if no source has a known frequency."""
    problem, scheme = setup.problem, setup.case.run.scheme
    frequencies = sorted({source.frequency for source in setup.case.source if isinstance(source, Signal)})
    at_frequencies: list[float | None] = [*frequencies] or [None]
    of_waves = [estimate for frequency in at_frequencies for estimate in estimates(problem, scheme, frequency)]
    return [
        *of_waves,
        *_time(setup),
        *_layers(setup),
        *_stairs(setup),
        *_sources(setup),
        *amplitude_estimates(setup),
        *arrival_estimates(setup),
        *_sensors(setup),
        *_recorded(setup),
    ]


def energy_estimate(setup: UltrasoundSetup, growth: float | None) -> Iterator[Estimate]:
    """Yield the largest relative growth of the energy beyond the supply of the sources; None: not known yet."""
    if growth is not None:
        allowed = staggering(setup.problem)
        yield Estimate(
            name="growth of energy beyond the supply of sources",
            value=growth,
            upper_bound=allowed if math.isfinite(allowed) else None,
            effect="the run is unstable",
            remedy='use a smaller time step (grid.cfl), or run.scheme = "local4"',
            source=_BOUNDS,
        )


def temperature_estimate(temperature: npt.NDArray[np.floating[Any]] | None) -> Iterator[Estimate]:
    """Yield the highest temperature (degrees Celsius) of heated tissue; None: not computed."""
    if temperature is not None:
        yield Estimate(
            name="highest temperature",
            value=float(np.max(temperature)),
            unit="degC",
            upper_bound=ADVISED_TEMPERATURE,
            effect="tissue boils, which the bioheat equation does not describe",
            remedy="use a smaller amplitude, or a shorter heat.duration",
            source=_BOUNDS,
        )


def _time(setup: UltrasoundSetup) -> Iterator[Estimate]:
    problem = setup.problem
    yield Estimate(name="Courant number", value=float(np.max(problem.sound_speed)) * problem.dt / min(problem.spacing))


def _layers(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the fraction of a wave that crosses the layers at both ends of an axis; the grid is periodic."""
    problem = setup.problem
    slowdown = problem.reference_speed / float(np.max(problem.sound_speed))
    tones = [table.frequency for table in setup.case.source if isinstance(table, Signal)]
    coarse = not tones or points_per_wavelength(problem, max(tones)) < SMOOTH_PPW
    left = {
        axis: wrapped_fraction(layer.size, layer.alpha * slowdown, coarse=coarse)
        for axis, layer in zip(problem.axes, problem.pml, strict=True)
    }
    axis = max(left, key=left.__getitem__)
    strength, points = setup.case.layer.strength * slowdown, 1
    while strength > 0 and wrapped_fraction(points, strength, coarse=coarse) > ADVISED_WRAPPED_FRACTION:
        points += 1
    yield Estimate(
        name="amplitude transmitted by the absorbing layers",
        value=left[axis],
        where=f"along {axis}",
        upper_bound=ADVISED_WRAPPED_FRACTION,
        effect="waves leave the grid and return at the opposite border",
        remedy=f"use layer.points of at least {points}" if strength > 0 else "use layer.strength = 2",
        source=_BOUNDS,
    )


def wrapped_fraction(size: int, strength: float, *, coarse: bool) -> float:
    """Return the fraction of the amplitude that crosses two layers of `size` points and `strength` (theory, eq. 40).

    Sums of the damping rates at the points are larger than the integral. The integral is used for `coarse` waves and
    for layers of fewer than `FEWEST_POINTS` points, which also reflect waves.
    """
    if coarse or size < FEWEST_POINTS:
        return math.exp(-0.4 * strength * size)
    at = np.arange(1, size + 1)
    sums = sum(factor * float((((at + shift) / size) ** 4).sum()) for shift, factor in ((0.0, 2), (0.5, 1), (-0.5, 1)))
    return math.exp(-0.5 * strength * sums)


def _stairs(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the error of interfaces between points, which is of first order unless regions are averaged."""
    problem, table = setup.problem, setup.case.medium
    coefficient = largest_reflection(problem)
    if coefficient == 0.0 or averages(table):
        return
    tones = [tone.frequency for tone in setup.case.source if isinstance(tone, Signal)]
    initial = initial_frequencies(problem)
    if not tones and initial is None:
        return
    frequency = max(tones) if tones or initial is None else initial[0]
    value = _STAIRS * coefficient / points_per_wavelength(problem, frequency)
    by_point = [key for key, found in (("file", table.file), ("ct", table.ct)) if found is not None]
    if table.alpha_mode == "relaxation":
        by_point.append('alpha_mode = "relaxation"')
    if problem.elastic is not None:
        by_point.append("shear_speed")
    cause = " and ".join(f"medium.{key}" for key in by_point) or "medium.average = false"
    finer = f"use a spacing below {max(problem.spacing) * ADVISED_STAIRS / value:.2g} m"
    yield Estimate(
        name="relative error of waves at interfaces",
        value=value,
        where=f"{frequency:.4g} Hz",
        upper_bound=ADVISED_STAIRS,
        effect=f"interfaces are stairs of points, since {cause} has one medium for each point",
        remedy=finer + ("" if by_point else ", or medium.average = true"),
        source=_BOUNDS,
    )


def largest_reflection(problem: Problem) -> float:
    """Return the largest reflection coefficient between adjacent points, at normal incidence.

    Without arrays over the grid it is that between the lowest and the highest impedance.
    """
    impedance = np.asarray(problem.sound_speed) * np.asarray(problem.density)
    if impedance.ndim == 0:
        return 0.0
    if impedance.shape != problem.shape:
        low, high = float(impedance.min()), float(impedance.max())
        return (high - low) / (high + low)
    result = 0.0
    for axis in range(impedance.ndim):
        along_axis = np.moveaxis(impedance, axis, 0)
        for before, after in itertools.pairwise(along_axis):
            result = max(result, float((np.abs(after - before) / (after + before)).max()))
    return result


def _sources(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the extent of the smallest source and the radius of the smallest initial pressure, in points."""
    spacing = max(setup.grid.spacings)
    tables = [(f"source[{number}]", table) for number, table in enumerate(setup.case.source)]
    extents = {where: table.shape().size() / spacing for where, table in tables if isinstance(table, Signal)}
    if extents:
        yield Estimate.lowest(extents, name="extent", unit="points")
    radii = {where: table.radius / spacing for where, table in tables if isinstance(table, BallSource)}
    if radii:
        yield Estimate.lowest(
            radii,
            name="radius",
            unit="points",
            lower_bound=ADVISED_RADIUS,
            effect="smoothing changes the initial pressure",
            remedy=f"use a spacing below {min(radii.values()) * spacing / ADVISED_RADIUS:.2g} m",
            source=_BOUNDS,
        )


def _recorded(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the spectrum of the sources at the recorded frequency that they contain least, relative to its maximum."""
    tones = [table for table in setup.case.source if isinstance(table, Signal)]
    shares = {
        f"record.frequencies[{number}]": max(
            _spectral_share(signal_of(tone, setup.grid), frequency * setup.dt) for tone in tones
        )
        for number, frequency in enumerate(setup.case.record.frequencies if tones else ())
        if not any(_is_harmonic(frequency, tone.frequency) for tone in tones if setup.problem.BonA is not None)
    }
    if shares:
        yield Estimate.lowest(
            shares,
            name="amplitude of the sources at this frequency, relative to their largest",
            lower_bound=ADVISED_SHARE,
            effect="the sources hardly emit it, so the amplitudes are those of transients",
            remedy=f"record {max(tones, key=lambda tone: tone.amplitude).frequency:g} Hz",
            source=_BOUNDS,
        )


def _is_harmonic(frequency: float, fundamental: float) -> bool:
    """Return whether a frequency is a multiple of another one."""
    return abs(frequency / fundamental - round(frequency / fundamental)) < 1e-6


def _spectral_share(signal: npt.NDArray[np.float64], frequency: float) -> float:
    """Return the spectrum of a signal at a frequency (cycles per sample), relative to its maximum (Hann window)."""
    values = signal * np.hanning(len(signal))
    maximum = float(np.abs(np.fft.rfft(values, 8 * len(values))).max())
    value = abs(complex(np.sum(values * np.exp(-2j * np.pi * frequency * np.arange(len(values))))))
    return value / maximum if maximum > 0 else 1.0


def _sensors(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the smallest distances of a sensor from the absorbing layer (negative inside it) and from a source."""
    grid, ring = setup.grid, setup.case.record.ring
    positions = np.array(setup.case.record.points, np.float64)
    if ring is not None:  # its extreme points along the axes
        offsets = ring.radius * np.concatenate([np.eye(len(grid.shape)), -np.eye(len(grid.shape))])
        positions = np.array(ring.center, np.float64) + offsets
    if not len(positions):
        return
    sizes = np.array(setup.layers.sizes) if setup.layers.inside else np.zeros(len(grid.shape))
    low = np.array([grid.positions(axis)[0] for axis in grid.axes]) + sizes * grid.spacings
    low[list(setup.layers.radial)] = -np.inf  # no layer at an axis of symmetry
    high = np.array([grid.positions(axis)[-1] for axis in grid.axes]) - sizes * grid.spacings
    room = np.minimum(positions - low, high - positions) / grid.spacings
    number = int(np.argmin(room.min(1)))
    yield Estimate(
        name="distance from the absorbing layer",
        value=float(room.min()),
        unit="points",
        where="record.ring" if ring is not None else f"record.points[{number}]",
        lower_bound=0.0,
        effect="the sensor is in the layer, which damps the waves",
        remedy="move it, or use layer.inside = false",
        source=_BOUNDS,
    )
    middles = [
        getattr(table, name) for table in setup.case.source for name in ("position", "center") if hasattr(table, name)
    ]
    if middles and ring is None:
        gaps = np.linalg.norm(positions[:, None] - np.array(middles), axis=2).min(1) / max(grid.spacings)
        nearest = int(np.argmin(gaps))
        yield Estimate(
            name="distance from the middle of the nearest source",
            value=float(gaps[nearest]),
            unit="points",
            where=f"record.points[{nearest}]",
        )
