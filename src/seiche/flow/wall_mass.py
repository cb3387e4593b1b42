# SPDX-License-Identifier: BSD-3-Clause
"""Conservation of mass in each connected component of the fluid (theory/flow, section 8).

Interpolated and moving walls create mass, because the outgoing and returning populations of a link differ, and these
differences do not cancel in the sum over the links. Collisions in single precision create mass by rounding. Both errors
are removed evenly from the rest populations of the wall sites, which preserves momentum and the physical flux along the
walls.

The mass created at links is summed in every step. The sums of a window of steps reach all ranks one window later. The
correction assumes that each window creates as much mass as the last one whose sums are available, and it also reduces
the remaining error. If values are rounded to less than double precision, the total mass of components without openings
is compared with the initial mass every `CHECK_INTERVAL` steps. With populations in FP16, the whole error is
corrected in one step after each comparison: the usual share in a window is lost when rest populations are rounded.

All sums are integer multiples of 2^-44, so they do not depend on the numbers of ranks and threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.flow.component_mass import EXCESS_WORDS, excess_of
from seiche.kernels.registry.walls import WALL_BLOCK, WALL_MASS_SCALE

#: Number of steps in a window; windows begin at multiples of it.
WINDOW = 16
#: Number of steps in a window if only rounding is corrected.
LONG_WINDOW = 32
#: Number of steps between two comparisons of the total mass, a multiple of both window lengths.
CHECK_INTERVAL = 1024
#: Rows of the sums of a component: mass created at links, and change of the rest populations.
CREATED, CORRECTED = 0, 1
#: A window corrects 1/SHARE of the remaining error. The correction lowers the density at the wall, which creates more
#: mass, so a larger fraction would overshoot.
SHARE = 4
#: Rows of the restart data; rows in checkpoints of earlier versions, which lack the total mass.
ROWS, FORMER_ROWS = 10, 6

Units = npt.NDArray[np.int64]


class WallMass:
    """Mass created and removed in each component of the fluid, in units of 2^-44.

    `amount` (components,) on the device is the mass removed per corrected site and step.
    """

    def __init__(
        self,
        backend: Backend,
        world: World,
        component: npt.NDArray[np.int64],
        *,
        closed: npt.NDArray[np.bool_],
        creates: bool,
        coarse: bool = False,
    ) -> None:
        """Set all sums to zero; collective.

        `component` (m,) is the component of each corrected site of this rank; `closed` (components,) flags the
        components whose total mass is compared; `creates` states whether walls create mass, and `coarse` whether
        populations have so few digits (FP16) that rest populations do not change by the share of a small error.
        """
        self._backend, self._world, self._count, self._creates = backend, world, len(closed), creates
        self._coarse = coarse
        #: Flags of the components whose total mass is compared.
        self.closed = closed
        self.window = WINDOW if creates else LONG_WINDOW
        self._sites = np.maximum(world.allreduce_sum(np.bincount(component, minlength=self._count)), 1)
        self._sums: Array = backend.zeros(2 * self._count, np.int64)
        #: Sums of measurements, which do not change the state; they are discarded.
        self.unused: Array = backend.zeros(self._count, np.int64)
        self.amount: Array = backend.zeros(self._count, np.float64)
        #: Function that starts summing the total mass of the current state into host memory, see `ComponentMass`.
        self.measure: Callable[[npt.NDArray[Any]], None] | None = None
        self._host = backend.pinned(2 * self._count, np.int64)
        self._host_total: npt.NDArray[Any] | None = None
        self._pending: list[Any] = []  # the event after which the sums are on the host
        self._measuring = False  # whether the pending sums include the total mass
        zeros = np.zeros((ROWS, self._count), np.int64)
        self._last = zeros[:2]  # sums at the beginning of this window, once available
        self._previous = zeros[:2]  # sums at the beginning of the previous window
        self._correction = zeros[0]  # correction in this window
        self._rounding = zeros[0]  # mass created by rounding up to the last comparison
        self._initial, self._has_initial = zeros[:EXCESS_WORDS], False  # first measured excess mass

    def sums_of(self, row: int) -> Array:
        """Return the device sums (components,) of this rank; `row` is CREATED or CORRECTED."""
        return self._sums[row * self._count : (row + 1) * self._count]

    def remaining_steps(self, step: int) -> int:
        """Return the number of steps from `step` on to which the same correction applies."""
        return 1 if self._is_coarse_step(step) else self.window - step % self.window

    def _is_coarse_step(self, step: int) -> bool:
        """Return whether the whole error is corrected in this step: the first one that knows a comparison."""
        return self._coarse and self._creates and step % CHECK_INTERVAL == self.window

    def prepare(self, step: int) -> None:
        """At the beginning of a window, set its correction and start copying the sums to the host; collective."""
        if step % self.window:
            if self._is_coarse_step(step - 1):
                self._set_amount()
            return
        latest = self._received_sums()
        remaining_error = latest[CREATED] + latest[CORRECTED] + self._rounding
        if self._creates:
            created_in_window = latest[CREATED] - self._previous[CREATED]
            correction = created_in_window + (0 if self._is_coarse_step(step) else remaining_error // SHARE)
        else:  # the error is known from the last comparison
            correction = remaining_error if step % CHECK_INTERVAL == self.window else np.zeros_like(remaining_error)
        self._previous, is_changed = latest, bool(np.any(correction != self._correction))
        self._correction = correction
        if self._is_coarse_step(step):
            self._set_amount(remaining_error)
        elif is_changed:
            self._set_amount()
        compares_total = bool(self.closed.any()) and (step % CHECK_INTERVAL == 0 or not self._has_initial)
        if self._creates or compares_total:
            self._start_copy(compares_total)

    def _start_copy(self, compares_total: bool) -> None:
        """Start copying the sums to the host, with the total mass if `compares_total`."""
        if compares_total and self.measure is not None:
            if self._host_total is None:
                self._host_total = self._backend.pinned(4 * self._count, np.int64)
            self.measure(self._host_total)
            self._measuring = True
        self._backend.copy_to_host(self._sums, self._host)
        self._pending = [self._backend.current().record()]

    def _received_sums(self) -> Units:
        """Return the sums (2, components) over all ranks at the beginning of this window."""
        while self._pending:
            self._backend.await_event(self._pending.pop())
            self._last = self._over_ranks(self._host.copy(), 2)
            if self._measuring and self._host_total is not None:
                self._measuring = False
                self._compare_total(self._over_ranks(excess_of(self._host_total).reshape(-1), EXCESS_WORDS))
        return self._last

    def _compare_total(self, excess: Units) -> None:
        """Compute the mass created by rounding from the excess mass at the last copy of the sums."""
        if not self._has_initial:
            self._initial, self._has_initial = excess, True
        coarse, fine = excess - self._initial
        gained = coarse * (1 << 20) + (fine >> 16)
        self._rounding = np.where(self.closed, gained - self._last[CREATED] - self._last[CORRECTED], 0)

    def _over_ranks(self, sums: Units, rows: int) -> Units:
        return np.asarray(self._world.allreduce_sum(sums), np.int64).reshape(rows, self._count)

    def _set_amount(self, error: Units | int = 0) -> None:
        """Set the amount for the correction of this window, and for an `error` that is corrected in one step."""
        amount = self._correction / self.window + error
        self._backend.assign(self.amount, amount / (WALL_MASS_SCALE * self._sites))

    def created(self) -> npt.NDArray[np.float64]:
        """Return the mass created by walls since the start, in sites of density 1, (components,); collective."""
        current = self._over_ranks(self._backend.download(self._sums), 2)
        return np.asarray(current[CREATED] / WALL_MASS_SCALE)

    def state(self) -> Units:
        """Return the restart data, (ROWS, components), the same on every rank; collective."""
        current = self._over_ranks(self._backend.download(self._sums), 2)
        latest, has_initial = self._received_sums(), np.full((1, self._count), self._has_initial, np.int64)
        rows = [self._previous[CREATED][None], self._correction[None], self._rounding[None], self._initial, has_initial]
        return np.concatenate([current, latest, *rows])

    def set_state(self, state: Units | None) -> None:
        """Restore the result of `state`.

        None, or a state with a different number of components, resets the sums to zero.
        """
        rows = np.zeros((ROWS, self._count), np.int64)
        if state is not None and np.shape(state) in (rows.shape, (FORMER_ROWS, self._count)):
            rows[: len(state)] = state
        self._restore(rows)

    def _restore(self, rows: Units) -> None:
        self._pending, self._measuring, self._last, self._correction = [], False, rows[2:4], rows[5]
        self._previous = np.stack([rows[4], np.zeros_like(rows[4])])
        self._rounding, self._initial, self._has_initial = rows[6], rows[7:9], bool(rows[9].any())
        current = rows[:2].reshape(-1)
        self._backend.assign(self._sums, current if self._world.rank == 0 else np.zeros_like(current))
        self._set_amount()


def blocks(component: npt.NDArray[np.int64], interior: int) -> tuple[Units, npt.NDArray[np.uint32], int]:
    """Divide items into blocks; return their limits (b + 1,), their components (b,) and the number of interior blocks.

    `component` (m,) is the component of each item; the first `interior` items are interior. No block contains both
    interior and other items, or items of two components.
    """
    count = len(component)
    is_limit = np.zeros(count + 1, bool)
    is_limit[[0, min(interior, count), count]] = True
    is_limit[1:count] |= component[1:] != component[:-1]
    limits = [np.arange(begin, end, WALL_BLOCK) for begin, end in pairwise(np.flatnonzero(is_limit))]
    first = np.concatenate([*limits, [count]]).astype(np.int64)
    return first, component[first[:-1]].astype(np.uint32), int(np.searchsorted(first, interior))
