# SPDX-License-Identifier: BSD-3-Clause
"""How far seismograms are from a reference: in all, in envelope and in phase."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

KRISTEKOVA = "Kristekova, Kristek, Moczo, Day 2006, doi:10.1785/0120060012"
#: The Morlet wavelet's frequency, and the frequencies a decade.
_OMEGA, _A_DECADE = 6.0, 20


def misfit(computed: Floats, exact: Floats) -> Floats:
    """Return the norms over time (axis 0) of the difference over those of the exact values."""
    return np.asarray(np.linalg.norm(computed - exact, axis=0) / np.linalg.norm(exact, axis=0))


def envelope_and_phase(computed: Floats, exact: Floats, dt: float, band: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the misfits of envelope and of phase over a band (Hz), single-valued (KRISTEKOVA).

    W are wavelet transforms: of the envelope | |W| - |W_exact| |, of the phase |W_exact| arg(W / W_exact) / pi, each as
    a norm over time and frequency relative to that of W_exact. Time is axis 0 of both.
    """
    count = len(exact)
    padded = 2 * count
    omega = 2 * np.pi * np.fft.fftfreq(padded, dt)
    of_both = [np.fft.fft(values, padded, axis=0) for values in (computed, exact)]
    steps = max(2, round(_A_DECADE * np.log10(band[1] / band[0])))
    envelope, phase, whole = (np.zeros(exact.shape[1:]) for _ in range(3))
    for frequency in np.geomspace(*band, steps):
        scale = _OMEGA / (2 * np.pi * frequency)
        wavelet = np.where(omega > 0, np.exp(-0.5 * (scale * omega - _OMEGA) ** 2), 0.0)
        wavelet = wavelet.reshape(-1, *(1,) * (exact.ndim - 1))
        ours, theirs = (np.fft.ifft(values * wavelet, axis=0)[:count] for values in of_both)
        envelope += np.sum((np.abs(ours) - np.abs(theirs)) ** 2, axis=0)
        phase += np.sum((np.abs(theirs) * np.angle(ours * theirs.conj()) / np.pi) ** 2, axis=0)
        whole += np.sum(np.abs(theirs) ** 2, axis=0)
    return np.sqrt(envelope / whole), np.sqrt(phase / whole)
