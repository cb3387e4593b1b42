# SPDX-License-Identifier: BSD-3-Clause
"""The side table of moment storage: populations of sites beside boundaries, which coefficients cannot hold.

What comes back through an iolet or from a wall off the middle of its links is no polynomial in the lattice vector. A
site beside one has a row: a slot for every population that leaves, as in other layouts, then slots for some that
arrive. Those that no boundary has replaced are rebuilt from coefficients before a step (theory/flow, section 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.flow.layout import Use
from seiche.flow.velocity_set import VelocitySet

Rows = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

#: Slot of a population that has none.
NOWHERE = np.uint32((1 << 32) - 1)
_BIT = np.uint32(1)


class MomentLinks:
    """Rows of the sites `sites` (m,) of the region, ascending, and for each use a mask (m,) with a bit a direction.

    `taken`: the sweep takes the value. `state`: the value between steps is what left. `late`: so, but made by a wall.
    """

    def __init__(self, velocity_set: VelocitySet) -> None:
        """Start without rows."""
        self._Q = velocity_set.Q
        self.sites: Rows = np.zeros(0, np.int64)
        self._masks: dict[Use, Masks] = {use: np.zeros(0, np.uint32) for use in Use}

    def reserve(self, use: Use, rows: Rows, q: npt.NDArray[Any]) -> None:
        """Make room for the populations along `q` (n,) of the sites `rows` (n,) of the region."""
        every = np.union1d(self.sites, rows)
        place = np.searchsorted(every, self.sites)
        for kind, before in self._masks.items():
            self._masks[kind] = np.zeros(len(every), np.uint32)
            self._masks[kind][place] = before
        self.sites = every
        np.bitwise_or.at(self._masks[use], np.searchsorted(every, rows), _BIT << q.astype(np.uint32))

    @property
    def taken(self) -> Masks:
        """Return the links whose values the sweep takes."""
        return self.state | self._masks[Use.RETURNED]

    @property
    def state(self) -> Masks:
        """Return the links whose values are what left."""
        return self._masks[Use.IOLET] | self.late

    @property
    def late(self) -> Masks:
        """Return those of them that are walls beside iolets."""
        return self._masks[Use.LATE]

    @property
    def arriving(self) -> Masks:
        """Return the directions along which what arrives is wanted."""
        return self._masks[Use.ARRIVING]

    @property
    def rebuilt(self) -> Masks:
        """Return the directions along which what left is rebuilt before a step."""
        wanted = (self._masks[Use.RETURNED] | self._masks[Use.LEAVING] | self.arriving) != 0
        return np.where(wanted, ~self.state, np.uint32(0)) & np.uint32((1 << self._Q) - 1)

    @property
    def first_left(self) -> Masks:
        """Return the slot (m,) of the population at rest that leaves each site."""
        return np.arange(len(self.sites), dtype=np.uint32) * np.uint32(self._Q)

    @property
    def first_arrived(self) -> Masks:
        """Return the slot (m,) of the first population that arrives at each site."""
        counts = _count(self.arriving)
        return (len(self.sites) * self._Q + np.cumsum(counts) - counts).astype(np.uint32)

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return len(self.sites) * self._Q + int(_count(self.arriving).sum())

    def leaving_slots(self, q: int, rows: Rows) -> Masks:
        """Return the slots (m,) of what leaves the sites `rows` (m,) along q, NOWHERE for sites without a row here."""
        if not len(self.sites):
            return np.full(len(rows), NOWHERE)
        place = np.minimum(np.searchsorted(self.sites, rows), len(self.sites) - 1)
        return np.where(self.sites[place] == rows, self.first_left[place] + np.uint32(q), NOWHERE)

    def arriving_slots(self, q: int, rows: Rows) -> Masks:
        """Return the slots (n,) of what arrives along q at the sites `rows`, for which there must be room."""
        place = np.searchsorted(self.sites, rows)
        before = _count(self.arriving[place] & np.uint32((1 << q) - 1))
        return self.first_arrived[place] + before.astype(np.uint32)


def _count(masks: Masks) -> Rows:
    """Return the number of bits of each of `masks` (m,)."""
    return np.asarray(((masks[:, None] >> np.arange(32, dtype=np.uint32)) & _BIT).sum(axis=1), np.int64)
