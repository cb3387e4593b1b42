# SPDX-License-Identifier: BSD-3-Clause
"""Cells that have just entered go with their twins in the tube before the inlet, as far as others let them.

So the next one finds its place behind them as it has it in the tube. Without that cells form a file at an inlet, in
which fewer have room than go abreast in the tube.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.couple.open.entering import Room
from seiche.couple.open.upstream import Arrival

Floats = npt.NDArray[np.float64]

#: Where a cell is put if another is in the way: by these parts of its distance from its twin.
_BACK = (0.25, 0.5, 0.75)


def tied(own: Mapping[int, Floats], twins: Mapping[int, Arrival], led: float, apart: float) -> dict[int, Arrival]:
    """Return the twins, by name, of the cells that still go with them.

    Others, with the vertices `own` (v, 3), go their own way for good: `led` behind the seam, or `apart` from the twin.
    """

    def near(name: int, twin: Arrival) -> bool:
        between = twin.vertices.mean(axis=0) - own[name].mean(axis=0)
        return twin.beyond < led and float(np.linalg.norm(between)) <= apart

    return {name: twin for name, twin in twins.items() if near(name, twin)}


def lead(own: Mapping[int, Floats], twins: Mapping[int, Arrival], room: Room) -> dict[int, Arrival]:
    """Return where the cells with `twins` are put, by name, those that are moved; `room` has all others that are near.

    Each is put where its twin is, or, if another that goes its own way is there, nearer to where it is by itself, or
    left there. They all are in the room then.
    """
    left, found, since = dict(twins), dict[int, Arrival](), 0
    while True:
        blocked = [
            name for name, twin in left.items() if not room.has(twin.kind, twin.vertices, clear=False, since=since)
        ]
        if not blocked:
            break
        since = len(room)
        for name in blocked:
            twin = left.pop(name)
            behind = own[name].mean(axis=0) - twin.vertices.mean(axis=0)
            tried = (replace(twin, vertices=twin.vertices + part * behind, moved=True) for part in _BACK)
            place = next((each for each in tried if room.has(each.kind, each.vertices, clear=False)), None)
            if place is not None:
                found[name] = place
            room.add(twin.kind, own[name] if place is None else place.vertices)
    for name, twin in left.items():
        found[name] = twin
        room.add(twin.kind, twin.vertices, twin.group)
    return found
