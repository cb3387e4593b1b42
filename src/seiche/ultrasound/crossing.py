# SPDX-License-Identifier: BSD-3-Clause
"""The error that a local Fourier basis makes, found before a run: a wave packet crosses one cut in one dimension.

The whole grid and its two parts advance side by side; what they differ by in the end is a little more than what larger
runs with such waves show (theory/ultrasound, section 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.local_basis import Part, bell
from seiche.ultrasound.problem import Problem, Window

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
#: Standard deviation of the packet in wavelengths.
_WIDTH = 1.2
#: Points a wavelength between which the error is taken as one: the bell resolves none of these.
_BANDS = (2.0, 2.2, 2.5, 3.0, 4.0)


@lru_cache(maxsize=256)
def crossing_error(points_per_wavelength: float, overlap: int, cfl: float = 0.3) -> float:
    """Return the relative difference (L2) of a packet that crossed a cut from one in the whole grid.

    Args:
        points_per_wavelength: of the wave, at least 2.
        overlap: points of the neighbour on each side.
        cfl: distance that sound travels in a step, over the spacing.
    """
    spread = _WIDTH * points_per_wavelength
    core = max(2 * overlap, int(10 * spread))
    total, places = 2 * core, (0, core)
    windows = [Window(total, start, core, overlap) for start in places]
    taper = bell(windows[0])
    numbers = [one.indices(clipped=False) for one in windows]

    def parts(factor: Complexes, values: Floats) -> Floats:
        found = [np.fft.ifft(factor * np.fft.fft(taper * values[k])).real[overlap : overlap + core] for k in numbers]
        return np.concatenate(found)

    def whole(factor: Complexes, values: Floats) -> Floats:
        return np.fft.ifft(factor * np.fft.fft(values)).real

    def packet(x: Floats) -> Floats:
        y = x - core / 2
        wave: Floats = np.exp(-(y**2) / (2 * spread**2)) * np.cos(2 * np.pi * y / points_per_wavelength)
        return wave

    def after(derivative: Callable[[Complexes, Floats], Floats], length: int) -> Floats:
        forward, back = (_factors(length, sign, cfl) for sign in (1, -1))
        x = np.arange(total, dtype=np.float64)
        pressure, velocity = packet(x), packet(x + 0.5 + 0.5 * cfl)
        for _ in range(int(core / cfl)):
            velocity = velocity - cfl * derivative(forward, pressure)
            pressure = pressure - cfl * derivative(back, velocity)
        return pressure

    found, wanted = after(parts, windows[0].extent), after(whole, total)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def onset_error(problem: Problem, overlap: int, cfl: float = 0.3) -> float:
    """Return the relative error of a cut (L2) by what the sources send at few points a wavelength.

    However pure a tone, its onset has higher frequencies, which a bell of any width resolves badly: their share of the
    energy of the strongest signal, times the squared `crossing_error` of their band, summed over the bands of `_BANDS`.
    """
    shares = np.zeros(len(_BANDS) - 1)
    for source in problem.sources:
        samples = np.asarray(source.samples, np.float64)
        signal = samples[:, int(np.argmax(np.abs(samples).max(axis=0)))].copy()
        if len(signal) >= problem.steps:  # its end is that of the run, and sends nothing
            half = max(1, len(signal) // 2)
            signal[-half:] *= 0.5 * (1 + np.cos(np.pi * np.arange(1, half + 1) / half))
        energy = np.abs(np.fft.rfft(signal, 4 * len(signal))) ** 2
        frequencies = np.fft.rfftfreq(4 * len(signal), problem.time_step)
        resolved = float(np.min(problem.sound_speed)) / (np.maximum(frequencies, 1e-300) * max(problem.spacing))
        held = energy[resolved >= _BANDS[0]].sum()
        found = [energy[(resolved >= low) & (resolved < high)].sum() for low, high in pairwise(_BANDS)]
        shares = np.maximum(shares, np.array(found) / held if held > 0 else 0.0)
    middles = [float(np.sqrt(low * high)) for low, high in pairwise(_BANDS)]
    squares = [share * crossing_error(one, overlap, cfl=cfl) ** 2 for one, share in zip(middles, shares, strict=True)]
    return float(np.sqrt(sum(squares)))


def cuts_on_the_way(parts: Iterable[Part]) -> int:
    """Return how many cuts a wave meets that crosses the grid from corner to corner."""
    places = [part.place for part in parts]
    return sum(len({one[axis].start for one in places}) - 1 for axis in range(len(places[0])))


def _factors(length: int, sign: int, cfl: float) -> Complexes:
    """Return i k exp(sign i k/2) sin(a)/a with a = cfl k/2, for a spacing of 1."""
    k = 2 * np.pi * np.fft.fftfreq(length)
    factors = 1j * k * np.exp(sign * 0.5j * k) * np.sinc(cfl * k / 2 / np.pi)
    if length % 2 == 0:
        factors[length // 2] = factors[length // 2].real
    return np.asarray(factors, np.complex128)
