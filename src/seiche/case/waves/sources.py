# SPDX-License-Identifier: BSD-3-Clause
"""Sources and receivers of a wave case, and a plane wave as its initial condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.waves.pulses import Multiple
from seiche.case.waves.schema import WaveCase
from seiche.errors import CaseError
from seiche.kernels.registry.dg import Medium
from seiche.waves.plane import PlaneWave
from seiche.waves.sources import PointSource, TimeFunction

Floats = npt.NDArray[np.float64]


def max_frequency(case: WaveCase, functions: Iterable[TimeFunction]) -> float:
    """Return the frequency (Hz) above which the spectra of the pulses are below a few hundredths of their maximum.

    `functions` are those of the sources, then that of the plane wave. The result is 0 without pulses.
    """
    pulses = [table.time for table in case.source] + ([case.plane_wave.time] if case.plane_wave else [])
    return max((pulse.highest(function) for pulse, function in zip(pulses, functions, strict=True)), default=0.0)


@dataclass(frozen=True, eq=False)
class Start:
    """A plane wave as initial condition; `motion` is the velocity of the point `origin` over time."""

    wave: PlaneWave
    origin: Floats
    motion: Multiple

    def state(self, medium: Medium, positions: Floats) -> Floats:
        """Return the unknowns, (elements, fields, nodes), at positions (elements, nodes, dim)."""
        return self.wave.state(medium, positions - self.origin, 0.0, lambda s: self.motion(-s))


def start_of(case: WaveCase, medium_at: Callable[[Floats], Floats], folder: Path) -> Start | None:
    """Return the plane wave of a case, or None; `medium_at` returns the medium at points.

    Raises:
        CaseError, FormatError: the medium does not support the wave, or the file of a pulse is invalid.
    """
    table = case.plane_wave
    if table is None:
        return None
    origin = np.array(table.position)
    density, cp, cs = medium_at(origin[None])[:, 0]
    wave = PlaneWave(table.kind, table.direction, density, cp, cs, table.polarization)
    return Start(wave, origin, Multiple(table.time.function(folder, peak=True), table.velocity))


def sources_of(case: WaveCase, folder: Path) -> list[PointSource]:
    """Return the sources of a case.

    Raises:
        CaseError, FormatError: the file of a pulse is invalid, or a tensor has a wrong size.
    """
    sources = []
    for number, table in enumerate(case.source):
        function = table.time.function(folder, peak=table.force is not None)
        if table.force is not None:
            sources.append(PointSource(table.position, function, force=table.force))
        elif table.volume is not None:
            sources.append(PointSource(table.position, function, volume=table.volume))
        else:
            tensor = np.array(table.tensor or np.eye(case.dim), dtype=object)
            if tensor.shape != (case.dim, case.dim):
                raise CaseError(f"source[{number}].tensor: needs {case.dim} rows of {case.dim} numbers")
            moment = (table.moment or 0.0) * tensor.astype(np.float64)
            sources.append(PointSource(table.position, function, moment=moment.tolist()))
    return sources


def receivers_of(case: WaveCase) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Return names and positions of the receivers; CaseError if two have one name."""
    names, positions = [], []
    for table in case.receiver:
        if table.position is not None:
            names.append(table.name)
            positions.append(table.position)
            continue
        assert table.start is not None and table.end is not None and table.count is not None
        width = len(str(table.count))
        for number, point in enumerate(np.linspace(table.start, table.end, table.count), 1):
            names.append(f"{table.name}{number:0{width}d}")
            positions.append(tuple(float(c) for c in point))
    duplicate = next((name for name, count in Counter(names).items() if count > 1), None)
    if duplicate:
        raise CaseError(f'receiver: two receivers have the name "{duplicate}"')
    return tuple(names), tuple(positions)
