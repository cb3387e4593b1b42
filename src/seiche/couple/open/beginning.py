# SPDX-License-Identifier: BSD-3-Clause
"""How an open vessel begins: behind its inlets the blood of their tubes goes on, in place of packed cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from seiche.couple.open.entering import Room
from seiche.couple.open.upstream import GOLDEN_TURN, Arrival, Upstream

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: So many radii of the largest cell farther than cells are led, others of the tube may take the place of packed ones.
_FARTHER = 3.0
#: Where that is tried by copies of cells, turned by so many angles: every so many radii.
_TURNS, _STEP = 4, 0.5


def continued(
    tubes: Collection[Upstream],
    packed: Sequence[Floats],
    room: Room,
    behind: Callable[[int, float], Keep],
    *,
    free: Mapping[str, float],
    enter: float,
    led: float,
    radius: float,
) -> tuple[list[Keep], list[Arrival]]:
    """Return which cells of a packing stay, and those of the tubes that are there, too.

    `packed` (n, v, 3) are the cells of each type, and `behind` tells of a type which are nearer to an inlet than a
    height. Cells of the tubes that would be less than `led` behind the height `enter` are there for each of which a
    packed one goes: that was there, or is in the way. Where more go, cells of the tubes that have come farther take
    their place as far as there is room. None is in the layer behind an opening that is left `free`, as deep as its name
    says. `radius` is that of the largest cell; all lengths are in sites.
    """
    keep, found, far = [~behind(kind, enter + led) for kind in range(len(packed))], list[Arrival](), list[Arrival]()
    for tube in tubes:
        for arrival in tube.beyond(enter, led + _FARTHER * radius):
            if enter + arrival.beyond < free[tube.name]:
                continue
            if arrival.beyond >= led:
                far.append(arrival)
            elif room.has(arrival.kind, arrival.vertices, clear=False, group=arrival.group):
                found.append(arrival)
                room.add(arrival.kind, arrival.vertices, arrival.group)
    lacking = np.zeros(len(packed), np.int64)
    for kind, places in enumerate(packed):
        near = np.flatnonzero(behind(kind, enter + led + (_FARTHER + 2) * radius) & keep[kind])
        keep[kind][near] = [room.has(kind, places[row], clear=False) for row in near]
        lacking[kind] = len(near) - keep[kind][near].sum()
        for row in near[keep[kind][near]]:
            room.add(kind, places[row])
    for arrival in chain(far, _turned(tubes, enter + led, radius)):
        if not lacking.any():
            break
        if lacking[arrival.kind] > 0 and room.has(arrival.kind, arrival.vertices, clear=False):
            found.append(arrival)
            room.add(arrival.kind, arrival.vertices)
            lacking[arrival.kind] -= 1
    return keep, found


def _turned(tubes: Collection[Upstream], nearest: float, radius: float) -> Iterator[Arrival]:
    """Yield copies of cells of the tubes as far as others, turned about their axes."""
    for turn in range(_TURNS):
        for depth in nearest + np.arange(0.0, _FARTHER, _STEP) * radius:
            for tube in tubes:
                yield from tube.others(float(depth), turn * GOLDEN_TURN)
