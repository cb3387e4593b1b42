# SPDX-License-Identifier: BSD-3-Clause
"""Guidance of cells that have entered: each follows its image cell in the reservoir unless other cells block it.

The free space behind a cell is then the same as in the reservoir. Without guidance, cells form a single file at an
inlet, and fewer cells can enter than pass a cross-section of the reservoir.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.inlet_reservoir import InflowCell

Floats = npt.NDArray[np.float64]

#: Trial positions of a blocked cell, as fractions of the distance from its image to its present position.
_FALLBACKS = (0.25, 0.5, 0.75)


def still_guided(
    present: Mapping[int, Floats], images: Mapping[int, InflowCell], depth: float, max_distance: float
) -> dict[int, InflowCell]:
    """Return the images, by name, of the cells that are still guided.

    Guidance of a cell with the vertices `present` (v, 3) ends when its image is `depth` behind the seam, or when the
    cell is more than `max_distance` from its image.
    """

    def is_guided(name: int, image: InflowCell) -> bool:
        offset = image.vertices.mean(axis=0) - present[name].mean(axis=0)
        return image.past_seam < depth and float(np.linalg.norm(offset)) <= max_distance

    return {name: image for name, image in images.items() if is_guided(name, image)}


def guide(present: Mapping[int, Floats], images: Mapping[int, InflowCell], space: FreeSpace) -> dict[int, InflowCell]:
    """Return the new positions, by name, of the guided cells that are moved; `space` contains all other cells nearby.

    Each cell is moved to its image. If another cell is in the way, it is moved part of the distance or not at all. All
    guided cells are added to `space`.
    """
    unblocked, moved, tested = dict(images), dict[int, InflowCell](), 0
    while True:
        blocked = [
            name
            for name, image in unblocked.items()
            if not space.fits(image.kind, image.vertices, clear=False, since=tested)
        ]
        if not blocked:
            break
        tested = len(space)
        for name in blocked:
            image = unblocked.pop(name)
            offset = present[name].mean(axis=0) - image.vertices.mean(axis=0)
            fallbacks = (
                replace(image, vertices=image.vertices + fraction * offset, moved=True) for fraction in _FALLBACKS
            )
            free_position = next(
                (cell for cell in fallbacks if space.fits(cell.kind, cell.vertices, clear=False)), None
            )
            if free_position is not None:
                moved[name] = free_position
            space.add(image.kind, present[name] if free_position is None else free_position.vertices)
    for image in unblocked.values():
        space.add(image.kind, image.vertices, image.group)
    return moved | unblocked
