# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of the lists of points near each vertex, and of their bins (theory/cells, section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.cells.cells import Cells
from seiche.kernels.registry.membrane import CONTACT_STATE_WORDS, LIST_BLOCK, SKINS, SLOT_GROUP, VERTEX_GROUP

Floats = npt.NDArray[np.float64]

#: Average number of list entries per vertex. If the lists do not fit, the next ones have a shorter skin; until then
#: the vertices without a list search the bins.
_ENTRIES_PER_VERTEX = 6
#: Skins from which the device chooses, relative to the longest.
SKIN_FACTORS = 0.5 ** (np.arange(SKINS) / 2)
#: Number of units of a bin along axes that are not periodic, and of a period. Points store multiples of a step.
_UNITS_PER_BIN, _UNITS_PER_PERIOD, _UNITS_PER_STEP = 2.0**19, 2.0**32, 2.0**11
#: Maximum number of bins along an axis.
_MAX_BINS = (1 << 16) - 1
#: Factor by which lists extend beyond their radius, since distances are rounded.
_ROUNDING = 1 + 2.0**-10
#: First words of the state, which cause the lists to be rebuilt.
INVALID = np.array([1, 0, 0, 0], np.uint32)


@dataclass(frozen=True)
class OtherLists:
    """Numbers of entries of lists that share the memory of contact lists: the expected and the maximum number."""

    expected: int
    maximum: int


NO_OTHER_LISTS = OtherLists(0, 0)


class SharedLists(NamedTuple):
    """Memory of lists: `entries` (n,) and the kernel members by which contact lists learn how many are in use."""

    entries: Array
    memory: dict[str, Any]


def longest_skin(period: float, cutoff: float) -> float:
    """Return the longest skin of lists for forces up to a distance `cutoff` in a space with this period."""
    return period / 3 / _ROUNDING - cutoff


def contact_memory(vertices: int, points: int | None = None, other: OtherLists = NO_OTHER_LISTS) -> int:
    """Return the size in bytes of the lists of `vertices` and of the bins of wall `points` or, if None, of vertices.

    It includes `other` lists in the same memory.
    """
    groups, pairs = -(-max(vertices, 1) // VERTEX_GROUP), 4 * LIST_BLOCK * _blocks(vertices, other)
    if points is None:
        reference, bins = 4 * _reference_words(vertices, vertices), 4 * _slots(vertices)
    else:
        reference, bins = 8 * vertices, (24 + 8) * points + 4 * (_bin_words(points) + _slots(points))
    return 8 * vertices + reference + 2 * vertices + 4 * groups + pairs + bins


def _blocks(vertices: int, other: OtherLists) -> int:
    """Return the number of blocks for the lists of `vertices` and `other` lists; the latter always fit.

    If they are longer than expected, contact lists have less memory and a shorter skin.
    """
    expected = _ENTRIES_PER_VERTEX * vertices + other.expected + other.expected // 32
    return max(-(-max(expected, other.maximum) // LIST_BLOCK), 1)


def _slots(count: int) -> int:
    """Return the number of bins for this number of points."""
    return max(1 << (count // 4).bit_length(), SLOT_GROUP)


def _bin_words(count: int) -> int:
    """Return the number of words for the entries and bounds of the bins of this number of points."""
    return max(count, 1) + _slots(count) + _slots(count) // SLOT_GROUP


def _reference_words(stride: int, count: int) -> int:
    """Return the number of words for the reference of vertices, which are also those of the bins of `count` points."""
    return max(2 * stride, _bin_words(count))


@dataclass(frozen=True, eq=False)
class ContactPoints:
    """Points that exert forces on vertices, which are vertices or fixed wall points.

    `positions` (3, stride) has `count` points; `places` (stride,) are their integer coordinates.
    """

    positions: Array
    places: Array
    stride: int
    count: int
    at_rest: bool


class ContactLists:
    """Arrays of the lists of a law with this `cutoff`, and kernel members of them.

    `places` (stride,) are the integer coordinates of the vertices, `reference` those for which the lists were built.
    Bins of moving points are needed only while lists are built, the reference only at other times: they share memory.
    """

    def __init__(
        self,
        cells: Cells,
        points: ContactPoints,
        places: Array,
        *,
        lengths: Floats,
        cutoff: float,
        skin: float,
        other: OtherLists = NO_OTHER_LISTS,
    ) -> None:
        """Allocate the lists of the vertices of `cells`, whose longest skin is `skin`, in a space of these periods.

        `other` lists share their memory.
        """
        self._backend: Backend = cells.backend
        self.arrays: list[Array] = []
        count, periodic = points.count, lengths > 0
        radii = (cutoff + skin * SKIN_FACTORS) * _ROUNDING
        lengths = np.where(periodic, lengths, _UNITS_PER_PERIOD / _UNITS_PER_BIN * radii[0])
        per_length = _UNITS_PER_PERIOD / lengths
        # Stored coordinates are wrong by less than a step, so a difference by less than two.
        slack = float(np.linalg.norm(2 * _UNITS_PER_STEP / per_length))
        reaches = radii + slack * _ROUNDING
        #: Kernel members with the limits of displacements and the reaches of the lists, for each skin.
        self.skins = {"moved": (0.5 * skin * SKIN_FACTORS) ** 2, "reach": reaches**2}
        # On a GPU, few wide bins are faster than more narrow ones for a shorter skin. Those of points at rest are
        # filled once, for all skins.
        is_rebuilt = cells.backend.host_memory and not points.at_rest
        widths = reaches if is_rebuilt else np.full_like(reaches, reaches[0])
        numbers = np.clip(np.floor(lengths / widths[:, None]), 3, np.where(periodic, _MAX_BINS, 4 * _MAX_BINS))
        if points.at_rest:
            self.reference = self._zeros(cells.stride, np.uint64)
            bin_words = self._zeros(_bin_words(count), np.uint32)
        else:
            self.reference = bin_words = self._zeros(_reference_words(cells.stride, count), np.uint32)
        slots, entries = _slots(count), max(count, 1)
        self.slot_groups = slots // SLOT_GROUP
        self.bins: dict[str, Any] = {
            "first": bin_words[entries : _bin_words(count)],
            "tally": self._zeros(slots, np.uint32),
            "entries": bin_words[:entries],
            "mask": slots - 1,
        }
        self.units = {
            "per_length": per_length,
            "length": (1 / per_length).astype(np.float32),
            "bins": numbers.astype(np.uint32).reshape(-1),
        }
        blocks = _blocks(cells.vertex_count, other)
        self.state = self._upload(np.append(INVALID, np.zeros(CONTACT_STATE_WORDS - len(INVALID), np.uint32)))
        self.shared = SharedLists(self._zeros(blocks * LIST_BLOCK, np.uint32), {"state": self.state, "blocks": blocks})
        #: Kernel members of the lists.
        self.members: dict[str, Any] = {
            "places": places,
            "other": points.places,
            "groups": self._zeros(-(-max(cells.vertex_count, 1) // VERTEX_GROUP), np.uint32),
            "ends": self._zeros(cells.stride, np.uint16),
            "pairs": self.shared.entries,
            "units": self.units,
            "bins": self.bins,
            "cells": self._cells(cells, points),
            "memory": self.shared.memory,
            "touching": (cutoff * _ROUNDING + slack * _ROUNDING) ** 2,
        }

    def _cells(self, cells: Cells, points: ContactPoints) -> dict[str, Any]:
        """Return the kernel members that describe which points are vertices of the same cell."""
        blocks = [(block.slice.start, block.slice.stop, block.vertices) for block in cells.blocks]
        return {"blocks": self._upload(np.array(blocks, np.uint32)), "types": 0 if points.at_rest else len(blocks)}

    def _zeros(self, size: int, dtype: npt.DTypeLike) -> Array:
        self.arrays.append(self._backend.zeros(size, dtype))
        return self.arrays[-1]

    def _upload(self, host_array: npt.NDArray[Any]) -> Array:
        self.arrays.append(self._backend.upload(host_array))
        return self.arrays[-1]
