# SPDX-License-Identifier: BSD-3-Clause
"""Initial cells of an open vessel: behind the inlets, cells of the reservoirs replace packed cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.inlet_reservoir import GOLDEN_ANGLE, InflowCell, InletReservoir

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Depth beyond the guided layer, in radii of the largest cell, within which reservoir cells may replace packed cells.
_REPLACED = 3.0
#: Number of angles, and distance between positions (radii), at which rotated copies of reservoir cells are tried.
_ANGLES, _DISTANCE = 4, 0.5


def initial_cells(
    tubes: Collection[InletReservoir],
    packed: Sequence[Floats],
    space: FreeSpace,
    reaching: Callable[[int, float], Mask],
    *,
    clear_depths: Mapping[str, float],
    entry_height: float,
    guided_depth: float,
    radius: float,
) -> tuple[list[Mask], list[InflowCell]]:
    """Return masks of the packed cells that remain, by type, and the reservoir cells that replace the others.

    Behind the height `entry_height`, a layer of depth `guided_depth` is filled from the reservoirs; packed cells that
    are in it or overlap the new cells are removed. If more cells are removed than added, reservoir cells from farther
    along the tubes replace them where there is space. Lengths are in sites.

    Args:
        tubes: the reservoirs.
        packed: the packed cells (n, v, 3) of each type.
        space: the free space of the vessel.
        reaching: function that returns a mask of the cells of a type with a vertex closer to an inlet than a height.
        clear_depths: depth of the layer without cells behind each opening.
        entry_height: height at which cells enter.
        guided_depth: depth of the guided layer.
        radius: radius of the largest cell.
    """
    retained = [~reaching(kind, entry_height + guided_depth) for kind in range(len(packed))]
    added, farther = list[InflowCell](), list[InflowCell]()
    for tube in tubes:
        for cell in tube.cells_within(entry_height, guided_depth + _REPLACED * radius):
            if entry_height + cell.past_seam < clear_depths[tube.name]:
                continue
            if cell.past_seam >= guided_depth:
                farther.append(cell)
            elif space.fits(cell.kind, cell.vertices, clear=False, group=cell.group):
                added.append(cell)
                space.add(cell.kind, cell.vertices, cell.group)
    deficit = np.zeros(len(packed), np.int64)
    for kind, vertices in enumerate(packed):
        replaced = np.flatnonzero(
            reaching(kind, entry_height + guided_depth + (_REPLACED + 2) * radius) & retained[kind]
        )
        retained[kind][replaced] = [space.fits(kind, vertices[row], clear=False) for row in replaced]
        deficit[kind] = len(replaced) - retained[kind][replaced].sum()
        for row in replaced[retained[kind][replaced]]:
            space.add(kind, vertices[row])
    for cell in chain(farther, _rotated(tubes, entry_height + guided_depth, radius)):
        if not deficit.any():
            break
        if deficit[cell.kind] > 0 and space.fits(cell.kind, cell.vertices, clear=False):
            added.append(cell)
            space.add(cell.kind, cell.vertices)
            deficit[cell.kind] -= 1
    return retained, added


def _rotated(tubes: Collection[InletReservoir], first_depth: float, radius: float) -> Iterator[InflowCell]:
    """Yield copies of reservoir cells at the same depths, rotated about the axes of the tubes."""
    for turn in range(_ANGLES):
        for depth in first_depth + np.arange(0.0, _REPLACED, _DISTANCE) * radius:
            for tube in tubes:
                yield from tube.rotated_copies(float(depth), turn * GOLDEN_ANGLE)
