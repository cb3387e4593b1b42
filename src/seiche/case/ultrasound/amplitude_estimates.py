# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of the amplitudes of an ultrasound case: steepening, harmonics, and the range of the equations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.case.ultrasound.sources import BallSource, Signal
from seiche.solver import Estimate
from seiche.ultrasound.advice import initial_frequencies, points_per_wavelength

#: Maximum advised steepening in a linear medium: the second harmonic then has half this relative amplitude.
ADVISED_STEEPENING = 0.2
#: Maximum advised amplitude of the first harmonic that the grid cannot represent, relative to the source.
ADVISED_HARMONIC = 0.01
#: Maximum advised pressure divided by rho c^2: terms of third order are then a hundredth of those of first order.
ADVISED_MACH = 0.1
#: B/A of water, for media without any.
_WATER = 5.0
_BOUNDS = "theory/ultrasound.md#automatic-checks"


@dataclass(frozen=True)
class _Wave:
    """A wave with its largest pressure (Pa), frequency (Hz) and the distance over which it steepens (m)."""

    where: str
    pressure: float
    frequency: float
    distance: float


def amplitude_estimates(setup: UltrasoundSetup) -> Iterator[Estimate]:
    """Yield the acoustic Mach number, and the steepening or, in nonlinear media, the unresolved harmonics."""
    waves = list(_waves(setup))
    if not waves:
        return
    problem = setup.problem
    density, speed = float(np.min(problem.density)), float(np.min(problem.sound_speed))
    stiffness = density * speed**2
    strongest = max(waves, key=lambda wave: wave.pressure)
    yield Estimate(
        name="pressure over density times sound speed squared",
        value=strongest.pressure / stiffness,
        where=strongest.where,
        upper_bound=ADVISED_MACH,
        effect="the wave equations, of second order in the amplitude, do not hold",
        remedy=f"use at most {ADVISED_MACH * stiffness:.2g} Pa",
        source=_BOUNDS,
    )
    ratio = _WATER if problem.BonA is None else float(np.max(problem.BonA))
    steepening = {
        wave: 2 * math.pi * wave.frequency * (1 + ratio / 2) * wave.pressure / (stiffness * speed) * wave.distance
        for wave in waves
    }
    steepest = max(steepening, key=steepening.__getitem__)
    value = steepening[steepest]
    name = "length of the grid over the shock formation distance"
    if problem.BonA is None:
        yield Estimate(
            name=name,
            value=value,
            where=steepest.where,
            upper_bound=ADVISED_STEEPENING,
            effect="the medium is linear, but waves of this amplitude steepen",
            remedy="use a smaller amplitude"
            if problem.elastic is not None
            else "set medium.BonA, with points for several harmonics, or use a smaller amplitude",
            source=_BOUNDS,
        )
        return
    yield Estimate(name=name, value=value, where=steepest.where)
    resolved = max(1, math.floor(points_per_wavelength(problem, steepest.frequency) / 2))
    yield Estimate(
        name=f"relative amplitude of harmonic {resolved + 1}, which the grid cannot represent",
        value=harmonic(resolved + 1, value),
        where=steepest.where,
        upper_bound=ADVISED_HARMONIC,
        effect="waves steepen beyond the resolution of the grid",
        remedy=f"use a spacing below {max(problem.spacing) * resolved / fewest_harmonics(value):.2g} m, "
        "or a smaller amplitude",
        source=_BOUNDS,
    )


def harmonic(number: int, steepening: float) -> float:
    """Return the amplitude of a harmonic of a plane wave, relative to that of the source (theory, section 1).

    Up to the shock formation distance (`steepening` s = 1) it is Fubini's 2 J_n(n s)/(n s). Beyond it, Fay's
    2/(n (1 + s)) of a sawtooth is used where it is larger than Fubini's value at that distance.
    """
    from scipy.special import jv

    argument = number * min(steepening, 1.0)
    fubini = float(2 * jv(number, argument) / argument) if argument > 0 else 0.0
    return fubini if steepening <= 1 else max(fubini, 2 / (number * (1 + steepening)))


def fewest_harmonics(steepening: float) -> int:
    """Return the number of harmonics that a grid must represent for an amplitude of at most 1 % in the next one."""
    number = 1
    while number < 200 and harmonic(number + 1, steepening) > ADVISED_HARMONIC:
        number += 1
    return number


def _waves(setup: UltrasoundSetup) -> Iterator[_Wave]:
    """Yield the wave of each source. An initial pressure radiates half of it, and spreads with the distance."""
    problem = setup.problem
    length = max(n * d for n, d in zip(problem.shape, problem.spacing, strict=True))
    speed = float(np.min(problem.sound_speed))
    for number, table in enumerate(setup.case.source):
        if isinstance(table, Signal):
            yield _Wave(f"source[{number}]", table.amplitude, table.frequency, length)
    initial = initial_frequencies(problem)
    if initial is None or problem.initial_pressure is None:
        return
    balls = {n: table.radius for n, table in enumerate(setup.case.source) if isinstance(table, BallSource)}
    largest = float(np.abs(problem.initial_pressure).max())
    radius = max(balls.values(), default=speed / initial[0] / 4)
    dimensions = 3 if problem.outer_end is not None else len(problem.shape)
    ratio = max(length / radius, 1.0)
    distance = (length, 2 * radius * math.sqrt(ratio), radius * (1 + math.log(ratio)))[dimensions - 1]
    where = f"source[{max(balls, key=balls.__getitem__)}]" if balls else "initial pressure"
    yield _Wave(where, largest / 2, initial[0], distance)
