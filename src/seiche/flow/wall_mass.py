# SPDX-License-Identifier: BSD-3-Clause
"""Removal of the mass created by interpolated and moving walls (theory/flow, section 8).

Outgoing and returning populations of a link differ, and these differences do not cancel over the links. Their sum over
a component of the fluid is removed evenly from the rest populations of its wall sites, which preserves momentum and
the physical flux along the walls. Sums cover `WINDOW` steps and reach every rank one window later. The correction
assumes that a window creates as much mass as the last known one, and also reduces the remaining error.

All sums are integer multiples of 2^-44, independent of the numbers of ranks and threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.kernels.registry.walls import WALL_BLOCK, WALL_MASS_SCALE

#: Steps of a window; windows begin at its multiples.
WINDOW = 16
#: Sums of a component: mass created at links, and change of the rest populations.
CREATED, CORRECTED = 0, 1
#: A window corrects 1/SHARE of the remaining error: it lowers the density at the wall, which creates more mass, so that
#: a larger fraction would overshoot.
SHARE = 4

Units = npt.NDArray[np.int64]


class WallMass:
    """Mass created at walls and removed, of each component of the fluid, in units of 2^-44.

    `amount` (components,) on the device is the mass removed per wall site and step.
    """

    def __init__(self, backend: Backend, world: World, component: npt.NDArray[np.int64], count: int) -> None:
        """Start from zero; `component` (m,) of this rank's wall sites, out of `count`; collective."""
        self._backend, self._world, self._count = backend, world, count
        self._sites = np.maximum(world.allreduce_sum(np.bincount(component, minlength=count)), 1)
        self._sums: Array = backend.zeros(2 * count, np.int64)
        #: Sums for measurements, which do not change the state; discarded.
        self.unused: Array = backend.zeros(count, np.int64)
        self.amount: Array = backend.zeros(count, np.float64)
        self._host = backend.pinned(2 * count, np.int64)
        self._pending: list[Any] = []  # the event after which the host has the sums
        self._last = np.zeros((2, count), np.int64)  # sums at the beginning of this window, once available
        self._previous = np.zeros((2, count), np.int64)  # sums at the beginning of the previous window
        self._correction = np.zeros(count, np.int64)  # of this window

    def sums_of(self, row: int) -> Array:
        """Return the device sums (components,) of this rank; `row` is CREATED or CORRECTED."""
        return self._sums[row * self._count : (row + 1) * self._count]

    def steps_left(self, step: int) -> int:
        """Return the number of steps from `step` on with the same correction."""
        return WINDOW - step % WINDOW

    def prepare(self, step: int) -> None:
        """At the beginning of a window, set its correction and start the copy of its sums to the host; collective."""
        if step % WINDOW:
            return
        last = self._received()
        created = last[CREATED] - self._previous[CREATED]
        correction = created + (last[CREATED] + last[CORRECTED]) // SHARE
        self._previous, self._correction = last, correction
        self._set_amount()
        self._backend.copy_to_host(self._sums, self._host)
        self._pending = [self._backend.current().record()]

    def _received(self) -> Units:
        """Return the sums (2, components) over all ranks at the beginning of this window."""
        while self._pending:
            self._backend.await_event(self._pending.pop())
            self._last = self._over_ranks(self._host.copy())
        return self._last

    def _over_ranks(self, sums: Units) -> Units:
        return np.asarray(self._world.allreduce_sum(sums), np.int64).reshape(2, self._count)

    def _set_amount(self) -> None:
        self._backend.assign(self.amount, self._correction / (WALL_MASS_SCALE * WINDOW * self._sites))

    def created(self) -> npt.NDArray[np.float64]:
        """Return the mass created by walls since the start, in sites of density 1, (components,); collective."""
        now = self._over_ranks(self._backend.download(self._sums))
        return np.asarray(now[CREATED] / WALL_MASS_SCALE)

    def state(self) -> Units:
        """Return the restart data, (6, components), the same on every rank; collective."""
        now = self._over_ranks(self._backend.download(self._sums))
        return np.concatenate([now, self._received(), self._previous[CREATED][None], self._correction[None]])

    def set_state(self, state: Units | None) -> None:
        """Restore the result of `state`; None or a state of other components restores zero."""
        rows = np.zeros((6, self._count), np.int64)
        if state is not None and np.shape(state) == rows.shape:
            rows = np.asarray(state, np.int64)
        self._pending, self._last, self._correction = [], rows[2:4], rows[5]
        self._previous = np.stack([rows[4], np.zeros_like(rows[4])])
        now = rows[:2].reshape(-1)
        self._backend.assign(self._sums, now if self._world.rank == 0 else np.zeros_like(now))
        self._set_amount()


def blocks(component: npt.NDArray[np.int64], interior: int) -> tuple[Units, npt.NDArray[np.uint32], int]:
    """Return limits (b + 1,), component (b,) and interior number of blocks of items of `component` (m,).

    The first `interior` items are interior. No block mixes interior and other items, or two components.
    """
    count = len(component)
    new = np.zeros(count + 1, bool)
    new[[0, min(interior, count), count]] = True
    new[1:count] |= component[1:] != component[:-1]
    limits = [np.arange(begin, end, WALL_BLOCK) for begin, end in pairwise(np.flatnonzero(new))]
    first = np.concatenate([*limits, [count]]).astype(np.int64)
    return first, component[first[:-1]].astype(np.uint32), int(np.searchsorted(first, interior))
