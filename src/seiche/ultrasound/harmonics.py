# SPDX-License-Identifier: BSD-3-Clause
"""Amplitudes of tones from Fourier sums over the same steps (theory/ultrasound, eqs. 43 and 44)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
#: Largest condition number of the equations for the amplitudes: frequencies that differ by half a period in the window
#: have about 5, by a tenth about 100.
_CONDITION = 1e3


def factors_of(frequency: float, steps: npt.NDArray[np.int64], dt: float) -> Floats:
    """Return the factors (n, 2) of the sums for cosine and sine in these steps, such that a tone has its amplitude."""
    phase = 2 * np.pi * frequency * dt * steps
    return np.stack([np.cos(phase), np.sin(phase)], axis=1) * (2 / max(1, len(steps)))


def separation(frequencies: Sequence[float], first: int, last: int, dt: float) -> Floats | None:
    """Return the matrix (2 n, 2 n) from the sums of all tones to their amplitudes; None if the sums are the amplitudes.

    With it, tones do not affect each other, whether or not the steps `first` to `last` are whole periods. A single tone
    is not separated, nor are tones at the Nyquist frequency, which have no sine.

    Raises:
        CaseError: the steps are too few to distinguish the frequencies.
    """
    if len(frequencies) == 1 or max(frequencies) * dt >= 0.5 * (1 - 1e-9):
        return None
    factors = np.hstack([factors_of(frequency, np.arange(first, last), dt) for frequency in frequencies])
    matrix = factors.T @ factors * (last - first) / 2
    if np.abs(matrix - np.eye(len(matrix))).max() < 1e-9:
        return None
    if np.linalg.cond(matrix) > _CONDITION:
        text = ", ".join(f"{frequency:g}" for frequency in frequencies)
        raise CaseError(
            f"record: {last - first} steps ({(last - first) * dt:.3g} s) are too few to distinguish the frequencies"
            f" {text} Hz from each other and from zero"
        )
    return np.asarray(np.linalg.inv(matrix))
