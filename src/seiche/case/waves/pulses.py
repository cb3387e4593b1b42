# SPDX-License-Identifier: BSD-3-Clause
"""Pulses of a wave case: tables that define a function of time and its highest frequency (howto/add-a-source.md)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import e, pi, sqrt
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from seiche.case.quantities import PositiveRate, PositiveTime
from seiche.case.tables import FileName, OneKindOf, SourceTable
from seiche.errors import CaseError, FormatError
from seiche.io.files import cause_of
from seiche.waves.sources import Brune, Gaussian, Ricker, TimeFunction

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
    """Values at `times`, linearly interpolated; zero outside."""

    times: Floats
    values: Floats

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        return np.asarray(np.interp(t, self.times, self.values, left=0.0, right=0.0))


def read_pulse(path: Path) -> Sampled:
    """Return the pulse of a text file with two columns.

    Raises:
        CaseError: the file cannot be read.
        FormatError: the file does not have two columns of finite numbers with ascending times.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CaseError(f"source: cannot read {path}: {cause_of(error)}") from None
    except UnicodeDecodeError:
        raise FormatError(path, "whole file", "is not a text file") from None
    rows: list[tuple[float, float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            time, value = (float(word) for word in words)
        except ValueError:
            raise FormatError(path, f"line {number}", "expected two numbers, a time in s and a value") from None
        if not (np.isfinite(time) and np.isfinite(value)) or (rows and time <= rows[-1][0]):
            raise FormatError(path, f"line {number}", "expected finite numbers and ascending times")
        rows.append((time, value))
    if len(rows) < 2:
        raise FormatError(path, "whole file", "expected at least two lines of a time and a value")
    return Sampled(*np.array(rows).T)


def _highest_frequency(pulse: Sampled) -> float:
    """Return the frequency above which the spectrum of samples is below a hundredth of its maximum."""
    length = float(pulse.times[-1] - pulse.times[0])
    count = int(np.clip(4 * length / np.diff(pulse.times).min(), 256, 2**17))
    values = pulse(np.linspace(pulse.times[0], pulse.times[-1], count))
    spectrum = abs(np.fft.rfft(values, 4 * count))
    present = np.nonzero(spectrum >= 0.01 * spectrum.max())[0] if values.any() else np.zeros(1)
    return float(present[-1] * (count - 1) / (4 * count * length))


class PulseTable(SourceTable):
    """A function of time."""

    @abstractmethod
    def function(self, folder: Path, peak: bool) -> TimeFunction:
        """Return the pulse with a `peak` of one, or as the rate of a moment or volume; files are in `folder`."""

    @abstractmethod
    def highest(self, pulse: TimeFunction) -> float:
        """Return the frequency (Hz) above which the spectrum of the `pulse` is negligible."""


class RickerPulse(PulseTable):
    """(1 - 2 a) exp(-a) with a = (pi f (t - delay))^2; for moments and volumes, the rate is f times this function."""

    kind: Literal["ricker"]
    frequency: PositiveRate = Field(description="peak frequency f")
    delay: PositiveTime | None = Field(default=None, description="time of the peak; 1.5/f by default")

    def function(self, folder: Path, peak: bool) -> TimeFunction:
        """Return the pulse."""
        ricker = Ricker(self.frequency, self.delay if self.delay is not None else 1.5 / self.frequency)
        return ricker if peak else Multiple(ricker, self.frequency)

    def highest(self, pulse: TimeFunction) -> float:
        """Return the highest frequency."""
        return 2.5 * self.frequency


class UnitAreaPulse(PulseTable):
    """A pulse that is defined with area one; for forces it is scaled to a peak of one."""

    @abstractmethod
    def unit_area(self) -> tuple[TimeFunction, float]:
        """Return the pulse of area one, and the area of the pulse scaled to a peak of one."""

    def function(self, folder: Path, peak: bool) -> TimeFunction:
        """Return the pulse."""
        pulse, area = self.unit_area()
        return Multiple(pulse, area) if peak else pulse


class GaussianPulse(UnitAreaPulse):
    """A Gaussian, with a peak of one for forces and an area of one for the rates of moments and volumes."""

    kind: Literal["gaussian"]
    sigma: PositiveTime = Field(description="standard deviation")
    delay: PositiveTime | None = Field(default=None, description="time of the peak; 6 sigma by default")

    def unit_area(self) -> tuple[TimeFunction, float]:
        """Return the pulse, and the area of the pulse scaled to a peak of one."""
        pulse = Gaussian(self.sigma, self.delay if self.delay is not None else 6 * self.sigma)
        return pulse, self.sigma * sqrt(2 * pi)

    def highest(self, pulse: TimeFunction) -> float:
        """Return the highest frequency."""
        return 0.48 / self.sigma


class BrunePulse(UnitAreaPulse):
    """(t/T^2) exp(-t/T), with a peak of one for forces and an area of one for the rates of moments and volumes."""

    kind: Literal["brune"]
    duration: PositiveTime = Field(description="time constant T")

    def unit_area(self) -> tuple[TimeFunction, float]:
        """Return the pulse, and the area of the pulse scaled to a peak of one."""
        return Brune(self.duration), e * self.duration

    def highest(self, pulse: TimeFunction) -> float:
        """Return the highest frequency."""
        return 1.6 / self.duration


class FilePulse(PulseTable):
    """Values over time, linearly interpolated; zero outside."""

    kind: Literal["file"]
    file: FileName = Field(description="text of two columns: time in s, value (1/s for moments and volumes)")

    def function(self, folder: Path, peak: bool) -> TimeFunction:
        """Return the pulse."""
        return read_pulse(folder / self.file)

    def highest(self, pulse: TimeFunction) -> float:
        """Return the highest frequency."""
        assert isinstance(pulse, Sampled)
        return _highest_frequency(pulse)


#: Pulses by `kind`; more may be added (docs/howto/add-a-source.md).
PULSES: dict[str, type[PulseTable]] = {
    "ricker": RickerPulse,
    "gaussian": GaussianPulse,
    "brune": BrunePulse,
    "file": FilePulse,
}
Pulse = Annotated[PulseTable, OneKindOf(PULSES)]
