# SPDX-License-Identifier: BSD-3-Clause
"""Side table of moment storage, for populations at boundaries that the coefficients cannot represent.

The populations that return from an iolet or an interpolated wall are not polynomials in the lattice vector. Each site
at such a boundary has a row in this table, with slots for all outgoing populations, as in other layouts, and for some
incoming populations. Values that no boundary replaces are rebuilt from the coefficients before a step (theory/flow,
section 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.flow.layout import Use
from seiche.flow.velocity_set import VelocitySet

Rows = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

#: Slot number of a population that has no slot.
NO_SLOT = np.uint32((1 << 32) - 1)
_BIT = np.uint32(1)


class MomentLinks:
    """Table with a row for each of the `sites` (m,), ascending rows of the region, and a direction mask per use."""

    def __init__(self, velocity_set: VelocitySet) -> None:
        self._Q = velocity_set.Q
        self.sites: Rows = np.zeros(0, np.int64)
        self._masks: dict[Use, Masks] = {use: np.zeros(0, np.uint32) for use in Use}

    def reserve(self, use: Use, rows: Rows, q: npt.NDArray[Any]) -> None:
        """Reserve slots for the populations along `q` (n,) of the sites `rows` (n,) of the region."""
        sites = np.union1d(self.sites, rows)
        position = np.searchsorted(sites, self.sites)
        for kind, masks in self._masks.items():
            self._masks[kind] = np.zeros(len(sites), np.uint32)
            self._masks[kind][position] = masks
        self.sites = sites
        np.bitwise_or.at(self._masks[use], np.searchsorted(sites, rows), _BIT << q.astype(np.uint32))

    @property
    def read_links(self) -> Masks:
        """Return the links whose values the sweep reads from the table."""
        return self.state | self._masks[Use.RETURNED]

    @property
    def state(self) -> Masks:
        """Return the links whose values between steps are outgoing populations."""
        return self._masks[Use.IOLET] | self.after_iolets

    @property
    def after_iolets(self) -> Masks:
        """Return the links of `state` that are cut by walls next to iolets."""
        return self._masks[Use.AFTER_IOLETS]

    @property
    def incoming(self) -> Masks:
        """Return the directions whose incoming populations are read."""
        return self._masks[Use.INCOMING]

    @property
    def rebuilt(self) -> Masks:
        """Return the directions whose outgoing populations are rebuilt before a step."""
        is_needed = (self._masks[Use.RETURNED] | self._masks[Use.OUTGOING] | self.incoming) != 0
        return np.where(is_needed, ~self.state, np.uint32(0)) & np.uint32((1 << self._Q) - 1)

    @property
    def first_outgoing(self) -> Masks:
        """Return the slot (m,) of the outgoing rest population of each site."""
        return np.arange(len(self.sites), dtype=np.uint32) * np.uint32(self._Q)

    @property
    def first_incoming(self) -> Masks:
        """Return the slot (m,) of the first incoming population of each site."""
        counts = _count(self.incoming)
        return (len(self.sites) * self._Q + np.cumsum(counts) - counts).astype(np.uint32)

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return len(self.sites) * self._Q + int(_count(self.incoming).sum())

    def outgoing_slots(self, q: int, rows: Rows) -> Masks:
        """Return the slots (m,) of the populations that leave `rows` (m,) along q; NO_SLOT for sites without a row."""
        if not len(self.sites):
            return np.full(len(rows), NO_SLOT)
        position = np.minimum(np.searchsorted(self.sites, rows), len(self.sites) - 1)
        return np.where(self.sites[position] == rows, self.first_outgoing[position] + np.uint32(q), NO_SLOT)

    def incoming_slots(self, q: int, rows: Rows) -> Masks:
        """Return the slots (n,) of the populations that arrive along q at `rows` (n,); they must have been reserved."""
        position = np.searchsorted(self.sites, rows)
        preceding = _count(self.incoming[position] & np.uint32((1 << q) - 1))
        return self.first_incoming[position] + preceding.astype(np.uint32)


def _count(masks: Masks) -> Rows:
    """Return the number of set bits in each of `masks` (m,)."""
    return np.asarray(((masks[:, None] >> np.arange(32, dtype=np.uint32)) & _BIT).sum(axis=1), np.int64)
