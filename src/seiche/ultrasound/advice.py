# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of a problem before a run: resolution, phase error in time, absorption, memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seiche.backend import parse_device
from seiche.kernels.registry import Real
from seiche.solver import Estimate
from seiche.ultrasound.elastic_medium import absorbs, is_uniform
from seiche.ultrasound.host_fields import extremes
from seiche.ultrasound.medium_arrays import varies
from seiche.ultrasound.power_law import ADVISED_ATTENUATION, ADVISED_SPEED, power_law_errors
from seiche.ultrasound.problem import Field, Problem
from seiche.ultrasound.records import Request, distinct_directions, needs_transforms
from seiche.ultrasound.source_stages import on_density
from seiche.ultrasound.state import half_row_pitch, has_lines

#: Points per wavelength: the grid represents no waves below the first number; a warning is issued below the second.
MIN_PPW, ADVISED_PPW = 2.0, 4.0
#: Phase error in radians across the grid above which the scheme is unsuitable.
MAX_PHASE_ERROR = 0.1
#: Error in a focus of an axisymmetric grid over the squared phase of a step (theory, section 15); its advised bound.
_FOCUS_COEFFICIENT, ADVISED_FOCUS = 0.1, 0.01
#: Fraction of the largest spectral amplitude from which a frequency is significant.
_SIGNIFICANT_FRACTION = 0.1
#: Remedy for strong absorption in case files and in Python, objects of k-wave-python included.
RELAXATION = 'use medium.alpha_mode = "relaxation"'
#: Bytes of the ring of one series (records.py).
_RING_BYTES = 8 << 20


def frequency_range(problem: Problem) -> tuple[float, float] | None:
    """Return the peak frequency (Hz) of the sources and the highest significant one; None without sources.

    Only the strongest signal of every source is considered.
    """
    peaks, max_frequencies = [], []
    for source in problem.sources:
        samples = source.samples[:, int(np.argmax(np.abs(source.samples).max(axis=0)))]
        length = max(len(samples), 64)
        spectrum = np.abs(np.fft.rfft(np.asarray(samples, np.float64) * np.hanning(len(samples)), length))
        spectrum[0] = 0.0  # the mean is not a wave
        if not spectrum.any():
            continue
        frequencies = np.fft.rfftfreq(length, problem.dt)
        peaks.append(float(frequencies[np.argmax(spectrum)]))
        max_frequencies.append(
            float(frequencies[np.flatnonzero(spectrum >= _SIGNIFICANT_FRACTION * spectrum.max())[-1]])
        )
    return (max(peaks), max(max_frequencies)) if peaks else None


def initial_frequencies(problem: Problem) -> tuple[float, float] | None:
    """Return the peak frequency (Hz) of an initial pressure and the highest significant one; None without any.

    They follow from the wave numbers along the grid lines through its largest value, times the sound speed there. The
    radiated pressure is a derivative of p0, so amplitudes are multiplied by the wave number (theory, section 3).
    """
    pressure = problem.initial_pressure
    if pressure is None or not np.any(pressure):
        return None
    extremes = int(np.argmax(pressure)), int(np.argmin(pressure))
    index = np.unravel_index(max(extremes, key=lambda at: abs(float(pressure.flat[at]))), pressure.shape)
    speed = float(problem.sound_speed[index]) if isinstance(problem.sound_speed, np.ndarray) else problem.sound_speed
    peaks, max_frequencies = [], []
    for axis, spacing in enumerate(problem.spacing):
        line = np.moveaxis(pressure, axis, -1)[(*index[:axis], *index[axis + 1 :])].astype(np.float64)
        if problem.outer_end is not None and axis == len(problem.spacing) - 1:
            line = np.concatenate([line[:0:-1], line])  # a radius continues beyond the axis
        frequencies = speed * np.fft.rfftfreq(len(line), spacing)
        spectrum = frequencies * np.abs(np.fft.rfft(line))
        if spectrum.any():
            peaks.append(float(frequencies[np.argmax(spectrum)]))
            significant = np.flatnonzero(spectrum >= _SIGNIFICANT_FRACTION * spectrum.max())
            max_frequencies.append(float(frequencies[significant[-1]]))
    return (max(peaks), max(max_frequencies)) if peaks else None


def points_per_wavelength(problem: Problem, frequency: float) -> float:
    """Return points per wavelength at the lowest speed, along the axis with the widest spacing."""
    return lowest_speed(problem) / (frequency * max(problem.spacing))


def lowest_speed(problem: Problem) -> float:
    """Return the lowest speed of any wave, m/s: of sound, or of shear waves in solids."""
    lowest = extremes(problem.sound_speed)[0]
    if problem.elastic is None:
        return lowest
    shear = np.asarray(problem.elastic.shear_speed)
    return min(lowest, float(shear[shear > 0].min())) if (shear > 0).any() else lowest


def phase_error(problem: Problem, frequency: float, scheme: str) -> float:
    """Return the phase error in radians after crossing the longest axis at a frequency (theory, section 4)."""
    slow, fast = extremes(problem.sound_speed)
    length = max(n * d for n, d in zip(problem.shape, problem.spacing, strict=True))
    phase_per_step = 2 * np.pi * frequency * problem.dt
    if problem.elastic is not None:
        return float(2 * np.pi * length * frequency / lowest_speed(problem) * phase_per_step**2 / 24)
    if scheme == "local4":
        return float(2 * np.pi * length * frequency / slow * (phase_per_step / 2) ** 4 / 45)
    reference = problem.reference_speed
    errors = [
        2 * np.pi * length * frequency / c * abs((reference / c) ** 2 - 1) * phase_per_step**2 / 24
        for c in (slow, fast)
    ]
    product = 2 * np.pi * length * frequency / slow * (phase_per_step / 2) ** 4 / 180 if scheme == "separable" else 0.0
    return float(max(errors) + product)


def estimates(
    problem: Problem, scheme: str, frequency: float | None = None, *, remedy: str = RELAXATION
) -> list[Estimate]:
    """Return the estimates of a problem; `frequency` (Hz) replaces the spectra of the sources.

    `remedy` is that for strong absorption, which depends on the interface of the caller.
    """
    frequencies = (frequency, frequency) if frequency is not None else frequency_range(problem)
    result = [] if frequencies is None else list(_at(problem, scheme, *frequencies))
    if frequencies is not None:
        result += _power_law(problem, frequencies[0], "", remedy)
    absorbs = problem.absorption is not None or problem.relaxation is not None
    for value in sorted(set(initial_frequencies(problem) or ())) if absorbs else ():
        result += _power_law(problem, value, " of the initial pressure", remedy)
    return result


def _at(problem: Problem, scheme: str, peak: float, max_frequency: float) -> Iterator[Estimate]:
    """Yield the estimates at the peak frequency (Hz) of the sources and at the highest one."""
    resolution, kind = points_per_wavelength(problem, max_frequency), kind_of_slowest(problem)
    yield Estimate(
        name="points per wavelength",
        value=resolution,
        where=f"{max_frequency:.4g} Hz",
        lower_bound=ADVISED_PPW,
        effect=f"the grid cannot represent waves with fewer than {MIN_PPW:g} at the lowest {kind} speed",
        remedy=f"use a spacing below {max(problem.spacing) * resolution / ADVISED_PPW:.2g} m",
        source="theory/ultrasound.md#2-operators",
    )
    if points_per_wavelength(problem, peak) >= MIN_PPW:
        yield _phase(problem, scheme, peak)
    if problem.outer_end is not None:
        yield _focus(problem, peak)


def kind_of_slowest(problem: Problem) -> str:
    """Return the kind of the slowest waves, "sound" or "shear"."""
    return "sound" if lowest_speed(problem) == float(np.min(problem.sound_speed)) else "shear"


def _power_law(problem: Problem, frequency: float, suffix: str, remedy: str) -> Iterator[Estimate]:
    """Yield the errors of absorption at a frequency (Hz), whose origin is `suffix`."""
    effect = "absorption is strong, and the fractional Laplacian deviates from the power law"
    source = "theory/ultrasound.md#3-one-step-with-the-exact-correction"
    if problem.absorption is not None:
        errors = power_law_errors(problem.absorption, problem.sound_speed, frequency)
        values = errors.attenuation, errors.speed
    elif problem.relaxation is not None and (found := problem.relaxation.errors(frequency)) is not None:
        values, (low, high) = found, problem.relaxation.band or (0.0, 0.0)
        effect = f"relaxation processes follow the power law from {low:g} to {high:g} Hz only"
        remedy = "use a medium.relaxation_band around this frequency, or omit medium.alpha_mode"
        source = "theory/ultrasound.md#7-absorption-by-relaxation"
    else:
        return
    for name, value, bound in (
        ("attenuation", values[0], ADVISED_ATTENUATION),
        ("phase speed", values[1], ADVISED_SPEED),
    ):
        yield Estimate(
            name=f"relative error of {name}",
            value=value,
            where=f"{frequency:.4g} Hz{suffix}",
            lower_bound=-bound,
            upper_bound=bound,
            effect=effect,
            remedy=remedy,
            source=source,
        )


def _focus(problem: Problem, frequency: float) -> Estimate:
    """Return the estimate of the error in time in the focus of a bowl of f-number 1, from comparisons with O'Neil."""
    phase_per_step = 2 * np.pi * frequency * problem.dt
    value = _FOCUS_COEFFICIENT * phase_per_step**2
    return Estimate(
        name="relative error of the pressure in a focus",
        value=value,
        where=f"{frequency:.4g} Hz",
        upper_bound=ADVISED_FOCUS,
        effect="the k-space correction of an axisymmetric grid is exact for waves along the axis only",
        remedy=f"use a time step of {problem.dt * np.sqrt(ADVISED_FOCUS / value):.2g} s" if value > 0 else "",
        source="theory/ultrasound.md#15-axisymmetric-media-and-sources",
    )


def _phase(problem: Problem, scheme: str, frequency: float) -> Estimate:
    error, reference = phase_error(problem, frequency, scheme), problem.reference_speed
    cause = f"the sound speed differs from the reference {reference:g} m/s of scheme {scheme}"
    alternative = f"scheme local4 ({phase_error(problem, frequency, 'local4'):.1g} rad) or "
    if problem.elastic is not None:
        cause, alternative = "the elastic scheme is of second order in time", ""
    elif scheme == "local4":
        cause, alternative = "the time step is long", ""
    shorter_step = (
        problem.dt * (MAX_PHASE_ERROR / error) ** (0.25 if scheme == "local4" else 0.5) if error > 0 else problem.dt
    )
    return Estimate(
        name="phase error in time of waves that cross the grid",
        value=error,
        unit="rad",
        where=f"{frequency:.4g} Hz",
        upper_bound=MAX_PHASE_ERROR,
        effect=cause,
        remedy=f"use {alternative}a time step of {shorter_step:.2g} s",
        source=f"theory/ultrasound.md#{'4-axis-wise-schemes' if problem.elastic is None else '20-elastic-media'}",
    )


def memory(
    problem: Problem,
    scheme: str = "exact",
    precision: str = "float32",
    request: Request | None = None,
    device: str = "cpu",
) -> int:
    """Return the bytes of a problem on a device; library transforms on a GPU share one work area."""
    real: Real = "float32" if precision == "float32" else "float64"
    size, points, dimensions = np.dtype(precision).itemsize, problem.points, problem.dimensions
    on_gpu = parse_device(device).is_gpu
    half_row = half_row_pitch(problem, real) if on_gpu else problem.transform_shape[-1] // 2 + 1
    half = points // problem.shape[-1] * half_row
    spectra = half * 2 * size * (max(2, dimensions) if problem.outer_end is None else 3)
    if problem.elastic is not None:
        own = _elastic_fields(problem) * size + _sources(problem, size, half, spectra)
        own += spectra if request is not None and any(map(needs_transforms, request.quantities)) else 0
        return own + (_records(problem, request, size) if request is not None else 0)
    total = points * size * (1 + 2 * dimensions)
    fractional = problem.has_fractional_terms
    if scheme == "exact":
        total += spectra + half * size
    else:
        total += points * size * (1 + (problem.absorption is not None) + (problem.BonA is not None))
        total += spectra if fractional or (request is not None and "g" in request.quantities) else 0
    if on_gpu and (fractional if scheme != "exact" else not has_lines(problem, real)):
        total += half * 2 * size
    total += points * size * _arrays(problem, scheme)
    if problem.relaxation is not None:
        total += points * (problem.relaxation.strengths.shape[1] * size + problem.relaxation.labels.itemsize)
    total += _sources(problem, size, half, spectra if scheme != "exact" and not fractional else 0)
    return total + (_records(problem, request, size) if request is not None else 0)


def _elastic_fields(problem: Problem) -> int:
    """Return the numbers of an elastic medium and its fields: stresses, velocities, pressure, and layers."""
    dimensions, pairs, absorbing = problem.dimensions, len(problem.stresses) - problem.dimensions, absorbs(problem)
    stored = 1 + dimensions + len(problem.stresses) + (dimensions if absorbing else 0)
    if not is_uniform(problem):
        stored += dimensions + (2 + pairs) * (2 if absorbing else 1)
    derivatives = dimensions * (3 if absorbing else 2)
    layers = sum(2 * layer.size / n for layer, n in zip(problem.pml, problem.shape, strict=True))
    return round(problem.points * (stored + derivatives * layers))


def shared_fields(problem: Problem, scheme: str) -> int:
    """Return the number of additional fields on each of several ranks with transforms of the whole grid.

    These are messages, densities between slabs, and columns with the data of the first axis (two_layouts.py).
    """
    density_varies = varies(problem.density)
    if scheme == "exact":
        return 1 + (problem.dimensions if density_varies and problem.staggered_density is None else 0)
    absorption, local = problem.absorption, scheme == "local4"
    columns = 3 + local + (problem.BonA is not None) + (absorption is not None)
    staggered = any(varies(field) for field in problem.staggered_density or ())
    medium = 2 if local and (density_varies or varies(problem.sound_speed)) else int(density_varies)
    return 1 + problem.has_fractional_terms + columns + medium + staggered


def _arrays(problem: Problem, scheme: str) -> int:
    """Return the number of coefficient arrays: if one property of a pass varies, the pass reads all as arrays."""
    absorption = problem.absorption
    values: dict[str, Field | None] = {"c0": problem.sound_speed, "rho0": problem.density, "BonA": problem.BonA}
    if absorption is not None:
        values["tau"] = absorption.alpha_coeff if varies(absorption.alpha_coeff) else problem.sound_speed
    if absorption is None or absorption.stokes:
        passes = [{"rho0", "c0", "tau", "BonA"}]
    else:
        passes = [{"rho0", "BonA"}, {"c0", "tau"}]
    passes += [{"c0", "rho0"}] if scheme == "local4" else []
    stored = {
        name for used in passes if any(varies(values.get(name)) for name in used) for name in used if name in values
    }
    densities = problem.staggered_density or ()
    staggered = len(densities) if any(varies(field) for field in densities) else 0
    return sum(values[name] is not None for name in stored) + staggered


def _sources(problem: Problem, size: int, half: int, spectra: int) -> int:
    total, masks, corrected = problem.stored_samples * size, set(), False
    for source in problem.sources:
        total += source.points.size * 4
        if source.mode == "additive" and problem.elastic is None:
            corrected = True
            if source.samples.shape[1] == 1 and source.delays is None:
                masks.add((id(source.points), id(source.weights), on_density(source)))
    return total + len(masks) * problem.points * size + (half * size + spectra if corrected else 0)


def _records(problem: Problem, request: Request, size: int) -> int:
    tones = len(request.harmonics) + (len(problem.stresses) if request.stress_tone else 0)
    total = 2 * tones * problem.points * size
    sensors = request.points if request.nodes is None else request.nodes
    count = 0 if sensors is None else len(sensors)
    for name in request.quantities:
        components = {"p": 1, "s": len(problem.stresses)}.get(name[0], problem.dimensions)
        if name.endswith("_all"):
            total += components * problem.points * size
        elif name.endswith(("_max", "_min", "_rms")):
            total += components * count * size
        else:
            rows = max(1, min(_RING_BYTES // max(1, count * size), problem.steps - request.first))
            total += components * rows * count * size
    if request.directions is not None and "p" in request.quantities:
        half_rows = problem.points // problem.shape[-1] * (problem.shape[-1] // 2 + 1)
        total += len(distinct_directions(request.directions)[0]) * half_rows * size
    return total
