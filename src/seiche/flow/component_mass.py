# SPDX-License-Identifier: BSD-3-Clause
"""Mass of each connected component of the fluid, as exact integers (theory/flow, conservation of mass)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.flow.observation import Observation
from seiche.kernels.registry.reduce import BLOCK, WORDS, fold, reduce

#: Number of words of the excess mass of a component: multiples of 2^-24, and the remainder in units of 2^-60.
EXCESS_WORDS = 2


class ComponentMass:
    """Sums of rho - 1 over the sites of each component, independent of the order of the sites and of the ranks."""

    def __init__(self, observation: Observation, component: npt.NDArray[np.int64], measured: npt.NDArray[np.bool_]):
        """Set up the sums for `component` (n_owned,) of each site.

        `measured` (components,) flags those to be summed.
        """
        self._observation, backend = observation, observation.backend
        label = component[observation.order]
        rows = np.flatnonzero(measured[label])
        rows = rows[np.argsort(label[rows], kind="stable")]
        #: Index in `_items` of the first site of each component, and the end of the last component.
        self._first = np.searchsorted(label[rows], np.arange(len(measured) + 1))
        is_single = len(measured) == 1 and bool(measured.all())
        self._items: Array = (
            observation.items if is_single else backend.upload(observation.layout.item[observation.order[rows]])
        )
        blocks = max(1, -(-int(np.diff(self._first).max(initial=1)) // BLOCK))
        words, count = WORDS["Totals"], len(measured)
        self._partial: Array = backend.zeros(words * blocks, np.int64)
        self._total: Array = backend.zeros(words * count, np.int64)
        self._reduce = backend.load(reduce("Totals", observation.real))
        self._fold = backend.load(fold("Totals", observation.real))

    def host_memory(self) -> npt.NDArray[Any]:
        """Return pinned memory for `start`."""
        return self._observation.backend.pinned(self._total.size, np.int64)

    def start(self, phase: int, host: npt.NDArray[Any]) -> None:
        """Start summing the current state into `host`, see `excess_of`; halos must be current."""
        observation, backend, words = self._observation, self._observation.backend, WORDS["Totals"]
        for component in range(len(self._first) - 1):
            first, last = int(self._first[component]), int(self._first[component + 1])
            for begin, end, out in observation.chunks(phase, self._items, first, last):
                target = backend.pointer(self._partial) + 8 * words * ((begin - first) // BLOCK)
                source = {"observed": backend.pointer(out), "stride": observation.stride, "count": end - begin}
                packed = backend.pack(self._reduce, rule={**source, "out": target, "first": begin})
                self._reduce.bind(packed, 0, -(-(end - begin) // BLOCK))()
            if last > first:
                total = backend.pointer(self._total) + 8 * words * component
                fold_arguments = {"partial": self._partial, "count": -(-(last - first) // BLOCK), "out": total}
                self._fold.bind(backend.pack(self._fold, rule=fold_arguments), 0, 1)()
        backend.copy_to_host(self._total, host)


def excess_of(host: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the words of the excess mass of each component, (EXCESS_WORDS, components)."""
    return np.ascontiguousarray(host.reshape(-1, WORDS["Totals"])[:, :EXCESS_WORDS].T)
