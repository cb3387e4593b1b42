# SPDX-License-Identifier: BSD-3-Clause
"""The mass that interpolated and moving walls create, taken back (theory/flow, section 8).

What comes back along a link is not what left, and nothing makes the differences of all links cancel. Their sum over a
component of the fluid is taken from the populations at rest of its wall sites: evenly, so that momentum and the flux
along the walls, which is physical, stay. Sums are of `WINDOW` steps and reach every rank a window later; the correction
counts on the walls to create as much in a window as in the last known one, and makes up for the rest.

All sums are whole multiples of 2^-44, the same for every number of ranks and threads.
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
#: Sums of a component: what links created, and how much the populations at rest changed.
CREATED, CORRECTED = 0, 1
#: The correction of a window makes up for this part of what is open, one of so many: a correction lowers the density at
#: the wall, whereupon the wall creates more, and a greater part would overshoot.
SHARE = 4

Units = npt.NDArray[np.int64]


class WallMass:
    """Mass created at walls and taken back, in units of 2^-44, of each component of the fluid.

    Attributes:
        amount: what each wall site of a component loses in a step, (components,) on the device.
    """

    def __init__(self, backend: Backend, world: World, component: npt.NDArray[np.int64], count: int) -> None:
        """Start with nothing created; `component` (m,) of this rank's wall sites, among `count`; collective."""
        self._backend, self._world, self._count = backend, world, count
        self._sites = np.maximum(world.allreduce_sum(np.bincount(component, minlength=count)), 1)
        self._sums: Array = backend.zeros(2 * count, np.int64)
        #: The same for calls that measure the state and change nothing.
        self.unused: Array = backend.zeros(count, np.int64)
        self.amount: Array = backend.zeros(count, np.float64)
        self._host = backend.pinned(2 * count, np.int64)
        self._pending: list[Any] = []  # the event after which the host has the sums
        self._last = np.zeros((2, count), np.int64)  # sums at the beginning of this window, once they are known
        self._before = np.zeros((2, count), np.int64)  # and of the window before
        self._due = np.zeros(count, np.int64)  # correction of this window

    def sums_of(self, row: int) -> Array:
        """Return what the kernels of this rank add to, (components,) on the device: `row` is CREATED or CORRECTED."""
        return self._sums[row * self._count : (row + 1) * self._count]

    def steps_left(self, step: int) -> int:
        """Return how many steps from `step` on have the same correction."""
        return WINDOW - step % WINDOW

    def prepare(self, step: int) -> None:
        """At the beginning of a window set its correction and send its sums to the host; collective."""
        if step % WINDOW:
            return
        last = self._arrived()
        created = last[CREATED] - self._before[CREATED]
        due = created + (last[CREATED] + last[CORRECTED]) // SHARE
        self._before, self._due = last, due
        self._set_amount()
        self._backend.copy_to_host(self._sums, self._host)
        self._pending = [self._backend.current().record()]

    def _arrived(self) -> Units:
        """Return the sums over all ranks at the beginning of this window, (2, components)."""
        while self._pending:
            self._backend.await_event(self._pending.pop())
            self._last = self._over_ranks(self._host.copy())
        return self._last

    def _over_ranks(self, sums: Units) -> Units:
        return np.asarray(self._world.allreduce_sum(sums), np.int64).reshape(2, self._count)

    def _set_amount(self) -> None:
        self._backend.assign(self.amount, self._due / (WALL_MASS_SCALE * WINDOW * self._sites))

    def created(self) -> npt.NDArray[np.float64]:
        """Return the mass that walls have created since the start, in sites of density 1, (components,); collective."""
        now = self._over_ranks(self._backend.download(self._sums))
        return np.asarray(now[CREATED] / WALL_MASS_SCALE)

    def state(self) -> Units:
        """Return what a restart needs, (6, components), the same on every rank; collective."""
        now = self._over_ranks(self._backend.download(self._sums))
        return np.concatenate([now, self._arrived(), self._before[CREATED][None], self._due[None]])

    def set_state(self, state: Units | None) -> None:
        """Set what `state` returned; without it, or with that of other components, nothing was created so far."""
        rows = np.zeros((6, self._count), np.int64)
        if state is not None and np.shape(state) == rows.shape:
            rows = np.asarray(state, np.int64)
        self._pending, self._last, self._due = [], rows[2:4], rows[5]
        self._before = np.stack([rows[4], np.zeros_like(rows[4])])
        now = rows[:2].reshape(-1)
        self._backend.assign(self._sums, now if self._world.rank == 0 else np.zeros_like(now))
        self._set_amount()


def blocks(component: npt.NDArray[np.int64], interior: int) -> tuple[Units, npt.NDArray[np.uint32], int]:
    """Return blocks of things of `component` (m,): their limits (b + 1,), component (b,), and number in the interior.

    The first `interior` things come first; no block holds any of both, or of two components.
    """
    count = len(component)
    new = np.zeros(count + 1, bool)
    new[[0, min(interior, count), count]] = True
    new[1:count] |= component[1:] != component[:-1]
    limits = [np.arange(begin, end, WALL_BLOCK) for begin, end in pairwise(np.flatnonzero(new))]
    first = np.concatenate([*limits, [count]]).astype(np.int64)
    return first, component[first[:-1]].astype(np.uint32), int(np.searchsorted(first, interior))
