# SPDX-License-Identifier: BSD-3-Clause
"""Meshes with more elements than are possible, refused before they are made."""

from __future__ import annotations

import numpy as np

from seiche.backend.cpu import available_memory
from seiche.errors import CaseError
from seiche.waves import Brick, SizeField
from seiche.waves.sizes import Generator

#: Largest number of elements; their faces have 32-bit numbers.
_MOST = 2**31 / 6
#: Bytes of the tables of an element while the mesh is made.
_TABLES = 500


def refuse_huge(sizes: SizeField, brick: Brick, source: str, ranks: int) -> None:
    """Raise a CaseError for a mesh with too many elements, estimated before it is made."""
    sides = np.maximum(0.0, np.minimum(sizes.upper, brick.trees) - np.maximum(sizes.lower, 0.0))
    count = max(np.max(np.prod(sides / sizes.size[:, None], axis=1)), np.prod(np.array(brick.trees, float)))
    if count <= _MOST:  # at least so many; the estimate needs elements that are possible
        count = max(count, Generator(brick, sizes).estimated_leaves())
    if count > _MOST:
        raise CaseError(
            f"{source}: mesh: has more than {count:.2g} elements; the maximum is {_MOST:.2g}; use larger ones"
        )
    needed, free = count * _TABLES / ranks, available_memory()
    if needed > free:
        raise CaseError(
            f"{source}: mesh: the tables of about {count:.2g} elements need {needed / 1e9:.3g} GB a rank, but"
            f" {free / 1e9:.3g} GB are free; use larger elements or more ranks"
        )
