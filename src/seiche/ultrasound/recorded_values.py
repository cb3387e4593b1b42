# SPDX-License-Identifier: BSD-3-Clause
"""Values of records after a run: aggregates of series, final aggregates, velocities at the times of the pressure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def aggregate_of(name: str, series: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a maximum, minimum or root mean square (sensors,) of a series (times, sensors)."""
    if name.endswith("_rms"):
        return np.asarray(np.sqrt(np.mean(np.square(series), axis=0)))
    return np.asarray(series.max(axis=0) if name.endswith("_max") else series.min(axis=0))


def final_value(name: str, raw: npt.NDArray[Any], recorded: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the value of a raw aggregate after `recorded` steps; grid fields have the shape of the grid."""
    values = np.sqrt(raw / max(1, recorded)) if name.endswith("_rms") else raw
    return values.reshape(shape) if name.endswith("_all") else values


def half_step_later(series: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a series (times, sensors) of the velocity at the times of the pressure, half a step later (eq. 20)."""
    count = len(series)
    frequencies = np.fft.rfftfreq(count) * 2 * np.pi
    phase = np.exp(0.5j * frequencies)
    if count % 2 == 0:
        phase[-1] = phase[-1].real
    return np.asarray(np.fft.irfft(np.fft.rfft(series, axis=0) * phase[:, None], count, axis=0), series.dtype)
