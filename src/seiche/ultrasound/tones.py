# SPDX-License-Identifier: BSD-3-Clause
"""Fourier sums of a field over steps of a run: the amplitudes of tones (theory/ultrasound, eq. 43)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import kspace as registry
from seiche.ultrasound.harmonics import factors_of, separation
from seiche.ultrasound.state import Bound, DeviceState


@dataclass(frozen=True)
class Harmonics:
    """Request for amplitude and phase at `frequency` (Hz), all points, over steps `first` to `last`."""

    frequency: float
    first: int
    last: int


class ToneSums:
    """Sums of one field for tones, on the device.

    Attributes:
        kernels: add the present values of the field to all sums.
    """

    def __init__(self, state: DeviceState, tones: Sequence[Harmonics], field: Array) -> None:
        """Allocate the sums of a field (points,); CaseError for an impossible frequency or window."""
        self._state, self._tones = state, tones
        self.kernels: list[Bound] = []
        self._sums: list[tuple[Array, Array]] = []
        for tone in tones:
            self._check(tone)
        for tone in tones:
            self._separation(tone)
            self._add(tone, field)

    def _check(self, tone: Harmonics) -> None:
        problem, name = self._state.problem, f"harmonics at {tone.frequency:g} Hz"
        if not 0 <= tone.first < tone.last <= problem.steps or not tone.frequency > 0:
            raise CaseError(
                f"record: {name} over steps {tone.first} to {tone.last}; expected a positive frequency and steps of "
                "the run"
            )
        nyquist_frequency = 0.5 / problem.dt
        if tone.frequency > nyquist_frequency:
            raise CaseError(f"record: {name} exceed the Nyquist frequency, {nyquist_frequency:g} Hz")

    def _add(self, tone: Harmonics, field: Array) -> None:
        state = self._state
        factors = np.zeros((state.problem.steps, 2))
        window = np.arange(tone.first, tone.last)
        factors[window] = factors_of(tone.frequency, window, state.problem.dt)
        cosine, sine = (state.backend.zeros(state.problem.points, state.real) for _ in range(2))
        self._sums.append((cosine, sine))
        spec = registry.harmonic("everywhere", state.precision)
        members = {"cosine": cosine, "sine": sine, "factors": state.upload(factors), "clock": state.clock, "first": 0}
        self.kernels.append(state.bind(spec, items=state.problem.points, sensor={"field": field}, **members))

    @property
    def arrays(self) -> dict[str, Array]:
        """Return the sums (points,) by name: "cosine0", "sine0" and so on."""
        return {f"{name}{k}": sums[n] for k, sums in enumerate(self._sums) for n, name in enumerate(("cosine", "sine"))}

    def clear_later(self, steps: int) -> None:
        """Clear the sums of tones that begin after `steps` steps."""
        for tone, sums in zip(self._tones, self._sums, strict=True):
            if steps <= tone.first:
                for array in sums:
                    array[...] = 0

    def amplitudes(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the amplitudes of cosine and sine of a tone, in the shape of the grid."""
        state = self._state
        matrix, same_window = self._separation(self._tones[number])
        if matrix is None:
            cosine, sine = (state.host(array) for array in self._sums[number])
            return cosine, sine
        row = 2 * same_window.index(number)
        cosine, sine = (np.zeros(state.problem.shape, state.real) for _ in range(2))
        for column, array in enumerate(array for k in same_window for array in self._sums[k]):
            sums = state.host(array)
            cosine += state.real.type(matrix[row, column]) * sums
            sine += state.real.type(matrix[row + 1, column]) * sums
        return cosine, sine

    def _separation(self, tone: Harmonics) -> tuple[npt.NDArray[np.float64] | None, list[int]]:
        """Return the matrix that separates the tones with the window of a tone, and their indices."""
        window, tones = (tone.first, tone.last), self._tones
        same_window = [k for k, other in enumerate(tones) if (other.first, other.last) == window]
        return separation([tones[k].frequency for k in same_window], *window, self._state.problem.dt), same_window
