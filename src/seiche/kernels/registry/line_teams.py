# SPDX-License-Identifier: BSD-3-Clause
"""Fastest measured teams for transforms of lines along an axis before the last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineTeam:
    """Division of line transforms among the threads of a GPU block.

    Attributes:
        radices: factors of the length in order.
        lanes: adjacent lines of a block.
        threads: threads of a block.
        blocks: blocks on a multiprocessor, which bound the registers (0: the compiler's choice).
    """

    radices: tuple[int, ...]
    lanes: int
    threads: int
    blocks: int = 0


#: Teams by length, in single precision on one H100 (`benchmarks/line_teams.py`, docs/performance/tuning): passes that
#: multiply spectra between two transforms, their total duration in a step of full physics (ps per number of a
#: spectrum), and transforms alone.
TEAMS: dict[int, tuple[LineTeam, float, LineTeam]] = {
    256: (LineTeam((16, 16), 16, 256, 2), 55.2, LineTeam((16, 16), 16, 128)),
    280: (LineTeam((20, 14), 8, 160, 3), 61.2, LineTeam((20, 14), 16, 320)),
    288: (LineTeam((12, 4, 6), 8, 192, 4), 59.5, LineTeam((24, 12), 16, 192)),
    320: (LineTeam((20, 16), 8, 160, 3), 60.9, LineTeam((20, 16), 16, 320)),
    384: (LineTeam((8, 6, 8), 16, 256, 2), 65.6, LineTeam((8, 6, 8), 16, 256)),
    512: (LineTeam((16, 4, 8), 8, 256, 2), 63.3, LineTeam((32, 16), 16, 256)),
    540: (LineTeam((27, 20), 8, 224, 2), 74.1, LineTeam((15, 6, 6), 16, 288)),
    560: (LineTeam((28, 20), 16, 480, 1), 80.8, LineTeam((10, 7, 8), 16, 320)),
    576: (LineTeam((24, 24), 8, 192, 2), 69.8, LineTeam((24, 24), 16, 384)),
    640: (LineTeam((32, 20), 16, 512, 1), 78.0, LineTeam((10, 8, 8), 16, 320)),
    768: (LineTeam((12, 8, 8), 8, 256, 2), 70.5, LineTeam((12, 8, 8), 16, 384)),
    1024: (LineTeam((32, 32), 8, 256, 2), 79.3, LineTeam((32, 32), 16, 512)),
    1080: (LineTeam((12, 9, 10), 8, 480, 1), 94.5, LineTeam((12, 9, 10), 8, 320)),
    1152: (LineTeam((12, 8, 12), 8, 384, 1), 88.9, LineTeam((12, 8, 12), 8, 384)),
}
#: Duration of all other work of such a step, and of passes of lengths that were not timed (ps per number).
REST, UNTIMED = 250.0, 80.0
