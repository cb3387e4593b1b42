# SPDX-License-Identifier: BSD-3-Clause
"""Initial cells of an open vessel: behind its inlets cells of the reservoirs replace packed cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.inlet_reservoir import GOLDEN_TURN, InflowCell, InletReservoir

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: Radii of the largest cell beyond the guided layer within which cells of a reservoir may replace packed ones.
_REPLACED = 3.0
#: Rotated copies of the cells of a reservoir are tried at this many angles, at this distance (radii) from each other.
_ANGLES, _DISTANCE = 4, 0.5


def initial_cells(
    tubes: Collection[InletReservoir],
    packed: Sequence[Floats],
    space: FreeSpace,
    behind: Callable[[int, float], Keep],
    *,
    free: Mapping[str, float],
    enter: float,
    guided: float,
    radius: float,
) -> tuple[list[Keep], list[InflowCell]]:
    """Return the packed cells that stay, by type, and the cells of the reservoirs in place of the others.

    Behind the height `enter` a layer of depth `guided` is filled from the reservoirs; packed cells in it or in the way
    are removed. If more are removed than added, cells of the reservoirs farther along replace them as far as there is
    space. Lengths are in sites.

    Args:
        tubes: the reservoirs.
        packed: the packed cells (n, v, 3) of each type.
        space: the free space of the vessel.
        behind: returns the cells of a type closer to an inlet than a height.
        free: depth of the layer without cells behind each opening.
        enter: height at which cells enter.
        guided: depth of the guided layer.
        radius: radius of the largest cell.
    """
    keep = [~behind(kind, enter + guided) for kind in range(len(packed))]
    new, farther = list[InflowCell](), list[InflowCell]()
    for tube in tubes:
        for cell in tube.beyond(enter, guided + _REPLACED * radius):
            if enter + cell.beyond < free[tube.name]:
                continue
            if cell.beyond >= guided:
                farther.append(cell)
            elif space.fits(cell.kind, cell.vertices, clear=False, group=cell.group):
                new.append(cell)
                space.add(cell.kind, cell.vertices, cell.group)
    missing = np.zeros(len(packed), np.int64)
    for kind, places in enumerate(packed):
        replaced = np.flatnonzero(behind(kind, enter + guided + (_REPLACED + 2) * radius) & keep[kind])
        keep[kind][replaced] = [space.fits(kind, places[row], clear=False) for row in replaced]
        missing[kind] = len(replaced) - keep[kind][replaced].sum()
        for row in replaced[keep[kind][replaced]]:
            space.add(kind, places[row])
    for cell in chain(farther, _rotated(tubes, enter + guided, radius)):
        if not missing.any():
            break
        if missing[cell.kind] > 0 and space.fits(cell.kind, cell.vertices, clear=False):
            new.append(cell)
            space.add(cell.kind, cell.vertices)
            missing[cell.kind] -= 1
    return keep, new


def _rotated(tubes: Collection[InletReservoir], nearest: float, radius: float) -> Iterator[InflowCell]:
    """Yield copies of cells of the reservoirs at the same depths, rotated about the axes of the tubes."""
    for turn in range(_ANGLES):
        for depth in nearest + np.arange(0.0, _REPLACED, _DISTANCE) * radius:
            for tube in tubes:
                yield from tube.others(float(depth), turn * GOLDEN_TURN)
