# SPDX-License-Identifier: BSD-3-Clause
"""Teams that transform lines of spectra along an axis that is not the last, the fastest of many that were timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineTeam:
    """How a block of a GPU transforms lines.

    `radices` are the factors of the length in order, `lanes` lines side by side, `threads` of a block; `blocks` on a
    multiprocessor, which bound the registers (0: the compiler's choice).
    """

    radices: tuple[int, ...]
    lanes: int
    threads: int
    blocks: int = 0


#: In single precision on one H100 (`benchmarks/line_teams.py`, docs/performance/tuning), by length: the team of passes
#: that multiply spectra between two transforms with their picoseconds a number, and that of transforms alone.
TEAMS: dict[int, tuple[LineTeam, float, LineTeam | None]] = {
    256: (LineTeam((16, 16), 16, 256, 2), 39.6, None),
}
