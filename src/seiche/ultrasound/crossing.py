# SPDX-License-Identifier: BSD-3-Clause
"""Error of a local Fourier basis, estimated before a run: a wave packet crosses one cut in one dimension.

The whole grid and its two parts advance in parallel. Their final difference is slightly larger than the error of larger
runs with such waves (theory/ultrasound, section 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.advice import lowest_speed
from seiche.ultrasound.local_basis import Part, bell
from seiche.ultrasound.operators import staggered_derivative
from seiche.ultrasound.problem import Problem, Window

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
#: Standard deviation of the packet in wavelengths.
_WIDTH = 1.2
#: Points per wavelength: limits of the bands in each of which one error is used. No bell function resolves them.
_BANDS = (2.0, 2.2, 2.5, 3.0, 4.0)


@lru_cache(maxsize=256)
def crossing_error(points_per_wavelength: float, overlap: int, cfl: float = 0.3) -> float:
    """Return the relative difference (L2) between packets that crossed a cut and the whole grid.

    Args:
        points_per_wavelength: of the wave, at least 2.
        overlap: points of the neighbour on each side.
        cfl: Courant number, c0 dt / spacing.
    """
    deviation = _WIDTH * points_per_wavelength
    core = max(2 * overlap, int(10 * deviation))
    total, starts = 2 * core, (0, core)
    windows = [Window(total, start, core, overlap) for start in starts]
    taper = bell(windows[0])
    indices = [window.indices(clipped=False) for window in windows]

    def on_parts(factor: Complexes, values: Floats) -> Floats:
        divided = [np.fft.ifft(factor * np.fft.fft(taper * values[k])).real[overlap : overlap + core] for k in indices]
        return np.concatenate(divided)

    def on_whole(factor: Complexes, values: Floats) -> Floats:
        return np.fft.ifft(factor * np.fft.fft(values)).real

    def packet(x: Floats) -> Floats:
        y = x - core / 2
        wave: Floats = np.exp(-(y**2) / (2 * deviation**2)) * np.cos(2 * np.pi * y / points_per_wavelength)
        return wave

    def final_pressure(derivative: Callable[[Complexes, Floats], Floats], length: int) -> Floats:
        forward, backward = (_factors(length, sign, cfl) for sign in (1, -1))
        x = np.arange(total, dtype=np.float64)
        pressure, velocity = packet(x), packet(x + 0.5 + 0.5 * cfl)
        for _ in range(int(core / cfl)):
            velocity = velocity - cfl * derivative(forward, pressure)
            pressure = pressure - cfl * derivative(backward, velocity)
        return pressure

    divided, undivided = final_pressure(on_parts, windows[0].extent), final_pressure(on_whole, total)
    return float(np.linalg.norm(divided - undivided) / np.linalg.norm(undivided))


def onset_error(problem: Problem, overlap: int, cfl: float = 0.3) -> float:
    """Return the relative error of a cut (L2) due to source signals with few points per wavelength.

    The onset of even a pure tone has higher frequencies, which a bell function of any width resolves poorly. The
    squared `crossing_error` of each band of `_BANDS` is weighted by its share of the energy of the strongest
    signal, and summed.
    """
    shares = np.zeros(len(_BANDS) - 1)
    for source in problem.sources:
        samples = np.asarray(source.samples, np.float64)
        signal = samples[:, int(np.argmax(np.abs(samples).max(axis=0)))].copy()
        if len(signal) >= problem.steps:  # the signal is cut off by the end of the run: taper it
            taper_length = max(1, len(signal) // 2)
            signal[-taper_length:] *= 0.5 * (1 + np.cos(np.pi * np.arange(1, taper_length + 1) / taper_length))
        energy = np.abs(np.fft.rfft(signal, 4 * len(signal))) ** 2
        frequencies = np.fft.rfftfreq(4 * len(signal), problem.dt)
        resolution = lowest_speed(problem) / (np.maximum(frequencies, 1e-300) * max(problem.spacing))
        resolved_energy = energy[resolution >= _BANDS[0]].sum()
        in_bands = [energy[(resolution >= low) & (resolution < high)].sum() for low, high in pairwise(_BANDS)]
        shares = np.maximum(shares, np.array(in_bands) / resolved_energy if resolved_energy > 0 else 0.0)
    centers = [float(np.sqrt(low * high)) for low, high in pairwise(_BANDS)]
    squares = [
        share * crossing_error(frequency, overlap, cfl=cfl) ** 2
        for frequency, share in zip(centers, shares, strict=True)
    ]
    return float(np.sqrt(sum(squares)))


def cuts_along_diagonal(parts: Iterable[Part]) -> int:
    """Return the number of cuts on a path through the grid from corner to corner."""
    slices = [part.grid_slices for part in parts]
    return sum(len({part_slices[axis].start for part_slices in slices}) - 1 for axis in range(len(slices[0])))


def _factors(length: int, sign: int, cfl: float) -> Complexes:
    """Return i k exp(sign i k/2) sin(a)/a with a = cfl k/2, for a spacing of 1."""
    k = 2 * np.pi * np.fft.fftfreq(length)
    return staggered_derivative(length, 1.0, sign) * np.sinc(cfl * k / 2 / np.pi)
