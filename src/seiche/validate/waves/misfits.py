# SPDX-License-Identifier: BSD-3-Clause
"""Seismogram misfits: total, envelope and phase."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

KRISTEKOVA = "Kristekova, Kristek, Moczo, Day 2006, doi:10.1785/0120060012"
#: Frequency of the Morlet wavelet, and number of frequencies per decade.
_OMEGA, _FREQUENCIES_PER_DECADE = 6.0, 20


def misfit(computed: Floats, exact: Floats) -> Floats:
    """Return the norms over time (axis 0) of the difference divided by those of the exact values."""
    return np.asarray(np.linalg.norm(computed - exact, axis=0) / np.linalg.norm(exact, axis=0))


def misfit_by_frequency(computed: Floats, exact: Floats, dt: float, band: tuple[float, float]) -> Floats:
    """Return the parts of `misfit` below, in and above a band (Hz), (3, ...); the sum of their squares is its square.

    The parts are the norms of the Fourier transform of the difference at these frequencies.
    """
    padded = 2 * len(exact)
    spectrum = np.abs(np.fft.rfft(computed - exact, padded, axis=0)) ** 2
    spectrum[1 : (padded + 1) // 2] *= 2  # the frequencies that have a negative counterpart
    parts = np.split(spectrum, np.searchsorted(np.fft.rfftfreq(padded, dt), band))
    energies = np.stack([part.sum(axis=0) for part in parts]) / padded
    return np.asarray(np.sqrt(energies) / np.linalg.norm(exact, axis=0))


def envelope_and_phase(computed: Floats, exact: Floats, dt: float, band: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the single-valued misfits of envelope and phase over a band (Hz) (KRISTEKOVA).

    With wavelet transforms W, they are norms over time and frequency, relative to that of W_exact: the norm of
    | |W| - |W_exact| | for the envelope and that of |W_exact| arg(W / W_exact) / pi for the phase. Axis 0 is time.
    """
    count = len(exact)
    padded = 2 * count
    omega = 2 * np.pi * np.fft.fftfreq(padded, dt)
    spectra = [np.fft.fft(values, padded, axis=0) for values in (computed, exact)]
    steps = max(2, round(_FREQUENCIES_PER_DECADE * np.log10(band[1] / band[0])))
    envelope, phase, total = (np.zeros(exact.shape[1:]) for _ in range(3))
    for frequency in np.geomspace(*band, steps):
        scale = _OMEGA / (2 * np.pi * frequency)
        wavelet = np.where(omega > 0, np.exp(-0.5 * (scale * omega - _OMEGA) ** 2), 0.0)
        wavelet = wavelet.reshape(-1, *(1,) * (exact.ndim - 1))
        w, w_exact = (np.fft.ifft(spectrum * wavelet, axis=0)[:count] for spectrum in spectra)
        envelope += np.sum((np.abs(w) - np.abs(w_exact)) ** 2, axis=0)
        phase += np.sum((np.abs(w_exact) * np.angle(w * w_exact.conj()) / np.pi) ** 2, axis=0)
        total += np.sum(np.abs(w_exact) ** 2, axis=0)
    return np.sqrt(envelope / total), np.sqrt(phase / total)
