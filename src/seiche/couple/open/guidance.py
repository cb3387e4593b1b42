# SPDX-License-Identifier: BSD-3-Clause
"""Guidance of entered cells: each follows its image cell in the reservoir as far as other cells permit.

The next cell then has the same free space behind it as in the reservoir. Without guidance cells form a single file at
an inlet, and fewer can enter than pass a section of the reservoir.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.inlet_reservoir import InflowCell

Floats = npt.NDArray[np.float64]

#: Positions tried for a blocked cell, as parts of the way from its image to its present place.
_FALLBACKS = (0.25, 0.5, 0.75)


def still_guided(
    own: Mapping[int, Floats], images: Mapping[int, InflowCell], guided: float, apart: float
) -> dict[int, InflowCell]:
    """Return the images, by name, of the cells that are still guided.

    Guidance of a cell with the vertices `own` (v, 3) ends when it is `guided` behind the seam, or `apart` from its
    image.
    """

    def near(name: int, image: InflowCell) -> bool:
        between = image.vertices.mean(axis=0) - own[name].mean(axis=0)
        return image.beyond < guided and float(np.linalg.norm(between)) <= apart

    return {name: image for name, image in images.items() if near(name, image)}


def guide(own: Mapping[int, Floats], images: Mapping[int, InflowCell], space: FreeSpace) -> dict[int, InflowCell]:
    """Return the new places, by name, of the guided cells that are moved; `space` contains all other cells nearby.

    Each cell is put at its image. If another cell is there, it is put closer to its present place, or not moved. All
    guided cells are added to `space`.
    """
    unblocked, moved, since = dict(images), dict[int, InflowCell](), 0
    while True:
        blocked = [
            name
            for name, image in unblocked.items()
            if not space.fits(image.kind, image.vertices, clear=False, since=since)
        ]
        if not blocked:
            break
        since = len(space)
        for name in blocked:
            image = unblocked.pop(name)
            behind = own[name].mean(axis=0) - image.vertices.mean(axis=0)
            tried = (replace(image, vertices=image.vertices + part * behind, moved=True) for part in _FALLBACKS)
            place = next((cell for cell in tried if space.fits(cell.kind, cell.vertices, clear=False)), None)
            if place is not None:
                moved[name] = place
            space.add(image.kind, own[name] if place is None else place.vertices)
    for image in unblocked.values():
        space.add(image.kind, image.vertices, image.group)
    return moved | unblocked
