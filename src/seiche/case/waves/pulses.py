# SPDX-License-Identifier: BSD-3-Clause
"""Sources of a case: pulses as functions of time, with the highest frequency that each contains."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import e, pi, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.waves.schema import BrunePulse, GaussianPulse, Pulse, RickerPulse, WaveCase
from seiche.errors import CaseError, FormatError
from seiche.kernels.registry.dg import Medium
from seiche.waves.plane import PlaneWave
from seiche.waves.sources import Brune, Gaussian, PointSource, Ricker, TimeFunction

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Multiple:
    """`factor` times another function of time."""

    function: TimeFunction
    factor: float

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        return self.factor * self.function(t)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Values at times, linear between them, zero beyond."""

    times: Floats
    values: Floats

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        return np.asarray(np.interp(t, self.times, self.values, left=0.0, right=0.0))


def read_pulse(path: Path) -> Sampled:
    """Return the pulse of a text file of two columns.

    Raises:
        CaseError: it cannot be read.
        FormatError: not two columns of finite numbers with ascending times.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CaseError(f"source: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FormatError(path, "whole file", "is no text") from None
    rows: list[tuple[float, float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            time, value = (float(word) for word in words)
        except ValueError:
            raise FormatError(path, f"line {number}", "needs two numbers, a time in s and a value") from None
        if not (np.isfinite(time) and np.isfinite(value)) or (rows and time <= rows[-1][0]):
            raise FormatError(path, f"line {number}", "needs finite numbers and times that ascend")
        rows.append((time, value))
    if len(rows) < 2:
        raise FormatError(path, "whole file", "needs at least two lines of a time and a value")
    return Sampled(*np.array(rows).T)


def pulse(time: Pulse, folder: Path, peak: bool) -> TimeFunction:
    """Return the function of a pulse, with a `peak` of one or as the rate of a moment or volume."""
    if isinstance(time, RickerPulse):
        made = Ricker(time.frequency, time.delay if time.delay is not None else 1.5 / time.frequency)
        return made if peak else Multiple(made, time.frequency)
    if isinstance(time, GaussianPulse):
        gaussian = Gaussian(time.sigma, time.delay if time.delay is not None else 6 * time.sigma)
        return Multiple(gaussian, time.sigma * sqrt(2 * pi)) if peak else gaussian
    if isinstance(time, BrunePulse):
        brune = Brune(time.duration)
        return Multiple(brune, e * time.duration) if peak else brune
    return read_pulse(folder / time.file)


def highest_frequency(case: WaveCase, functions: Iterable[TimeFunction]) -> float:
    """Return the frequency (Hz) above which the pulses have less than a few hundredths of their largest amplitude.

    2.5 f of a Ricker pulse, 0.48/sigma of a Gaussian, 1.6/T of a Brune, from their spectra those of the `functions`
    that are samples; 0 without any pulse.
    """
    found = [0.0, *(_highest(made) for made in functions if isinstance(made, Sampled))]
    for time in (*(table.time for table in case.source), *([case.plane_wave.time] if case.plane_wave else [])):
        if isinstance(time, RickerPulse):
            found.append(2.5 * time.frequency)
        elif isinstance(time, GaussianPulse):
            found.append(0.48 / time.sigma)
        elif isinstance(time, BrunePulse):
            found.append(1.6 / time.duration)
    return max(found)


def _highest(pulse: Sampled) -> float:
    """Return the frequency above which the spectrum of samples stays below a hundredth of its largest value."""
    length = float(pulse.times[-1] - pulse.times[0])
    count = int(np.clip(4 * length / np.diff(pulse.times).min(), 256, 2**17))
    values = pulse(np.linspace(pulse.times[0], pulse.times[-1], count))
    spectrum = abs(np.fft.rfft(values, 4 * count))
    present = np.nonzero(spectrum >= 0.01 * spectrum.max())[0] if values.any() else np.zeros(1)
    return float(present[-1] * (count - 1) / (4 * count * length))


@dataclass(frozen=True, eq=False)
class Start:
    """A plane wave at the start: what the point `origin` sees over time is `motion`."""

    wave: PlaneWave
    origin: Floats
    motion: Multiple

    def state(self, medium: Medium, positions: Floats) -> Floats:
        """Return the unknowns at positions (elements, nodes, dim): (elements, fields, nodes)."""
        return self.wave.state(medium, positions - self.origin, 0.0, lambda s: self.motion(-s))


def start_of(case: WaveCase, at: Callable[[Floats], Floats], folder: Path) -> Start | None:
    """Return the plane wave of a case in the medium that `at` gives, or None.

    Raises:
        CaseError, FormatError: a wave that does not exist there, or a file of a pulse.
    """
    table = case.plane_wave
    if table is None:
        return None
    origin = np.array(table.position)
    density, cp, cs = at(origin[None])[:, 0]
    wave = PlaneWave(table.kind, table.direction, density, cp, cs, table.polarization)
    return Start(wave, origin, Multiple(pulse(table.time, folder, peak=True), table.velocity))


def sources_of(case: WaveCase, folder: Path) -> list[PointSource]:
    """Return the sources of a case.

    Raises:
        CaseError, FormatError: a file of a pulse, or a tensor that is no matrix of the right size.
    """
    sources = []
    for number, table in enumerate(case.source):
        made = pulse(table.time, folder, peak=table.force is not None)
        if table.force is not None:
            sources.append(PointSource(table.position, made, force=table.force))
        elif table.volume is not None:
            sources.append(PointSource(table.position, made, volume=table.volume))
        else:
            tensor = np.array(table.tensor or np.eye(case.dim), dtype=object)
            if tensor.shape != (case.dim, case.dim):
                raise CaseError(f"source[{number}].tensor: needs {case.dim} rows of {case.dim} numbers")
            moment = (table.moment or 0.0) * tensor.astype(np.float64)
            sources.append(PointSource(table.position, made, moment=moment.tolist()))
    return sources
