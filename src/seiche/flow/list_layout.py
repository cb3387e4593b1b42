# SPDX-License-Identifier: BSD-3-Clause
"""List layouts: sites in a list, with one array per direction and a table of the slots of neighbours.

AB stores two copies of the populations; AA stores one copy and updates it in place. Population q of item i is in slot
q stride + i. Copies of populations of other ranks begin at slot Q stride.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.host_passes import run_pass
from seiche.domain.world import World
from seiche.flow.layout import HaloMode, Layout, check_slots
from seiche.flow.region import Region
from seiche.flow.runs import RUN, runs_of
from seiche.halo.plan import Slots, build_plan
from seiche.kernels.registry.sites import placed_slots

#: By peer, keys of values of its sites and the local slots of their copies.
Requests: TypeAlias = dict[int, list[tuple[npt.NDArray[np.int64], Slots]]]
#: The distance between the arrays of two directions must not be a multiple of the page size, since this would cause
#: cache set conflicts; `_OFFSET` is its remainder.
_PAGE, _OFFSET = 4096, 384


def padded_stride(count: int, item_bytes: int) -> int:
    """Return the distance between the arrays of two directions: aligned to cache lines, without cache set conflicts."""
    stride = -(-count * item_bytes // 128) * 128
    return (stride + (_OFFSET - stride % _PAGE) % _PAGE) // item_bytes if count else 64


class ListLayout(Layout):
    """Sites in a list. With `in_place`: AA (one copy, even and odd steps); otherwise AB (two copies)."""

    def __init__(self, backend: Backend, world: World, region: Region, store: str, *, in_place: bool) -> None:
        super().__init__(backend, store, region.velocity_set)
        Q, opposite = self.velocity_set.Q, self.velocity_set.opposite
        self.in_place = in_place
        count = len(region.owned)
        remote = np.zeros(count, bool)
        if world.size > 1:
            for q in range(1, Q):
                remote[region.remote_neighbour(q)[0]] = True
        order = np.argsort(remote, kind="stable")
        self.item = np.empty(count, np.int64)
        self.item[order] = np.arange(count)
        self.items, self.interior = count, int(count - np.count_nonzero(remote))
        self.stride = padded_stride(count, np.dtype(store).itemsize)
        check_slots(Q * self.stride + Q * int(np.count_nonzero(remote)))

        shape = (Q - 1, self.stride)
        adjacency = backend.zeros(shape, np.uint32) if backend.host_memory else np.zeros(shape, np.uint32)
        requests: Requests = {}
        copies = Q * self.stride
        for q in range(1, Q):
            direction = int(opposite[q]) if in_place else q  # of the upwind slot that holds the population along q
            back = q if in_place else int(opposite[q])  # of the slot that a wall returns
            self._fill_slots(region.own_neighbour(int(opposite[q])), direction, back, adjacency[q - 1])
            remote_rows, upwind = region.remote_neighbour(int(opposite[q]))
            owner = region.owner[upwind]
            for peer in np.unique(owner):
                from_peer = owner == peer
                slots = copies + np.arange(np.count_nonzero(from_peer))
                adjacency[q - 1, self.item[remote_rows[from_peer]]] = slots
                copies += len(slots)
                requests.setdefault(int(peer), []).append((upwind[from_peer] * Q + direction, slots.astype(np.uint32)))
        self._adjacency = adjacency if backend.host_memory else backend.upload(adjacency)
        self._adjacency_host = (self._adjacency if backend.host_memory else adjacency) if in_place else None
        self._runs: Array | None = None
        self._pieces: Array | None = None
        if in_place and backend.host_memory:
            runs, pieces = runs_of(adjacency, count)
            self._runs, self._pieces = backend.upload(runs), backend.upload(pieces)
        # The sweep may read, without using them, up to RUN - 1 values after the last slot.
        self.arrays = [backend.zeros(copies + RUN, store) for _ in range(1 if in_place else 2)]
        self.plan = build_plan(world, merged(requests), lambda keys: self._locate(region, keys))

    def _fill_slots(
        self, upwind: npt.NDArray[np.int32], direction: int, back: int, out: npt.NDArray[np.uint32]
    ) -> None:
        """Set the slots at owned sites and at walls in a row of the adjacency; those of other ranks follow later."""
        run_pass(
            placed_slots(), len(upwind), upwind=upwind, item=self.item, toward=direction * self.stride,
            back=back * self.stride, out=out,
        )  # fmt: skip

    def _slot(self, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return q * self.stride + rows

    def _locate(self, region: Region, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        rows = region.rows_of(keys // self.velocity_set.Q)
        return np.where(rows >= 0, (keys % self.velocity_set.Q) * self.stride + self.item[rows], 0).astype(np.uint32)

    def kernel_name(self, phase: int) -> str:
        """Return the name of the layout in the kernel registry, for a step of this phase."""
        return ("list-aa-odd" if phase == 0 else "list-aa-even") if self.in_place else "list-ab"

    def members(self, phase: int) -> dict[str, Any]:
        """Return the arrays, the adjacency table, the stride and, for odd steps of AA, the tables of runs."""
        common = {"adjacency": self._adjacency, "stride": self.stride}
        if self.in_place:
            runs = {} if phase else {"runs": self._runs, "pieces": self._pieces}
            return {"f": self.arrays[0], **common, **runs}
        return {"f_in": self.arrays[phase], "f_out": self.arrays[1 - phase], **common}

    def addressing_bytes(self, phase: int) -> int:
        """Return the size of the tables of runs, which an odd step of AA on a CPU reads instead of the adjacency."""
        if self._runs is None or self._pieces is None or phase == 1:
            return 0
        return int(self._runs.nbytes + self._pieces.nbytes) - 4 * (self.velocity_set.Q - 1) * self.items

    def source(self, phase: int) -> Array:
        """Return the copy that contains the current state."""
        return self.arrays[0 if self.in_place else phase]

    def halo_mode(self, phase: int) -> HaloMode:
        """Return "gather", but "scatter" before the even step of AA, when copies are sent back to their owners."""
        return "scatter" if self.in_place and phase == 1 else "gather"

    def outgoing_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint32]:
        """Return the slots; in place, those of the opposite directions (phase 0) or those written by the odd step."""
        item = self.item if rows is None else self.item[rows]
        if not self.in_place:
            return self._slot(q, item).astype(np.uint32)
        if phase == 0 or q == 0:
            return self._slot(int(self.velocity_set.opposite[q]), item).astype(np.uint32)
        assert self._adjacency_host is not None
        return np.ascontiguousarray(self._adjacency_host[self.velocity_set.opposite[q] - 1, item])

    def outgoing_distance(self, phase: int, q: int) -> int | None:
        """Return the distance between two columns.

        None after the odd step of AA, which writes to the slots of neighbours.
        """
        if not self.in_place:
            return q * self.stride
        return int(self.velocity_set.opposite[q]) * self.stride if phase == 0 else None

    def incoming_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the slots in the adjacency table; before an even step of AA, those of the site itself."""
        if q == 0 or (self.in_place and phase == 1):
            return self._slot(q, self.item[rows]).astype(np.uint32)
        return np.asarray(self.backend.download(self._adjacency[q - 1])[self.item[rows]], np.uint32)


def merged(requests: Requests) -> dict[int, tuple[npt.NDArray[np.int64], Slots]]:
    """Return the concatenated keys and slots of each peer."""
    return {
        peer: (np.concatenate([keys for keys, _ in pairs]), np.concatenate([slots for _, slots in pairs]))
        for peer, pairs in requests.items()
    }
