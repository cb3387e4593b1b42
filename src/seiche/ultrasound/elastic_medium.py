# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients of an elastic medium, and its longest stable time step (theory/ultrasound, section 20)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.medium_arrays import neper_coefficient, varies
from seiche.ultrasound.problem import Absorption, Field, Problem

Values: TypeAlias = npt.NDArray[np.float64]
#: Points of the line on which waves across a boundary are examined.
_POINTS = 64


def absorbs(problem: Problem) -> bool:
    """Return whether compressional or shear waves of an elastic medium are absorbed."""
    return any(np.any(values) for values in (_attenuation(problem, shear=False), _attenuation(problem, shear=True)))


def is_uniform(problem: Problem) -> bool:
    """Return whether every property of an elastic medium is a single number."""
    assert problem.elastic is not None
    loss, elastic = problem.absorption, problem.elastic
    given = [problem.sound_speed, problem.density, elastic.shear_speed, elastic.shear_alpha_coeff]
    given += [None if loss is None else loss.alpha_coeff, *(problem.staggered_density or ())]
    return not any(value is not None and varies(value) for value in given)


def coefficients(problem: Problem, *, absorbing: bool | None = None) -> Iterator[tuple[str, Values]]:
    """Yield coefficients by name: numbers of a uniform medium, else arrays in the shape of the grid.

    `absorbing`: with viscosities, which may be zero in a part of the grid; by default if the medium absorbs.

    "volume x" is 1/rho0 at the points of u_x, "lambda" and "mu" are the moduli (eq. 62), "mu xy" the shear modulus at
    the points of the shear stress. With absorption "chi", "eta" and "eta xy" are the viscosities (eq. 66).
    """
    assert problem.elastic is not None
    density = _on_grid(problem, problem.density)
    for axis, name in enumerate(problem.axes):
        if problem.staggered_density is not None:
            yield f"volume {name}", 1 / _on_grid(problem, problem.staggered_density[axis])
        else:
            yield f"volume {name}", 2 / (density + _following(density, axis))
    shear, speed = _on_grid(problem, problem.elastic.shear_speed), _on_grid(problem, problem.sound_speed)
    yield from _moduli(problem, "lambda", "mu", density * speed**2, density * shear**2)
    if absorbs(problem) if absorbing is None else absorbing:
        compression = 2 * density * speed**3 * _on_grid(problem, _attenuation(problem, shear=False))
        viscosity = 2 * density * shear**3 * _on_grid(problem, _attenuation(problem, shear=True))
        yield from _moduli(problem, "chi", "eta", compression, viscosity)


def max_elastic_step(problem: Problem) -> float:
    """Return the longest stable time step of an elastic medium, s (eq. 69).

    Where a stiff medium meets a light one, as bone meets air, waves of both have a common limit that is shorter.
    """
    assert problem.elastic is not None
    square = contrast_factor(problem) ** 2 * sum((np.pi / d) ** 2 for d in problem.spacing)
    steps = []
    for speed, shear in ((problem.sound_speed, False), (problem.elastic.shear_speed, True)):
        values = np.asarray(speed, np.float64)
        stiffness, viscosity = square * values**2, 4 * square * values**3 * _attenuation(problem, shear=shear)
        rate = np.max(viscosity + np.sqrt(viscosity**2 + 16 * stiffness))
        steps.append(8 / float(rate) if rate > 0 else np.inf)
    return min(steps)


def contrast_factor(problem: Problem) -> float:
    """Return the factor by which density contrasts increase the highest frequency of the scheme: 1 for water and bone.

    It is that of plane waves across a boundary between the stiffest and the lightest part of the medium, the largest
    singular value of the derivative times the square roots of their moduli and specific volumes.
    """
    speed, density = np.broadcast_arrays(problem.sound_speed, problem.density)
    modulus = np.ravel(density * speed**2)
    stiff, light = int(np.argmax(modulus)), int(np.argmin(density))
    if modulus[stiff] <= np.ravel(density)[light] * np.max(speed) ** 2:
        return 1.0
    side = np.repeat([stiff, light], _POINTS // 2)
    densities = np.ravel(density)[side]
    k = 2 * np.pi * np.fft.fftfreq(_POINTS)
    factor = 1j * k * np.exp(0.5j * k)
    derivative = np.fft.ifft(factor[:, None] * np.fft.fft(np.eye(_POINTS), axis=0), axis=0).real
    operator = derivative * np.sqrt(modulus[side]) / np.sqrt(0.5 * (densities + _following(densities, 0)))[:, None]
    highest = float(np.linalg.svd(operator, compute_uv=False)[0])
    return max(1.0, highest / (np.pi * float(np.max(speed))))


def _attenuation(problem: Problem, *, shear: bool) -> Values:
    """Return the attenuation of compressional or shear waves over the squared angular frequency, Np s^2/m."""
    assert problem.elastic is not None
    loss: Field | None = None if problem.absorption is None else problem.absorption.alpha_coeff
    loss = problem.elastic.shear_alpha_coeff if shear else loss
    return np.asarray(0.0 if loss is None else neper_coefficient(Absorption(loss, 2.0, stokes=True)), np.float64)


def _moduli(problem: Problem, bulk: str, shear: str, total: Values, modulus: Values) -> Iterator[tuple[str, Values]]:
    """Yield `total` - 2 `modulus`, the modulus, and its harmonic means at the points of the shear stresses."""
    yield bulk, total - 2 * modulus
    yield shear, modulus
    for i, j in combinations(range(problem.dimensions), 2):
        across = _following(modulus, i)
        four = (modulus, across, _following(modulus, j), _following(across, j))
        with np.errstate(divide="ignore"):
            mean = 4 / np.sum([1 / values for values in four], axis=0)
        yield f"{shear} {problem.axes[i]}{problem.axes[j]}", np.asarray(mean, np.float64)


def _on_grid(problem: Problem, value: Any) -> Values:
    """Return a number, or an array over the grid if the medium varies."""
    array = np.asarray(value, np.float64)
    return array if is_uniform(problem) else np.broadcast_to(array, problem.shape)


def _following(values: Values, axis: int) -> Values:
    """Return the values at the next points along an axis; the last point keeps its own."""
    if values.ndim == 0:
        return values
    moved = np.moveaxis(values, axis, 0)
    return np.moveaxis(np.concatenate([moved[1:], moved[-1:]]), 0, axis)
