# SPDX-License-Identifier: BSD-3-Clause
"""A slice of a skull: a ring of bone that shears, in water, against the series of waves around a cylinder."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.validate.check import Check, Floats, Setting, relative_error
from seiche.validate.ultrasound.elastic import BONE, WATER

Complex = npt.NDArray[np.complex128]
#: Inner and outer radius of the ring, and distance of the source from its middle, in tenths of the wavelength.
RADII, SOURCE_AT = (12.0, 18.0), 28.0
#: Number of decay times in a run: waves that have gone around the ring hardly contribute.
_DECAY = 16.0
_CFL, _LAYER = 0.35, 13
_REFERENCE = "Faran 1951, J. Acoust. Soc. Am. 23, doi 10.1121/1.1906780"


def exact_ring(omega: complex, moduli: tuple[complex, complex], r: Floats, angle: Floats, scale: float) -> Complex:
    """Return the pressure due to a line source of the field H_0^(2)(k d), at a complex angular frequency.

    Compressional and shear waves in bone, and the waves in water outside and inside, have six amplitudes for each order
    of the angle. Radial displacement and stress are continuous at both radii, and the shear stress is zero there.

    Args:
        omega: angular frequency, 1/s; its negative imaginary part is the rate of decay of exp(i omega t).
        moduli: lambda and mu of bone, Pa.
        r: distances from the middle, in water and less than that of the source, m.
        angle: angles from the direction of the source.
        scale: tenth of the wavelength, m.
    """
    from scipy.special import hankel2, jv, jvp

    (speed, _, light), heavy = WATER, BONE[2]
    inner, outer = (radius * scale for radius in RADII)
    k, load = omega / speed, 1 / (light * omega**2)
    result = np.zeros(len(r), np.complex128)
    inside = r < inner
    for n in range(int(abs(k) * outer) + 25):
        incident = (1 if n == 0 else 2) * hankel2(n, k * SOURCE_AT * scale)
        matrix, right = np.zeros((6, 6), np.complex128), np.zeros(6, np.complex128)
        for row, radius in ((0, outer), (3, inner)):
            matrix[row : row + 3, :4] = _solid(n, omega, moduli, radius, heavy)
        matrix[:2, 4] = -load * k * _derivative(n, k * outer), hankel2(n, k * outer)
        matrix[3:5, 5] = -load * k * jvp(n, k * inner), jv(n, k * inner)
        right[:2] = incident * load * k * jvp(n, k * outer), -incident * jv(n, k * outer)
        rows = np.abs(matrix).max(axis=1)
        matrix, right = matrix / rows[:, None], right / rows
        columns = np.abs(matrix).max(axis=0)
        amplitudes = np.linalg.solve(matrix / columns, right) / columns
        wave = np.where(inside, amplitudes[5] * jv(n, k * r), 0)
        wave = wave + np.where(inside, 0, incident * jv(n, k * r) + amplitudes[4] * hankel2(n, k * r))
        result += wave * np.cos(n * angle)
    return result


def _derivative(n: int, argument: complex) -> complex:
    from scipy.special import h2vp

    return complex(h2vp(n, argument))


def _solid(n: int, omega: complex, moduli: tuple[complex, complex], radius: float, density: float) -> Complex:
    """Return radial displacement, radial stress and shear stress over mu, at a radius, of four waves in bone."""
    from scipy.special import jv, jvp, yv, yvp

    bulk, mu = moduli
    waves = []
    for shears, stiffness in ((False, bulk + 2 * mu), (True, mu)):
        k = omega / np.sqrt(stiffness / density)
        for function, derivative in ((jv, jvp), (yv, yvp)):
            value = function(n, k * radius)
            first, second = k * derivative(n, k * radius), k**2 * derivative(n, k * radius, 2)
            slope = n * (first - value / radius) / radius
            if shears:
                shear = -second + first / radius - (n / radius) ** 2 * value
                waves.append([n * value / radius, 2 * mu * slope, shear])
            else:
                waves.append([first, -bulk * k**2 * value + 2 * mu * second, -2 * slope])
    return np.array(waves).T


def ring_errors(setting: Setting, refinement: int) -> tuple[float, float]:
    """Return the errors of the pressure inside and outside of the ring, at 10 `refinement` points per wavelength.

    The spectrum of a pulse is taken at a complex frequency. The strength of the source is fitted to the pressure
    outside, by one complex number.
    """
    scale, shape = float(refinement), (72 * refinement + 2 * _LAYER,) * 2
    frequency, dt = WATER[0] / (10 * scale), _CFL / BONE[0]
    steps = round(120 * scale / WATER[0] / dt)
    time = np.arange(steps) * dt
    pulse = np.exp(-((time * frequency - 2.5) ** 2) / 1.28) * np.cos(2 * np.pi * frequency * time)
    x = np.arange(shape[0]) - shape[0] // 2
    radius = np.hypot(x[:, None], x)
    bone = (radius > RADII[0] * scale) & (radius < RADII[1] * scale)
    sensor = (radius < 0.8 * RADII[0] * scale) | (np.abs(radius - (RADII[1] + 5.5) * scale) < 2.5 * scale)
    source = np.zeros(shape, bool)
    source[shape[0] // 2 - round(SOURCE_AT * scale), shape[0] // 2] = True
    speed, shear, density = (np.where(bone, one, other) for one, other in zip(BONE, WATER, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = simulate(
            Grid(shape, 1.0, dt=dt, steps=steps),
            Medium(speed, density, shear_speed=shear),
            Source(p_mask=source, p=pulse),
            Sensor(mask=sensor),
            pml_size=_LAYER,
            device=setting.device,
            threads=setting.threads,
        )["p"]
    omega = 2 * np.pi * frequency - 1j * _DECAY / (steps * dt)
    computed = series.astype(np.float64) @ np.exp(-1j * omega * time)
    moduli = BONE[2] * (BONE[0] ** 2 - 2 * BONE[1] ** 2), BONE[2] * BONE[1] ** 2
    across, along = (np.broadcast_to(line, shape)[sensor] for line in (x, x[:, None]))
    r, angle = radius[sensor], np.arctan2(across, -along)
    exact = exact_ring(omega, moduli, r, angle, scale)
    outside = r > RADII[1] * scale
    computed = computed * np.vdot(computed[outside], exact[outside]) / np.vdot(computed[outside], computed[outside])
    return relative_error(computed[~outside], exact[~outside]), relative_error(computed[outside], exact[outside])


def elastic_ring(setting: Setting) -> list[Check]:
    """Check the pressure in and around a ring of bone of 0.6 wavelengths, whose boundary is a staircase.

    Errors are about of first order: waves that bend the ring depend on its thickness, which is known to a spacing.
    """
    checks = []
    for refinement, bounds in ((1, (0.43, 0.055)),) if setting.quick else ((1, (0.43, 0.055)), (2, (0.19, 0.027))):
        for part, error, bound in zip(("inside", "outside"), ring_errors(setting, refinement), bounds, strict=True):
            title = f"ring of bone in water, {10 * refinement} points per wavelength: error of the pressure {part}"
            checks.append(Check(title, error, bound, reference=_REFERENCE))
    return checks
