# SPDX-License-Identifier: BSD-3-Clause
"""Elastic media: reflection of oblique waves by bone, and the speeds of waves along its surface."""

from __future__ import annotations

import warnings

import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.validate.check import Check, Floats, Setting
from seiche.validate.ultrasound.pulses import computed_plot

#: Speeds of compressional and shear waves (m/s) and density (kg/m3).
Properties = tuple[float, float, float]
WATER: Properties = (1500.0, 0.0, 1000.0)
BONE: Properties = (2800.0, 1500.0, 1850.0)
#: A slow fluid of a quarter of the density of bone, whose impedance is 1/1000 of that of bone, in place of a vacuum.
VACUUM: Properties = (10.0, 0.0, 500.0)
_CFL = 0.15
#: Points along the interface per period of the wave at 10 points per wavelength, with 0 for normal incidence.
PERIODS = (0, 29, 16, 12)
_REFLECTION = "Brekhovskikh 1980, Waves in Layered Media"
_SURFACE = "Rayleigh 1885; Scholte 1947"


def half_spaces(shape: tuple[int, ...], first: int, above: Properties) -> Medium:
    """Return bone from the point `first` of the first axis on, and another medium before it."""
    inside = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) >= first
    speed, shear, density = (
        np.broadcast_to(np.where(inside, bone, other), shape) for bone, other in zip(BONE, above, strict=True)
    )
    return Medium(speed, density, shear_speed=shear)


def exact_reflection(frequency: float, tangential_wave_number: float) -> float:
    """Return the reflected over the incident amplitude of the pressure of a plane wave in water on bone."""
    (fluid, _, light), (speed, shear, density) = WATER, BONE
    slowness = tangential_wave_number / (2 * np.pi * frequency)
    impedances = [
        rho * c / np.sqrt(1 - (slowness * c) ** 2 + 0j)
        for rho, c in ((light, fluid), (density, speed), (density, shear))
    ]
    double = 1 - 2 * (slowness * shear) ** 2  # cosine of twice the angle of the shear wave
    total = impedances[1] * double**2 + impedances[2] * (1 - double**2)
    return float(abs((total - impedances[0]) / (total + impedances[0])))


def reflection(
    setting: Setting, width: tuple[int, ...], period: int, *, refinement: int = 1, cfl: float = _CFL
) -> tuple[float, float]:
    """Return the reflected over the incident amplitude and its exact value, at 10 `refinement` points per wavelength.

    The grid is `width` points wide, and the phase of the wave repeats after `period` points along y; 0 is normal
    incidence. A line in the water emits a packet of this wave number and frequency. Fourier transforms of the pressure
    between source and bone, before and after the time half-way between the two passages, are compared.
    """
    source_at, sensor_at, first = 22, 22 + 60 * refinement, 22 + 120 * refinement
    shape = (first + 38 + 20 * refinement, *width)
    wavelength, speed = 10.0 * refinement, WATER[0]
    frequency, dt = speed / wavelength, cfl / BONE[0]
    wave_number = 2 * np.pi / period if period else 0.0
    normal_speed = speed * float(np.sqrt(1 - (wave_number * speed / frequency / (2 * np.pi)) ** 2))
    duration = 2 / frequency  # standard deviation of the packet
    steps = round(320 * refinement / normal_speed / dt)
    time = np.arange(steps) * dt
    envelope = np.exp(-(((time - 3.5 * duration) / duration) ** 2) / 2)
    y = np.broadcast_to(np.arange(width[0]).reshape(-1, *[1] * (len(width) - 1)), width).ravel()
    signal = envelope * np.cos(2 * np.pi * frequency * time - wave_number * y[:, None])
    series = _series(setting, shape, (source_at, sensor_at), (first, WATER), signal, cfl=cfl, layer=20 * refinement)
    wave = np.exp(1j * wave_number * y) @ series / y.size
    middle = 3.5 * duration + (first - source_at) / normal_speed
    spectrum = wave * np.exp(-2j * np.pi * frequency * time)
    ratio = abs(spectrum[time >= middle].sum()) / abs(spectrum[time < middle].sum())
    return float(ratio), exact_reflection(frequency, wave_number)


def _series(
    setting: Setting,
    shape: tuple[int, ...],
    places: tuple[int, int],
    half: tuple[int, Properties],
    p: Floats,
    *,
    cfl: float = _CFL,
    layer: int = 20,
) -> Floats:
    """Return the pressure on a plane across the first axis due to a source on another one, (points, steps).

    The grid has unit spacing and layers at the ends of the first axis, and is periodic along the others.
    """
    source, sensor = np.zeros(shape, bool), np.zeros(shape, bool)
    source[places[0]] = sensor[places[1]] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(
            simulate(
                Grid(shape, 1.0, dt=cfl / BONE[0], steps=p.shape[1]),
                half_spaces(shape, *half),
                Source(p_mask=source, p=p),
                Sensor(mask=sensor),
                pml_size=(layer, *[0] * (len(shape) - 1)),
                precision="float64",
                device=setting.device,
                threads=setting.threads or 1,
            )["p"]
        )


def elastic_reflection(setting: Setting) -> list[Check]:
    """Check the reflection of plane waves in water by bone, from normal incidence to 56 degrees.

    The error due to the boundary is of about first order in the spacing, and largest at 56 degrees.
    """
    checks = []
    for refinement, bound in ((1, 0.02),) if setting.quick else ((1, 0.02), (2, 0.02)):
        periods = [period * refinement for period in PERIODS]
        pairs = [reflection(setting, (max(period, 2),), period, refinement=refinement) for period in periods]
        computed, exact = np.array(pairs).T
        angles = np.degrees(np.arcsin([10 * refinement / period if period else 0.0 for period in periods]))
        plot = computed_plot(angles, exact, computed, every=1, labels=("angle (degrees)", "reflected pressure"))
        title = f"water on bone that shears, 0 to 56 degrees, {10 * refinement} points: largest error of the reflection"
        checks.append(Check(title, float(np.abs(computed - exact).max()), bound, reference=_REFLECTION, plot=plot))
    return checks


def surface_speed(above: Properties) -> float:
    """Return the speed (m/s) of the wave on bone along its boundary with a fluid, or along its free surface."""
    from scipy.optimize import brentq

    fluid, density = (0.0, 0.0) if above is VACUUM else (above[0], above[2])
    speed, shear, heavy = BONE

    def condition(c: float) -> float:
        p, s = (np.sqrt(1 - (c / v) ** 2) for v in (speed, shear))
        load = density / heavy * (c / shear) ** 4 * p / np.sqrt(1 - (c / fluid) ** 2) if density else 0.0
        return float((2 - (c / shear) ** 2) ** 2 - 4 * p * s + load)

    return float(brentq(condition, 500.0, min(shear, fluid or shear) - 1.0))


def computed_surface_speed(setting: Setting, above: Properties, per_wavelength: int) -> float:
    """Return the computed speed (m/s) of the wave along a boundary of bone, which the grid contains once.

    A short pulse at the boundary excites it. The frequency is the largest peak of the spectrum after other waves have
    left, from 0.7 times that expected, because a static stress remains at the source.
    """
    width = per_wavelength
    first, shape = 30 + 2 * width, (70 + 5 * width, width)
    wave_number, dt = 2 * np.pi / width, _CFL / BONE[0]
    expected = surface_speed(above) * wave_number / (2 * np.pi)
    steps = round(30 / (expected * dt))
    time = (np.arange(steps) * dt * expected - 1.0) * 3.0
    y = np.arange(width)
    pulse = np.where(time < 3.0, time * np.exp(-(time**2)), 0.0) * np.cos(wave_number * y)[:, None]
    series = _series(setting, shape, (first + 2, first + 2), (first, above), pulse)
    wave = (np.cos(wave_number * y) @ series)[steps // 3 :]
    count = 32 * len(wave)
    frequencies = np.fft.rfftfreq(count, dt)
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(len(wave)), count)) * (frequencies > 0.7 * expected)
    return float(2 * np.pi * frequencies[np.argmax(spectrum)] / wave_number)


def elastic_surface_waves(setting: Setting) -> list[Check]:
    """Check the speeds of the Scholte wave on bone in water and of the Rayleigh wave on bone in a vacuum.

    The error is of first order in the spacing. The vacuum is a slow fluid of 1/1000 of the impedance.
    """
    checks = []
    for name, above in (("Scholte", WATER), ("Rayleigh", VACUUM)):
        for count in (16,) if setting.quick else (16, 32):
            error = computed_surface_speed(setting, above, count) / surface_speed(above) - 1
            title = f"{name} wave on bone, {count} points per wavelength: error of the speed"
            checks.append(Check(title, abs(error), 0.01 if count == 32 else 0.015, reference=_SURFACE))
    return checks
